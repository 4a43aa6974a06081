"""Gaussians that are predicted and updated through functions which a moment rule approximates as linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter._repr import fields_in_line
from herdfilter.angles import merged, unwrap, wrap
from herdfilter.filters.kalman.rules import (
    LINEAR_RULE,
    UNSCENTED_RULE,
    Linearisation,
    MomentRule,
    linearise,
    moment_rule,
)
from herdfilter.filters.kalman.update import correct_gaussians, observed_part, triangular
from herdfilter.filters.observation import Observation, ObservationRows
from herdfilter.filters.state import Particles
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, returned, with_clutter
from herdfilter.models.resolved import Measurement, Motion, Transition, read_covariance

MOST_ITERATIONS = 20  # most iterations of the extended Kalman update
SMALLEST_CHANGE = 1e-8  # change at which the iteration stops, in standard deviations of the prior
FARTHEST_END = 1e8  # of an interval, in standard deviations: infinite ends are as far
NEGLIGIBLE_HYPOTHESIS = 1e-12  # hypotheses of smaller weight are dropped


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
    def initial(cls, models: Sequence[contract.Model]) -> Gaussians:
        """Return the moments of the initial distribution of each model."""
        means = []
        factors = []
        for model in models:
            # a user's distribution may have any arrays as moments: they are checked
            mean, covariance = initial_moments(model.initial, contract.circular_dims(model))
            means.append(returned.read_rows("initial.mean", mean, (model.dim,), 0))
            factors.append(read_covariance("initial.covariance", covariance, model.dim, 0).factor)
        return cls(np.ones(len(models)), np.array(means), np.array(factors))

    @classmethod
    def join(cls, parts: Sequence[Gaussians], weights: Array | None = None) -> Gaussians:
        """Concatenate H parts; with `weights` (H,), the weights of each part are multiplied by its entry."""
        fields = attrgetter("weights", "means", "factors", "modes")
        columns: list[Any] = [
            None if arrays[0] is None else np.concatenate(arrays)
            for arrays in zip(*map(fields, parts), strict=True)
        ]
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
            means, slopes, noises = linearise_transition(onward, part.means, part.factors, rule)
            # the covariance of the prediction is A A' + Q
            return means, triangular(slopes, noises, transition.step, "predicted")

        means, factors = self._in_modes(transition.motion, predict_in_mode)
        return Gaussians(self.weights, transition.wrapped(means), factors, self.modes)

    def observe(self, measurement: Measurement, rule: MomentRule, step: int) -> Linearisation:
        """Linearise the observation of each Gaussian by a rule; the noise is part of the `rests`."""
        return Linearisation(
            *self._in_modes(
                measurement,
                lambda in_mode, part: linearise_observation(
                    in_mode, part.means, part.factors, rule, step
                ),
            )
        )

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
        if rule is None:
            means, factors, log_densities = self._in_modes(
                measurement,
                lambda in_mode, part: update_gaussians(
                    observation if in_mode is measurement else observation.by(in_mode),
                    part.means,
                    part.factors,
                    rule,
                ),
            )
        else:  # one correction for the Gaussians of all modes
            linear = self.observe(measurement, rule, observation.step) if linear is None else linear
            means, factors, log_densities = correct_gaussians(
                self.means, self.factors, *observed_part(observation, linear), observation.step
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
        self, observation: Observation, rule: Any, negligible: float = NEGLIGIBLE_HYPOTHESIS
    ) -> tuple[Gaussians, float, np.ndarray, np.ndarray]:
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
        count = len(self)
        detected_share = expected_detection(measurement.model, self, rule, step)
        missed, log_factors = measurement.model.log_factors(detected_share, scan, step)
        terms = np.full((1 + len(scan), count), missed)
        linear = self.observe(measurement, rule, step)
        hypotheses = self
        if len(scan):
            pairs = np.repeat(all_indices, len(scan))
            detections = ObservationRows(measurement, np.tile(scan, (count, 1)), step)
            detected, log_densities = self.take(pairs).update(detections, rule, linear.take(pairs))
            terms[1:] = log_factors + log_densities.reshape(count, len(scan)).T
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
        rows = np.where(labels == 0, parents, count + parents * len(scan) + labels - 1)
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
        modes = np.zeros(len(self), dtype=int) if self.modes is None else self.modes
        in_mode = modes[:, None] == np.arange(modes.max() + 1)
        return self.mixed(self.weights[:, None] * in_mode, circular)

    def moments(self, circular: tuple[int, ...]) -> tuple[Array, Array]:
        """Return mean (d,) and covariance (d, d) of the mixture."""
        merged_mixture = self.mixed(self.weights[:, None], circular)
        return merged_mixture.means[0], merged_mixture.covariances[0]

    def truncated(self, bounds: Array) -> tuple[Gaussians, float]:
        """Return one Gaussian with the moments that it has within bounds (d, 2), and the log-probability of these.

        One dimension after the other (Simon and Simon 2010, "Constrained Kalman filtering via density function truncation
        for turbofan engine health estimation", International Journal of Systems Science 41): exact for one.
        """
        mean = self.means[0].copy()
        covariance = self.covariances[0]
        log_probability = 0.0
        for i in np.flatnonzero(np.diagonal(covariance)):
            sd = np.sqrt(covariance[i, i])
            log_mass, shift, variance = truncated_normal((np.asarray(bounds[i]) - mean[i]) / sd)
            along = covariance[i] / sd
            mean += shift * along
            covariance = covariance - (1 - variance) * np.outer(along, along)
            log_probability += log_mass
        factors = covariance_factor(covariance[None])
        return Gaussians(self.weights, mean[None], factors), log_probability

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


def truncated_normal(ends: Array) -> tuple[float, float, float]:
    """Return the log-probability of an interval (2,) under N(0, 1), and the mean and variance within."""
    ends = np.clip(ends, -FARTHEST_END, FARTHEST_END)
    if ends.sum() > 0:  # in the lower tail, where probabilities keep their digits
        log_mass, mean, variance = truncated_normal(-ends[::-1])
        return log_mass, -mean, variance
    below, up_to = log_ndtr(ends).tolist()
    log_mass = up_to + np.log1p(-np.exp(below - up_to))
    densities = np.exp(-0.5 * ends**2 - log_mass) / np.sqrt(2 * np.pi)
    mean = densities[0] - densities[1]
    products = ends * densities
    return log_mass, mean, max(1 + products[0] - products[1] - mean**2, 0.0)


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


def initial_moments(initial: Any, circular: tuple[int, ...]) -> tuple[Array, Array]:
    """Return mean (d,) and covariance (d, d) of an initial distribution; angles of a mixture are first unwrapped."""
    if circular and isinstance(initial, GaussianMixture):
        means = unwrap(initial.means, initial.weights, circular)
        initial = GaussianMixture.unchecked(initial.weights, means, initial.distinct_covariances)
    return initial.mean, initial.covariance


def linearise_transition(
    transition: Transition, means: Array, factors: Array, rule: MomentRule
) -> Linearisation:
    """Linearise the transition of each Gaussian by a rule; slopes are (K, d, m). Angles of the means are not wrapped.

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Additive noise adds its covariance to the `rests`.
    Other noise goes through the transition with the state: its entries follow the d of the state among the m of u.
    """
    motion = transition.motion
    circular = transition.circular
    if motion.has_moments:
        predicted, slopes, rests = linearise(rule, transition.function, means, factors)
        return Linearisation(predicted, slopes, rests + transition.covariance)
    # N(mean, F F') and N(0, I) side by side
    d = motion.dim
    noise_dim = transition.noise_dim
    joint = np.zeros((len(factors), d + noise_dim, d + noise_dim))
    joint[:, :d, :d] = factors
    joint[:, d:, d:] = np.eye(noise_dim)
    joint_means = np.hstack([means, np.zeros((len(means), noise_dim))])
    function = contract.VectorFunction(
        transition.propagate_joint, lambda _: circular, angles=circular
    )
    return linearise(rule, function, joint_means, joint)


def linearise_observation(
    measurement: Measurement, means: Array, factors: Array, rule: MomentRule, step: int
) -> Linearisation:
    """Linearise the observation of each Gaussian by a rule; the noise is part of the `rests`.

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one.
    """
    predicted, slopes, rests = linearise(rule, measurement.at(step), means, factors)
    size = predicted.shape[1]
    if not measurement.takes_state:  # one noise covariance for all
        return Linearisation(predicted, slopes, rests + measurement.noises(means, size, step))

    def entries(x: Array) -> Array:  # covariances as vectors, whose mean a rule can take
        noises = measurement.noises(x, size, step)
        return np.broadcast_to(noises, (len(x), size, size)).reshape(len(x), -1)

    # Law of total covariance: noise that depends on the state adds its covariance, expected over each Gaussian.
    function = contract.VectorFunction(entries, angles=measurement.state_circular)
    expected = linearise(rule, function, means, factors).means
    return Linearisation(predicted, slopes, rests + expected.reshape(-1, size, size))


def expected_detection(
    model: with_clutter.WithClutter, states: Gaussians, rule: MomentRule, step: int
) -> with_clutter.Factor:
    """Return P_D expected over each Gaussian by a rule, (K,), or the constant that it is.

    The linear rule evaluates it at the means, others at their points. It is clipped to [0, 1], as the weights of points can
    be negative.
    """
    if not callable(model.detection_probability):
        return model.detection_probability
    function = contract.VectorFunction(
        lambda x: np.reshape(model.detection_probabilities(x, step), (-1, 1)),
        angles=contract.circular_dims(model),
    )
    expected = linearise(rule, function, states.means, states.factors).means
    return np.clip(expected[:, 0], 0.0, 1.0)


def update_gaussians(
    observation: Observation, means: Array, factors: Array, rule: MomentRule | None
) -> tuple[Array, Array, Array]:
    """Kalman update of each N(means[i], factors[i] @ factors[i].T) by an observation that a rule linearises.

    Factors are (K, d, d), or (1, d, d) if all Gaussians share one. Return means (K, d), whose angles are not wrapped,
    factors (K, d, d), and log-densities (K,) of the finite part of the observation. Without a rule the update is iterated.
    """
    step = observation.step
    if rule is None:
        return iterated_update(observation, means, factors)
    linear = linearise_observation(observation.measurement, means, factors, rule, step)
    return correct_gaussians(means, factors, *observed_part(observation, linear), step)


def iterated_update(
    observation: Observation, means: Array, factors: Array, start: Array | None = None
) -> tuple[Array, Array, Array]:
    """Do as `update_gaussians`, linearised at the posterior mean: the iterated extended update (Bell and Cathey 1993).

    It starts from ``means + factors @ start``, with `start` (K, d), or from the means.
    """
    count, d = means.shape
    # Gauss-Newton in standardised coordinates u, where the prior is N(0, I) and the tolerance has no units.
    u = np.zeros((count, d)) if start is None else start
    for _ in range(MOST_ITERATIONS):
        states = means + (factors @ u[:, :, None])[:, :, 0]
        linear = linearise_observation(
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


def log_evidence(transition: Transition, particles: Particles, observation: Observation) -> float:
    """Return the log-density of an observation by the moments of weighted particles; 0 if the model gives no moments."""
    measurement = observation.measurement
    step = observation.step
    if transition.simulated_only or measurement.scans or not observation.has_moments:
        return 0.0
    mean, covariance = particles.moments(transition.circular)
    prior = Gaussians(np.ones(1), mean[None], covariance_factor(covariance)[None])
    predicted = prior.predict(transition, UNSCENTED_RULE)
    mean, covariance = predicted.predicted_observation(measurement, UNSCENTED_RULE, step)
    residuals = observation.residuals(mean[None])
    covariances = observation.part(covariance[None])
    return float(contract.gaussian_log_density(residuals, covariances, step)[0])


def kalman_mixture(
    observation: Observation,
    prediction: GaussianMixture,
    rule: str | MomentRule | None = "unscented",
) -> tuple[GaussianMixture, float]:
    """Return the posterior of a Gaussian mixture, each component updated as by a separate Kalman filter.

    The weight of a component is multiplied by its evidence, the density of the observation that it predicts. If the
    observation is linear in the state this is the exact posterior, the Gaussian sum of Alspach and Sorenson (1972).

    Parameters
    ----------
    observation : Observation
        As of ``Observation.read(model, z, step, partial=True)``, with a model that has ``observation_mean`` and
        ``observation_covariance``.
    prediction : GaussianMixture
        Of the state, before the observation. Means of angles may lie outside [-pi, pi).
    rule : {"unscented", "extended", "cubature"} or MomentRule or None
        How the moments of the observation are computed: as in the Kalman filter of that name; None for the iterated
        extended update.

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
    >>> observation = hf.Observation.read(hf.models.linear_chain(1), np.array([3.0]), step=1)
    >>> posterior, log_evidence = kalman_mixture(observation, prior)
    >>> posterior.means.ravel().round(9).tolist(), posterior.weights.round(2).tolist()
    ([1.5, 3.5], [0.12, 0.88])
    """
    rule = None if rule is None else moment_rule(rule)
    means, factors, log_densities = update_gaussians(
        observation, prediction.means, prediction.factors, rule
    )
    prior = Gaussians(prediction.weights, means, factors)
    posterior, log_evidence = prior.reweighted(log_densities)
    return GaussianMixture.unchecked(posterior.weights, means, posterior.covariances), log_evidence
