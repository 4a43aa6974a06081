"""A table of runs summarised: one row for each filter and particle count, and a verdict in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from herdfilter._checks import one_of
from herdfilter.evaluation.columns import COLUMNS
from herdfilter.evaluation.statistics import finite, paired_median

if TYPE_CHECKING:
    import pandas as pd


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

        ``runs``, ``failures``, ``diverged``
            Number of runs, number of those that failed, share of those that diverged (failed ones included).
        ``rmse``, ``rmse_low``, ``rmse_high``, ``rmse_median``, ``rmse_median_low``, ``rmse_median_high``
            Error against the truth: root mean square over runs with its bootstrap interval, and
            median over runs with its exact interval between order statistics.
        ``reference_error``, ``..._low``, ``..._high``, ``..._median``, ``..._median_low``, ``..._median_high``
            Likewise against the reference.
        ``reference_sd``
            Standard error of the reference itself, root mean square over runs: no ``reference_error`` near it says anything.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``baseline``
            Median over runs of the error divided by the baseline's in the same run with as many particles,
            its exact interval between order statistics, and the baseline's name. Errors are against the
            reference if there is one, else against the truth.
        ``difference``, ``difference_low``, ``difference_high``
            Likewise the difference of the error from the baseline's, in the unit of the error.
        ``log_likelihood_error``, ``ess``, ``ms_per_step``, ``seconds``
            Root mean square, mean, median and median over runs.
        ``anees``, ``anees_low``, ``anees_high``, ``anees_band_low``, ``anees_band_high``
            NEES / d, mean over time and runs, with its bootstrap interval over runs; 1 where covariances are right. The
            band is chi-square with runs times d degrees of freedom: as if an average over time were no less uncertain
            than a single step, which is the worst case of dependence in time.
        ``nees_inside``, ``nees_singular``
            Share of steps at which the truth lies in the filter's 95 % ellipsoid; number of steps whose covariance is
            singular, which enter neither.
        ``nis``, ``nis_low``, ``nis_high``, ``nis_band_low``, ``nis_band_high``, ``nis_inside``
            The same for the innovations. Those of a right filter are independent in time, and the degrees of freedom of the
            band are all entries observed.
        ``energy_distance``, ``energy_distance_low``, ``energy_distance_high``
            Of the particles to the exact posterior: median over runs with its exact interval.

        Columns of measures that the table lacks are NaN.
    """
    import pandas as pd

    names = list(dict.fromkeys(table["filter"]))
    if baseline is None:
        baseline = "bootstrap" if "bootstrap" in names else names[0]
    one_of("baseline", baseline, names)
    later = [column.name for column in COLUMNS if column.name not in table]
    table = table.reindex(columns=[*table, *later])
    errors = table.pivot(index="run", columns=["filter", "n_particles"], values=error_measure(table))
    rows = []
    for (name, n), runs in table.groupby(["filter", "n_particles"], sort=False):
        row = {"scenario": runs["scenario"].iloc[0], "filter": name, "n_particles": n, "runs": len(runs)}
        row["failures"] = int((runs["error"].fillna("") != "").sum())
        for column in COLUMNS:
            if column.summary is not None:
                row |= column.summary(column.name, runs)
        own, other = errors[name, n], errors[baseline, n]
        row |= {"baseline": baseline} | paired_median("ratio", finite(own / other))
        rows.append(row | paired_median("difference", finite(own - other)))
    return pd.DataFrame(rows)


def error_measures(table: pd.DataFrame) -> list[str]:
    """Columns of errors that have values, the one that ranks filters first; the last one at least."""
    errors = [column.name for column in COLUMNS if column.figure == "error"]
    return [name for name in errors[:-1] if table[name].notna().any()] + errors[-1:]


def error_measure(table: pd.DataFrame) -> str:
    """Column that ranks filters: the error to the reference if there is one, else to the truth."""
    return error_measures(table)[0]


def verdict(summary: pd.DataFrame) -> str:
    """Say in one sentence which filter did best at the largest particle count.

    A gain over the baseline is claimed only where the 95 % interval of the paired ratio lies below 1.
    """
    n = summary["n_particles"].max()
    measure = error_measure(summary)
    against = "the reference" if measure == "reference_error" else "the truth"
    ranked = summary[summary["n_particles"] == n].dropna(subset=f"{measure}_median")
    if ranked.empty:
        return f"At n = {n} no filter finished a run."
    best = ranked.loc[ranked[f"{measure}_median"].idxmin()]
    claim = f"At n = {n} {best['filter']} has the smallest median error against {against}"
    if len(ranked) == 1 or not np.isfinite(best["ratio"]):
        return f"{claim}, {best[f'{measure}_median']:.3g}."
    base = best["baseline"]
    if best["filter"] == base:
        return f"At n = {n} no filter has a smaller median error against {against} than {base}."
    interval = "too few runs for an interval"
    if np.isfinite(best["ratio_low"]):
        interval = f"95 % interval {best['ratio_low']:.2g} to {best['ratio_high']:.2g}"
    if best["ratio_high"] < 1:
        return f"{claim}: {best['ratio']:.2g} of that of {base} run by run ({interval})."
    return f"{claim}, but a gain over {base} is not shown: ratio {best['ratio']:.2g} run by run ({interval})."
