"""Gaussians that are predicted and updated through functions which a moment rule approximates as linear."""

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
from herdfilter.filters.kalman.rules import (
    LINEAR_RULE,
    UNSCENTED_RULE,
    Linearisation,
    MomentRule,
    linearised,
    moment_rule,
)
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
NEGLIGIBLE_SHARE = 1e-12  # hypotheses of smaller weight are dropped


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
        The mode whose model each is predicted with; None if the model does not jump.
    """

    weights: Array
    means: Array
    factors: Array
    modes: Any = None

    __repr__ = fields_in_line

    @classmethod
    def initial(cls, models: Sequence[contract.Model], user: str) -> Gaussians:
        """Check the models, and return the moments of the initial distribution of each."""
        means = []
        factors = []
        for model in models:
            check_state(model, user, "mean", "covariance")
            contract.require(model, user, contract.ADDITIVE, ("transition", "noise_dim"))
            contract.require(to_check(model), user, contract.OBSERVED)
            # The moments of a mixture are those of unwrapped angles; read_rows and read_covariance check a user's arrays.
            start = unwrapped(model.initial, contract.circular_dims(model))
            means.append(read_rows("initial.mean", start.mean, (model.dim,), 0))
            factors.append(
                read_covariance("initial.covariance", start.covariance, model.dim, 0).factor
            )
        return cls(np.ones(len(models)), np.array(means), np.array(factors))

    @classmethod
    def join(cls, parts: Sequence[Gaussians], weights: Array | None = None) -> Gaussians:
        """Return all Gaussians of the parts, each part's weights times its entry of `weights` (H,), if there are any."""
        names = (
            ("weights", "means", "factors")
            if parts[0].modes is None
            else ("weights", "means", "factors", "modes")
        )
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
        """Select Gaussians by any index of NumPy."""
        modes = None if self.modes is None else self.modes[rows]
        return Gaussians(self.weights[rows], self.means[rows], self.factors[rows], modes)

    def predict(self, transition: Transition, rule: MomentRule) -> Gaussians:
        """Kalman prediction of each Gaussian, by the model of its mode; angles are wrapped."""

        def predict_in_mode(motion: Motion, part: Gaussians) -> tuple[Array, ...]:
            onward = transition if motion is transition.motion else transition.of(motion)
            means, slopes, noises = linear_transition(onward, part.means, part.factors, rule)
            # The factor of A A' + Q; with no rows of factors only that is computed.
            return means, condition(
                slopes, noises, part.factors[:, :0], transition.step, "predicted"
            )[0]

        means, factors = self._in_modes(transition.motion, predict_in_mode)
        return Gaussians(self.weights, transition.wrapped(means), factors, self.modes)

    def observe(self, measurement: Measurement, rule: MomentRule, step: int) -> Linearisation:
        """Linearise the observation of each Gaussian by a rule; the noise is part of the `rests`."""

        def observe_in_mode(measurement: Measurement, part: Gaussians) -> tuple[Array, ...]:
            return linear_observation(measurement, part.means, part.factors, rule, step)

        return Linearisation(*self._in_modes(measurement, observe_in_mode))

    def update(
        self,
        observation: Observation,
        rule: MomentRule | None,
        linear: Linearisation | None = None,
    ) -> tuple[Gaussians, Array]:
        """Kalman update of each Gaussian, whose weights stay; return also the log-densities (K,) of the observation.

        Without a rule the update is iterated. `linear` is the result of `observe`, if it has been computed.
        """
        measurement = observation.measurement

        def iterate_in_mode(measurement: Measurement, part: Gaussians) -> tuple[Array, ...]:
            return iterated_update(observation.by(measurement), part.means, part.factors)

        if rule is None:
            means, factors, log_densities = self._in_modes(measurement, iterate_in_mode)
        else:
            linear = linear or self.observe(measurement, rule, observation.step)
            means, factors, log_densities = update_gaussians(
                observation, self.means, self.factors, rule, linear
            )
        # a correction may have taken an angle past the cut
        means = wrap(means, measurement.state_circular)
        return Gaussians(self.weights, means, factors, self.modes), log_densities

    def reweighted(self, log_densities: Array) -> tuple[Gaussians, float]:
        """Multiply the weights by densities, given as logarithms (K,); return the mixture and the log-evidence.

        If all densities are zero the weights stay as they are.
        """
        if len(self) == 1:  # by far the most frequent case
            return Gaussians(np.ones(1), self.means, self.factors, self.modes), float(
                log_densities[0]
            )
        with np.errstate(divide="ignore"):  # components without weight
            log_weights = np.log(self.weights) + log_densities
        log_evidence = float(np.logaddexp.reduce(log_weights))
        weights = self.weights if log_evidence == -np.inf else np.exp(log_weights - log_evidence)
        return Gaussians(weights, self.means, self.factors, self.modes), log_evidence

    def branch(
        self, observation: Observation, rule: Any, negligible: float = NEGLIGIBLE_SHARE
    ) -> tuple[Gaussians, float, NDArray[np.int64], NDArray[np.int64]]:
        """Branch each Gaussian into all hypotheses about a scan; return the mixture and the log-evidence.

        Return also the index of the Gaussian that each comes from, and its hypothesis: 0 for a miss, 1 + j for detection j.
        Hypotheses lighter than `negligible` are left out. A scan that is impossible by all hypotheses changes nothing. An
        observation that is not a scan is a certain detection; without a rule its update is iterated.
        """
        measurement = observation.measurement
        scan = observation.z
        step = observation.step
        all_indices = np.arange(len(self))
        if not measurement.scans:
            updated, log_densities = self.update(observation, rule)
            return *updated.reweighted(log_densities), all_indices, np.ones_like(all_indices)
        # Log-factors `terms` (1 + k, K) of all hypotheses, misses in row 0. All K k updates are made in one call, with
        # one linearisation for each Gaussian.
        shape = (len(self), len(scan))
        model = measurement.model
        missed, log_factors = model.log_factors(
            expected_detection(model, self, rule, step), scan, step
        )
        terms = np.full((1 + shape[1], shape[0]), missed)
        linear = self.observe(measurement, rule, step)
        hypotheses = self
        if len(scan):
            pairs = np.repeat(all_indices, len(scan))
            detections = Observations(measurement, np.tile(scan, (len(self), 1)), step)
            detected, log_densities = self.take(pairs).update(detections, rule, linear.take(pairs))
            terms[1:] = log_factors + log_densities.reshape(shape).T
            hypotheses = Gaussians.join([self, detected])
        with np.errstate(divide="ignore"):
            log_weights = (np.log(self.weights) + terms).T
        log_evidence = float(np.logaddexp.reduce(log_weights, axis=None))
        if log_evidence == -np.inf:
            return self, log_evidence, all_indices, np.zeros_like(all_indices)
        shares = np.exp(log_weights - log_evidence)
        # Branches are listed by mode, then by parent: the selection of histories depends on their order.
        by_mode = all_indices if self.modes is None else np.argsort(self.modes, kind="stable")
        positions, labels = np.nonzero(shares[by_mode] > negligible)
        parents = by_mode[positions]
        weights = shares[parents, labels]
        # In `hypotheses` the K misses come first, then the k detections of each Gaussian.
        rows = np.where(labels == 0, parents, len(self) + parents * len(scan) + labels - 1)
        branches = replace(hypotheses.take(rows), weights=weights / weights.sum())
        return branches, log_evidence, parents, labels

    def predicted_observation(
        self, measurement: Measurement, rule: MomentRule, step: int
    ) -> tuple[Array, Array]:
        """Return mean (k,) and covariance (k, k) of the observation that the mixture predicts, its noise included."""
        linear = self.observe(measurement, rule, step)
        circular = measurement.modes[0].circular(linear.means.shape[1])
        return merged(linear.means, linear.covariances, self.weights, circular)

    def split(self, transition_matrix: Array) -> Gaussians:
        """Return a copy of each Gaussian for every mode it can jump to, weighted by the transition probability."""
        joint = self.weights[:, None] * transition_matrix[self.modes]
        parents, modes = np.nonzero(joint)  # jumps of probability zero make no copies
        return Gaussians(joint[parents, modes], self.means[parents], self.factors[parents], modes)

    def mixed(self, joint: Array, circular: tuple[int, ...]) -> Gaussians:
        """Return one Gaussian for each column of the weights `joint` (K, G), with the moments of that mixture.

        Columns without weight are left out. Where the Gaussians have modes, the columns are the modes.
        """
        if joint.shape == (1, 1):  # one Gaussian is its own mixture, to the last bit
            return self
        weights = joint.sum(axis=0)
        modes = np.flatnonzero(weights > 0)
        weights = weights[modes]
        means, factors = merge_gaussians(
            self.means[None], self.factors[None], (joint[:, modes] / weights).T, circular
        )
        return Gaussians(weights, means, factors, None if self.modes is None else modes)

    def merged(self, circular: tuple[int, ...]) -> Gaussians:
        """Merge the mixture into one Gaussian for each mode, with the same moments."""
        if self.modes is None:
            return self.mixed(self.weights[:, None], circular)
        return self.mixed(
            self.weights[:, None] * (self.modes[:, None] == np.arange(self.modes.max() + 1)),
            circular,
        )

    def moments(self, circular: tuple[int, ...]) -> tuple[Array, Array]:
        """Return mean (d,) and covariance (d, d) of the mixture."""
        merged_mixture = self.mixed(self.weights[:, None], circular)
        return merged_mixture.means[0], merged_mixture.covariances[0]

    def _in_modes(
        self,
        resolved: Any,
        function: Callable[[Any, Gaussians], tuple[Array, ...]],
    ) -> tuple[Array, ...]:
        """Apply a function of (motion or measurement, Gaussians) to each mode; its arrays have a row for each Gaussian."""
        if self.modes is None:
            return function(resolved, self)
        present = sorted({*self.modes.tolist()})
        if len(present) == 1:  # no copies
            return function(resolved.in_mode(present[0]), self)
        arrays: tuple[Array, ...] = ()
        for mode in present:
            rows = np.flatnonzero(self.modes == mode)
            parts = function(resolved.in_mode(mode), self.take(rows))
            arrays = arrays or tuple(np.empty((len(self), *part.shape[1:])) for part in parts)
            for array, part in zip(arrays, parts, strict=True):
                array[rows] = part
        return arrays


