"""The filters of all tracks: Kalman filters of one Gaussian in a batch, any others one by one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import wrap
from herdfilter.filters.filter import ParticleFilter
from herdfilter.filters.kalman.batched import BatchedKalmanFilter
from herdfilter.filters.kalman.gaussian import Gaussians, merge_gaussians, unwrapped
from herdfilter.filters.kalman.gaussian_filters import VANISHING_SHARE
from herdfilter.filters.observation import Observations
from herdfilter.filters.state import NEGLIGIBLE_SET
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import circular_dims, in_mode, jumps
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.series import Clock
from herdfilter.models.with_clutter import detection_log_densities
from herdfilter.tracking.status import DetectionHistory
from herdfilter.tracking.track import Label, Track, combine_filters, hypothesis_given

Gate = Callable[[np.ndarray, Array, Array], np.ndarray]
"""Tracks (n,), means (n, m) and covariances (n, m, m) of the detections that they predict -> which are in gates, (T, M)."""

Foretell = Callable[[Array], Array]
"""Log-densities (T, M), -inf outside the gates -> the probability (T, M) that a detection belongs to a track."""

Merge = Callable[[np.ndarray, Array], "ListedFilters | GaussianFilters"]
"""Tracks (n,), weights (T, 1 + M) of their hypotheses -> the filters of these tracks, each merged from its hypotheses."""


class ListedFilters(list[Any]):
    """Filters of tracks at one step, of any kind, one by one; `GaussianFilters` does the same in a batch."""

    @property
    def means(self) -> Array:
        """Means of the states, (T, d)."""
        return np.array([one.mean for one in self])

    @property
    def covariances(self) -> Array:
        """Covariances of the states, (T, d, d)."""
        return np.array([one.covariance for one in self])

    def take(self, tracks: np.ndarray) -> ListedFilters:
        """Return the filters of chosen tracks, (n,)."""
        return ListedFilters(self[i] for i in tracks)

    def predict(self, dt: float, control: Any) -> None:
        """Predict to the next step; copies of this object stay as they are."""
        self[:] = map(copy.copy, self)
        for one in self:
            one.predict(dt, control)

    def hypotheses(self, z: Array, gate: Gate, sensor: Sensor | None, foretell: Foretell | None) -> tuple[Array, Merge]:
        """Update each track with no detection, and with each of the detections z (M, m) in its gate.

        Return their log-densities (T, M), minus infinity outside the gates, and the function that merges. Particles are
        spared where the moments of the prediction foretell that a hypothesis is too light to be merged: its density is then
        that of the Gaussian.
        """
        moments = {i: one.predicted_observation(sensor) for i, one in enumerate(self)}
        known = [i for i, one in moments.items() if one is not None]
        means, covariances = (np.array([moments[i][part] for i in known]) for part in (0, 1))
        inside = gate(np.array(known, dtype=int), means, covariances)
        log_densities = np.full(inside.shape, -np.inf)
        if foretell is not None and 0 < len(known) == len(self) and all(isinstance(one, ParticleFilter) for one in self):
            model = sensed(self[0].model, sensor)
            model = in_mode(model, 0) if jumps(model) else model  # for the angles of an observation
            log_densities[inside] = detection_log_densities(model, z, means, covariances, self[0].step).T[inside]
            inside &= foretell(log_densities) >= NEGLIGIBLE_SET / np.array([[one.n_particles] for one in self])
        # the misses come first: they use the particles of the gate
        updated = [{0: hypothesis_given(one, None, sensor).filter} for one in self]
        for i, j in np.argwhere(inside).tolist():
            updated[i][1 + j], log_densities[i, j] = hypothesis_given(self[i], z[j], sensor)

        def merge(tracks: np.ndarray, weights: Array) -> ListedFilters:
            shares = [weights[i, [*updated[i]]] for i in tracks]
            pairs = zip(tracks, shares, strict=True)
            return ListedFilters(combine_filters([*updated[i].values()], share / share.sum()) for i, share in pairs)

        return log_densities, merge


class GaussianFilters(BatchedKalmanFilter):
    """Kalman filters of one Gaussian, in a batch; it has the methods of `ListedFilters`."""

    def __iter__(self) -> Iterator[Any]:
        """Yield a filter of each track."""
        filters = [copy.copy(self._single) for _ in range(len(self))]
        self.hand_back(filters)
        for online in filters:
            online.model = self.model
            online.record = None
            online._initial_belief = online.belief
            yield online

    def born(self, starts: Sequence[GaussianMixture], step: int, clock: Clock) -> GaussianFilters:
        """Return such filters with the moments of `starts`, at a step and a time."""
        circular = circular_dims(self.model)
        places = [unwrapped(start, circular) for start in starts]
        means = wrap(np.array([place.mean for place in places]), circular)
        factors = covariance_factor(np.array([place.covariance for place in places]))
        born = self._standing_at(Gaussians(np.ones(len(places)), means, factors), np.zeros(len(places)))
        born.step = step
        born._clock = clock
        return born

    def hypotheses(self, z: Array, gate: Gate, sensor: Sensor | None, foretell: Foretell | None) -> tuple[Array, Merge]:
        """See `ListedFilters.hypotheses`; all are updated."""
        count = len(self)
        linear = self.linear_observations(sensor)
        inside = gate(np.arange(count), linear.means, linear.covariances)
        tracks, detections = np.nonzero(inside)
        log_densities = np.full(inside.shape, -np.inf)
        states = self.states
        if len(tracks):
            observations = Observations(self._observed_by(sensor), z[detections], self.step)
            updated, log_densities[inside] = self._corrected(states.take(tracks), observations, linear.take(tracks))
            states = Gaussians.join([states, updated])
        sources = np.zeros((count, 1 + len(z)), dtype=int)  # index of each hypothesis' Gaussian
        sources[:, 0] = np.arange(count)
        sources[:, 1:][inside] = count + np.arange(len(tracks))

        def merge(tracks: np.ndarray, weights: Array) -> ListedFilters | GaussianFilters:
            if not len(tracks):
                return ListedFilters()
            weights = weights[tracks]
            size = np.count_nonzero(weights > VANISHING_SHARE, axis=1).max()
            heaviest = np.argsort(-weights, axis=1)[:, :size]
            weights = np.take_along_axis(weights, heaviest, axis=1)
            members = np.take_along_axis(sources[tracks], heaviest, axis=1)
            means, factors = merge_gaussians(
                states.means[members], states.factors[members], weights, circular_dims(self.model)
            )
            return self._standing_at(Gaussians(np.ones(len(tracks)), means, factors), self.log_likelihoods[tracks])

        return log_densities, merge


@dataclass(frozen=True, eq=False)
class Tracks:
    """Labels, probabilities of existence (T,), filters and detection histories of all tracks."""

    labels: list[Label]
    existence: Array
    bank: ListedFilters | GaussianFilters
    histories: list[DetectionHistory]

    def take(self, tracks: np.ndarray) -> Tracks:
        """Return chosen tracks, (n,)."""
        bank = self.bank.take(tracks) if len(tracks) else ListedFilters()
        labels, histories = ([values[i] for i in tracks] for values in (self.labels, self.histories))
        return Tracks(labels, self.existence[tracks], bank, histories)

    def join(self, other: Tracks) -> Tracks:
        """Return these tracks and others, at the same step."""
        if not self.labels or not other.labels:
            return self if self.labels else other
        first, second = self.bank, other.bank
        both = isinstance(first, GaussianFilters) and isinstance(second, GaussianFilters) and first.rule == second.rule
        bank = first.join(second) if both else ListedFilters([*first, *second])  # type: ignore[union-attr,arg-type]
        existence = np.concatenate([self.existence, other.existence])
        return Tracks([*self.labels, *other.labels], existence, bank, [*self.histories, *other.histories])

    @cached_property
    def listed(self) -> list[Track]:
        """A `Track` for each."""
        return list(map(Track, self.labels, self.existence.tolist(), self.bank, self.histories))
