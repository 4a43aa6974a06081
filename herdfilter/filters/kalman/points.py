"""The rule of all filters that take moments over points: unscented, cubature and smart sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles
from herdfilter.mixture import covariance_factor
from herdfilter.models.jacobians import VectorFunction

Standard = Callable[[int], tuple[Array, Array, Array]]
"""Dimension m -> points (n, m) with the mean and covariance of N(0, I), their weights, and weights for covariances (n,);
hashable, since its points are kept."""


@dataclass(frozen=True)
class PointRule:
    """Moments of a function over points of N(0, I) that are mapped to its Gaussian arguments (a `MomentRule`)."""

    standard: Standard

    def __call__(
        self, function: VectorFunction, means: Array, covariances: Array
    ) -> tuple[Array, Array, Array]:
        """Return means, covariances and cross-covariances of the values."""
        z, weights, spread_weights = _points(self.standard, means.shape[1])
        offsets = z @ covariance_factor(covariances).transpose(0, 2, 1)
        y = function.at(means[:, None] + offsets)
        # angles are unwrapped about a mean whose weights are positive: any direction in their midst serves
        y = unwrap_angles(y, np.abs(weights), function.circular(y.shape[-1]))
        (count, _, k), m = y.shape, offsets.shape[2]
        means, covariances, cross = np.zeros((count, k)), np.zeros((count, k, k)), np.zeros((count, m, k))
        _moments(np.ascontiguousarray(y), offsets, weights, spread_weights, means, covariances, cross)
        return means, covariances, cross

    def points(self, dim: int) -> tuple[Array, Array]:
        """Return the points of N(0, I), the first of them 0, and their weights; (p, dim) and (p,)."""
        return _points(self.standard, dim)[:2]

    def mean(self, function: VectorFunction, means: Array, covariances: Array) -> Array:
        """Return the means of values that are no angles, (K, k)."""
        z, weights, _ = _points(self.standard, means.shape[1])
        y = function.at(means[:, None] + z @ covariance_factor(covariances).transpose(0, 2, 1))
        return y[:, 0] + weights @ (y - y[:, :1])  # exact for a constant, however the weights are rounded


@njit(cache=True, nogil=True)
def _moments(
    y: Array,
    offsets: Array,
    weights: Array,
    spread_weights: Array,
    means: Array,
    covariances: Array,
    cross: Array,
) -> None:
    """Add up means (K, k) of values (K, p, k), their covariances, and those of the offsets (K or 1, p, m) with them."""
    (count, p, k), m = y.shape, offsets.shape[2]
    for c in range(count):
        for t in range(p):
            for i in range(k):
                means[c, i] += weights[t] * y[c, t, i]
        at = min(c, len(offsets) - 1)
        for t in range(p):
            for j in range(k):
                weighted = spread_weights[t] * (y[c, t, j] - means[c, j])
                for i in range(k):
                    covariances[c, i, j] += (y[c, t, i] - means[c, i]) * weighted
                for a in range(m):
                    cross[c, a, j] += offsets[at, t, a] * weighted


@lru_cache(maxsize=64)
def _points(standard: Standard, m: int) -> tuple[Array, Array, Array]:
    """Points of N(0, I), computed once per process."""
    return standard(m)
