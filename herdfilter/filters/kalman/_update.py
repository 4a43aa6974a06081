"""Kalman's update in numbers, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter._cholesky import factorised


@njit(cache=True, nogil=True)
def updated(
    means: Array, covariances: Array, residuals: Array, observed: Array, cross: Array
) -> tuple[Array, Array, Array, bool]:
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

    Returns
    -------
    means, covariances : ndarray, shapes (K, d) and (K, d, d)
    log_densities : ndarray, shape (K,)
        NaN where S is not positive definite; then nothing else is of use.
    regular : bool
        Whether all covariances are positive definite.
    """
    (count, d), k = means.shape, residuals.shape[1]
    moved, shrunk, log_densities = means.copy(), np.empty((count, d, d)), np.full(count, np.nan)
    factor, white, half, spare = np.empty((k, k)), np.empty(k), np.empty((k, d)), np.empty((d, d))
    regular = True
    for m in range(count):
        if not factorised(observed[m], factor):
            return moved, shrunk, log_densities, False
        log_density = -0.5 * k * np.log(2 * np.pi)
        for i in range(k):  # by L^-1, with S = L L': the residual, and the rows of cross'
            scale = 1.0 / factor[i, i]
            entry = residuals[m, i]
            for j in range(i):
                entry -= factor[i, j] * white[j]
            white[i] = entry * scale
            log_density += np.log(scale) - 0.5 * white[i] ** 2
            for a in range(d):
                entry = cross[m, a, i]
                for j in range(i):
                    entry -= factor[i, j] * half[j, a]
                half[i, a] = entry * scale
        log_densities[m] = log_density
        before = covariances[min(m, len(covariances) - 1)]
        for a in range(d):
            for i in range(k):
                moved[m, a] += half[i, a] * white[i]
            for b in range(a + 1):
                entry = 0.5 * (before[a, b] + before[b, a])
                for i in range(k):
                    entry -= half[i, a] * half[i, b]
                shrunk[m, a, b] = shrunk[m, b, a] = entry
        regular = factorised(shrunk[m], spare) and regular
    return moved, shrunk, log_densities, regular
