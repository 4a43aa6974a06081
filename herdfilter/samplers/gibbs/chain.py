"""Compiled chain of random Gibbs sampling from a mixture."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers.compiled import CALLED, INSIDE


@njit(**CALLED)
def random_gibbs(log_weights, means, precision, x, uniform, normal, residual, share, chain):
    """Fill in the states of a chain (n, d) after each of n sweeps, starting from x (d,).

    Components have log-weights (M,), those of their exponential functions, means (M, d) and precisions (M, d, d), or one
    shared (1, d, d). The draws of sweep t for coordinate i use ``uniform[t, i]``, for the component, and ``normal[t, i]``.
    `residual` (M, d) and `share` (M,) are worked in.
    """
    sweeps, d = chain.shape
    components = len(means)
    for t in range(sweeps):
        for i in range(d):
            peak = -np.inf
            for m in range(components):
                k = m if len(precision) > 1 else 0
                if i == 0:  # afresh, against drift
                    for j in range(d):
                        residual[m, j] = 0.0
                        for a in range(d):
                            residual[m, j] += precision[k, j, a] * (x[a] - means[m, a])
                # log-weights of the conditional of coordinate i: the quadratic form where it is at its conditional mean
                ratio = residual[m, i] / precision[k, i, i]
                share[m] = log_weights[m] - 0.5 * np.log(precision[k, i, i])
                for j in range(d):
                    if j != i:
                        share[m] -= 0.5 * (residual[m, j] - ratio * precision[k, i, j]) * (x[j] - means[m, j])
                peak = max(peak, share[m])
            label = pick(share, peak, uniform[t, i])
            inverse = 1.0 / precision[label if len(precision) > 1 else 0, i, i]
            step = normal[t, i] * np.sqrt(inverse) - residual[label, i] * inverse
            x[i] += step
            for m in range(components):
                k = m if len(precision) > 1 else 0
                for j in range(d):
                    residual[m, j] += step * precision[k, i, j]
        for i in range(d):
            chain[t, i] = x[i]


@njit(**INSIDE)
def pick(log_share, peak, u):
    """Index at which the cumulative share passes u of the whole."""
    total = 0.0
    best = 0
    for m in range(len(log_share)):
        if log_share[m] == peak:
            best = m
        log_share[m] = np.exp(log_share[m] - peak)
        total += log_share[m]
    left = u * total
    for m in range(len(log_share)):
        left -= log_share[m]
        if left < 0.0:
            return m
    return best  # only rounding leads here
