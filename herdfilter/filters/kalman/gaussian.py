"""A Gaussian belief, carried through nonlinear functions by a plugged-in rule for moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, short_repr
from herdfilter._repr import fields_in_line
from herdfilter.angles import merged, unwrap_angles, wrap_angles
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.kalman.rules import LINEAR_RULE, UNSCENTED_RULE, MomentRule, Moments, moment_rule, moments_by
from herdfilter.filters.kalman.update import data_association, finite_part, update_in_place
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.sensors import to_check
from herdfilter.models.with_clutter import Factor, WithClutter

MOST_ITERATIONS = 20  # most iterations of the extended Kalman update
SMALLEST_CHANGE = 1e-8  # change at which the iteration stops, in standard deviations of the prior
RELATIVE_TOLERANCE = 1e-8  # negative eigenvalues down to this share of the variances are rounding, and are raised to zero


@dataclass(frozen=True, eq=False, repr=False)
class GaussianBelief:
    """The state is N(mean, covariance) (a `Belief`)."""

    mean: Array
    covariance: Array
    rule: MomentRule
    ess: float = np.nan

    __repr__ = fields_in_line

    @classmethod
    def initial(cls, model: contract.Model, user: str, rule: MomentRule) -> GaussianBelief:
        """Start from the moments of the model's initial distribution, after checking what the model has."""
        contract.check_state(model, user, "mean", "covariance")
        contract.require(model, user, contract.ADDITIVE, ("transition", "noise_dim"))
        contract.require(to_check(model), user, contract.OBSERVED)
        start = unwrapped(model.initial, contract.circular_dims(model))
        mean = contract.read_rows("initial.mean", start.mean, (model.dim,), 0)
        return cls(mean, contract.read_covariance("initial.covariance", start.covariance, model.dim, 0).matrix.copy(), rule)

    def predict(self, transition: Transition) -> GaussianBelief:
        """Predict as Kalman, angles wrapped."""
        means, covariances, _ = predict_gaussians(transition, self.mean[None], self.covariance[None], self.rule)
        return GaussianBelief(transition.wrapped(means[0]), covariances[0], self.rule)

    def update(self, observation: Observation) -> tuple[GaussianBelief, float]:
        """Kalman's update, angles wrapped; by probabilistic data association if the observation is a scan."""
        given = self.mean[None], self.covariance[None]
        circular = contract.circular_dims(observation.model)
        if contract.has_scans(observation.model):
            moments = observation_moments(observation.model, *given, self.rule, observation.step)
            detected = expected_detection(observation.model, *given, self.rule, observation.step)
            mean, after, evidence = data_association(observation, self.mean, self.covariance, moments, detected)
            covariances = definite(after[None], self.covariance, observation.step, "updated")
            return GaussianBelief(wrap_angles(mean, circular), covariances[0], self.rule), evidence
        # a prior may be wide, and the rule's points far from where the first observation puts the state
        rule = IteratedRule(observation) if observation.step == 0 else self.rule
        means, covariances, log_densities = update_gaussians(observation, *given, rule)
        return GaussianBelief(wrap_angles(means[0], circular), covariances[0], self.rule), float(log_densities[0])

    def predicted_observation(self, model: contract.Model, step: int) -> tuple[Array, Array]:
        """Return mean (k,) and covariance (k, k) of the observation, its noise included."""
        given = self.mean[None], self.covariance[None]
        means, covariances, _ = observation_moments(model, *given, self.rule, step)
        return means[0], covariances[0]

    def combine(self, others: Sequence[GaussianBelief], weights: Array, circular: tuple[int, ...]) -> GaussianBelief:
        """Take mean and covariance of the mixture."""
        means = np.array([other.mean for other in others])
        covariances = np.array([other.covariance for other in others])
        return GaussianBelief(*merged(means, covariances, weights, circular), self.rule)


