"""A Gaussian belief, carried through functions that a plugged-in rule takes for linear ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, read_only, short_repr
from herdfilter._covariances import covariance_factor
from herdfilter._repr import fields_in_line
from herdfilter.angles import unwrap, unwrap_angles, wrap, wrap_angles
from herdfilter.filters.kalman.rules import LINEAR_RULE, UNSCENTED_RULE, Linearisation, MomentRule, linearised, moment_rule
from herdfilter.filters.kalman.update import condition, correct_gaussians, data_association, finite_part, triangular
from herdfilter.filters.observation import Observation
from herdfilter.filters.state import Particles
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.sensors import to_check
from herdfilter.models.with_clutter import Factor, WithClutter

MOST_ITERATIONS = 20  # most iterations of the extended Kalman update
SMALLEST_CHANGE = 1e-8  # change at which the iteration stops, in standard deviations of the prior


@dataclass(frozen=True, eq=False, repr=False)
class GaussianBelief:
    """The state is N(mean, factor @ factor.T) (a `Belief`)."""

    mean: Array
    factor: Array
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
        return cls(mean, contract.read_covariance("initial.covariance", start.covariance, model.dim, 0).factor.copy(), rule)

    @property
    def covariance(self) -> Array:
        """See `Belief`."""
        factors = self.factor[None]  # as of several, which BLAS may round otherwise than one
        covariance: Array = (factors @ factors.mT)[0]
        return covariance

    def predict(self, transition: Transition) -> GaussianBelief:
        """Predict as Kalman, angles wrapped."""
        means, factors = predict_gaussians(transition, self.mean[None], self.factor[None], self.rule)
        return GaussianBelief(transition.wrapped(means[0]), factors[0], self.rule)

    def update(self, observation: Observation) -> tuple[GaussianBelief, float]:
        """Kalman's update, angles wrapped; by probabilistic data association if the observation is a scan."""
        given = self.mean[None], self.factor[None]
        circular = contract.circular_dims(observation.model)
        if contract.has_scans(observation.model):
            linear = linear_observation(observation.model, *given, self.rule, observation.step)
            detected = expected_detection(observation.model, *given, self.rule, observation.step)
            mean, factor, evidence = data_association(observation, self.mean, self.factor, linear, detected)
            return GaussianBelief(wrap_angles(mean, circular), factor, self.rule), evidence
        # a prior may be wide, and the rule's points far from where the first observation puts the state
        rule = IteratedRule(observation) if observation.step == 0 else self.rule
        means, factors, log_densities = update_gaussians(observation, *given, rule)
        return GaussianBelief(wrap_angles(means[0], circular), factors[0], self.rule), float(log_densities[0])

    def predicted_observation(self, model: contract.Model, step: int) -> tuple[Array, Array]:
        """Return mean (k,) and covariance (k, k) of the observation, its noise included."""
        means, slopes, noises = linear_observation(model, self.mean[None], self.factor[None], self.rule, step)
        return means[0], (slopes @ slopes.mT + noises)[0]

    def combine(self, others: Sequence[GaussianBelief], weights: Array, circular: tuple[int, ...]) -> GaussianBelief:
        """Take mean and covariance of the mixture."""
        means, factors = (np.array([getattr(other, name) for other in others]) for name in ("mean", "factor"))
        return GaussianBelief(*merged_gaussian(means, factors, weights, circular), self.rule)


def merged_gaussian(means: Array, factors: Array, weights: Array, circular: tuple[int, ...]) -> tuple[Array, Array]:
    """Return mean (d,), angles wrapped, and factor (d, d) of a mixture of K Gaussians; of one, its own unchanged."""
    if len(means) == 1:
        return means[0], factors[0]
    means, shares = unwrap(means, weights, circular), np.sqrt(weights)
    mean: Array = weights @ means
    columns = np.hstack([*(shares[:, None, None] * factors), (shares[:, None] * (means - mean)).T])
    return wrap(mean, circular), triangular(columns[None])[0]


