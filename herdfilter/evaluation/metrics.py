"""Errors and consistency of an estimated trajectory, and intervals of statistics over runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

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
    """Bootstrap interval of a statistic over runs, bias-corrected and accelerated.

    Efron and Tibshirani (1993), "An introduction to the bootstrap", section 14.3. Of the root mean square of exponential
    errors it covers 77 % in place of 95 % with 10 runs, 84 % with 20 and 91 % with 100; the heavier the tail, the less.
    (Percentile intervals cover 70, 82 and 91 %.) A median has an exact interval, `median_interval`.

    Parameters
    ----------
    values : ndarray, shape (runs,)
        One finite value a run.
    statistic : callable
        Such as ``numpy.mean``; called with ``axis=1`` on resamples of shape (resamples, runs).
    level : float
        Nominal coverage.

    Returns
    -------
    tuple of float
        Lower and upper end; NaN with fewer than two runs, which say nothing about spread.
    """
    from scipy.special import ndtr, ndtri

    n = len(values)
    if n < 2:
        return np.nan, np.nan
    rng, rows = np.random.default_rng(seed), max(1, _BLOCK // n)
    drawn = np.concatenate(
        [
            statistic(values[rng.integers(n, size=(min(rows, resamples - start), n))], axis=1)
            for start in range(0, resamples, rows)
        ]
    )
    found = statistic(values[None], axis=1)[0]
    below = (drawn < found).mean() + 0.5 * (drawn == found).mean()
    bias = ndtri(np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
    groups = np.array_split(np.arange(n), min(n, _GROUPS))
    left = np.concatenate([statistic(np.delete(values, group)[None], axis=1) for group in groups])
    z = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
    low, high = np.quantile(drawn, ndtr(bias + z / (1 - _acceleration(left) * z)))
    return float(low), float(high)


def _acceleration(left: Array) -> float:
    """Acceleration from the statistic with each part of the runs left out; 0 where all are alike, or one is infinite."""
    largest = np.abs(left).max()
    if not 0 < largest < np.inf:
        return 0.0
    centred = left / largest  # a cube of what it is might overflow
    centred = centred.mean() - centred
    spread = (centred**2).sum() ** 1.5
    return float((centred**3).sum() / (6 * spread)) if spread > 0 else 0.0


_BLOCK = 2**16  # numbers of a resample held at once: fits in the cache
_GROUPS = (
    64  # of runs left out together by the jackknife: beyond so many runs one by one is slow and gains nothing
)


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


def normalised_squares(errors: Array, covariances: Array) -> Array:
    r"""Normalised estimation error squared :math:`e^\top P^{-1} e` (Bar-Shalom, Li and Kirubarajan 2001, section 5.4).

    Parameters
    ----------
    errors : ndarray, shape (T, d)
        Truth minus estimate, angles wrapped.
    covariances : ndarray, shape (T, d, d)
        What the filter holds the covariances of its errors to be.

    Returns
    -------
    ndarray, shape (T,)
        Of mean d where the covariances are right, and chi-square with d degrees of freedom where the errors are Gaussian,
        too. NaN where a covariance is singular: particles that lie in a subspace give no finite number for errors
        outside.
    """
    result = np.full(len(errors), np.nan)
    sd = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
    some = np.isfinite(covariances).all(axis=(1, 2)) & (sd > 0).all(axis=1)
    scale = sd[some]
    values, vectors = np.linalg.eigh(covariances[some] / (scale[:, :, None] * scale[:, None, :]))
    along = (vectors * (errors[some] / scale)[:, :, None]).sum(axis=1)
    regular = values[:, 0] > _SINGULAR
    result[np.flatnonzero(some)[regular]] = (along[regular] ** 2 / values[regular]).sum(axis=1)
    return result


_SINGULAR = 1e-12  # smallest eigenvalue of a correlation matrix that is not put down to rounding


def chi_square_band(degrees: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Band of a sum of normalised squares over its degrees of freedom, for a consistent Gaussian filter.

    Parameters
    ----------
    degrees : array_like
        Degrees of freedom of the sum: of NEES over independent runs, runs times d; of NIS, the number of entries
        observed.
    level : float
        Probability of the band, the same left out on either side.

    Returns
    -------
    tuple of ndarray
        Lower and upper end, around 1; NaN where there is no degree of freedom.
    """
    from scipy.special import chdtri

    degrees = np.asarray(degrees, dtype=np.float64)
    degrees = np.where(degrees > 0, degrees, np.nan)
    tail = (1 - level) / 2
    return chdtri(degrees, 1 - tail) / degrees, chdtri(degrees, tail) / degrees


def inside_ellipsoid(squares: Array, degrees: Array, level: float = 0.95) -> float:
    """Share of normalised squares (T,) within the ellipsoid of probability `level` of a Gaussian; NaN is left out."""
    from scipy.special import chdtri

    some = np.isfinite(squares)
    return float(np.mean(squares[some] <= chdtri(degrees[some], 1 - level))) if some.any() else np.nan


def energy_distance_on_line(x: Array, weights: Array, edges: Array, masses: Array) -> float:
    r"""Energy distance :math:`2 \int (F_n - G)^2` of weighted points to a density that is constant in cells.

    Szekely and Rizzo (2013), "Energy statistics", in one dimension.

    Parameters
    ----------
    x, weights : ndarray, shape (n,)
    edges : ndarray, shape (N + 1,)
        Of the cells, increasing.
    masses : ndarray, shape (N,)
        Probability of each cell.

    Returns
    -------
    float
        In the unit of `x`; exact, and for n independent draws of mean ``E|X - X'| / n``.
    """
    order = np.argsort(x)
    ends = np.sort(np.concatenate([x, edges]))
    below = np.concatenate([[0.0], np.cumsum(weights[order])])[np.searchsorted(x[order], ends[:-1], "right")]
    G = np.interp(ends, edges, np.concatenate([[0.0], np.cumsum(masses)]))
    first, last = below - G[:-1], below - G[1:]
    return float(2 / 3 * (np.diff(ends) @ (first**2 + first * last + last**2)))
