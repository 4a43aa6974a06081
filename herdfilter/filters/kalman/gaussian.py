"""Gaussians, carried through functions that a plugged-in rule takes for linear ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, read_only, short_repr
from herdfilter._covariances import covariance_factor
from herdfilter._repr import fields_in_line
from herdfilter.angles import merged, unwrap, wrap
from herdfilter.filters.kalman.rules import LINEAR_RULE, UNSCENTED_RULE, Linearisation, MomentRule, linearised, moment_rule
from herdfilter.filters.kalman.update import condition, correct_gaussians, observed_part, triangular
from herdfilter.filters.observation import Observation, Observations
from herdfilter.filters.state import Particles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.resolved import Measurement, Motion, Transition
from herdfilter.models.returned import read_covariance, read_rows
from herdfilter.models.sensors import to_check
from herdfilter.models.trial import check_state
from herdfilter.models.with_clutter import Factor, WithClutter

MOST_ITERATIONS = 20  # most iterations of the extended Kalman update
SMALLEST_CHANGE = 1e-8  # change at which the iteration stops, in standard deviations of the prior
NEGLIGIBLE_SHARE = 1e-12  # hypotheses of smaller weight are dropped at once


@dataclass(frozen=True, eq=False, repr=False)
class Gaussians:
    """K Gaussians of the state: a mixture, or independent states. A single Gaussian is K = 1.

    Attributes
    ----------
    weights : ndarray, shape (K,)
        Of a mixture they sum to 1; independent states have the weight 1 each.
    means, factors : ndarray, shapes (K, d) and (K, d, d)
        Each covariance is ``factor @ factor.T``.
    modes : ndarray of int, shape (K,), or None
        The mode by whose model each goes on; None if the model does not jump.
    """

    weights: Array
    means: Array
    factors: Array
    modes: Any = None

    __repr__ = fields_in_line

    @classmethod
    def initial(cls, models: Sequence[contract.Model], user: str) -> Gaussians:
        """Return the moments of the initial distribution of each model, after checking what the models have."""
        means, factors = [], []
        for model in models:
            check_state(model, user, "mean", "covariance")
            contract.require(model, user, contract.ADDITIVE, ("transition", "noise_dim"))
            contract.require(to_check(model), user, contract.OBSERVED)
            start = unwrapped(model.initial, contract.circular_dims(model))
            means.append(read_rows("initial.mean", start.mean, (model.dim,), 0))
            factors.append(read_covariance("initial.covariance", start.covariance, model.dim, 0).factor)
        return cls(np.ones(len(models)), np.array(means), np.array(factors))

    @classmethod
    def join(cls, parts: Sequence[Gaussians], weights: Array | None = None) -> Gaussians:
        """Return all Gaussians of the parts, each part's weights times its entry of `weights` (H,), if there are any."""
        names = ("weights", "means", "factors") if parts[0].modes is None else ("weights", "means", "factors", "modes")
        columns = []
        for name in names:
            columns.append(np.concatenate(list(map(attrgetter(name), parts))))
        if weights is not None:
            columns[0] *= np.repeat(weights, list(map(len, parts)))
        return cls(*columns)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def covariances(self) -> Array:
        """Covariances, (K, d, d)."""
        return self.factors @ self.factors.mT

    def take(self, rows: Any) -> Gaussians:
        """Return chosen Gaussians, by an index of NumPy."""
        modes = None if self.modes is None else self.modes[rows]
        return Gaussians(self.weights[rows], self.means[rows], self.factors[rows], modes)

    def predict(self, transition: Transition, rule: MomentRule) -> Gaussians:
        """Predict each as Kalman, by the model of its mode; angles are wrapped."""

        def predict_in_mode(motion: Motion, part: Gaussians) -> tuple[Array, ...]:
            onward = transition if motion is transition.motion else transition.of(motion)
            means, slopes, noises = linear_transition(onward, part.means, part.factors, rule)
            return means, condition(slopes, noises, part.factors[:, :0], transition.step, "predicted")[0]

        means, factors = self._in_modes(transition.motion, predict_in_mode)
        return Gaussians(self.weights, transition.wrapped(means), factors, self.modes)

    def observe(self, measurement: Measurement, rule: MomentRule, step: int) -> Linearisation:
        """Return what a rule takes the observation of each for, noise in the rest."""

        def observe_in_mode(measurement: Measurement, part: Gaussians) -> tuple[Array, ...]:
            return linear_observation(measurement, part.means, part.factors, rule, step)

        return Linearisation(*self._in_modes(measurement, observe_in_mode))

    def update(
        self, observation: Observation, rule: MomentRule | None, linear: Linearisation | None = None
    ) -> tuple[Gaussians, Array]:
        """Update each as Kalman, and return the log-densities (K,) of the observation too; the weights stay.

        Without a rule the update is iterated; `linear` is what the rule takes the observation for, if that is known.
        """
        measurement = observation.measurement

        def iterate_in_mode(measurement: Measurement, part: Gaussians) -> tuple[Array, ...]:
            return iterated_update(observation.by(measurement), part.means, part.factors)

        if rule is None:
            means, factors, log_densities = self._in_modes(measurement, iterate_in_mode)
        else:
            linear = linear or self.observe(measurement, rule, observation.step)
            means, factors, log_densities = update_gaussians(observation, self.means, self.factors, rule, linear)
        means = wrap(means, measurement.state_circular)
        return Gaussians(self.weights, means, factors, self.modes), log_densities

    def reweighted(self, log_densities: Array) -> tuple[Gaussians, float]:
        """Return the mixture given an observation of these log-densities (K,), and its log-evidence.

        An observation out of reach of all leaves the weights as they are.
        """
        if len(self) == 1:
            return Gaussians(np.ones(1), self.means, self.factors, self.modes), float(log_densities[0])
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights) + log_densities
        log_evidence = float(np.logaddexp.reduce(log_weights))
        weights = self.weights if log_evidence == -np.inf else np.exp(log_weights - log_evidence)
        return Gaussians(weights, self.means, self.factors, self.modes), log_evidence

    def branch(
        self, observation: Observation, rule: Any, negligible: float = NEGLIGIBLE_SHARE
    ) -> tuple[Gaussians, float, NDArray[np.int64], NDArray[np.int64]]:
        """Divide each by the hypotheses about a scan, and return the mixture of all and the log-evidence.

        Return also which Gaussian each was, and its hypothesis: 0 for a miss, or 1 + j for detection j. Hypotheses lighter
        than `negligible` are left out. A scan that is impossible by all hypotheses changes nothing. An observation that is
        no scan is the one detection of all; without a rule its update is iterated.
        """
        measurement, scan, step = observation.measurement, observation.z, observation.step
        every = np.arange(len(self))
        if not measurement.scans:
            updated, log_densities = self.update(observation, rule)
            return *updated.reweighted(log_densities), every, np.ones_like(every)
        shape = len(self), len(scan)
        model = measurement.model
        missed, log_factors = model.log_factors(expected_detection(model, self, rule, step), scan, step)
        terms = np.full((1 + shape[1], shape[0]), missed)
        linear = self.observe(measurement, rule, step)
        hypotheses = self
        if len(scan):
            pairs = np.repeat(every, len(scan))
            detections = Observations(measurement, np.tile(scan, (len(self), 1)), step)
            detected, log_densities = self.take(pairs).update(detections, rule, linear.take(pairs))
            terms[1:] = log_factors + log_densities.reshape(shape).T
            hypotheses = Gaussians.join([self, detected])
        with np.errstate(divide="ignore"):
            log_weights = (np.log(self.weights) + terms).T
        log_evidence = float(np.logaddexp.reduce(log_weights, axis=None))
        if log_evidence == -np.inf:
            return self, log_evidence, every, np.zeros_like(every)
        shares = np.exp(log_weights - log_evidence)
        by_mode = every if self.modes is None else np.argsort(self.modes, kind="stable")
        positions, chosen = np.nonzero(shares[by_mode] > negligible)
        parents = by_mode[positions]
        weights = shares[parents, chosen]
        rows = np.where(chosen == 0, parents, len(self) + parents * len(scan) + chosen - 1)
        branches = replace(hypotheses.take(rows), weights=weights / weights.sum())
        return branches, log_evidence, parents, chosen

    def predicted_observation(self, measurement: Measurement, rule: MomentRule, step: int) -> tuple[Array, Array]:
        """Return mean (k,) and covariance (k, k) of the observation that the mixture predicts, its noise included."""
        linear = self.observe(measurement, rule, step)
        circular = measurement.modes[0].circular(linear.means.shape[1])
        return merged(linear.means, linear.covariances, self.weights, circular)

    def split(self, transition_matrix: Array) -> Gaussians:
        """Return a copy of each for each mode that it may jump to, with its share of the weight."""
        joint = self.weights[:, None] * transition_matrix[self.modes]
        parents, modes = np.nonzero(joint)
        return Gaussians(joint[parents, modes], self.means[parents], self.factors[parents], modes)

    def mixed(self, joint: Array, circular: tuple[int, ...]) -> Gaussians:
        """Return a Gaussian with the moments of the mixture by each column of the weights `joint` (K, G).

        Columns without weight are left out; the others are the modes of a model that jumps.
        """
        if joint.shape == (1, 1):
            return self
        weights = joint.sum(axis=0)
        modes = np.flatnonzero(weights > 0)
        weights = weights[modes]
        means, factors = merge_gaussians(self.means[None], self.factors[None], (joint[:, modes] / weights).T, circular)
        return Gaussians(weights, means, factors, None if self.modes is None else modes)

    def merged(self, circular: tuple[int, ...]) -> Gaussians:
        """Return one Gaussian for each mode."""
        if self.modes is None:
            return self.mixed(self.weights[:, None], circular)
        return self.mixed(self.weights[:, None] * (self.modes[:, None] == np.arange(self.modes.max() + 1)), circular)

    def moments(self, circular: tuple[int, ...]) -> tuple[Array, Array]:
        """Return mean (d,) and covariance (d, d) of the mixture."""
        whole = self.mixed(self.weights[:, None], circular)
        return whole.means[0], whole.covariances[0]

    def _in_modes(self, resolved: Any, function: Callable[[Any, Gaussians], tuple[Array, ...]]) -> tuple[Array, ...]:
        """Return arrays with a row for each Gaussian, which a function makes of the motion, or measurement, of each mode."""
        if self.modes is None:
            return function(resolved, self)
        present = sorted({*self.modes.tolist()})
        if len(present) == 1:
            return function(resolved.in_mode(present[0]), self)
        arrays: tuple[Array, ...] = ()
        for mode in present:
            rows = np.flatnonzero(self.modes == mode)
            parts = function(resolved.in_mode(mode), self.take(rows))
            arrays = arrays or tuple(np.empty((len(self), *part.shape[1:])) for part in parts)
            for array, part in zip(arrays, parts, strict=True):
                array[rows] = part
        return arrays


