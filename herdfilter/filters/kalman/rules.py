"""Rules for the moments of a function of Gaussian variables: by linearisation, or over points of N(0, I)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numba import njit

from herdfilter._checks import Array, as_array, one_of, short_repr
from herdfilter._covariances import covariance_factor
from herdfilter.angles import unwrap_angles
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import VectorFunction, central_differences
from herdfilter.samplers.compiled import IN_PLACE
from herdfilter.samplers.lcd import LCDSampling
from herdfilter.samplers.sigma_points import SigmaPoints

Moments = tuple[Array, Array, Array]
"""Means (K, k), covariances (K, k, k) and cross-covariances (K, m, k) of the values at K Gaussians of m dimensions."""


class MomentRule(Protocol):
    """A rule for the moments of a function of Gaussian variables, exact if the function is linear.

    The K variables have means (K, m) and covariances (K, m, m), or (1, m, m) if they share one.
    A rule may have a method ``mean`` of the same arguments, for the means alone.
    """

    def __call__(self, function: VectorFunction, means: Array, covariances: Array) -> Moments:
        """Return means (K, k), covariances (K, k, k) and cross-covariances (K, m, k) of the values."""


@dataclass(frozen=True)
class LinearRule:
    """Moments of the linearisation at each mean, as in the extended Kalman filter."""

    def __call__(self, function: VectorFunction, means: Array, covariances: Array) -> Moments:
        """See `MomentRule`."""
        if function.jacobian is None:
            centres, J = central_differences(function, means, np.sqrt(np.diagonal(covariances, axis1=1, axis2=2)))
        else:
            centres = function.values(means)
            J = as_array("jacobian", function.jacobian(means), (*centres.shape, means.shape[1]))
        cross = covariances @ J.transpose(0, 2, 1)
        return centres, J @ cross, cross

    def mean(self, function: VectorFunction, means: Array, covariances: Array) -> Array:
        """Return the values at the means, (K, k)."""
        return function.values(means)


StandardPoints = Callable[[int], tuple[Array, Array, Array]]
"""Dimension m -> points (n, m) with the mean and covariance of N(0, I), their weights, and weights for covariances (n,).
It is hashable, since the points are cached."""


@dataclass(frozen=True)
class PointRule:
    """Moments over points of N(0, I) that are mapped to each Gaussian."""

    standard: StandardPoints

    def __call__(self, function: VectorFunction, means: Array, covariances: Array) -> Moments:
        """See `MomentRule`."""
        _, weights, spread_weights = _cached_points(self.standard, means.shape[1])
        offsets, y = self._values(function, means, covariances)
        # angles are unwrapped about a mean whose weights are positive: any direction in their midst serves
        y = unwrap_angles(y, np.abs(weights), function.circular(y.shape[-1]))
        (count, p, k), m = y.shape, offsets.shape[2]
        moments = np.empty((count, k)), np.empty((count, k, k)), np.zeros((count, m, k))
        _point_moments(np.ascontiguousarray(y), offsets, weights, spread_weights, np.empty((2, k, p)), *moments)
        return moments

    def points(self, dim: int) -> tuple[Array, Array]:
        """Return the points of N(0, I), the first of them 0, and their weights; (p, dim) and (p,)."""
        return _cached_points(self.standard, dim)[:2]

    def mean(self, function: VectorFunction, means: Array, covariances: Array) -> Array:
        """Return the means of values without angles, (K, k)."""
        weights = _cached_points(self.standard, means.shape[1])[1]
        _, y = self._values(function, means, covariances)
        centre: Array = y[:, 0]
        return centre + weights @ (y - y[:, :1])  # exact for a constant, however the weights are rounded

    def _values(self, function: VectorFunction, means: Array, covariances: Array) -> tuple[Array, Array]:
        """Return offsets of the points from the means, (K or 1, p, m), and the values there, (K, p, k)."""
        z = _cached_points(self.standard, means.shape[1])[0]
        offsets = z @ covariance_factor(covariances).transpose(0, 2, 1)
        return offsets, function.at(means.repeat(len(z), axis=0).reshape(-1, *z.shape) + offsets)


@lru_cache(maxsize=64)
def _cached_points(standard: StandardPoints, m: int) -> tuple[Array, Array, Array]:
    return standard(m)


@njit(**IN_PLACE)
def _point_moments(y, offsets, weights, spread_weights, room, means, covariances, cross):
    """Fill in means, covariances and cross-covariances of values (K, p, k) with offsets (K or 1, p, m).

    Inner loops run along rows in the cache: the values of each Gaussian are first transposed, into `room` (2, k, p).
    """
    (count, p, k), m = y.shape, offsets.shape[2]
    centred, weighted = room[0], room[1]
    for c in range(count):
        values, offset, along = y[c], offsets[c if len(offsets) > 1 else 0], cross[c]
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
            for t in range(p):
                for a in range(m):
                    along[a, i] += weighted[i, t] * offset[t, a]


@dataclass(frozen=True)
class ScaledSigmaPoints:
    """The 2 m + 1 points of the scaled unscented transform (Wan and van der Merwe 2000, eq. 15)."""

    alpha: float
    beta: float
    kappa: float

    def __call__(self, m: int) -> tuple[Array, Array, Array]:
        """See `StandardPoints`."""
        if m + self.kappa <= 0:
            raise ValueError(f"kappa: expected a number above {-m} in {m} dimensions, got {self.kappa:g}")
        sampler = SigmaPoints("unscented", self.alpha**2 * (m + self.kappa) - m)
        points = sampler.sample(_standard_normal(m), 2 * m + 1)
        spread = points.weights.copy()
        spread[0] += 1 - self.alpha**2 + self.beta
        return points.x, points.weights, spread


@dataclass(frozen=True)
class OptimalPoints:
    """`n` points of equal weight, optimal by localized cumulative distributions."""

    n: int

    def __call__(self, m: int) -> tuple[Array, Array, Array]:
        """See `StandardPoints`."""
        if self.n < 2 * m:  # the points come in pairs, mirrored at the origin
            raise ValueError(f"n_particles: expected at least {2 * m} points for {m} dimensions, got {self.n}")
        points = LCDSampling().sample(_standard_normal(m), self.n)
        return points.x, points.weights, points.weights


def _cubature_points(m: int) -> tuple[Array, Array, Array]:
    points = SigmaPoints("cubature").sample(_standard_normal(m), 2 * m)
    return points.x, points.weights, points.weights


def _standard_normal(m: int) -> GaussianMixture:
    return GaussianMixture.unchecked(np.ones(1), np.zeros((1, m)), np.eye(m))


LINEAR_RULE = LinearRule()
UNSCENTED_RULE = PointRule(ScaledSigmaPoints(1.0, 0.0, 1.0))
CUBATURE_RULE = PointRule(_cubature_points)
RULES: dict[str, MomentRule] = {"extended": LINEAR_RULE, "unscented": UNSCENTED_RULE, "cubature": CUBATURE_RULE}
"""The rules that have a name: that of their Kalman filter."""


def moment_rule(rule: str | MomentRule) -> MomentRule:
    """Return the rule of that name, or the rule itself; raise ValueError with the known names if there is none."""
    if callable(rule) and not isinstance(rule, type):
        return rule
    return RULES[one_of("rule", rule, RULES)]  # type: ignore[arg-type]


def moments_by(rule: MomentRule, function: VectorFunction, means: Array, covariances: Array) -> Moments:
    """Return the moments by a rule; raise TypeError unless the rule returns three arrays."""
    found = rule(function, means, covariances)
    if not (isinstance(found, tuple) and len(found) == 3):
        raise TypeError(f"rule: expected means, covariances and cross-covariances, got {short_repr(found)}")
    return found
