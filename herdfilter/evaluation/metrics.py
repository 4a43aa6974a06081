"""Errors of an estimated trajectory, and intervals of statistics over runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.contract import wrap_angles


def squared_error(estimate: Array, target: Array, dims: Sequence[int], circular: Sequence[int] = ()) -> Array:
    """Squared Euclidean distance at every step over the dimensions named, angles wrapped; (T, d) -> (T,)."""
    return (wrap_angles(estimate - target, circular)[:, list(dims)] ** 2).sum(axis=1)


def root_mean(squared: Array) -> float:
    """Square root of the mean."""
    return float(np.sqrt(np.mean(squared)))


def bootstrap_interval(
    values: Array, statistic: Callable[..., Array], level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic over runs (Efron and Tibshirani 1993, chapter 13).

    Parameters
    ----------
    values : ndarray, shape (runs,)
        One finite value a run.
    statistic : callable
        Such as ``numpy.median``; called with ``axis=1`` on resamples of shape (resamples, runs).
    level : float
        Nominal coverage.

    Returns
    -------
    tuple of float
        Lower and upper end; NaN with fewer than two runs, which say nothing about spread.
    """
    if len(values) < 2:
        return np.nan, np.nan
    picks = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    tail = (1 - level) / 2
    low, high = np.quantile(statistic(values[picks], axis=1), [tail, 1 - tail])
    return float(low), float(high)


def median_interval(values: Array, level: float = 0.95) -> tuple[float, float]:
    """Interval of a median between order statistics, exact for any continuous distribution (Thompson 1936).

    Parameters
    ----------
    values : ndarray, shape (runs,)
        One finite value a run.
    level : float
        Coverage, at least.

    Returns
    -------
    tuple of float
        Lower and upper end; NaN where there are too few runs: fewer than six at 95 %.
    """
    from scipy.stats import binom

    below = int(binom.ppf((1 - level) / 2, len(values), 0.5)) if len(values) else 0
    if below < 1:
        return np.nan, np.nan
    ordered = np.sort(values)
    return float(ordered[below - 1]), float(ordered[-below])