def merge_gaussians(
    means: Array,
    factors: Array,
    weights: Array,
    circular: tuple[int, ...],
) -> tuple[Array, Array]:
    """Merge G mixtures of n Gaussians each: means (G, d), angles wrapped, and factors (G, d, d) of the covariances.

    Means are (G, n, d), factors (G, n, d, d), or (1, ...) if the mixtures share them; weights (G, n) sum to 1.
    """
    count, n = weights.shape
    d = means.shape[2]
    # Angles are unwrapped about their circular mean, for each mixture, since the weights differ.
    x = np.broadcast_to(means, (count, n, d)).copy()
    for i in circular:
        sines, cosines = ((weights * wave(x[..., i])).sum(axis=1) for wave in (np.sin, np.cos))
        reference = np.arctan2(sines, cosines)[:, None]
        x[..., i] = reference + (x[..., i] - reference + np.pi) % (2 * np.pi) - np.pi
    centres = (weights[:, None] @ x)[:, 0]
    # The covariance sum_i w_i (F_i F_i' + e_i e_i') has the factor [sqrt(w_i) F_i, sqrt(w_i) e_i], d by n (d + 1).
    roots = np.sqrt(weights)
    columns = (roots[:, :, None, None] * factors).transpose(0, 2, 1, 3).reshape(count, d, n * d)
    spread = (roots[:, :, None] * (x - centres[:, None])).mT
    return wrap(centres, circular), triangular(np.concatenate([columns, spread], axis=2))