def merge_gaussians(means: Array, factors: Array, weights: Array, circular: tuple[int, ...]) -> tuple[Array, Array]:
    """Return means (G, d), angles wrapped, and factors (G, d, d) of G mixtures of n Gaussians each.

    Means are (G, n, d), factors (G, n, d, d), or (1, ...) if the mixtures share them; weights (G, n) sum to 1.
    """
    count, n = weights.shape
    d = means.shape[2]
    x = np.broadcast_to(means, (count, n, d)).copy()
    for i in circular:
        sines, cosines = ((weights * wave(x[..., i])).sum(axis=1) for wave in (np.sin, np.cos))
        reference = np.arctan2(sines, cosines)[:, None]
        x[..., i] = reference + (x[..., i] - reference + np.pi) % (2 * np.pi) - np.pi
    centres = (weights[:, None] @ x)[:, 0]
    roots = np.sqrt(weights)
    columns = (roots[:, :, None, None] * factors).transpose(0, 2, 1, 3).reshape(count, d, n * d)
    spread = (roots[:, :, None] * (x - centres[:, None])).mT
    return wrap(centres, circular), triangular(np.concatenate([columns, spread], axis=2))


def unwrapped(start: Any, circular: tuple[int, ...]) -> Any:
    """Return an initial distribution; if it is a mixture, with the angles of its means unwrapped about their mean."""
    if not circular or not isinstance(start, GaussianMixture):
        return start
    means = unwrap(start.means, start.weights, circular)
    return GaussianMixture.unchecked(start.weights, means, start.distinct_covariances)