def unwrapped(start: Any, circular: tuple[int, ...]) -> Any:
    """Return an initial distribution; if it is a mixture, with the angles of its means unwrapped about their mean."""
    if not circular or not isinstance(start, GaussianMixture):
        return start
    means = unwrap_angles(start.means, start.weights, circular)
    return GaussianMixture.unchecked(start.weights, means, start.distinct_covariances)


def predict_gaussians(transition: Transition, means: Array, factors: Array, rule: MomentRule) -> tuple[Array, Array]:
    """Carry each N(means[i], factors[i] @ factors[i].T) through the transition.

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Return means (K, d) with angles not wrapped, and factors
    (K, d, d).
    """
    means, slopes, noises = linear_transition(transition, means, factors, rule)
    return means, condition(slopes, noises, factors[:, :0], transition.step, "predicted")[0]


def linear_transition(transition: Transition, means: Array, factors: Array, rule: MomentRule) -> Linearisation:
    """Return what a rule takes the transition of each Gaussian for, noise in the rest; slopes are (K, d, m).

    Additive noise adds its covariance; other noise is a part of the Gaussian that goes through the transition: entries of u
    from d on, in m of them.
    """
    d, circular, step = transition.model.dim, transition.circular, transition.step
    if not contract.has(transition.model, contract.ADDITIVE):
        function = contract.VectorFunction(
            lambda x: transition.propagate(transition.wrapped(x[:, :d]), x[:, d:]), lambda _: circular, angles=circular
        )
        noises = transition.noise_dim
        joint = np.zeros((len(factors), d + noises, d + noises))
        joint[:, :d, :d], joint[:, d:, d:] = factors, np.eye(noises)
        return linearised(rule, function, np.hstack([means, np.zeros((len(means), noises))]), joint)
    jacobian = getattr(transition.model, "transition_jacobian", None)
    function = contract.VectorFunction(
        lambda x: transition.mean(transition.wrapped(x)),
        lambda _: circular,
        jacobian and (lambda x: jacobian(read_only(transition.wrapped(x)), transition.dt, transition.control, step)),
        circular,
    )
    means, slopes, rests = linearised(rule, function, means, factors)
    return means, slopes, rests + transition.covariance


def update_gaussians(observation: Observation, means: Array, factors: Array, rule: MomentRule) -> tuple[Array, Array, Array]:
    """Update each N(means[i], factors[i] @ factors[i].T) by an observation that a rule takes for linear (Kalman's update).

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Return means (K, d), moved by their corrections and not
    wrapped, factors (K, d, d), and log-densities (K,) of the finite part of the observation.
    """
    predicted, slopes, noises = linear_observation(observation.model, means, factors, rule, observation.step)
    slopes, noises = finite_part(observation, predicted, slopes, noises)
    return correct_gaussians(means, factors, observation.residuals(predicted), slopes, noises, observation.step)


def linear_observation(model: contract.Model, means: Array, factors: Array, rule: MomentRule, step: int) -> Linearisation:
    """Return what a rule takes the observation of each Gaussian for, its noise in the rest."""
    circular = contract.circular_dims(model)
    jacobian = getattr(model, "observation_jacobian", None)
    function = contract.VectorFunction(
        lambda x: contract.observation_mean(model, wrap_angles(x, circular), step),
        lambda size: contract.observation_circular(model, size),
        jacobian and (lambda x: jacobian(read_only(wrap_angles(x, circular)), step)),
        circular,
    )
    predicted, slopes, rests = linearised(rule, function, means, factors)
    size = predicted.shape[1]
    if not contract.takes_state(model):
        return predicted, slopes, rests + contract.observation_covariances(model, means, size, step)

    def entries(x: Array) -> Array:
        noises = contract.observation_covariances(model, x, size, step)
        return np.broadcast_to(noises, (len(x), size, size)).reshape(len(x), -1)

    # by the law of total covariance the noise adds its covariance, expected over each Gaussian
    expected = _expected(entries, model, means, factors, rule)
    return predicted, slopes, rests + expected.reshape(-1, size, size)