def unwrapped(start: Any, circular: tuple[int, ...]) -> Any:
    """Return an initial distribution; if it is a mixture, with the angles of its means unwrapped about their mean."""
    if not circular or not isinstance(start, GaussianMixture):
        return start
    means = unwrap_angles(start.means, start.weights, circular)
    return GaussianMixture.unchecked(start.weights, means, start.distinct_covariances)


def predict_gaussians(transition: Transition, means: Array, covariances: Array, rule: MomentRule) -> Moments:
    """Carry each N(means[i], covariances[i]) through the transition.

    Additive noise adds its covariance; other noise is a part of the Gaussian that goes through the transition.

    Covariances are (K, d, d), or (1, d, d) if all Gaussians share one. Return means (K, d) with angles not wrapped,
    covariances (K, d, d), and covariances (K, d, d) of each state with the next.
    """
    d, circular, step = transition.model.dim, transition.circular, transition.step
    if contract.has(transition.model, contract.ADDITIVE):
        jacobian = getattr(transition.model, "transition_jacobian", None)
        function = contract.VectorFunction(
            lambda x: transition.mean(transition.wrapped(x)),
            lambda _: circular,
            jacobian and (lambda x: jacobian(transition.wrapped(x), transition.dt, transition.control, step)),
        )
        means, covariances, cross = moments_by(rule, function, means, covariances)
        covariances = covariances + transition.covariance
    else:
        function = contract.VectorFunction(
            lambda x: transition.propagate(transition.wrapped(x[:, :d]), x[:, d:]), lambda _: circular
        )
        noises = transition.noise_dim
        joint = np.zeros((len(covariances), d + noises, d + noises))
        joint[:, :d, :d], joint[:, d:, d:] = covariances, np.eye(noises)
        states = np.hstack([means, np.zeros((len(means), noises))])
        means, covariances, cross = moments_by(rule, function, states, joint)
    return means, definite(covariances, covariances, step, "predicted"), cross[:, :d]


def update_gaussians(observation: Observation, means: Array, covariances: Array, rule: MomentRule) -> Moments:
    """Update each N(means[i], covariances[i]) with the moments of state and observation (Kalman's update).

    Covariances are (K, d, d), or (1, d, d) if all Gaussians share one. Return means (K, d), moved by their corrections and
    not wrapped, covariances (K, d, d), and log-densities (K,) of the finite part of the observation.
    """
    predicted, observed, cross = observation_moments(observation.model, means, covariances, rule, observation.step)
    observed, cross = finite_part(observation, predicted, observed, cross)
    return correct_gaussians(means, covariances, observation.residuals(predicted), observed, cross, observation.step)


def correct_gaussians(
    means: Array, covariances: Array, residuals: Array, observed: Array, cross: Array, step: int
) -> Moments:
    """Update each Gaussian with its residual (K, k), given the covariances (K, k, k) and (K, d, k) of `update_gaussians`."""
    (count, d), k, contiguous = means.shape, residuals.shape[1], np.ascontiguousarray
    moved, shrunk, log_densities = means.copy(), np.empty((count, d, d)), np.full(count, np.nan)
    buffers = np.empty((max(k, d), max(k, d))), np.empty((k, d + 1))
    given = contiguous(covariances), contiguous(residuals), contiguous(observed), contiguous(cross)
    regular = update_in_place(*given, moved, shrunk, log_densities, *buffers)
    if np.isnan(log_densities).any():
        raise IndefiniteCovarianceError(step, "observation's")
    return moved, shrunk if regular else definite(shrunk, covariances, step, "updated"), log_densities


