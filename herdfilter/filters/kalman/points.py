"""The rule of all filters that take moments over points: unscented, cubature and smart sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import unwrap_angles
from herdfilter.models.contract import VectorFunction

Standard = Callable[[int], tuple[Array, Array, Array]]
"""Dimension m -> points (n, m) with the mean and covariance of N(0, I), their weights, and weights for covariances (n,);
hashable, since its points are kept."""


@dataclass(frozen=True)
class PointRule:
    """Moments of a function over points of N(0, I) that are mapped to its Gaussian arguments (a `MomentRule`)."""

    standard: Standard

    def __call__(self, function: VectorFunction, means: Array, covariances: Array) -> tuple[Array, Array, Array]:
        """Return means, covariances and cross-covariances of the values."""
        _, weights, spread_weights = _points(self.standard, means.shape[1])
        offsets, y = self._evaluated(function, means, covariances)
        # angles are unwrapped about a mean whose weights are positive: any direction in their midst serves
        y = unwrap_angles(y, np.abs(weights), function.circular(y.shape[-1]))
        return _moments(np.ascontiguousarray(y), offsets, weights, spread_weights)

    def points(self, dim: int) -> tuple[Array, Array]:
        """Return the points of N(0, I), the first of them 0, and their weights; (p, dim) and (p,)."""
        return _points(self.standard, dim)[:2]

    def mean(self, function: VectorFunction, means: Array, covariances: Array) -> Array:
        """Return the means of values that are no angles, (K, k)."""
        weights = _points(self.standard, means.shape[1])[1]
        _, y = self._evaluated(function, means, covariances)
        return y[:, 0] + weights @ (y - y[:, :1])  # exact for a constant, however the weights are rounded

    def _evaluated(self, function: VectorFunction, means: Array, covariances: Array) -> tuple[Array, Array]:
        """Offsets of the points from the means, (K, p, m) or (1, p, m) for all, and the values there, (K, p, k)."""
        z = _points(self.standard, means.shape[1])[0]
        offsets = z @ covariance_factor(covariances).transpose(0, 2, 1)
        return offsets, function.at(_placed(np.ascontiguousarray(means), offsets))


@njit(cache=True, nogil=True)
def _placed(means: Array, offsets: Array) -> Array:
    """Points (K, p, m): means (K, m) and offsets from them, (K, p, m) or (1, p, m)."""
    (count, m), p = means.shape, offsets.shape[1]
    x = np.empty((count, p, m))
    for c in range(count):
        mean, offset, place = means[c], offsets[min(c, len(offsets) - 1)], x[c]
        for t in range(p):
            for a in range(m):
                place[t, a] = mean[a] + offset[t, a]
    return x


@njit(cache=True, nogil=True)
def _moments(y: Array, offsets: Array, weights: Array, spread_weights: Array) -> tuple[Array, Array, Array]:
    """Means (K, k) of values (K, p, k), their covariances, and those of the offsets (K or 1, p, m) with them, (K, m, k).

    Inner loops run along rows of what is in the cache: values of a Gaussian are laid out anew, value by value.
    """
    (count, p, k), m = y.shape, offsets.shape[2]
    means, covariances, cross = np.empty((count, k)), np.empty((count, k, k)), np.empty((count, m, k))
    centred, weighted, along = np.empty((k, p)), np.empty((k, p)), np.empty(m)
    for c in range(count):
        values, offset = y[c], offsets[min(c, len(offsets) - 1)]
        for i in range(k):
            mean = 0.0
            for t in range(p):
                mean += weights[t] * values[t, i]
            means[c, i] = mean
            for t in range(p):
                centred[i, t] = values[t, i] - mean
                weighted[i, t] = spread_weights[t] * centred[i, t]
            for j in range(i + 1):
                entry = 0.0
                for t in range(p):
                    entry += centred[j, t] * weighted[i, t]
                covariances[c, i, j] = covariances[c, j, i] = entry
            along[:] = 0.0
            for t in range(p):
                for a in range(m):
                    along[a] += weighted[i, t] * offset[t, a]
            for a in range(m):
                cross[c, a, i] = along[a]
    return means, covariances, cross


@lru_cache(maxsize=64)
def _points(standard: Standard, m: int) -> tuple[Array, Array, Array]:
    """Points of N(0, I), computed once per process."""
    return standard(m)
