"""Weighted particles, and the normalisation and tempering of their weights."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from herdfilter._checks import Array

LEAST = -1e300  # of a logarithm that is multiplied: minus infinity times zero is not a number


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

        Where all weights are zero they stay so, and the logarithm is minus infinity. Weights do not depend on a constant
        added to their logarithms, however large.
        """
        peak = self.log_weights.max()
        if peak == -np.inf:
            return self, -np.inf
        relative = self.log_weights - peak
        weights = np.exp(relative)
        total = float(np.add.reduce(weights))
        cloud = Cloud(self.particles, relative - math.log(total))
        cloud.weights = weights / total
        return cloud, float(peak) + math.log(total)

    def tempered(self, least: float) -> Cloud:
        """Return the particles with weights to the largest power up to 1 that leaves an `ess` of at least `least`.

        Their sum stays what it was. Weights of zero stay zero; where fewer than `least` others remain, these become equal.
        """
        peak = self.log_weights.max()
        if peak == -np.inf:
            return self
        relative = self.log_weights - peak
        some = relative[relative > -np.inf]
        if _log_ess(some, 1.0)[0] >= math.log(least):
            return self
        power = _power(some, math.log(least))
        powers = np.where(relative > -np.inf, power * np.maximum(relative, LEAST), -np.inf)
        kept = math.log(np.exp(some).sum()) - math.log(np.exp(power * some).sum())
        return Cloud(self.particles, powers + (peak + kept))


def _power(relative: Array, log_ess: float) -> float:
    """Power of weights, given by logarithms of at most 0, to which their effective sample size has this logarithm.

    It falls with the power. Newton's method, held between the powers known to be too small and too large.
    """
    low, high = 0.0, 1.0
    power = 0.5
    for _ in range(60):
        value, slope = _log_ess(relative, power)
        if value >= log_ess:
            low = power
        else:
            high = power
        if high - low < 1e-12:
            break
        newton = power - (value - log_ess) / slope if slope < 0 else low
        previous, power = power, newton if low < newton < high else 0.5 * (low + high)
        if abs(power - previous) < 1e-10:
            break
    return power


def _log_ess(relative: Array, power: float) -> tuple[float, float]:
    """Logarithm of the effective sample size of weights to a power, and its derivative by the power."""
    weights = np.exp(power * relative)
    squares = weights * weights
    total, square = float(weights.sum()), float(squares.sum())
    slope = 2 * (float(weights @ relative) / total - float(squares @ relative) / square)
    return 2 * math.log(total) - math.log(square), slope
