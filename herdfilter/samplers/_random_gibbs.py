"""Compiled chain of random Gibbs sampling from a mixture."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def random_gibbs(log_weights, means, precision, log_det, x, uniform, normal):
    """Return the states of a chain after each of n sweeps, (n, d), starting from x (d,).

    Components have log-weights (M,), means (M, d) and precisions (M, d, d), or one shared (1, d, d), with log-determinants.
    The draws of sweep t for coordinate i use ``uniform[t, i]``, for the component, and ``normal[t, i]``.
    """
    sweeps, d = uniform.shape
    components = len(log_weights)
    chain = np.empty((sweeps, d))
    share = np.empty(components)
    residual = np.empty((components, d))  # r = L (x - m) and q = (x - m)' L (x - m) of every component
    quadratic = np.empty(components)
    for t in range(sweeps):
        for m in range(components):  # afresh, against drift
            quadratic[m] = 0.0
            for i in range(d):
                residual[m, i] = 0.0
                for j in range(d):
                    residual[m, i] += precision[m if len(precision) > 1 else 0, i, j] * (x[j] - means[m, j])
                quadratic[m] += residual[m, i] * (x[i] - means[m, i])
        for i in range(d):
            for m in range(components):  # log-weights of the conditional of coordinate i
                k = m if len(precision) > 1 else 0
                lii, r = precision[k, i, i], residual[m, i]
                share[m] = log_weights[m] + 0.5 * (log_det[k] - np.log(lii) - quadratic[m] + r * r / lii)
            label = _pick(share, uniform[t, i])
            lii = precision[label if len(precision) > 1 else 0, i, i]
            moved = x[i] - residual[label, i] / lii + normal[t, i] / np.sqrt(lii)
            step = moved - x[i]
            x[i] = moved
            for m in range(components):
                k = m if len(precision) > 1 else 0
                quadratic[m] += step * (2.0 * residual[m, i] + step * precision[k, i, i])
                for j in range(d):
                    residual[m, j] += step * precision[k, j, i]
        chain[t] = x
    return chain


@njit(cache=True, nogil=True)
def _pick(log_share, u):
    """Return the index at which the cumulative share passes u of the whole."""
    peak = log_share.max()
    total = 0.0
    for m in range(len(log_share)):
        log_share[m] = np.exp(log_share[m] - peak)
        total += log_share[m]
    left = u * total
    for m in range(len(log_share)):
        left -= log_share[m]
        if left < 0.0:
            return m
    return np.argmax(log_share)  # only rounding leads here
