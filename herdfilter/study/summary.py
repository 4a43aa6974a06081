"""Summaries of a table of runs: a row for each filter and particle count, claims about pairs of filters, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.study.columns import (
    BY_NAME,
    COLUMNS,
    RATIO,
    SERIES,
    digits,
    error_measure,
    error_phrase,
)
from herdfilter.study.statistics import geometric_mean, paired_median, paired_ratios

if TYPE_CHECKING:
    import pandas as pd


class Pairs:
    """Errors of filters in the same runs, from which every ratio, interval and claim is computed.

    `losses` has a row for each run and a column for each filter and particle count, infinite if the run failed. `errors` are
    the losses or, for a family, their medians over the runs of each model.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        failed = table["error"].fillna("") != ""
        self._family = "model" in table
        # A failed run loses to every other, and so has an infinite error.
        self.losses = table.assign(loss=table[error_measure(table)].mask(failed, np.inf)).pivot(
            index=["model", "run"] if self._family else ["run"],
            columns=["filter", "n_particles"],
            values="loss",
        )
        self.errors = median_by_model(self.losses) if self._family else self.losses

    def by_run(self, key: Any, base: Any) -> pd.Series[float]:
        """Divide errors run by run; `key` and `base` are (filter, n). Runs in which both failed are left out."""
        import pandas as pd

        errors = (self.losses[column].to_numpy(np.float64) for column in (key, base))
        return pd.Series(paired_ratios(*errors), self.losses.index).dropna()

    def ratios(self, key: Any, base: Any) -> pd.Series[float]:
        """Return these ratios; for a family their median for each model at which `base` did not fail.

        For an even number of runs it is the geometric mean of the middle two, so that noise does not bias logarithms.
        """
        ratios = self.by_run(key, base)
        if self._family:
            by_model = ratios.groupby(level="model")
            middle = by_model.quantile(interpolation="lower") * by_model.quantile(
                interpolation="higher"
            )
            # A product of 0 and infinity is NaN.
            ratios = middle.fillna(np.inf).apply(np.sqrt)
            ratios = ratios[np.isfinite(self.errors[base][ratios.index])]
        return ratios

    def compare(self, key: Any, base: Any, level: float = 0.95) -> dict[str, float]:
        """Return ratio and difference of errors with intervals, and the sign `better`, as in `summarise`."""
        summary = geometric_mean if self._family else paired_median
        row = summary("ratio", self.ratios(key, base).to_numpy(), level)
        if not self._family:
            differences = (self.losses[key] - self.losses[base]).dropna()
            row |= paired_median("difference", differences.to_numpy(), level)
        # -1 with the whole interval below 1, 1 with the whole interval above; comparisons with NaN are false.
        return row | {"better": int(row["ratio_low"] > 1) - int(row["ratio_high"] < 1)}