def linear_transition(transition: Transition, means: Array, factors: Array, rule: MomentRule) -> Linearisation:
    """Return what a rule takes the transition of each Gaussian for, noise in the rest; slopes are (K, d, m).

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Angles of the means are not wrapped.

    Additive noise adds its covariance; other noise is a part of the Gaussian that goes through the transition: entries of u
    from d on, in m of them.
    """
    d, circular, step = transition.motion.dim, transition.circular, transition.step
    if not transition.motion.has_moments:
        function = contract.VectorFunction(
            lambda x: transition.propagate(transition.wrapped(x[:, :d]), x[:, d:]), lambda _: circular, angles=circular
        )
        noises = transition.noise_dim
        joint = np.zeros((len(factors), d + noises, d + noises))
        joint[:, :d, :d], joint[:, d:, d:] = factors, np.eye(noises)
        return linearised(rule, function, np.hstack([means, np.zeros((len(means), noises))]), joint)
    jacobian = transition.motion.jacobian
    function = contract.VectorFunction(
        lambda x: transition.mean(transition.wrapped(x)),
        lambda _: circular,
        jacobian and (lambda x: jacobian(read_only(transition.wrapped(x)), transition.dt, transition.control, step)),
        circular,
    )
    means, slopes, rests = linearised(rule, function, means, factors)
    return Linearisation(means, slopes, rests + transition.covariance)


