"""Weighted particles, and the normalisation of their weights."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numba import njit

from herdfilter._checks import Array


class Cloud:
    """Weighted particles; the weights and their effective sample size are computed once, when first asked for.

    Parameters
    ----------
    particles : ndarray, shape (n, d)
    log_weights : ndarray, shape (n,)
        Logarithms of weights that sum to 1.
    """

    def __init__(self, particles: Array, log_weights: Array) -> None:
        self.particles, self.log_weights = particles, log_weights

    def __len__(self) -> int:
        return len(self.particles)

    @cached_property
    def weights(self) -> Array:
        """Weights (n,)."""
        return np.exp(self.log_weights)

    @cached_property
    def ess(self) -> float:
        """Effective sample size ``1 / sum_i w_i^2``."""
        return float(1.0 / (self.weights @ self.weights))


@njit(cache=True)
def normalised(log_weights: Array) -> tuple[Array, float]:
    """Return log-weights (n,) less the logarithm of their sum, and that logarithm: minus infinity if all of them are."""
    peak = log_weights.max()
    if peak == -np.inf:
        return log_weights, peak
    total = 0.0
    for value in log_weights:
        total += np.exp(value - peak)
    total = np.log(total) + peak
    return log_weights - total, total
