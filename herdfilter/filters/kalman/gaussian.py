"""A Gaussian belief, carried through nonlinear functions by a plugged-in rule for moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from herdfilter._checks import Array, short_repr
from herdfilter._repr import fields_in_line
from herdfilter.angles import merged, unwrap_angles, wrap_angles
from herdfilter.filters.kalman._association import associated
from herdfilter.filters.kalman._update import updated
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.kalman.innovation import Innovation
from herdfilter.filters.observation import Observation
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import (
    ADDITIVE,
    OBSERVED,
    Model,
    VectorFunction,
    check_state,
    circular_dims,
    has,
    has_scans,
    observation_circular,
    observation_covariances,
    observation_mean,
    read_covariance,
    read_rows,
    require,
    takes_state,
)
from herdfilter.models.sensors import to_check

TOLERANCE = 1e-8
"""Negative eigenvalues that are put down to rounding and raised to zero, as a share of the variances."""


class MomentRule(Protocol):
    """How the moments of a function of Gaussian variables are computed; exact where it is linear.

    There are K variables, whose means are (K, m) and whose covariances (K, m, m), or (1, m, m) where all have the same.
    A rule may have a method ``mean`` of the same arguments, for the means alone.
    """

    def __call__(self, function: VectorFunction, means: Array, covariances: Array) -> tuple[Array, Array, Array]:
        """Return means (K, k), covariances (K, k, k) and cross-covariances (K, m, k) of the values."""
        ...


def moments_by(rule: MomentRule, function: VectorFunction, means: Array, covariances: Array) -> tuple[Array, Array, Array]:
    """Return what a rule gives, if it is of the form that it should have."""
    found = rule(function, means, covariances)
    if not (isinstance(found, tuple) and len(found) == 3):
        raise TypeError(f"rule: expected means, covariances and cross-covariances, got {short_repr(found)}")
    return found


@dataclass(frozen=True, eq=False, repr=False)
class GaussianBelief:
    """The state is N(mean, covariance); see `Belief`."""

    mean: Array
    covariance: Array
    rule: MomentRule
    ess: float = np.nan

    __repr__ = fields_in_line

    @classmethod
    def initial(cls, model: Model, user: str, rule: MomentRule) -> GaussianBelief:
        """Start from the moments of the model's initial distribution, after checking what the model has."""
        check_state(model, user, "mean", "covariance")
        require(model, user, ADDITIVE, ("transition", "noise_dim"))
        require(to_check(model), user, OBSERVED)
        start, circular = model.initial, circular_dims(model)
        if circular and isinstance(start, GaussianMixture):
            means = unwrap_angles(start.means, start.weights, circular)
            start = GaussianMixture.unchecked(start.weights, means, start.distinct_covariances)
        mean = read_rows("initial.mean", start.mean, (model.dim,), 0)
        return cls(mean, read_covariance("initial.covariance", start.covariance, model.dim, 0).matrix.copy(), rule)

    def predicted(self, transition: Transition) -> GaussianBelief:
        """Kalman's prediction, angles wrapped."""
        means, covariances, _ = predicted_gaussians(transition, self.mean[None], self.covariance[None], self.rule)
        return GaussianBelief(transition.wrapped(means[0]), covariances[0], self.rule)

    def updated(self, seen: Observation) -> tuple[GaussianBelief, float]:
        """Kalman's update, angles wrapped; by probabilistic data association where a scan was seen."""
        if has_scans(seen.model):
            return self._associated(seen)
        given = self.mean[None], self.covariance[None]
        means, covariances, log_densities = updated_gaussians(seen, *given, self.rule)
        mean = wrap_angles(means[0], circular_dims(seen.model))
        return GaussianBelief(mean, covariances[0], self.rule), float(log_densities[0])

    def _associated(self, seen: Observation) -> tuple[GaussianBelief, float]:
        given = self.mean[None], self.covariance[None]
        moments = observation_moments(seen.model, *given, self.rule, seen.step)
        after = associated(seen, self.mean, self.covariance, *(part[0] for part in moments))
        mean = wrap_angles(after[0], circular_dims(seen.model))
        covariances = definite(after[1][None], self.covariance, seen.step, "updated")
        return GaussianBelief(mean, covariances[0], self.rule), after[2]

    def predicted_observation(self, model: Model, step: int) -> tuple[Array, Array]:
        """Mean (k,) and covariance (k, k) of the observation, its noise included."""
        given = self.mean[None], self.covariance[None]
        means, covariances, _ = observation_moments(model, *given, self.rule, step)
        return means[0], covariances[0]

    def combined(self, others: Sequence[GaussianBelief], weights: Array, circular: tuple[int, ...]) -> GaussianBelief:
        """Take mean and covariance of the mixture."""
        means = np.array([other.mean for other in others])
        covariances = np.array([other.covariance for other in others])
        return GaussianBelief(*merged(means, covariances, weights, circular), self.rule)