def update_gaussians(
    observation: Observation, means: Array, factors: Array, rule: MomentRule | None, linear: Linearisation | None = None
) -> tuple[Array, Array, Array]:
    """Update each N(means[i], factors[i] @ factors[i].T) by an observation that a rule takes for linear (Kalman's update).

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Return means (K, d), moved by their corrections and not
    wrapped, factors (K, d, d), and log-densities (K,) of the finite part of the observation. Without a rule the update is
    iterated. `linear` is what the rule takes the observation for, if that is known.
    """
    if rule is None:
        return iterated_update(observation, means, factors)
    linear = linear or linear_observation(observation.measurement, means, factors, rule, observation.step)
    return correct_gaussians(means, factors, *observed_part(observation, linear), observation.step)


def linear_observation(measurement: Measurement, means: Array, factors: Array, rule: MomentRule, step: int) -> Linearisation:
    """Return what a rule takes the observation of each Gaussian for, its noise in the rest."""
    circular = measurement.state_circular
    jacobian = measurement.jacobian
    function = contract.VectorFunction(
        lambda x: measurement.mean(wrap(x, circular), step),
        measurement.circular,
        jacobian and (lambda x: jacobian(read_only(wrap(x, circular)), step)),
        circular,
    )
    predicted, slopes, rests = linearised(rule, function, means, factors)
    size = predicted.shape[1]
    if not measurement.takes_state:
        return Linearisation(predicted, slopes, rests + measurement.noises(means, size, step))

    def entries(x: Array) -> Array:
        noises = measurement.noises(x, size, step)
        return np.broadcast_to(noises, (len(x), size, size)).reshape(len(x), -1)

    # by the law of total covariance the noise adds its covariance, expected over each Gaussian
    expected = _expected(entries, circular, means, factors, rule)
    return Linearisation(predicted, slopes, rests + expected.reshape(-1, size, size))