def observation_moments(model: contract.Model, means: Array, covariances: Array, rule: MomentRule, step: int) -> Moments:
    """Return moments of the observation by each N(means[i], covariances[i]), its noise included; see `MomentRule`."""
    circular = contract.circular_dims(model)
    jacobian = getattr(model, "observation_jacobian", None)
    function = contract.VectorFunction(
        lambda x: contract.observation_mean(model, wrap_angles(x, circular), step),
        lambda size: contract.observation_circular(model, size),
        jacobian and (lambda x: jacobian(wrap_angles(x, circular), step)),
    )
    predicted, spread, cross = moments_by(rule, function, means, covariances)
    size = predicted.shape[1]
    if not contract.takes_state(model):
        return predicted, spread + contract.observation_covariances(model, means, size, step), cross

    def entries(x: Array) -> Array:
        noises = contract.observation_covariances(model, x, size, step)
        return np.broadcast_to(noises, (len(x), size, size)).reshape(len(x), -1)

    # by the law of total covariance the noise adds its covariance, expected over each Gaussian
    expected = _expected(entries, model, means, covariances, rule)
    return predicted, spread + expected.reshape(-1, size, size), cross


def expected_detection(model: WithClutter, means: Array, covariances: Array, rule: MomentRule, step: int) -> Factor:
    """Return P_D expected over each N(means[i], covariances[i]) by a rule for moments, (K,), or the number that it is.

    The linear rule takes it at the means, others at their points. What negative weights put outside [0, 1] is clipped.
    """
    if not callable(model.detection_probability):
        return model.detection_probability
    found = _expected(lambda x: np.reshape(model.detection_probabilities(x, step), (-1, 1)), model, means, covariances, rule)
    return np.clip(found[:, 0], 0.0, 1.0)


def _expected(
    function: Callable[[Array], Array], model: contract.Model, means: Array, covariances: Array, rule: MomentRule
) -> Array:
    """Return a function of states, (n, d) -> (n, k), expected over each Gaussian by a rule, (K, k)."""
    circular, mean = contract.circular_dims(model), getattr(rule, "mean", None)
    values = contract.VectorFunction(lambda x: function(wrap_angles(x, circular)), lambda _: ())
    return np.asarray(mean(values, means, covariances) if mean else moments_by(rule, values, means, covariances)[0])


@dataclass(frozen=True, eq=False)
class IteratedRule:
    """Linearisation where an observation puts each state: the iterated extended Kalman update (Bell and Cathey 1993)."""

    observation: Observation

    def __call__(self, function: contract.VectorFunction, means: Array, covariances: Array) -> Moments:
        """See `MomentRule`."""
        states, changed, entries = means, np.inf, self.observation.observed_entries
        for _ in range(MOST_ITERATIONS):
            values, spread, cross = LINEAR_RULE(function, states, covariances)
            slopes = np.linalg.solve(covariances, cross).transpose(0, 2, 1)
            values = values + (slopes @ (means - states)[:, :, None])[:, :, 0]
            noisy = self.observation.part(spread) + self.observation.noises(states)
            gains = np.linalg.solve(noisy, cross[:, :, entries].transpose(0, 2, 1)).transpose(0, 2, 1)
            before, states = states, means + (gains @ self.observation.residuals(values)[:, :, None])[:, :, 0]
            changed = (np.abs(states - before) / np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))).max()
            if changed < SMALLEST_CHANGE:
                break
        return values, spread, cross


def log_evidence(transition: Transition, particles: Particles, observation: Observation) -> float:
    """Return the log-density of an observation as the moments of weighted particles predict it; 0 if they predict none."""
    if transition.simulated_only or contract.has_scans(observation.model) or not observation.has_moments:
        return 0.0
    mean, covariance = particles.moments(transition.circular)
    means, covariances, _ = predict_gaussians(transition, mean[None], covariance[None], UNSCENTED_RULE)
    values, spread, _ = observation_moments(observation.model, means, covariances, UNSCENTED_RULE, observation.step)
    density = contract.gaussian_log_density(observation.residuals(values), observation.part(spread), observation.step)
    return float(density[0])


