"""Weighted particles, and the normalisation and tempering of their weights."""

from __future__ import annotations

import math
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
        Logarithms of weights, which sum to 1. What `ObservingProposal.guide` returns is not `normalised`.
    """

    def __init__(self, particles: Array, log_weights: Array) -> None:
        self.particles, self.log_weights = particles, log_weights

    @classmethod
    def equal(cls, particles: Array) -> Cloud:
        """Particles (n, d) of equal weight."""
        return cls(particles, np.full(len(particles), -math.log(len(particles))))

    @classmethod
    def weighted(cls, particles: Array, weights: Array) -> Cloud:
        """Particles (n, d) with weights (n,) that sum to 1."""
        with np.errstate(divide="ignore"):
            cloud = cls(particles, np.log(weights))
        cloud.weights = weights
        return cloud

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

    def reweighted(self, log_factors: Array) -> Cloud:
        """Return the particles with their weights multiplied by ``exp(log_factors)``, not normalised."""
        return Cloud(self.particles, self.log_weights + log_factors)

    def normalised(self) -> tuple[Cloud, float]:
        """Return the particles with weights that sum to 1, and the logarithm of the sum before.

        Where all weights are zero they stay so, and the logarithm is minus infinity.
        """
        log_weights, total = normalised(self.log_weights)
        return Cloud(self.particles, log_weights), total

    def tempered(self, least: float) -> Cloud:
        """Return the particles with weights to the largest power up to 1 that leaves an `ess` of at least `least`.

        Their sum stays what it was. Weights of zero stay zero; where fewer than `least` others remain, these become equal.
        """
        return Cloud(self.particles, tempered(self.log_weights, least))


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


@njit(cache=True)
def tempered(log_weights: Array, least: float) -> Array:
    """Return log-weights (n,) times the largest power up to 1 that leaves an effective sample size of at least `least`.

    Their sum stays what it was. Weights of zero stay zero; where fewer than `least` others remain, these become equal.
    """
    peak = log_weights.max()
    if peak == -np.inf or _ess(log_weights - peak, 1.0) >= least:
        return log_weights
    relative = log_weights - peak
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if _ess(relative, middle) >= least:
            low = middle
        else:
            high = middle
    powers = np.where(relative > -np.inf, low * relative, relative)
    return powers - np.log(np.exp(powers).sum()) + np.log(np.exp(relative).sum()) + peak


@njit(cache=True)
def _ess(relative: Array, power: float) -> float:
    total, squares = 0.0, 0.0
    for value in relative:
        if value > -np.inf:
            weight = np.exp(power * value)
            total += weight
            squares += weight**2
    return total**2 / squares