def unwrapped(start: Any, circular: tuple[int, ...]) -> Any:
    """Return an initial distribution; the angles of a mixture's means are unwrapped about their circular mean."""
    if not circular or not isinstance(start, GaussianMixture):
        return start
    means = unwrap(start.means, start.weights, circular)
    return GaussianMixture.unchecked(start.weights, means, start.distinct_covariances)


def linear_transition(
    transition: Transition,
    means: Array,
    factors: Array,
    rule: MomentRule,
) -> Linearisation:
    """Linearise the transition of each Gaussian by a rule; slopes are (K, d, m). Angles of the means are not wrapped.

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Additive noise adds its covariance to the `rests`.
    Other noise goes through the transition with the state: its entries follow the d of the state among the m of u.
    """
    d = transition.motion.dim
    circular = transition.circular
    if not transition.motion.has_moments:
        function = contract.VectorFunction(
            lambda x: transition.propagate(transition.wrapped(x[:, :d]), x[:, d:]),
            lambda _: circular,
            angles=circular,
        )
        # N(mean, F F') and N(0, I) side by side
        noise_dim = transition.noise_dim
        joint = np.zeros((len(factors), d + noise_dim, d + noise_dim))
        joint[:, :d, :d] = factors
        joint[:, d:, d:] = np.eye(noise_dim)
        return linearised(
            rule, function, np.hstack([means, np.zeros((len(means), noise_dim))]), joint
        )
    # Points of a rule may lie past the cut of an angle: the model sees wrapped angles only.
    jacobian = transition.motion.jacobian
    function = contract.VectorFunction(
        lambda x: transition.mean(transition.wrapped(x)),
        lambda _: circular,
        jacobian
        and (
            lambda x: jacobian(
                read_only(transition.wrapped(x)), transition.dt, transition.control, transition.step
            )
        ),
        circular,
    )
    means, slopes, rests = linearised(rule, function, means, factors)
    return Linearisation(means, slopes, rests + transition.covariance)