def median_by_model(values: Any) -> Any:
    """Return the median over each model's runs, of a column or table with a row for each run."""
    return values.groupby(level="model").median()


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
            The columns of `herdfilter.study.columns`, NaN if the table lacks them; ``_low`` and ``_high`` are the ends of
            the interval, ``_median`` (with ends) is the median, ``_band_low`` and ``_band_high`` are the chi-square band.
            The band of ``anees`` counts a single step, the worst case of dependence in time; innovations of a consistent
            filter are independent, and the band of ``nis`` counts all entries observed.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``baseline``
            Median over runs of the error divided by the baseline's in the same run with as many particles, its interval,
            and the baseline's name. Errors are to the reference if there is one, else to the truth. A failed run loses to
            one that did not: its ratio is infinite. For a family as in `over_models`.
        ``better``
            -1 if the interval of the ratio lies below 1: a gain is shown. 1 if it lies above, else 0.
        ``difference``, ``difference_low``, ``difference_high``
            The error minus the baseline's, with its interval; not for a family, whose models differ in units.

    Examples
    --------
    >>> table = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=2, seed=0)
    >>> summary = hf.study.summarise(table, baseline="bootstrap")
    >>> print((summary.set_index("filter")["ratio"] < 0.1).to_dict())  # the UKF is exact here
    {'bootstrap': False, 'ukf': True}
    """
    import pandas as pd

    baseline = baseline_of(table, baseline)
    # Tables of other sources, as in the examples, need not have every column.
    table = table.reindex(columns=list(dict.fromkeys([*table, *BY_NAME])))
    pairs = Pairs(table)
    rows = []
    for (name, n), runs in table.groupby(["filter", "n_particles"], sort=False):
        row = {"scenario": runs["scenario"].iloc[0], "filter": name, "n_particles": n}
        row["runs"] = len(runs)
        if "model" in table:
            row["models"] = runs["model"].nunique()
        row["failures"] = int((runs["error"].fillna("") != "").sum())
        for column in COLUMNS:
            if column.summary is not None:
                row |= column.summary(column.name, runs)
        rows.append(row | {"baseline": baseline} | pairs.compare((name, n), (baseline, n)))
    return pd.DataFrame(rows)


def check_runs(table: Any) -> None:
    """Raise TypeError unless this is a table of runs."""
    if not {"filter", "n_particles", "run"} <= set(getattr(table, "columns", ())):
        raise TypeError(
            f"table: expected the table of runs that compare returns, got {_checks.short_repr(table)}"
        )


def baseline_of(table: pd.DataFrame, baseline: str | None = None) -> str:
    """Return the filter that ratios refer to: ``bootstrap``, else the first, unless given.

    TypeError unless `table` is a table of runs.
    """
    check_runs(table)
    names = list(dict.fromkeys(table["filter"]))
    first = "bootstrap" if "bootstrap" in names else names[0]
    return _checks.one_of("baseline", first if baseline is None else baseline, names)


def verdict(summary: pd.DataFrame) -> str:
    """Name, in one sentence, the best filter at the largest particle count; claim a gain only if it is shown."""
    n = summary["n_particles"].max()
    measure = error_measure(summary)
    error = error_phrase(measure)
    # Filters are ranked by their medians, but a claim needs the paired ratio.
    ranked = (
        summary[summary["n_particles"] == n].dropna(subset=f"{measure}_median").set_index("filter")
    )
    if ranked.empty:
        return f"With {n} particles no filter finished a run."
    best = ranked.loc[ranked[f"{measure}_median"].idxmin()]
    base = best["baseline"]
    # Nothing to compare with: one filter alone, or a baseline that failed in every run.
    if len(ranked) == 1 or np.isnan(best["ratio"]):
        return f"With {n} particles {best.name} has a median {error} of {digits(best[f'{measure}_median'])}."
    if best.name == base:
        return f"With {n} particles no filter has a smaller median {error} than {base}."
    times = best["ms_per_step"] / ranked["ms_per_step"].get(base, np.nan)
    return f"With {n} particles {comparison(best, error, 'runs', times)}."


def comparison(best: pd.Series[Any], error: str, units: str, times: float, over: str = "") -> str:
    """Write the ratio of a filter's error to its baseline's with its interval over `units`, and the ratio of their times."""
    base = best["baseline"]
    doubt = "" if best["better"] < 0 else f"no gain over {base} is shown: "
    # In the format of the tables.
    ratio, low, high = (RATIO.written(best[f"ratio{end}"]) for end in ("", "_low", "_high"))
    interval = (
        f"too few {units} for an interval"
        if np.isnan(best["ratio_low"])
        else f"95 % interval {low} to {high}"
    )
    cost = "" if np.isnan(times) else f", at {float(f'{times:.2g}'):g} times its time per step"
    return f"{doubt}{best.name}'s {error} is {ratio} times {base}'s{over} ({interval}){cost}"


def claims(
    table: pd.DataFrame, baseline: str | None = None, level: float = 0.95, simultaneous: bool = True
) -> pd.DataFrame:
    """Compare filters pair by pair, and name the better one if the paired interval shows it.

    The median over runs of the ratio of two errors in the same run has an exact interval between order statistics (Thompson
    1936). A claim says that in more than half of all runs one filter has the smaller error; for a family, that its error is
    smaller in the geometric mean over models (`over_models`).

    Parameters
    ----------
    table : pandas.DataFrame
        What `compare` returns. Errors are against the reference if there is one, else against the truth.
    baseline : str, optional
        Compare with this filter only; else every filter with every other.
    level : float
        Probability that no claim is false.
    simultaneous : bool
        `level` holds for the whole result (Bonferroni), not only for each claim by itself.

    Returns
    -------
    pandas.DataFrame
        One row per particle count and pair of filters.

        ``n_particles``, ``a``, ``b``
            Particle count and the two filters.
        ``runs``, ``failures_a``, ``failures_b``
            Number of runs compared (of models in a family, each by the median over its runs), and of failed ones. A failed
            run loses to one that did not; a run in which both failed, or without an error, is left out.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``difference``, ``difference_low``, ``difference_high``
            Ratio and difference of the errors of `a` and `b`, as in `summarise`; ends are NaN where there are too few
            runs, and may be infinite where runs failed.
        ``better``
            The filter claimed to be better; empty without an interval, or if it holds 1.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({
    ...     "filter": 6 * ["a"] + 6 * ["b"], "n_particles": 100, "run": 2 * list(range(6)),
    ...     "reference_error": [1.0, 1.1, 0.9, 1.2, 1.0, 0.8, 2.0, 2.4, 1.9, 2.5, 2.2, 1.7],
    ...     "rmse": 3.0, "error": "",
    ... })
    >>> print(hf.study.claims(table)[["a", "b", "ratio", "better"]].round(2).to_string(index=False))
    a b  ratio better
    a b   0.47      a
    """
    import pandas as pd

    check_runs(table)  # which may be empty
    pairs = Pairs(table)
    names = list(dict.fromkeys(table["filter"]))
    if baseline is not None:
        _checks.one_of("baseline", baseline, names)
    level = _checks.as_number(
        "level", level, "a probability between 0 and 1", lambda p: 1e-9 < p < 1
    )
    _checks.check_flags(simultaneous=simultaneous)
    against = list(combinations(names, 2))
    if baseline is not None:
        against = [(name, baseline) for name in names if name != baseline]
    # Some filters may have other particle counts.
    keys = [
        ((a, n), (b, n))
        for n in table["n_particles"].unique()
        for a, b in against
        if {(a, n), (b, n)} <= set(pairs.errors)
    ]
    # Bonferroni: each claim may be false with an equal share of the probability for all.
    claim_level = 1 - (1 - level) / max(1, len(keys)) if simultaneous else level
    rows = []
    for (a, n), (b, _) in keys:
        failed = np.isinf(pairs.errors[[(a, n), (b, n)]].dropna())
        # A run in which both failed says nothing.
        failed = failed[~failed.all(axis=1)]
        row = {"n_particles": n, "a": a, "b": b, "runs": len(failed)}
        row["failures_a"], row["failures_b"] = failed.sum()
        row |= pairs.compare((a, n), (b, n), claim_level)
        rows.append(row | {"better": {-1: a, 0: "", 1: b}[row["better"]]})
    columns = ["n_particles", "a", "b", "runs", "failures_a", "failures_b"]
    columns += [f"{name}{end}" for name in ("ratio", "difference") for end in ("", "_low", "_high")]
    # The columns are named, too, because there may be no rows.
    return pd.DataFrame(rows, columns=[*columns, "better"])


def over_time(series: Mapping[tuple[str, int], Mapping[str, Array]]) -> pd.DataFrame:
    """Summarise series over the runs, step by step.

    Parameters
    ----------
    series : mapping
        (filter, n) -> name -> (runs, T) array, of the names `columns.SERIES`; runs that failed are left out or NaN.

    Returns
    -------
    pandas.DataFrame
        One row per filter, particle count and step.

        ``runs``
            Number of runs that got to the step.
        ``rmse``, ``reference_error``
            Distance to truth and reference, root mean square over runs.
        ``gospa``, ``ospa``, ``cardinality``
            For many targets the distances of sets, and the number of estimates minus that of targets, means over runs.
        ``nees``, ``nis``, ``nees_band_low``, ``nees_band_high``, ...
            Normalised squares of estimation errors and innovations over their degrees of freedom, mean over runs, and the
            95 % chi-square band of the mean of a consistent Gaussian filter; NEES has runs times d degrees of freedom.
        ``rmse_median``, ``rmse_low``, ``rmse_high``, ...
            Median and quartiles; the others, ``ess`` and ``energy_distance`` have them, too.

        NaN if no run has a value.

    Examples
    --------
    >>> squared = np.array([[1.0, 4.0], [9.0, 4.0]])  # two runs of two steps
    >>> frame = hf.study.over_time({("bootstrap", 100): {"truth": squared}})
    >>> print(frame[["step", "runs", "rmse"]].round(3).to_string(index=False))
     step  runs  rmse
        1     2 2.236
        2     2 2.000
    """
    import pandas as pd

    frames = []
    for (name, n), by_name in series.items():
        # Every run that did not fail has an error to the truth, or GOSPA.
        errors = np.asarray(by_name["truth" if "truth" in by_name else "gospa"])
        unknown = np.full(errors.shape, np.nan)
        columns = {
            "filter": name,
            "n_particles": n,
            "step": np.arange(1, errors.shape[1] + 1),
            "runs": np.isfinite(errors).sum(axis=0),
        }
        for entry in SERIES:
            if entry.over_time is not None:
                values = np.asarray(by_name.get(entry.name, unknown))
                degrees = np.asarray(by_name.get(f"{entry.name}_degrees", unknown))
                columns |= entry.over_time(entry.column or entry.name, values, degrees)
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
