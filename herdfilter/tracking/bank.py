"""The filters of all tracks: Kalman filters of one Gaussian in a batch, any others one by one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import wrap
from herdfilter.filters.filter import ParticleFilter
from herdfilter.filters.kalman.batched import BatchedKalmanFilter
from herdfilter.filters.kalman.core import VANISHING_SHARE
from herdfilter.filters.kalman.gaussian import Gaussians, initial_moments, merge_gaussians
from herdfilter.filters.kalman.rules import Linearisation
from herdfilter.filters.observation import Observation, ObservationRows
from herdfilter.filters.results import DegenerateWeightsError, Outcome, hold_warnings
from herdfilter.filters.state import NEGLIGIBLE_SET, predicted_observations
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import circular_dims
from herdfilter.models.resolved import Measurement
from herdfilter.models.sensors import Sensor
from herdfilter.models.series import Clock
from herdfilter.tracking.track import DetectionHistory, Label, Track

Merge = Callable[[np.ndarray, Array], "ListedFilters | GaussianFilters"]
"""Tracks (n,), weights (T, 1 + M) of their hypotheses -> the filters of these tracks, each merged from its hypotheses."""


class Detections(NamedTuple):
    """The detections z (M, m) of a scan, and the sensor, without its clutter, that reads each as of a target."""

    z: Array
    step: int
    measurement: Measurement
    sensor: Sensor | None


class ListedFilters(list[Any]):
    """Filters of tracks at one step, of any kind, one by one; `GaussianFilters` does the same in a batch."""

    # A filter is never changed but copied first: other hypotheses, and earlier steps that a replay returns to, share it.

    @cached_property
    def negligible_share(self) -> Array | None:
        """Weights (T, 1) below which a hypothesis gives a track no particles; None if not all filters have particles."""
        if {*map(type, self)} != {ParticleFilter}:
            return None
        return NEGLIGIBLE_SET / np.array([*map(attrgetter("n_particles"), self)])[:, None]

    def moments(self, tracks: np.ndarray) -> tuple[Array, Array]:
        """Return means (n, d) and covariances (n, d, d) of the states of chosen tracks, (n,)."""
        means = []
        covariances = []
        for i in tracks:
            online = self[i]
            if type(online) is ParticleFilter:  # both in one pass over the particles
                mean, covariance = online._current().moments(online._circular)
            else:
                mean = online.mean
                covariance = online.covariance
            means.append(mean)
            covariances.append(covariance)
        return np.array(means), np.array(covariances)

    def take(self, tracks: np.ndarray) -> ListedFilters:
        """Return the filters of chosen tracks, (n,)."""
        return ListedFilters([self[i] for i in tracks])

    def predict(self, dt: float, control: Any) -> None:
        """Predict to the next step; copies of this object stay as they are."""
        # Copies share their arrays, which filters replace and never change.
        self[:] = map(copy.copy, self)
        for online in self:
            online.predict(dt, control)

    def predict_detections(self, detections: Detections) -> Linearisation | None:
        """Return the means and covariances of the detections that tracks predict; None if not all of them have any."""
        # Particles of all tracks are observed in one call; filters of other kinds predict one by one.
        if self.negligible_share is None:
            moments = [online.predicted_observation(detections.sensor) for online in self]
            if None in moments:
                return None
            means, covariances = map(np.array, zip(*moments, strict=True))
        elif detections.measurement.in_mode(0).has_moments:
            particles = [online._current() for online in self]
            means, covariances = predicted_observations(
                particles, detections.measurement, detections.step
            )
        else:
            return None
        # Without slopes: all of the covariance is in the residual part.
        return Linearisation(means, np.zeros((*means.shape, 0)), covariances)

    def hypotheses(
        self, detections: Detections, prediction: Any, inside: np.ndarray, log_densities: Array
    ) -> Merge:
        """Update each track with no detection, and with each of the detections `inside` (T, M) its gate.

        Fill in the log-densities (T, M) of these, minus infinity where the likelihood vanishes, and return the function that
        merges.
        """
        z, step, measurement, sensor = detections
        of_particles = self.negligible_share is not None
        # A sensor's functions were not there when the proposal was checked.
        if of_particles and sensor is not None and inside.any():
            self[0].proposal.check(measurement.model)
        # The misses come first: they use the particles of the prediction.
        updated: list[dict[int, Any]] = []
        for online in self:
            missed, _ = online.suppose(None) if of_particles else _suppose(online, None, sensor)
            updated.append({0: missed})
        for i, j in np.argwhere(inside).tolist():
            if of_particles:
                detected = self[i].suppose(Observation(measurement, z[j], step, None))
            else:
                detected = _suppose(self[i], z[j], sensor)
            updated[i][1 + j], log_densities[i, j] = detected

        def merge(tracks: np.ndarray, weights: Array) -> ListedFilters:
            merged = ListedFilters()
            for i in tracks:
                # Only hypotheses that were updated and have weight; a miss if there is none.
                shares = weights[i, [*updated[i]]]
                filters = list(compress(updated[i].values(), shares)) or [updated[i][0]]
                if len(filters) > 1:
                    shares = shares[shares > 0] / shares.sum()
                    filters = [filters[0].combine(filters, shares)]
                merged += filters
            return merged

        return merge


def _suppose(online: Any, z: Array | None, sensor: Sensor | None) -> tuple[Any, float]:
    """Return a copy of a filter updated with a detection, or with none, and the log-density of the detection."""
    supposed = copy.copy(online)
    try:
        with hold_warnings():
            record = supposed.update(z, sensor)
    except (
        DegenerateWeightsError
    ):  # the detection is impossible for this track: no error of the tracker
        return supposed, -np.inf
    return supposed, -np.inf if record.outcome is Outcome.DEGENERATE else record.log_likelihood


class GaussianFilters(BatchedKalmanFilter):
    """Kalman filters of one Gaussian, in a batch; it has the methods of `ListedFilters`."""

    negligible_share = None

    def __iter__(self) -> Iterator[Any]:
        """Yield a filter of each track."""
        filters = [copy.copy(self._single) for _ in range(len(self))]
        self.hand_back(filters)
        for online in filters:
            online.model = self.model
            online.record = None
            # The state from which a rerun of this filter would start.
            online._initial_belief = online.belief
            yield online

    def born(self, starts: Sequence[GaussianMixture], step: int, clock: Clock) -> GaussianFilters:
        """Return such filters with the moments of `starts`, at a step and a time."""
        circular = circular_dims(self.model)
        moments = [initial_moments(start, circular) for start in starts]
        means = wrap(np.array([mean for mean, _ in moments]), circular)
        factors = covariance_factor(np.array([covariance for _, covariance in moments]))
        born = self._standing_at(
            Gaussians(np.ones(len(starts)), means, factors), np.zeros(len(starts))
        )
        born.step = step
        born._clock = clock
        return born

    def moments(self, tracks: np.ndarray) -> tuple[Array, Array]:
        """See `ListedFilters`."""
        states = self.belief.take(tracks)
        return states.means, states.covariances

    def predict_detections(self, detections: Detections) -> Linearisation:
        """See `ListedFilters`."""
        if not detections.measurement.has_moments:
            self._observed_by(detections.sensor)  # raises an error that names what is missing
        return self.belief.observe(detections.measurement, self.rule, self.step)

    def hypotheses(
        self, detections: Detections, prediction: Any, inside: np.ndarray, log_densities: Array
    ) -> Merge:
        """See `ListedFilters`."""
        states = self.belief
        tracks, columns = np.nonzero(inside)
        # The Gaussian of each hypothesis: the T predictions come first, then one update for each detection in a gate.
        members = np.zeros((len(inside), 1 + inside.shape[1]), dtype=int)
        members[:, 0] = np.arange(len(inside))
        if len(tracks):
            observations = ObservationRows(detections.measurement, detections.z[columns], self.step)
            updated, log_densities[inside] = self._corrected(
                states.take(tracks), observations, prediction.take(tracks)
            )
            states = Gaussians.join([states, updated])
            members[:, 1:][inside] = len(inside) + np.arange(len(tracks))

        def merge(tracks: np.ndarray, weights: Array) -> ListedFilters | GaussianFilters:
            if not len(tracks):
                return ListedFilters()
            weights = weights[tracks]
            # All tracks are merged in one call, from as many hypotheses as the track with most of them needs.
            size = np.count_nonzero(weights > VANISHING_SHARE, axis=1).max()
            heaviest = np.argsort(-weights, axis=1)[:, :size]
            weights = np.take_along_axis(weights, heaviest, axis=1)
            rows = np.take_along_axis(members[tracks], heaviest, axis=1)
            moments = merge_gaussians(
                states.means[rows], states.factors[rows], weights, circular_dims(self.model)
            )
            merged = Gaussians(np.ones(len(tracks)), *moments)
            return self._standing_at(merged, self.log_likelihoods[tracks])

        return merge


@dataclass(frozen=True, eq=False)
class Tracks:
    """Labels, probabilities of existence (T,), filters and detection histories of all tracks."""

    labels: list[Label]
    existence: Array
    bank: ListedFilters | GaussianFilters
    histories: list[DetectionHistory]

    def take(self, tracks: np.ndarray) -> Tracks:
        """Return chosen tracks, (n,)."""
        labels = [self.labels[i] for i in tracks]
        histories = [self.histories[i] for i in tracks]
        return Tracks(labels, self.existence[tracks], self.bank.take(tracks), histories)

    def join(self, other: Tracks) -> Tracks:
        """Return these tracks and others, at the same step."""
        if not self.labels or not other.labels:
            return self if self.labels else other
        first: Any = self.bank
        second: Any = other.bank
        # Batches of Gaussians join if they share a rule; filters of other kinds have none.
        alike = getattr(first, "rule", 0) == getattr(second, "rule", 1)
        return Tracks(
            self.labels + other.labels,
            np.concatenate([self.existence, other.existence]),
            first.join(second) if alike else ListedFilters([*first, *second]),
            self.histories + other.histories,
        )

    @cached_property
    def listed(self) -> list[Track]:
        """A `Track` for each."""
        return list(map(Track, self.labels, self.existence.tolist(), self.bank, self.histories))