def expected_detection(model: WithClutter, means: Array, factors: Array, rule: MomentRule, step: int) -> Factor:
    """Return P_D expected over each Gaussian by a rule, (K,), or the number that it is.

    The linear rule takes it at the means, others at their points. What negative weights put outside [0, 1] is clipped.
    """
    if not callable(model.detection_probability):
        return model.detection_probability
    found = _expected(lambda x: np.reshape(model.detection_probabilities(x, step), (-1, 1)), model, means, factors, rule)
    return np.clip(found[:, 0], 0.0, 1.0)


def _expected(
    function: Callable[[Array], Array], model: contract.Model, means: Array, factors: Array, rule: MomentRule
) -> Array:
    """Return a function of states, (n, d) -> (n, k), expected over each Gaussian by a rule, (K, k)."""
    circular, mean = contract.circular_dims(model), getattr(rule, "mean", None)
    values = contract.VectorFunction(lambda x: function(wrap_angles(x, circular)), lambda _: (), angles=circular)
    return np.asarray(mean(values, means, factors) if mean else linearised(rule, values, means, factors)[0])


@dataclass(frozen=True, eq=False)
class IteratedRule:
    """Linearisation where an observation puts each state: the iterated extended Kalman update (Bell and Cathey 1993)."""

    observation: Observation

    def __call__(self, function: contract.VectorFunction, means: Array, factors: Array) -> Linearisation:
        """See `MomentRule`."""
        (count, d), observation = means.shape, self.observation
        u: Array = np.zeros((count, d))
        for _ in range(MOST_ITERATIONS):
            states = means + (factors @ u[:, :, None])[:, :, 0]
            values, slopes, rests = LINEAR_RULE(function, states, factors)
            values = values - (slopes @ u[:, :, None])[:, :, 0]
            before, given = u, (np.zeros((count, d)), np.eye(d)[None], observation.residuals(values))
            linear = slopes[:, observation.observed_entries], observation.noises(states)
            u = correct_gaussians(*given, *linear, observation.step)[0]
            if np.abs(u - before).max() < SMALLEST_CHANGE:
                break
        return values, slopes, rests


def log_evidence(transition: Transition, particles: Particles, observation: Observation) -> float:
    """Return the log-density of an observation as the moments of weighted particles predict it; 0 if they predict none."""
    if transition.simulated_only or contract.has_scans(observation.model) or not observation.has_moments:
        return 0.0
    mean, covariance = particles.moments(transition.circular)
    given = mean[None], covariance_factor(covariance)[None], UNSCENTED_RULE
    predicted = *predict_gaussians(transition, *given), UNSCENTED_RULE
    values, slopes, noises = linear_observation(observation.model, *predicted, observation.step)
    spread = observation.part(slopes @ slopes.mT + noises)
    return float(contract.gaussian_log_density(observation.residuals(values), spread, observation.step)[0])


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
    given = prediction.means, prediction.factors, moment_rule(rule)
    means, factors, log_densities = update_gaussians(observation, *given)
    weights, log_evidence = reweight(prediction.weights, log_densities)
    return GaussianMixture.unchecked(weights, means, factors @ factors.mT), log_evidence


def reweight(weights: Array, log_densities: Sequence[float] | Array) -> tuple[Array, float]:
    """Return weights (K,) times the densities of an observation, normalised, and the logarithm of their sum.

    An observation out of reach of all leaves the weights as they are.
    """
    with np.errstate(divide="ignore"):
        after = np.log(weights) + np.asarray(log_densities)
    total = float(np.logaddexp.reduce(after))
    return (weights if total == -np.inf else np.exp(after - total)), total