def definite(covariances: Array, before: Array, step: int, what: str) -> Array:
    """Return covariances (K, d, d) made symmetric and, where rounding took that away, positive semi-definite.

    Eigenvalues, relative to the variances `before` (..., d, d) that they were computed from, are raised to zero if they are
    above minus `RELATIVE_TOLERANCE`; if one is below, IndefiniteCovarianceError names the step and which covariance it is.
    """
    covariances = 0.5 * (covariances + covariances.transpose(0, 2, 1))
    if not np.isfinite(covariances).all():
        raise IndefiniteCovarianceError(step, what)
    with suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(covariances)
        return covariances
    if len(covariances) > 1:  # each by itself: what one lacks changes no other
        before = np.broadcast_to(before, covariances.shape)
        return np.concatenate([definite(covariances[i, None], before[i], step, what) for i in range(len(covariances))])
    variances = np.diagonal(before, axis1=-2, axis2=-1)
    scale = np.sqrt(np.maximum(variances, np.abs(np.diagonal(covariances, axis1=1, axis2=2))))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(covariances / (scale[:, :, None] * scale[:, None]))
    if values.min() < -RELATIVE_TOLERANCE:
        raise IndefiniteCovarianceError(step, what)
    roots: Array = vectors * np.sqrt(np.maximum(values, 0.0))[:, None] * scale[:, :, None]
    return roots @ roots.transpose(0, 2, 1)


def kalman_mixture(
    model: contract.Model, prediction: GaussianMixture, z: Array, step: int, rule: str | MomentRule = "unscented"
) -> tuple[GaussianMixture, float]:
    """Return the posterior of a Gaussian mixture, each component updated as by a Kalman filter of its own.

    The weight of a component is multiplied by its evidence, the density of the observation that it predicts. If the
    observation is linear in the state this is the exact posterior, the Gaussian sum of Alspach and Sorenson (1972).

    Parameters
    ----------
    model : object
        With ``observation_mean`` and ``observation_covariance``.
    prediction : GaussianMixture
        Of the state, before the observation. Means of angles may lie outside [-pi, pi).
    z : ndarray, shape (k,)
        The observation; NaN marks missing entries, and at least one entry is there.
    step : int
        Time index of the observation.
    rule : {"unscented", "extended", "cubature"} or MomentRule
        How the moments of the observation are computed: as in the Kalman filter of that name.

    Returns
    -------
    posterior : GaussianMixture
        With as many components; the means of angles, moved by their corrections, are not wrapped.
    log_evidence : float
        Log-density of the finite part of the observation.

    Raises
    ------
    IndefiniteCovarianceError
        If the covariance of the observation, or an updated one, is indefinite.

    Examples
    --------
    Two guesses of a place, 0 and 4, are weighted by their predictions of the observation 3:

    >>> from herdfilter.filters.kalman import kalman_mixture
    >>> prior = hf.GaussianMixture([0.5, 0.5], [[0.0], [4.0]], [[1.0]])
    >>> posterior, log_evidence = kalman_mixture(hf.models.linear_chain(1), prior, np.array([3.0]), step=1)
    >>> posterior.means.ravel().round(9).tolist(), posterior.weights.round(2).tolist()
    ([1.5, 3.5], [0.12, 0.88])
    """
    observation = Observation.read(model, z, step, partial=True)
    if observation is None:
        raise ValueError(f"z: expected an entry that is not missing, got {short_repr(z)} at step {step}")
    return update_mixture(observation, prediction, rule)


def update_mixture(
    observation: Observation, prediction: GaussianMixture, rule: str | MomentRule
) -> tuple[GaussianMixture, float]:
    """Return the posterior of a Gaussian mixture and the log-evidence; see `kalman_mixture`."""
    given = prediction.means, prediction.distinct_covariances, moment_rule(rule)
    means, covariances, log_densities = update_gaussians(observation, *given)
    weights, log_evidence = reweight(prediction.weights, log_densities)
    return GaussianMixture.unchecked(weights, means, covariances), log_evidence


def reweight(weights: Array, log_densities: Sequence[float] | Array) -> tuple[Array, float]:
    """Return weights (K,) times the densities of an observation, normalised, and the logarithm of their sum.

    An observation out of reach of all leaves the weights as they are.
    """
    with np.errstate(divide="ignore"):
        after = np.log(weights) + np.asarray(log_densities)
    total = float(np.logaddexp.reduce(after))
    return (weights if total == -np.inf else np.exp(after - total)), total
