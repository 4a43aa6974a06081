"""Moment rules: how a function of a Gaussian is approximated as linear, by its Jacobian or by regression over points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._jit import njit
from herdfilter.angles import unwrap, wrap
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.samplers.compiled import IN_PLACE
from herdfilter.samplers.lcd import LCDSampling
from herdfilter.samplers.sigma_points import SigmaPoints


class Linearisation(NamedTuple):
    """Linear approximations of K functions of Gaussians.

    With x = mean + factor @ u and u ~ N(0, I), the value is ``means + slopes @ u`` plus a rest that is independent of u.
    """

    means: Array  # (K, k)
    slopes: Array  # (K, k, m)
    rests: Array  # covariances of the rest, (K or 1, k, k)

    @property
    def covariances(self) -> Array:
        """Covariances of the values, (K, k, k)."""
        covariances = self.slopes @ self.slopes.mT + self.rests
        return covariances

    def take(self, rows: Any) -> Linearisation:
        """Select rows by any index of NumPy."""
        rests = self.rests if len(self.rests) == 1 else self.rests[rows]
        return Linearisation(self.means[rows], self.slopes[rows], rests)


# Points within this of the mean's angle are at most half a turn apart, and can be unwrapped.
QUARTER_TURN = 0.5 * np.pi


class MomentRule(Protocol):
    """A rule that approximates a function of Gaussian variables as linear; exact if it is linear.

    The K variables have means (K, m) and covariances ``factors @ factors.T``; factors are (K, m, m), or (1, m, m) if they
    share one.
    """

    def __call__(
        self, function: contract.VectorFunction, means: Array, factors: Array
    ) -> Linearisation:
        """Return means (K, k), slopes (K, k, m) and covariances of the rest, (K, k, k) or (1, k, k)."""


@dataclass(frozen=True)
class LinearRule:
    """The linearisation at each mean, as in the extended Kalman filter."""

    def __call__(
        self, function: contract.VectorFunction, means: Array, factors: Array
    ) -> Linearisation:
        """See `MomentRule`."""
        centres, J = differentiate(function, means, np.sqrt((factors**2).sum(axis=2)))
        k = centres.shape[1]
        return Linearisation(centres, J @ factors, np.zeros((1, k, k)))


def differentiate(
    function: contract.VectorFunction, means: Array, sd: Array
) -> tuple[Array, Array]:
    """Return values (K, k) and Jacobians (K, k, m) at means (K, m); without a Jacobian, differences in steps of `sd`."""
    if function.jacobian is None:
        return contract.central_differences(function, means, sd)
    values = function.values(means)
    return values, _checks.as_array(
        "jacobian", function.jacobian(means), (*values.shape, means.shape[1])
    )


RegressionPoints = tuple[Array, Array, Array]
"""Points (n, m) with the mean and covariance of N(0, I), their weights, and weights for covariances (n,)."""

StandardPoints = Callable[[int], RegressionPoints]
"""Dimension m -> points; hashable, since they are cached."""


@dataclass(frozen=True)
class PointRule:
    """Regression over points of N(0, I) that are mapped to each Gaussian (Lefebvre, Bruyninckx and De Schutter 2002)."""

    standard: StandardPoints

    def __call__(
        self, function: contract.VectorFunction, means: Array, factors: Array
    ) -> Linearisation:
        """See `MomentRule`."""
        z, weights, spread_weights = _cached_points(self.standard, means.shape[1])
        offsets = z @ factors.mT
        # A function of angles cannot tell more than half a turn from a smaller turn the other way: points more than a
        # quarter turn from the mean are moved nearer, to this share of their way.
        share_of_way = None
        if function.angles:
            reach = np.abs(offsets[..., list(function.angles)]).max(axis=2)
            if reach.max() > QUARTER_TURN:
                share_of_way = (QUARTER_TURN / np.maximum(reach, QUARTER_TURN))[:, :, None]
                offsets = share_of_way * offsets
        y = function.at(means[:, None] + offsets)
        # Angles are unwrapped about a mean with positive weights: any direction among the values will do.
        circular = function.circular(y.shape[-1])
        if share_of_way is None:
            y = unwrap(y, np.abs(weights), circular)
        else:  # extrapolated linearly to the points
            centres = function.at(means[:, None])
            y = centres + wrap(y - centres, circular) / share_of_way
        count, p, k = y.shape
        linear = (np.empty((count, k)), np.zeros((count, k, z.shape[1])), np.empty((count, k, k)))
        regress(np.ascontiguousarray(y), z, weights, spread_weights, np.empty((2, k, p)), linear)
        return Linearisation(*linear)

    def points(self, dim: int) -> tuple[Array, Array]:
        """Return the points of N(0, I), the first of them 0, and their weights; (p, dim) and (p,)."""
        return _cached_points(self.standard, dim)[:2]


@lru_cache(maxsize=64)
def _cached_points(standard: StandardPoints, m: int) -> RegressionPoints:
    return standard(m)


@njit(**IN_PLACE)
def regress(y, z, weights, spread_weights, workspace, linear):
    """Fill in the arrays of a `Linearisation` of values (K, p, k) at points (p, m), by least squares.

    Slopes are passed as zeros. The values of each Gaussian are first transposed into the workspace (2, k, p), so that inner
    loops run along rows.
    """
    count, p, k = y.shape
    m = z.shape[1]
    means, slopes, rests = linear
    centred = workspace[0]
    weighted = workspace[1]
    for c in range(count):
        for i in range(k):
            # relative to the first value, to keep the digits of small differences
            mean = 0.0
            for t in range(p):
                centred[i, t] = y[c, t, i] - y[c, 0, i]
                mean += weights[t] * centred[i, t]
            means[c, i] = y[c, 0, i] + mean
            for t in range(p):
                centred[i, t] -= mean
                for a in range(m):  # the points have covariance I: slopes are covariances
                    slopes[c, i, a] += spread_weights[t] * centred[i, t] * z[t, a]
            for t in range(p):
                for a in range(m):
                    centred[i, t] -= slopes[c, i, a] * z[t, a]
                weighted[i, t] = spread_weights[t] * centred[i, t]
            for j in range(i + 1):
                entry = 0.0
                for t in range(p):
                    entry += centred[j, t] * weighted[i, t]
                rests[c, i, j] = rests[c, j, i] = entry


@dataclass(frozen=True)
class ScaledSigmaPoints:
    """The 2 m + 1 points of the scaled unscented transform (Wan and van der Merwe 2000, eq. 15)."""

    alpha: float
    beta: float
    kappa: float

    def __call__(self, m: int) -> RegressionPoints:
        """See `StandardPoints`."""
        if m + self.kappa <= 0:
            raise ValueError(
                f"kappa: expected a number above {-m} in {m} dimensions, got {self.kappa:g}"
            )
        sampler = SigmaPoints("unscented", self.alpha**2 * (m + self.kappa) - m)
        points = sampler.sample(_standard_normal(m), 2 * m + 1)
        spread_weights = points.weights.copy()
        spread_weights[0] += 1 - self.alpha**2 + self.beta
        return points.x, points.weights, spread_weights


@dataclass(frozen=True)
class OptimalPoints:
    """`n` points of equal weight that minimise the distance of localized cumulative distributions."""

    n: int

    def __call__(self, m: int) -> RegressionPoints:
        """See `StandardPoints`."""
        if self.n < 2 * m:  # the points come in pairs, mirrored at the origin
            raise ValueError(
                f"n_particles: expected at least {2 * m} points for {m} dimensions, got {self.n}"
            )
        points = LCDSampling().sample(_standard_normal(m), self.n)
        return points.x, points.weights, points.weights


def _cubature_points(m: int) -> RegressionPoints:
    points = SigmaPoints("cubature").sample(_standard_normal(m), 2 * m)
    return points.x, points.weights, points.weights


def _standard_normal(m: int) -> GaussianMixture:
    return GaussianMixture.unchecked(np.ones(1), np.zeros((1, m)), np.eye(m))


LINEAR_RULE = LinearRule()
UNSCENTED_RULE = PointRule(ScaledSigmaPoints(1.0, 0.0, 1.0))
CUBATURE_RULE = PointRule(_cubature_points)
RULES: dict[str, MomentRule] = {
    "extended": LINEAR_RULE,
    "unscented": UNSCENTED_RULE,
    "cubature": CUBATURE_RULE,
}
"""Rules by the names of their Kalman filters."""


def moment_rule(rule: str | MomentRule) -> MomentRule:
    """Return the rule of that name, or the rule itself; ValueError with the known names for others."""
    if callable(rule) and not isinstance(rule, type):
        return rule
    return RULES[_checks.one_of("rule", rule, RULES)]  # type: ignore[arg-type]


def linearise(
    rule: MomentRule, function: contract.VectorFunction, means: Array, factors: Array
) -> Linearisation:
    """Linearise a function (n, m) -> (n, k) of K Gaussians by a rule; TypeError unless that returns three arrays.

    Points of a rule may lie past the cut of an angle: the function sees its `angles` wrapped.
    """
    values, circular, jacobian, angles = function
    function = contract.VectorFunction(
        lambda x: values(wrap(x, angles)),
        circular,
        jacobian and (lambda x: jacobian(_checks.read_only(wrap(x, angles)))),
        angles,
    )
    linear = rule(function, means, factors)
    if not (isinstance(linear, tuple) and len(linear) == 3):
        raise TypeError(
            f"rule: expected means, slopes and covariances of the rest, got {_checks.short_repr(linear)}"
        )
    return Linearisation(*linear)
