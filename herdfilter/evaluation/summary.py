"""A table of runs summarised: errors with intervals, paired ratios, failures, and a verdict in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array, one_of
from herdfilter.evaluation.metrics import bootstrap_interval, median_interval

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
            Error against the truth: root mean square over runs with its percentile bootstrap interval, and
            median over runs with its exact interval between order statistics.
        ``reference_error``, ``..._low``, ``..._high``, ``..._median``, ``..._median_low``, ``..._median_high``
            Likewise against the reference.
        ``reference_sd``
            Standard error of the reference itself, root mean square over runs: no ``reference_error`` near it says anything.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``baseline``
            Median over runs of the error divided by the baseline's in the same run with as many particles,
            its exact interval between order statistics, and the baseline's name. Errors are against the
            reference if there is one, else against the truth.
        ``log_likelihood_error``, ``ess``, ``ms_per_step``
            Root mean square, mean and median over runs.
    """
    import pandas as pd

    names = list(dict.fromkeys(table["filter"]))
    if baseline is None:
        baseline = "bootstrap" if "bootstrap" in names else names[0]
    one_of("baseline", baseline, names)
    errors = table.pivot(index="run", columns=["filter", "n_particles"], values=error_measure(table))
    rows = []
    for (name, n), runs in table.groupby(["filter", "n_particles"], sort=False):
        rows.append(
            {"scenario": runs["scenario"].iloc[0], "filter": name, "n_particles": n, "runs": len(runs)}
            | {
                "failures": int((runs["error"].fillna("") != "").sum()),
                "diverged": float(runs["diverged"].mean()),
            }
            | _error("rmse", runs["rmse"])
            | _error("reference_error", runs["reference_error"])
            | {"reference_sd": _of(_root_mean_square, _finite(runs["reference_sd"]))}
            | _ratio(_finite(errors[name, n] / errors[baseline, n]), baseline)
            | {"log_likelihood_error": _of(_root_mean_square, _finite(runs["log_likelihood_error"]))}
            | {"ess": float(runs["ess"].mean()), "ms_per_step": float(runs["ms_per_step"].median())}
        )
    return pd.DataFrame(rows)


def error_measure(table: pd.DataFrame) -> str:
    """Column that ranks filters: the error against the reference if there is one, else against the truth."""
    return "reference_error" if table["reference_error"].notna().any() else "rmse"


def _error(name: str, values: pd.Series[float]) -> dict[str, float]:
    finite = _finite(values)
    low, high = bootstrap_interval(finite, _root_mean_square)
    median_low, median_high = median_interval(finite)
    return {
        name: _of(_root_mean_square, finite),
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_median": _of(np.median, finite),
        f"{name}_median_low": median_low,
        f"{name}_median_high": median_high,
    }


def _ratio(values: Array, baseline: str) -> dict[str, Any]:
    low, high = median_interval(values)
    return {"ratio": _of(np.median, values), "ratio_low": low, "ratio_high": high, "baseline": baseline}


def _of(statistic: Any, values: Array) -> float:
    return float(statistic(values)) if len(values) else np.nan


def _root_mean_square(values: Array, axis: int = -1) -> Any:
    return np.sqrt(np.mean(values**2, axis=axis))


def _finite(values: pd.Series[float]) -> Array:
    array = np.asarray(values, dtype=np.float64)
    return array[np.isfinite(array)]


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