def update_gaussians(
    observation: Observation,
    means: Array,
    factors: Array,
    rule: MomentRule | None,
    linear: Linearisation | None = None,
) -> tuple[Array, Array, Array]:
    """Kalman update of each N(means[i], factors[i] @ factors[i].T) by an observation that a rule linearises.

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Return means (K, d), whose angles are not wrapped,
    factors (K, d, d), and log-densities (K,) of the finite part of the observation. Without a rule the update is iterated.
    `linear` is the result of `linear_observation`, if it has been computed.
    """
    if rule is None:
        return iterated_update(observation, means, factors)
    linear = linear or linear_observation(
        observation.measurement, means, factors, rule, observation.step
    )
    return correct_gaussians(means, factors, *observed_part(observation, linear), observation.step)


def linear_observation(
    measurement: Measurement,
    means: Array,
    factors: Array,
    rule: MomentRule,
    step: int,
) -> Linearisation:
    """Linearise the observation of each Gaussian by a rule; the noise is part of the `rests`."""
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
    if not measurement.takes_state:  # one noise covariance for all
        return Linearisation(predicted, slopes, rests + measurement.noises(means, size, step))

    def entries(x: Array) -> Array:  # covariances as vectors, whose mean a rule can take
        noises = measurement.noises(x, size, step)
        return np.broadcast_to(noises, (len(x), size, size)).reshape(len(x), -1)

    # Law of total covariance: noise that depends on the state adds its covariance, expected over each Gaussian.
    expected = _expected(entries, circular, means, factors, rule)
    return Linearisation(predicted, slopes, rests + expected.reshape(-1, size, size))


def expected_detection(
    model: WithClutter,
    states: Gaussians,
    rule: MomentRule,
    step: int,
) -> Factor:
    """Return P_D expected over each Gaussian by a rule, (K,), or the constant that it is.

    The linear rule evaluates it at the means, others at their points. It is clipped to [0, 1], as the weights of points can
    be negative.
    """
    if not callable(model.detection_probability):
        return model.detection_probability

    def column(x: Array) -> Array:
        return np.reshape(model.detection_probabilities(x, step), (-1, 1))

    return np.clip(
        _expected(column, contract.circular_dims(model), states.means, states.factors, rule)[:, 0],
        0.0,
        1.0,
    )


def _expected(
    function: Callable[[Array], Array],
    circular: tuple[int, ...],
    means: Array,
    factors: Array,
    rule: MomentRule,
) -> Array:
    """Return the expectations (K, k) of a function of states, (n, d) -> (n, k), over each Gaussian by a rule."""
    values = contract.VectorFunction(
        lambda x: function(wrap(x, circular)), lambda _: (), angles=circular
    )
    return linearised(rule, values, means, factors).means


