"""A table of runs summarised: one row for each filter and particle count, and a verdict in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import one_of, short_repr
from herdfilter.study.columns import COLUMNS, digits
from herdfilter.study.statistics import geometric_mean, paired_median, paired_ratios

if TYPE_CHECKING:
    import pandas as pd


class Pairs:
    """Errors of filters in the same runs: every ratio that is shown, its interval, and what they claim come from here.

    `losses` has a row for each run and a column for each filter and particle count, infinite where a run failed; so has
    `errors`, but of a family a row for each model, the median over its runs.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        failed = table["error"].fillna("") != ""
        self._family = "model" in table
        self.losses = table.assign(loss=table[error_measure(table)].mask(failed, np.inf)).pivot(
            index=["model", "run"] if self._family else ["run"],
            columns=["filter", "n_particles"],
            values="loss",
        )
        self.errors = self._of_units(self.losses)

    def by_run(self, own: Any, base: Any) -> pd.Series[float]:
        """Divide errors, of a filter and particle count each, run by run; runs that failed in both are left out."""
        import pandas as pd

        first, second = (self.losses[key].to_numpy(dtype=np.float64) for key in (own, base))
        return pd.Series(paired_ratios(first, second), self.losses.index).dropna()

    def ratios(self, own: Any, base: Any) -> pd.Series[float]:
        """Return these ratios; of a family one for each model at which `base` did not fail, the median over its runs."""
        ratios = self._of_units(self.by_run(own, base))
        return ratios[np.isfinite(self.errors[base][ratios.index])] if self._family else ratios

    def compare(self, own: Any, base: Any, level: float = 0.95) -> dict[str, float]:
        """Return ratio and difference of errors with intervals, and who is better, as `summarise` has them."""
        if self._family:
            row = geometric_mean("ratio", self.ratios(own, base).to_numpy(), level)
        else:
            row = paired_median("ratio", self.ratios(own, base).to_numpy(), level)
            row |= paired_median("difference", (self.losses[own] - self.losses[base]).dropna().to_numpy(), level)
        return row | {"better": int(row["ratio_low"] > 1) - int(row["ratio_high"] < 1)}

    def _of_units(self, values: Any) -> Any:
        """Median over the runs of every model; of one model what every run has."""
        return values.groupby(level="model").median() if self._family else values


