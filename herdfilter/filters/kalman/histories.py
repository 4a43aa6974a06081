"""The mixture Kalman filter: histories of modes and associations, with a Kalman filter for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, check_count
from herdfilter._repr import fields_in_line
from herdfilter.angles import merged, wrap_angles
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import (
    expected_detection,
    linear_observation,
    predict_gaussians,
    reweight,
    update_gaussians,
)
from herdfilter.filters.kalman.interacting import initial_beliefs
from herdfilter.filters.kalman.rules import MomentRule, moment_rule
from herdfilter.filters.kalman.update import scan_hypotheses
from herdfilter.filters.observation import Observation
from herdfilter.filters.transition import Transition
from herdfilter.models.contract import Model, circular_dims, has_scans, in_mode, jumps, observation_circular
from herdfilter.models.jump_markov import with_modes

NEGLIGIBLE_HISTORY = 1e-12  # histories of smaller weight are dropped at once


class MixtureKalmanFilter(KalmanFilter):
    r"""Particles that are histories of modes and associations, each with its Kalman filter (Chen and Liu 2000).

    All J modes continue every history, with its weight times T and times the density that its Kalman filter predicts for
    the observation. A scan of k detections makes 1 + k of each: one of a miss, and one of every detection, with their terms
    of the likelihood (`herdfilter.models.WithClutter`). At most n histories go on to the next step, chosen as by Fearnhead
    and Clifford (2003). With c such that :math:`\sum_k \min(w_k / c, 1) = n`, weights above c stay as they are. The others,
    in the order of their histories, are selected at even steps of the sum of their weights, with the weight c each. No
    random number is used. On linear Gaussian models this is exact as long as n holds all histories, and close to it after.

    Parameters
    ----------
    model : object
        As for `InteractingMultipleModel`.
    n_particles : int
        Most histories n that go on from one step to the next.
    rule
        As for `InteractingMultipleModel`.

    Examples
    --------
    A random walk has short or long steps. With room for all histories of modes the answer is exact; eight come close.

    >>> short, long = (hf.models.LinearGaussian([[1]], [[1]], [[q]], [[1]], [0], [[1]]) for q in (0.01, 4.0))
    >>> model = hf.models.JumpMarkov([short, long], [[0.9, 0.1], [0.2, 0.8]])
    >>> z = [[0.1], [-0.2], [3.1], [6.0], [5.9]]
    >>> exact, few = (hf.MixtureKalmanFilter(model, n).run(z) for n in (64, 8))
    >>> np.round(exact.mode_probabilities[:, 1], 2).tolist(), np.allclose(few.means, exact.means, atol=0.05)
    ([0.32, 0.2, 0.69, 0.96, 0.69], True)
    """

    belief: HistoryBelief

    def __init__(self, model: Model, n_particles: int = 100, rule: str | MomentRule = "unscented") -> None:
        model = with_modes(model, "MixtureKalmanFilter")
        self.n_particles = check_count("n_particles", n_particles)
        rule = moment_rule(rule)
        parts = initial_beliefs(model, "MixtureKalmanFilter", rule)
        weights, modes = np.array(model.initial_modes), np.arange(len(parts))
        means, factors = np.array([part.mean for part in parts]), np.array([part.factor for part in parts])
        settings = rule, self.n_particles, len(parts), circular_dims(model)
        super().__init__(model, HistoryBelief(weights, means, factors, modes, *settings))

    @property
    def mode_probabilities(self) -> Array:
        """Probabilities of the modes, shape (J,)."""
        return self.belief.mode_probabilities


@dataclass(frozen=True, eq=False, repr=False)
class HistoryBelief:
    """K histories, each with a weight, its last mode, and a Gaussian of the state (a `Belief`)."""

    weights: Array
    means: Array
    factors: Array
    modes: NDArray[np.int64]
    rule: MomentRule
    room: int
    count: int
    circular: tuple[int, ...]

    __repr__ = fields_in_line

    @property
    def covariances(self) -> Array:
        """Covariances of the state given each history, (K, d, d)."""
        return self.factors @ self.factors.mT

    @property
    def mean(self) -> Array:
        """See `Belief`."""
        return merged(self.means, self.covariances, self.weights, self.circular)[0]

    @property
    def covariance(self) -> Array:
        """See `Belief`."""
        return merged(self.means, self.covariances, self.weights, self.circular)[1]

    @property
    def ess(self) -> float:
        r"""Effective number of histories, :math:`1 / \sum_k w_k^2`."""
        return float(1 / (self.weights @ self.weights))

    @property
    def mode_probabilities(self) -> Array:
        """Probability of each mode, (J,)."""
        return np.bincount(self.modes, self.weights, self.count).astype(np.float64)

    def predict(self, transition: Transition) -> HistoryBelief:
        """Select histories, and continue each by all modes."""
        kept, weights = select_histories(self.weights, self.room)
        matrix = transition.model.transition_matrix if jumps(transition.model) else np.ones((1, 1))
        joint = weights[:, None] * matrix[self.modes[kept]]
        means = np.empty((*joint.shape, self.means.shape[1]))
        factors = np.empty((*means.shape, means.shape[2]))
        for j in np.flatnonzero(joint.sum(axis=0)):
            onward = transition.of(in_mode(transition.model, int(j)))
            given = self.means[kept], self.factors[kept]
            means[:, j], factors[:, j] = predict_gaussians(onward, *given, self.rule)
        some = joint > 0
        modes = np.broadcast_to(np.arange(self.count), joint.shape)
        means = wrap_angles(means[some], self.circular)
        return replace(self, weights=joint[some], means=means, factors=factors[some], modes=modes[some])

    def update(self, observation: Observation) -> tuple[HistoryBelief, float]:
        """Update each history as Kalman, and the weights as Bayes."""
        return self.branch(observation)[:2]

    def branch(self, observation: Observation) -> tuple[HistoryBelief, float, NDArray[np.int64], NDArray[np.int64]]:
        """Do as `update`; return also which history each was, and its hypothesis: 0 for a miss, or 1 + j for detection j.

        A scan divides each history by its association. An observation that is no scan is the one detection of all.
        """
        count = len(self.weights)
        if not has_scans(observation.model):
            means, factors = np.empty_like(self.means), np.empty_like(self.factors)
            log_densities = np.empty(count)
            for j in np.unique(self.modes):
                of, own = self.modes == j, observation.in_mode(int(j))
                means[of], factors[of], log_densities[of] = update_gaussians(
                    own, self.means[of], self.factors[of], self.rule
                )
            weights, log_density = reweight(self.weights, log_densities)
            found = replace(self, weights=weights, means=wrap_angles(means, self.circular), factors=factors)
            return found, log_density, np.arange(count), np.ones(count, dtype=np.int64)
        parts: list[tuple[int, Any]] = []
        logs = []
        for j in np.unique(self.modes):
            of, own = self.modes == j, observation.in_mode(int(j))
            given = self.means[of], self.factors[of]
            by_rule = own.model, *given, self.rule, observation.step
            terms, update = scan_hypotheses(own, *given, linear_observation(*by_rule), expected_detection(*by_rule))
            with np.errstate(divide="ignore"):
                logs.append(np.log(self.weights[of]) + terms)
            parts.append((int(j), update))
        evidence = float(np.logaddexp.reduce(np.concatenate([one.ravel() for one in logs])))
        if evidence == -np.inf:  # out of reach of all
            return self, evidence, np.arange(count), np.zeros(count, dtype=np.int64)
        shares = [np.exp(one - evidence) for one in logs]
        kept = [np.nonzero(one.T > NEGLIGIBLE_HISTORY) for one in shares]
        states = [update(*which) for (_, update), which in zip(parts, kept, strict=True)]
        weights = np.concatenate([one.T[which] for one, which in zip(shares, kept, strict=True)])
        means = wrap_angles(np.concatenate([means for means, _ in states]), self.circular)
        factors = np.concatenate([factors for _, factors in states])
        modes = np.concatenate([np.full(len(means), j) for (j, _), (means, _) in zip(parts, states, strict=True)])
        parents = np.concatenate([np.flatnonzero(self.modes == j)[i] for (j, _), (i, _) in zip(parts, kept, strict=True)])
        hypotheses = np.concatenate([h for _, h in kept])
        found = replace(self, weights=weights / weights.sum(), means=means, factors=factors, modes=modes)
        return found, evidence, parents, hypotheses

    def predicted_observation(self, model: Model, step: int) -> tuple[Array, Array]:
        """See `Belief`."""
        means, covariances, weights = [], [], []
        for j in np.unique(self.modes):
            of, own = self.modes == j, in_mode(model, int(j))
            mean, slopes, noises = linear_observation(own, self.means[of], self.factors[of], self.rule, step)
            means.append(mean)
            covariances.append(slopes @ slopes.mT + noises)
            weights.append(self.weights[of])
        mean = np.concatenate(means)
        circular = observation_circular(own, mean.shape[1])
        return merged(mean, np.concatenate(covariances), np.concatenate(weights), circular)

    def combine(self, others: Sequence[HistoryBelief], weights: Array, circular: tuple[int, ...]) -> HistoryBelief:
        """Join the histories of all; the next step makes room."""
        return replace(
            self,
            weights=np.concatenate([w * other.weights for w, other in zip(weights, others, strict=True)]),
            means=np.concatenate([other.means for other in others]),
            factors=np.concatenate([other.factors for other in others]),
            modes=np.concatenate([other.modes for other in others]),
        )


def select_histories(weights: Array, room: int) -> tuple[NDArray[np.int64], Array]:
    """Return indices and new weights of at most `room` of K weights that sum to 1: large ones unchanged, others equal.

    Fearnhead and Clifford (2003), Journal of the Royal Statistical Society B 65, with the comb of systematic resampling at
    the middles of its steps.
    """
    positive = np.flatnonzero(weights > 0)
    if len(positive) <= room:
        return positive, weights[positive]
    ordered = np.sort(weights)[::-1]
    rest = np.cumsum(ordered[::-1])[::-1]  # the sum from each on
    # weights stay up to the first that is no more than the others' share in the room left
    places = room - np.arange(room)
    large = int(np.argmax(ordered[:room] * places <= rest[:room]))
    if ordered[large] * (room - large) > rest[large]:
        large = room
    ranks = np.argsort(-weights, kind="stable")
    kept = np.zeros(len(weights))
    kept[ranks[:large]] = weights[ranks[:large]]
    others = np.sort(ranks[large:])
    share = weights[others].sum() / (room - large)
    steps = (np.arange(room - large) + 0.5) * share
    total = np.cumsum(weights[others])
    kept[others[np.minimum(np.searchsorted(total, steps), len(others) - 1)]] = share
    chosen = np.flatnonzero(kept)
    return chosen, kept[chosen]