def expected_detection(model: WithClutter, states: Gaussians, rule: MomentRule, step: int) -> Factor:
    """Return P_D expected over each Gaussian by a rule, (K,), or the number that it is.

    The linear rule takes it at the means, others at their points. What negative weights put outside [0, 1] is clipped.
    """
    if not callable(model.detection_probability):
        return model.detection_probability

    def column(x: Array) -> Array:
        return np.reshape(model.detection_probabilities(x, step), (-1, 1))

    return np.clip(_expected(column, contract.circular_dims(model), states.means, states.factors, rule)[:, 0], 0.0, 1.0)


def _expected(
    function: Callable[[Array], Array], circular: tuple[int, ...], means: Array, factors: Array, rule: MomentRule
) -> Array:
    """Return a function of states, (n, d) -> (n, k), expected over each Gaussian by a rule, (K, k)."""
    values = contract.VectorFunction(lambda x: function(wrap(x, circular)), lambda _: (), angles=circular)
    return linearised(rule, values, means, factors).means


def iterated_update(
    observation: Observation, means: Array, factors: Array, start: Array | None = None
) -> tuple[Array, Array, Array]:
    """Do as `update_gaussians`, linearised where the observation puts each state (Bell and Cathey 1993).

    This is the iterated extended Kalman update. It starts from ``means + factors @ start``, `start` (K, d), or from the
    means.
    """
    count, d = means.shape
    u: Array = np.zeros((count, d)) if start is None else start
    for _ in range(MOST_ITERATIONS):
        states = means + (factors @ u[:, :, None])[:, :, 0]
        linear = linear_observation(observation.measurement, states, factors, LINEAR_RULE, observation.step)
        residuals, slopes, noises = observed_part(observation, linear)
        residuals = residuals + (slopes @ u[:, :, None])[:, :, 0]
        after, _, _ = correct_gaussians(np.zeros((count, d)), np.eye(d)[None], residuals, slopes, noises, observation.step)
        changed = np.abs(after - u).max(axis=1) >= SMALLEST_CHANGE
        if not changed.any():
            break
        u = np.where(changed[:, None], after, u)
    return correct_gaussians(means, factors, residuals, slopes, noises, observation.step)


def log_evidence(transition: Transition, particles: Particles, observation: Observation) -> float:
    """Return the log-density of an observation as the moments of weighted particles predict it; 0 if they predict none."""
    if transition.simulated_only or observation.measurement.scans or not observation.has_moments:
        return 0.0
    mean, covariance = particles.moments(transition.circular)
    predicted = Gaussians(np.ones(1), mean[None], covariance_factor(covariance)[None]).predict(transition, UNSCENTED_RULE)
    mean, covariance = predicted.predicted_observation(observation.measurement, UNSCENTED_RULE, observation.step)
    residuals = observation.residuals(mean[None])
    return float(contract.gaussian_log_density(residuals, observation.part(covariance[None]), observation.step)[0])


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
    observation: Observation, prediction: GaussianMixture, rule: str | MomentRule | None
) -> tuple[GaussianMixture, float]:
    """Return the posterior of a Gaussian mixture and the log-evidence; see `kalman_mixture`; iterated without a rule."""
    rule = None if rule is None else moment_rule(rule)
    means, factors, log_densities = update_gaussians(observation, prediction.means, prediction.factors, rule)
    posterior, log_evidence = Gaussians(prediction.weights, means, factors).reweighted(log_densities)
    return GaussianMixture.unchecked(posterior.weights, means, posterior.covariances), log_evidence