def iterated_update(
    observation: Observation, means: Array, factors: Array, start: Array | None = None
) -> tuple[Array, Array, Array]:
    """Do as `update_gaussians`, linearised at the posterior mean: the iterated extended update (Bell and Cathey 1993).

    It starts from ``means + factors @ start``, with `start` (K, d), or from the means.
    """
    count, d = means.shape
    # Gauss-Newton in standardised coordinates u, where the prior is N(0, I) and the tolerance has no units.
    u: Array = np.zeros((count, d)) if start is None else start
    for _ in range(MOST_ITERATIONS):
        states = means + (factors @ u[:, :, None])[:, :, 0]
        linear = linear_observation(
            observation.measurement, states, factors, LINEAR_RULE, observation.step
        )
        residuals, slopes, noises = observed_part(observation, linear)
        # The linearisation at u, about the prior mean: z - h(x(u)) + H u is the residual that the update of N(0, I) takes.
        residuals = residuals + (slopes @ u[:, :, None])[:, :, 0]
        after, _, _ = correct_gaussians(
            np.zeros((count, d)), np.eye(d)[None], residuals, slopes, noises, observation.step
        )
        changed = np.abs(after - u).max(axis=1) >= SMALLEST_CHANGE
        if not changed.any():
            break
        # states that have converged do not depend on the others
        u = np.where(changed[:, None], after, u)
    # The same linearisation gives the posterior covariance and the evidence.
    return correct_gaussians(means, factors, residuals, slopes, noises, observation.step)


def log_evidence(
    transition: Transition,
    particles: Particles,
    observation: Observation,
) -> float:
    """Return the log-density of an observation by the moments of weighted particles; 0 if the model gives no moments."""
    if transition.simulated_only or observation.measurement.scans or not observation.has_moments:
        return 0.0
    mean, covariance = particles.moments(transition.circular)
    predicted = Gaussians(np.ones(1), mean[None], covariance_factor(covariance)[None]).predict(
        transition, UNSCENTED_RULE
    )
    mean, covariance = predicted.predicted_observation(
        observation.measurement, UNSCENTED_RULE, observation.step
    )
    residuals = observation.residuals(mean[None])
    return float(
        contract.gaussian_log_density(
            residuals, observation.part(covariance[None]), observation.step
        )[0]
    )


def kalman_mixture(
    model: contract.Model,
    prediction: GaussianMixture,
    z: Array,
    step: int,
    rule: str | MomentRule = "unscented",
) -> tuple[GaussianMixture, float]:
    """Return the posterior of a Gaussian mixture, each component updated as by a separate Kalman filter.

    The weight of a component is multiplied by its evidence, the density of the observation that it predicts. If the
    observation is linear in the state this is the exact posterior, the Gaussian sum of Alspach and Sorenson (1972).

    Parameters
    ----------
    model : object
        With ``observation_mean`` and ``observation_covariance``.
    prediction : GaussianMixture
        Of the state, before the observation. Means of angles may lie outside [-pi, pi).
    z : ndarray, shape (k,)
        The observation; NaN marks missing entries, and at least one entry is present.
    step : int
        Time index of the observation.
    rule : {"unscented", "extended", "cubature"} or MomentRule
        How the moments of the observation are computed: as in the Kalman filter of that name.

    Returns
    -------
    posterior : GaussianMixture
        With as many components; the means of angles are not wrapped.
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
        raise ValueError(
            f"z: expected an entry that is not missing, got {short_repr(z)} at step {step}"
        )
    return update_mixture(observation, prediction, rule)


def update_mixture(
    observation: Observation, prediction: GaussianMixture, rule: str | MomentRule | None
) -> tuple[GaussianMixture, float]:
    """Return the posterior of a Gaussian mixture and the log-evidence, as `kalman_mixture`; iterated without a rule."""
    rule = None if rule is None else moment_rule(rule)
    means, factors, log_densities = update_gaussians(
        observation, prediction.means, prediction.factors, rule
    )
    posterior, log_evidence = Gaussians(prediction.weights, means, factors).reweighted(
        log_densities
    )
    return GaussianMixture.unchecked(posterior.weights, means, posterior.covariances), log_evidence
