"""The filters of all tracks: Kalman filters of one Gaussian in a batch, any others one by one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap
from herdfilter.filters.kalman.batched import BatchedKalmanFilter, merge_by_owner
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief, unwrapped
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import circular_dims
from herdfilter.models.sensors import Sensor
from herdfilter.models.series import Clock
from herdfilter.tracking.track import Label, Track, TrackFilter, combine_filters, hypothesis_given


class PredictedDetections(NamedTuple):
    """Detections that n of T tracks predict: indices (n,), means (n, m), covariances (n, m, m), those with the states."""

    tracks: np.ndarray
    means: Array
    covariances: Array
    cross: Array | None = None


class FilterBank(Protocol):
    """The filters of T tracks at one step. A bank is never changed, but replaced."""

    @property
    def means(self) -> Array:
        """Means of the states, (T, d)."""

    @property
    def covariances(self) -> Array:
        """Covariances of the states, (T, d, d)."""

    def __len__(self) -> int: ...

    def filters(self) -> list[Any]:
        """Return a filter for each track."""

    def take(self, tracks: np.ndarray) -> FilterBank:
        """Return the bank of chosen tracks, (n,)."""

    def predict(self, dt: float, control: Any) -> FilterBank:
        """Return the bank at the next step."""

    def predicted_detections(self, sensor: Sensor | None) -> PredictedDetections:
        """Return what is predicted for the gate; no tracks whose filters predict no moments."""

    def hypotheses(
        self, z: Array, inside: np.ndarray, sensor: Sensor | None, predicted: PredictedDetections
    ) -> TrackHypotheses:
        """Update each track with no detection, and with each of the detections z (M, m) `inside` (T, M) its gate."""


class TrackHypotheses(Protocol):
    """A miss and detections of each track; `log_densities` (T, M) is minus infinity outside the gates."""

    log_densities: Array

    def merge(self, tracks: np.ndarray, weights: Array) -> FilterBank:
        """Return the bank of chosen tracks (n,), each merged from its hypotheses with weights (T, 1 + M), the miss first."""


class ListedFilters:
    """Filters of any kind, one by one (a `FilterBank`)."""

    def __init__(self, filters: Sequence[TrackFilter] = ()) -> None:
        self._filters = list(filters)

    @property
    def means(self) -> Array:
        """See `FilterBank`."""
        return np.array([one.mean for one in self._filters])

    @property
    def covariances(self) -> Array:
        """See `FilterBank`."""
        return np.array([one.covariance for one in self._filters])

    def __len__(self) -> int:
        return len(self._filters)

    def filters(self) -> list[Any]:
        """See `FilterBank`."""
        return list(self._filters)

    def take(self, tracks: np.ndarray) -> FilterBank:
        """See `FilterBank`."""
        return ListedFilters([self._filters[i] for i in tracks])

    def predict(self, dt: float, control: Any) -> FilterBank:
        """See `FilterBank`."""
        filters = [copy.copy(one) for one in self._filters]
        for one in filters:
            one.predict(dt, control)
        return ListedFilters(filters)

    def predicted_detections(self, sensor: Sensor | None) -> PredictedDetections:
        """See `FilterBank`."""
        moments = [one.predicted_observation(sensor) for one in self._filters]
        known = np.array([i for i, one in enumerate(moments) if one is not None], dtype=int)
        means, covariances = (np.array([one[part] for one in moments if one is not None]) for part in (0, 1))
        return PredictedDetections(known, means, covariances)

    def hypotheses(
        self, z: Array, inside: np.ndarray, sensor: Sensor | None, predicted: PredictedDetections
    ) -> TrackHypotheses:
        """See `FilterBank`."""
        # the misses come first: they use the particles of the gate
        updated = {(i, 0): hypothesis_given(one, None, sensor).filter for i, one in enumerate(self._filters)}
        log_densities = np.full(inside.shape, -np.inf)
        for i, j in np.argwhere(inside).tolist():
            updated[i, 1 + j], log_densities[i, j] = hypothesis_given(self._filters[i], z[j], sensor)
        return ListedHypotheses(log_densities, updated)


@dataclass(frozen=True, eq=False)
class ListedHypotheses:
    """Updated filters by track and column, 0 for the miss (`TrackHypotheses`)."""

    log_densities: Array
    updated: dict[tuple[int, int], Any]

    def merge(self, tracks: np.ndarray, weights: Array) -> FilterBank:
        """See `TrackHypotheses`."""
        of_tracks: dict[int, list[int]] = {}
        for i, column in self.updated:
            of_tracks.setdefault(i, []).append(column)
        merged = [
            combine_filters([self.updated[i, column] for column in of_tracks[i]], weights[i, of_tracks[i]])
            for i in tracks.tolist()
        ]
        return ListedFilters(merged)


class GaussianFilters:
    """Kalman filters of one Gaussian in a batch; `template` is one of these filters (a `FilterBank`)."""

    def __init__(self, batch: BatchedKalmanFilter, template: KalmanFilter) -> None:
        self.batch, self.template = batch, template

    @property
    def means(self) -> Array:
        """See `FilterBank`."""
        return self.batch.means

    @property
    def covariances(self) -> Array:
        """See `FilterBank`."""
        return self.batch.covariances

    def __len__(self) -> int:
        return len(self.batch)

    def filters(self) -> list[Any]:
        """See `FilterBank`."""
        batch, found = self.batch, []
        for mean, covariance in zip(batch.means, batch.covariances, strict=True):
            one, belief = copy.copy(self.template), GaussianBelief(mean, covariance, batch.rule)
            vars(one).update(model=batch.model, belief=belief, _initial_belief=belief, step=batch.step, _clock=batch._clock)
            vars(one).update(log_likelihood=0.0, record=None)
            found.append(one)
        return found

    def take(self, tracks: np.ndarray) -> FilterBank:
        """See `FilterBank`."""
        return GaussianFilters(self.batch.take(tracks), self.template)

    def predict(self, dt: float, control: Any) -> FilterBank:
        """See `FilterBank`."""
        batch = copy.copy(self.batch)
        batch.predict(dt, control)
        return GaussianFilters(batch, self.template)

    def predicted_detections(self, sensor: Sensor | None) -> PredictedDetections:
        """See `FilterBank`."""
        return PredictedDetections(np.arange(len(self)), *self.batch.predicted_observations(sensor))

    def hypotheses(
        self, z: Array, inside: np.ndarray, sensor: Sensor | None, predicted: PredictedDetections
    ) -> TrackHypotheses:
        """See `FilterBank`."""
        tracks, detections = np.nonzero(inside)
        means, covariances, logs = self.batch.hypotheses(tracks, z[detections], sensor, predicted[1:])
        log_densities = np.full(inside.shape, -np.inf)
        log_densities[inside] = logs
        sources = np.column_stack([np.arange(len(self)), np.full(inside.shape, -1)])
        sources[:, 1:][inside] = len(self) + np.arange(len(tracks))
        every = np.concatenate([self.means, means]), np.concatenate([self.covariances, covariances])
        return GaussianHypotheses(self, log_densities, sources, *every)


@dataclass(frozen=True, eq=False)
class GaussianHypotheses:
    """Gaussians (P, d) and (P, d, d), and their numbers (T, 1 + M) by track and column, -1 for none (`TrackHypotheses`)."""

    bank: GaussianFilters
    log_densities: Array
    sources: np.ndarray
    means: Array
    covariances: Array

    def merge(self, tracks: np.ndarray, weights: Array) -> FilterBank:
        """See `TrackHypotheses`."""
        if not len(tracks):
            return ListedFilters()
        batch, sources, weights = self.bank.batch.take(tracks), self.sources[tracks], weights[tracks]
        places = np.nonzero((sources >= 0) & (weights > 0))
        chosen = sources[places]
        given = self.means[chosen], self.covariances[chosen], weights[places], places[0]
        batch.means, batch.covariances = merge_by_owner(*given, circular_dims(batch.model))
        return GaussianFilters(batch, self.bank.template)


def born_gaussians(template: KalmanFilter, starts: Sequence[GaussianMixture], step: int, clock: Clock) -> FilterBank:
    """Return a bank of Gaussians with the moments of `starts`, by the model and the rule of a filter."""
    belief: Any = template.belief
    if not starts:
        return ListedFilters()
    circular = circular_dims(template.model)
    at = [unwrapped(one, circular) for one in starts]
    means, covariances = wrap(np.array([one.mean for one in at]), circular), np.array([one.covariance for one in at])
    batch = BatchedKalmanFilter.unchecked(template.model, belief.rule, means, covariances, step, clock)
    return GaussianFilters(batch, template)


def bank_of(filters: Sequence[TrackFilter]) -> FilterBank:
    """Return a bank of filters at one step."""
    batch: Any = BatchedKalmanFilter.of(filters)
    return ListedFilters(filters) if batch is None else GaussianFilters(batch, filters[0])  # type: ignore[arg-type]


def join_banks(one: FilterBank, other: FilterBank) -> FilterBank:
    """Return the bank of the tracks of one and of the other, at the same step."""
    if not len(one) or not len(other):
        return one if len(one) else other
    if not (isinstance(one, GaussianFilters) and isinstance(other, GaussianFilters) and one.batch.fits(other.batch)):
        return ListedFilters([*one.filters(), *other.filters()])
    return GaussianFilters(one.batch.joined(other.batch), one.template)


@dataclass(frozen=True, eq=False)
class Tracks:
    """Labels, probabilities of existence (T,) and filters of all tracks."""

    labels: list[Label]
    existence: Array
    bank: FilterBank

    def take(self, tracks: np.ndarray) -> Tracks:
        """Return chosen tracks, (n,)."""
        return Tracks([self.labels[i] for i in tracks], self.existence[tracks], self.bank.take(tracks))

    def join(self, other: Tracks) -> Tracks:
        """Return these tracks and others, at the same step."""
        existence = np.concatenate([self.existence, other.existence])
        return Tracks([*self.labels, *other.labels], existence, join_banks(self.bank, other.bank))

    @cached_property
    def listed(self) -> list[Track]:
        """A `Track` for each."""
        return list(map(Track, self.labels, self.existence.tolist(), self.bank.filters()))