def summarise(table: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Summarise the runs of every filter and particle count.

    Parameters
    ----------
    table : pandas.DataFrame
        What `compare` returns.
    baseline : str, optional
        The filter that ratios refer to; ``bootstrap`` if it is there, else the first.

    Returns
    -------
    pandas.DataFrame
        One row per filter and particle count. Failed runs are counted and enter no average. All intervals
        are at 95 % over runs, and NaN where there are too few.

        ``runs``, ``models``, ``failures``
            Number of runs, of models in a family, and of runs that failed.
        ``rmse``, ``reference_error``, ``anees``, ...
            The columns of `herdfilter.study.columns`, each summarised as it says there; ``_low`` and ``_high`` are the
            ends of its interval, ``_median`` (with ends) its median, ``_band_low`` and ``_band_high`` the chi-square band.
            The band of ``anees`` is that of a single step, the worst case of dependence in time; innovations of a right
            filter are independent, and the band of ``nis`` counts all entries observed.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``baseline``
            Median over runs of the error divided by the baseline's in the same run with as many particles, its interval,
            and the baseline's name. Errors are to the reference if there is one, else to the truth. A failed run loses to
            one that did not: its ratio is infinite. Of a family as in `over_models`.
        ``better``
            -1 where the interval of the ratio lies below 1: a gain is shown. 1 where it lies above, else 0.
        ``difference``, ``difference_low``, ``difference_high``
            Likewise the error minus the baseline's; not of a family, whose models have units of their own.

        Columns of measures that the table lacks are NaN.

    Examples
    --------
    >>> table = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=2, seed=0)
    >>> summary = hf.study.summarise(table, baseline="bootstrap")
    >>> print((summary.set_index("filter")["ratio"] < 0.1).to_dict())  # the UKF is exact here
    {'bootstrap': False, 'ukf': True}
    """
    import pandas as pd

    baseline = baseline_of(table, baseline)
    later = [column.name for column in COLUMNS if column.name not in table]
    table = table.reindex(columns=[*table, *later])
    pairs = Pairs(table)
    rows = []
    for (name, n), runs in table.groupby(["filter", "n_particles"], sort=False):
        row = {"scenario": runs["scenario"].iloc[0], "filter": name, "n_particles": n, "runs": len(runs)}
        if "model" in table:
            row["models"] = runs["model"].nunique()
        row["failures"] = int((runs["error"].fillna("") != "").sum())
        for column in COLUMNS:
            if column.summary is not None:
                row |= column.summary(column.name, runs)
        rows.append(row | {"baseline": baseline} | pairs.compare((name, n), (baseline, n)))
    return pd.DataFrame(rows)


def check_table(table: Any) -> None:
    """Raise TypeError unless this is a table of runs."""
    if not {"filter", "n_particles", "run"} <= set(getattr(table, "columns", ())):
        raise TypeError(f"table: expected the table of runs that compare returns, got {short_repr(table)}")


def baseline_of(table: pd.DataFrame, baseline: str | None = None) -> str:
    """Return the filter that ratios refer to: ``bootstrap``, or else the first, unless given."""
    check_table(table)
    names = list(dict.fromkeys(table["filter"]))
    first = "bootstrap" if "bootstrap" in names else names[0]
    return one_of("baseline", first if baseline is None else baseline, names)


def error_measures(table: pd.DataFrame) -> list[str]:
    """Columns of errors that have values, the one that ranks filters first; that to the truth at least.

    Models of a family have units of their own: errors to the reference are in posterior standard deviations there.
    """
    if not {"model", "models"}.isdisjoint(table):
        scaled = [column.name for column in COLUMNS if column.figure == "scaled"]
        return [name for name in scaled if table[name].notna().any()] or ["rmse"]
    errors = [column.name for column in COLUMNS if column.figure == "error"]
    return [name for name in errors if name in table and table[name].notna().any()] or ["rmse"]


def error_measure(table: pd.DataFrame) -> str:
    """Column that ranks filters: the error to the reference if there is one, else to the truth; of many targets GOSPA."""
    return error_measures(table)[0]


def told(measure: str, preposition: str = "to") -> str:
    """Say what a column of errors measures, as in ``error to the truth``."""
    if measure == "gospa":
        return "GOSPA"
    return f"error {preposition} the {'truth' if measure == 'rmse' else 'reference'}"


def verdict(summary: pd.DataFrame) -> str:
    """Say in one sentence which filter did best at the largest particle count.

    A gain over the baseline is claimed only where it is shown (`Pairs.compare`).
    """
    n = summary["n_particles"].max()
    measure = error_measure(summary)
    error = told(measure, "against")
    ranked = summary[summary["n_particles"] == n].dropna(subset=f"{measure}_median")
    if ranked.empty:
        return f"At n = {n} no filter finished a run."
    best = ranked.loc[ranked[f"{measure}_median"].idxmin()]
    claim = f"At n = {n} {best['filter']} has the smallest median {error}"
    if len(ranked) == 1 or np.isnan(best["ratio"]):
        return f"{claim}, {best[f'{measure}_median']:.3g}."
    base = best["baseline"]
    if best["filter"] == base:
        return f"At n = {n} no filter has a smaller median {error} than {base}."
    interval, ratio = told_interval(best, "runs"), digits(best["ratio"])
    if best["better"] < 0:
        return f"{claim}: {ratio} of that of {base} run by run ({interval})."
    return f"{claim}, but a gain over {base} is not shown: ratio {ratio} run by run ({interval})."


def told_interval(row: pd.Series[Any], units: str) -> str:
    """Name the interval of a ratio, in the digits of the tables."""
    if np.isnan(row["ratio_low"]):
        return f"too few {units} for an interval"
    return f"95 % interval {digits(row['ratio_low'])} to {digits(row['ratio_high'])}"