def predicted_gaussians(
    transition: Transition, means: Array, covariances: Array, rule: MomentRule
) -> tuple[Array, Array, Array]:
    """Carry each N(means[i], covariances[i]) through the transition.

    Additive noise adds its covariance; other noise is a part of the Gaussian that goes through the transition.

    Parameters
    ----------
    means : ndarray, shape (K, d)
    covariances : ndarray, shape (K, d, d), or (1, d, d) where all have the same

    Returns
    -------
    means, covariances : ndarray, shapes (K, d) and (K, d, d)
        Angles are not wrapped.
    cross : ndarray, shape (K, d, d)
        Covariances of each state with its successor.
    """
    d, circular, step = transition.model.dim, transition.circular, transition.step
    if has(transition.model, ADDITIVE):
        jacobian = getattr(transition.model, "transition_jacobian", None)
        function = VectorFunction(
            lambda x: transition.mean(transition.wrapped(x)),
            lambda _: circular,
            jacobian and (lambda x: jacobian(transition.wrapped(x), transition.dt, transition.control, step)),
        )
        means, covariances, cross = moments_by(rule, function, means, covariances)
        covariances = covariances + transition.covariance
    else:
        function = VectorFunction(lambda x: transition.propagate(transition.wrapped(x[:, :d]), x[:, d:]), lambda _: circular)
        noises = transition.noise_dim
        joint = np.zeros((len(covariances), d + noises, d + noises))
        joint[:, :d, :d], joint[:, d:, d:] = covariances, np.eye(noises)
        states = np.hstack([means, np.zeros((len(means), noises))])
        means, covariances, cross = moments_by(rule, function, states, joint)
    return means, definite(covariances, covariances, step, "predicted"), cross[:, :d]


def updated_gaussians(seen: Observation, means: Array, covariances: Array, rule: MomentRule) -> tuple[Array, Array, Array]:
    """Update each N(means[i], covariances[i]) with the moments of state and observation (Kalman's update).

    Parameters
    ----------
    means : ndarray, shape (K, d)
    covariances : ndarray, shape (K, d, d), or (1, d, d) where all have the same

    Returns
    -------
    means, covariances : ndarray, shapes (K, d) and (K, d, d)
        Angles are not wrapped: a mean moves by its correction.
    log_densities : ndarray, shape (K,)
        Of the finite part of the observation.
    """
    step = seen.step
    innovation = Innovation(seen, *observation_moments(seen.model, means, covariances, rule, step))
    residuals = seen.residuals(innovation.predicted)
    after = updated(means, covariances, residuals, innovation.covariances, innovation.cross)
    if np.isnan(after.log_densities).any():
        raise IndefiniteCovarianceError(step, "observation's")
    shrunk = after.covariances if after.regular else definite(after.covariances, covariances, step, "updated")
    return after.means, shrunk, after.log_densities


def observation_moments(
    model: Model, means: Array, covariances: Array, rule: MomentRule, step: int
) -> tuple[Array, Array, Array]:
    """Return moments of the observation by each N(means[i], covariances[i]), as a `MomentRule` does, its noise included."""
    circular = circular_dims(model)
    jacobian = getattr(model, "observation_jacobian", None)
    function = VectorFunction(
        lambda x: observation_mean(model, wrap_angles(x, circular), step),
        lambda size: observation_circular(model, size),
        jacobian and (lambda x: jacobian(wrap_angles(x, circular), step)),
    )
    predicted, spread, cross = moments_by(rule, function, means, covariances)
    noise = _expected_noise(model, means, covariances, rule, predicted.shape[1], step)
    return predicted, spread + noise, cross


def _expected_noise(model: Model, means: Array, covariances: Array, rule: MomentRule, size: int, step: int) -> Array:
    """Covariance of the observation's noise, expected over each Gaussian: (K, size, size), or (1, size, size) for all.

    By the law of total covariance that is what the noise adds to the covariance of the observation.
    """
    if not takes_state(model):
        return observation_covariances(model, means, size, step)
    circular = circular_dims(model)

    def entries(x: Array) -> Array:
        noises = observation_covariances(model, wrap_angles(x, circular), size, step)
        return np.broadcast_to(noises, (len(x), size, size)).reshape(len(x), -1)

    function = VectorFunction(entries, lambda _: ())
    mean = getattr(rule, "mean", None)
    expected = mean(function, means, covariances) if mean else moments_by(rule, function, means, covariances)[0]
    return expected.reshape(-1, size, size)


def definite(covariances: Array, before: Array, step: int, what: str) -> Array:
    """Return covariances (K, d, d) made symmetric and, where rounding took that away, positive semi-definite.

    Eigenvalues, relative to the variances `before` (..., d, d) that they were computed from, are raised to zero if they are
    above minus `TOLERANCE`; if one is below, IndefiniteCovarianceError names the step and which covariance it is.
    """
    covariances = 0.5 * (covariances + covariances.transpose(0, 2, 1))
    if not np.isfinite(covariances).all():
        raise IndefiniteCovarianceError(step, what)
    try:
        np.linalg.cholesky(covariances)
        return covariances
    except np.linalg.LinAlgError:
        pass
    variances = np.diagonal(before, axis1=-2, axis2=-1)
    scale = np.sqrt(np.maximum(variances, np.abs(np.diagonal(covariances, axis1=1, axis2=2))))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(covariances / (scale[:, :, None] * scale[:, None]))
    if values.min() < -TOLERANCE:
        raise IndefiniteCovarianceError(step, what)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None] * scale[:, :, None]
    return roots @ roots.transpose(0, 2, 1)
