"""A table of runs summarised: errors with intervals, paired comparisons, failures, and a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array, one_of
from herdfilter.evaluation.metrics import bootstrap_interval, chi_square_band, median_interval

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
    table = table.reindex(columns=[*table, *(name for name in _LATER if name not in table)])
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
            | _median("difference", _finite(errors[name, n] - errors[baseline, n]))
            | {"log_likelihood_error": _of(_root_mean_square, _finite(runs["log_likelihood_error"]))}
            | {"ess": float(runs["ess"].mean()), "ms_per_step": float(runs["ms_per_step"].median())}
            | {"seconds": float(runs["seconds"].median())}
            | _consistency("anees", runs["anees"], runs["nees_degrees"])
            | {"nees_inside": float(runs["nees_inside"].mean())}
            | {"nees_singular": float(runs["nees_singular"].sum(min_count=1))}
            | _consistency("nis", runs["nis"], runs["nis_degrees"])
            | {"nis_inside": float(runs["nis_inside"].mean())}
            | _median("energy_distance", _finite(runs["energy_distance"]))
        )
    return pd.DataFrame(rows)


_LATER = (
    "seconds",
    "anees",
    "nees_inside",
    "nees_singular",
    "nees_degrees",
    "nis",
    "nis_inside",
    "nis_degrees",
    "energy_distance",
)
"""Columns that a table of runs may lack."""


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
    return _median("ratio", values) | {"baseline": baseline}


def _median(name: str, values: Array) -> dict[str, float]:
    low, high = median_interval(values)
    return {name: _of(np.median, values), f"{name}_low": low, f"{name}_high": high}


def _consistency(name: str, values: pd.Series[float], degrees: pd.Series[float]) -> dict[str, float]:
    """Mean of normalised squares over their degrees of freedom, in each run, with interval and band."""
    some = np.isfinite(np.asarray(values, dtype=np.float64))
    finite = np.asarray(values, dtype=np.float64)[some]
    low, high = bootstrap_interval(finite, np.mean)
    band = chi_square_band(np.asarray(degrees, dtype=np.float64)[some].sum())
    return {
        name: _of(np.mean, finite),
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_band_low": float(band[0]),
        f"{name}_band_high": float(band[1]),
    }


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


def claims(
    table: pd.DataFrame, baseline: str | None = None, level: float = 0.95, simultaneous: bool = True
) -> pd.DataFrame:
    """Compare filters pair by pair, and say which is better where the paired interval shows it.

    The median over runs of the difference of two errors in the same run has an exact interval between order statistics
    (Thompson 1936), and so has that of their ratio; the one excludes 0 just where the other excludes 1. A claim says that in
    more than half of all runs the one filter has the smaller error.

    Parameters
    ----------
    table : pandas.DataFrame
        What `compare` returns. Errors are against the reference if there is one, else against the truth.
    baseline : str, optional
        Compare with this filter only; else every filter with every other.
    level : float
        Probability that no claim is false: of all those in the result together if `simultaneous`, else of each by itself.
    simultaneous : bool
        Raise the level of each interval so that `level` holds for the whole result (Bonferroni). Without it, of many
        comparisons of equal filters up to one in ``1 / (1 - level)`` ends in a claim.

    Returns
    -------
    pandas.DataFrame
        One row per particle count and pair of filters.

        ``n_particles``, ``a``, ``b``
            Who is compared.
        ``runs``, ``failures_a``, ``failures_b``
            Number of runs compared, and of those in which either failed. A failed run loses to one that did not; where both
            failed, or there is no error, the run is left out.
        ``ratio``, ``ratio_low``, ``ratio_high``, ``difference``, ``difference_low``, ``difference_high``
            Median of the error of `a` divided by, and minus, that of `b`; ends are NaN where there are too few runs, and may
            be infinite or NaN where runs failed.
        ``better``
            The filter claimed to be better; empty where the interval holds equality, or there is none.
    """
    import pandas as pd

    names = list(dict.fromkeys(table["filter"]))
    if baseline is not None:
        one_of("baseline", baseline, names)
    if not 0 < level < 1:
        raise ValueError(f"level: expected a probability between 0 and 1, got {level!r}")
    failed = table["error"].fillna("") != ""
    errors = table.assign(loss=table[error_measure(table)].mask(failed, np.inf)).pivot(
        index="run", columns=["n_particles", "filter"], values="loss"
    )
    pairs = [
        (n, pair[0], pair[1])
        for n in dict.fromkeys(table["n_particles"])
        for pair in (
            combinations(names, 2)
            if baseline is None
            else [(name, baseline) for name in names if name != baseline]
        )
        if all((n, name) in errors for name in pair)
    ]
    each = 1 - (1 - level) / max(1, len(pairs)) if simultaneous else level
    return pd.DataFrame([_claim(n, a, b, errors, each) for n, a, b in pairs], columns=_CLAIM)


_CLAIM = [
    *("n_particles", "a", "b", "runs", "failures_a", "failures_b"),
    *("ratio", "ratio_low", "ratio_high", "difference", "difference_low", "difference_high", "better"),
]


def _claim(n: Any, a: str, b: str, errors: pd.DataFrame, level: float) -> dict[str, Any]:
    first, second = (errors[n, name].to_numpy(dtype=np.float64) for name in (a, b))
    both = ~np.isnan(first) & ~np.isnan(second) & ~(np.isinf(first) & np.isinf(second))
    first, second = first[both], second[both]
    difference = first - second
    ratio = np.divide(first, second, out=np.where(first > 0, np.inf, 1.0), where=second > 0)
    low, high = median_interval(difference, level)
    row: dict[str, Any] = {"n_particles": n, "a": a, "b": b, "runs": int(both.sum())}
    row |= {"failures_a": int(np.isinf(first).sum()), "failures_b": int(np.isinf(second).sum())}
    for name, values in (("ratio", ratio), ("difference", difference)):
        ends = median_interval(values, level)
        row |= {name: _middle(values), f"{name}_low": ends[0], f"{name}_high": ends[1]}
    return row | {"better": a if high < 0 else b if low > 0 else ""}


def _middle(values: Array) -> float:
    """Median; NaN between infinities of opposite sign."""
    with np.errstate(invalid="ignore"):
        return _of(np.median, values)


def over_time(
    series: Mapping[tuple[str, int], Mapping[str, Array]],
    quantiles: tuple[float, float] = (0.25, 0.75),
    level: float = 0.95,
) -> pd.DataFrame:
    """Summarise series over the runs, step by step.

    Parameters
    ----------
    series : mapping
        (filter, n) -> name -> (runs, T) array, of the names `measures.SERIES`; runs that failed are left out or NaN.
    quantiles : tuple of float
        Ends of the bands over runs.
    level : float
        Probability of the chi-square bands.

    Returns
    -------
    pandas.DataFrame
        One row per filter, particle count and step.

        ``filter``, ``n_particles``, ``step``, ``runs``
            Where, and the number of runs that got there.
        ``rmse``, ``rmse_median``, ``rmse_low``, ``rmse_high``
            Distance to the truth: root mean square over runs, median, and ends of the band between quantiles.
        ``reference_error``, ...
            Likewise to the reference.
        ``ess_median``, ``ess_low``, ``ess_high``
            Effective sample size.
        ``nees``, ``nees_median``, ``nees_low``, ``nees_high``, ``nees_band_low``, ``nees_band_high``
            Normalised estimation error squared over its degrees of freedom: mean over runs, median, ends of the band between
            quantiles, and the chi-square band of the mean of a consistent Gaussian filter; runs are independent, so that
            this has runs times d degrees of freedom.
        ``nis``, ...
            Likewise the normalised innovation squared.
        ``energy_distance_median``, ``energy_distance_low``, ``energy_distance_high``
            At the steps that have it.

        NaN where no run has a value.
    """
    import pandas as pd

    frames = []
    for (name, n), named in series.items():
        runs, steps = np.shape(named["truth"])
        columns: dict[str, Any] = {"filter": name, "n_particles": n, "step": np.arange(1, steps + 1)}
        columns["runs"] = np.isfinite(named["truth"]).sum(axis=0)
        nothing = np.full((runs, steps), np.nan)
        for column, of in (("rmse", "truth"), ("reference_error", "reference")):
            squared = np.asarray(named.get(of, nothing))
            columns[column] = np.sqrt(_mean_over_runs(squared))
            columns |= _band(column, np.sqrt(squared), quantiles)
        columns |= _band("ess", named.get("ess", nothing), quantiles)
        for column in ("nees", "nis"):
            squares, degrees = named.get(column, nothing), named.get(f"{column}_degrees", nothing)
            total = np.nansum(degrees, axis=0)
            columns[column] = np.nansum(squares, axis=0) / np.where(total > 0, total, np.nan)
            columns |= _band(column, squares / np.where(degrees > 0, degrees, np.nan), quantiles)
            band = chi_square_band(total, level)
            columns |= {f"{column}_band_low": band[0], f"{column}_band_high": band[1]}
        columns |= _band("energy_distance", named.get("energy_distance", nothing), quantiles)
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _band(name: str, values: Any, quantiles: tuple[float, float]) -> dict[str, Array]:
    """Median and quantiles over runs (runs, T) of the values that are not NaN."""
    values = np.asarray(values, dtype=np.float64)
    result = np.full((3, values.shape[1]), np.nan)
    some = np.isfinite(values).any(axis=0)
    if some.any():
        result[:, some] = np.nanquantile(values[:, some], (0.5, *quantiles), axis=0)
    return {f"{name}_median": result[0], f"{name}_low": result[1], f"{name}_high": result[2]}


def _mean_over_runs(values: Array) -> Array:
    count = np.isfinite(values).sum(axis=0)
    return np.nansum(values, axis=0) / np.where(count > 0, count, np.nan)
