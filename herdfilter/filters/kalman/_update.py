"""Kalman's update in numbers, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from herdfilter._checks import Array


class Updated(NamedTuple):
    """K Gaussians after an update.

    Attributes
    ----------
    means, covariances : ndarray, shapes (K, d) and (K, d, d)
    log_densities : ndarray, shape (K,)
        Of the observation; NaN where its covariance is not positive definite: then nothing else is of use.
    regular : bool
        Whether all covariances are positive definite.
    """

    means: Array
    covariances: Array
    log_densities: Array
    regular: bool


def updated(means: Array, covariances: Array, residuals: Array, observed: Array, cross: Array) -> Updated:
    """Update K Gaussians, each with its residual.

    Parameters
    ----------
    means : ndarray, shape (K, d)
    covariances : ndarray, shape (K, d, d) or (1, d, d)
    residuals : ndarray, shape (K, k)
    observed : ndarray, shape (K, k, k)
        Covariances S of the observation.
    cross : ndarray, shape (K, d, k)
        Covariances of state and observation.
    """
    contiguous = np.ascontiguousarray
    (count, d), k = means.shape, residuals.shape[1]
    moved, shrunk, log_densities = means.copy(), np.empty((count, d, d)), np.full(count, np.nan)
    regular = _update(
        contiguous(covariances),
        contiguous(residuals),
        contiguous(observed),
        contiguous(cross),
        moved,
        shrunk,
        log_densities,
        np.empty((max(k, d), max(k, d))),
        np.empty((k, d + 1)),
    )
    return Updated(moved, shrunk, log_densities, regular)


@njit(cache=True, nogil=True)
def _update(
    covariances: Array,
    residuals: Array,
    observed: Array,
    cross: Array,
    moved: Array,
    shrunk: Array,
    log_densities: Array,
    factor: Array,
    half: Array,
) -> bool:
    """Move the means, fill the two arrays after them, and return whether all is regular; the last two are room."""
    count, d, k = cross.shape
    regular = True
    for m in range(count):
        if not factorised(observed, m, k, factor):
            return False
        log_density = -0.5 * k * np.log(2 * np.pi)
        for i in range(k):  # by L^-1, with S = L L': the rows of cross', and the residual beside them
            scale = 1.0 / factor[i, i]
            for a in range(d + 1):
                entry = cross[m, a, i] if a < d else residuals[m, i]
                for j in range(i):
                    entry -= factor[i, j] * half[j, a]
                half[i, a] = entry * scale
            log_density += np.log(scale) - 0.5 * half[i, d] ** 2
        log_densities[m] = log_density
        before = min(m, len(covariances) - 1)
        for a in range(d):
            for i in range(k):
                moved[m, a] += half[i, a] * half[i, d]
            for b in range(a + 1):
                entry = 0.5 * (covariances[before, a, b] + covariances[before, b, a])
                for i in range(k):
                    entry -= half[i, a] * half[i, b]
                shrunk[m, a, b] = shrunk[m, b, a] = entry
        regular = factorised(shrunk, m, d, factor) and regular
    return regular


@njit(cache=True, nogil=True)
def factorised(matrices: Array, m: int, size: int, factor: Array) -> bool:
    """Write the Cholesky factor of one of the matrices into `factor`; return whether there is one."""
    for i in range(size):
        for j in range(i + 1):
            entry = matrices[m, i, j]
            for k in range(j):
                entry -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = entry / factor[j, j]
            elif 0.0 < entry < np.inf:
                factor[i, i] = np.sqrt(entry)
            else:
                return False
    return True
