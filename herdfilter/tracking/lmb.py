"""The labelled multi-Bernoulli tracker."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter._repr import summary_repr
from herdfilter.association.base import solve_clusters
from herdfilter.association.belief_propagation import BeliefPropagation
from herdfilter.association.calls import as_method
from herdfilter.catalogue.specifications import catalogue_spec, filter_name
from herdfilter.filters.kalman import gaussian
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.series import Watcher, run
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, resolved, sensors, with_clutter
from herdfilter.models.series import Late, Reading, Timed, as_duration, series
from herdfilter.models.trial import check_state
from herdfilter.tracking import results, track
from herdfilter.tracking.bank import Detections, GaussianFilters, ListedFilters, Merge, Tracks
from herdfilter.tracking.birth import (
    Birth,
    BirthFromMeasurements,
    ModelWithInitial,
    UnexplainedDetections,
    start_filter,
)

# Without clutter, raise if more than half a detection is expected to belong to no track.
MOST_UNEXPLAINED = 0.5

_log = logging.getLogger(__name__)


class LMBTracker(Timed):
    r"""Labelled multi-Bernoulli tracker (Reuter, Vo, Vo and Dietmayer 2014), whose tracks hold any filter of the catalogue.

    Every track has a probability of existence, and a filter for its state. At a scan, a copy of the filter is updated with
    each detection in the track's gate. The evidence of that update is the detection's weight in the association. The
    marginals of the association give the new probability of existence, and the weights with which the copies are combined
    to one filter.

    Parameters
    ----------
    model : WithClutter
        Motion and detection of one target, and clutter.
    birth : sequence of Birth, or BirthFromMeasurements
        Places where targets may appear, in every step.
    survival_probability : float
        Probability that a target still exists after a time of 1.
    association : str or object
        Method of `herdfilter.association`, such as ``HerdedGibbs()``. By default exact, and belief propagation for large
        clusters.
    filter : str or callable
        Name in the catalogue, or ``(model, n_particles, rng)`` -> a filter. Its copies share arrays, which it replaces and
        never changes.
    n_particles : int
        Particles of each track, if its filter has any.
    rng : numpy.random.Generator or int, optional
        Source of the random draws of tracks and of the association.
    initial : sequence of Birth
        Targets at step 0, with their probabilities of existence.
    report : float
        Smallest probability of existence of a reported track.
    prune : float
        Tracks below this probability of existence are dropped.
    max_tracks : int
        Largest number of tracks after a scan; the most probable ones stay.
    gate_probability : float
        Probability that the gate of a Gaussian prediction holds the detection; 1 for no gate. It is a lower bound: likely
        detections beyond are not left out.
    confirm : (int, int)
        M and N: a track is tentative until M of N successive scans have detected it; see `DetectionHistory`. All tracks of
        enough existence are reported, tentative ones too.

    Attributes
    ----------
    step : int
        Time index of the tracks; 0 at the start.
    tracks : list of Track
        In the order of their births; a copy, in which a change does not reach the tracker.
    record : TrackingRecord or None
        The last update.

    Examples
    --------
    Two targets on a line, one of them from the sixth scan on:

    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 0], initial_covariance=np.diag([100.0, 1.0]))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.95, clutter_density=0.005)
    >>> scans = [[[k + 0.1], [-10.2]] if k > 4 else [[k + 0.1]] for k in range(20)]
    >>> births = hf.tracking.BirthFromMeasurements(walk.initial, expected=0.05)
    >>> tracker = hf.tracking.LMBTracker(model, births, filter="ukf")
    >>> result = tracker.run(scans)
    >>> len(result.names()), np.round(np.sort(result.means[-1][:, 0])).tolist(), round(tracker.cardinality, 2)
    (2, [-10.0, 19.0], 2.0)
    """

    def __init__(
        self,
        model: with_clutter.WithClutter,
        birth: Sequence[Birth] | BirthFromMeasurements = (),
        survival_probability: float = 0.99,
        association: Any = "auto",
        filter: str | Callable[[Any, int, np.random.Generator], Any] = "auto",  # noqa: A002
        n_particles: int = 100,
        rng: np.random.Generator | int | None = None,
        initial: Sequence[Birth] = (),
        report: float = 0.5,
        prune: float = 1e-3,
        max_tracks: int = 200,
        gate_probability: float = 1 - 1e-9,
        confirm: Sequence[int] = (3, 5),
    ) -> None:
        _checks.check_part(
            "model", model, with_clutter.WithClutter, "a herdfilter.models.WithClutter"
        )
        contract.refuse_limits(model, "LMBTracker")
        self.model = model
        self.birth = (
            birth if isinstance(birth, BirthFromMeasurements) else _as_births("birth", birth)
        )
        self.survival_probability = _checks.as_fraction(
            "survival_probability", survival_probability
        )
        self.association = association
        self.filter = filter
        self._method = as_method("association", association)
        if not callable(filter):
            filter_name("filter", filter)
        self.n_particles = _checks.check_count("n_particles", n_particles)
        self.rng = _checks.as_generator(rng)
        # Each track has a generator of its own, and each tracker seeds of its own, though they may share `rng`.
        (self._seeds,) = self.rng.bit_generator.seed_seq.spawn(1)  # type: ignore[attr-defined]
        self.report = _checks.as_fraction("report", report)
        self.prune = _checks.as_fraction("prune", prune)
        self.max_tracks = _checks.check_count("max_tracks", max_tracks)
        self.gate_probability = _checks.as_fraction("gate_probability", gate_probability)
        self.confirm = track.as_confirm(confirm)
        self.step = 0
        self.record: results.TrackingRecord | None = None
        self._unexplained: list[UnexplainedDetections] = []  # by the scans of this step
        self._measurement = resolved.Measurement(resolved.only_mode(model.model))
        initial = _as_births("initial", initial)
        births = (self.birth,) if isinstance(self.birth, BirthFromMeasurements) else self.birth
        starts = [birth.initial for birth in (*births, *initial)]
        # A state shows how long a detection is.
        self._start = starts[0].means[:1] if starts else None
        for start in starts:
            if start.dim != model.model.dim:
                raise ValueError(
                    f"birth: expected states of {model.model.dim} dimensions, as the model has, got {start.dim}"
                )
            check_state(ModelWithInitial(model, start), "LMBTracker")
        # A filter of the catalogue starts where the birth says: batches of Gaussians need not be built from single filters.
        batch = GaussianFilters.of(
            [self._start_filter((), start, 0, False) for start in starts[:1]]
        )
        self._template = batch if isinstance(filter, str) else None
        self._held = self._start_tracks(initial, 0)

    @property
    def tracks(self) -> list[track.Track]:
        """All tracks, in the order of their births."""
        return self._held.listed

    @property
    def cardinality(self) -> float:
        """Expected number of targets."""
        return float(sum(self._held.existence.tolist()))

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Predict all tracks over a time `dt` to the next step, and add births.

        Over a time `dt` the probability of survival is ``p ** dt``, that of a birth ``1 - (1 - r) ** dt``. After an error,
        as from the filters of the tracks or for a `dt` that is not positive, the tracker is as it was.
        """
        dt = as_duration("dt", dt)
        step = self.step + 1
        # A target survives a time dt with probability p_S ** dt.
        tracks = replace(self._held, existence=self.survival_probability**dt * self._held.existence)
        # The states of births at detections are those at the last scan, and are predicted with the others.
        if isinstance(self.birth, BirthFromMeasurements):
            births = self.birth.births_at(self._unexplained, self.step, dt)
            tracks = tracks.join(self._start_tracks(births, step))
        # A copy: the tracks held so far are those of a replay, or of a prediction that fails.
        bank = copy.copy(tracks.bank)
        bank.predict(dt, control)
        histories = [
            history._replace(time_since_detection=history.time_since_detection + dt)
            for history in tracks.histories
        ]
        tracks = replace(tracks, bank=bank, histories=histories)
        if not isinstance(self.birth, BirthFromMeasurements):
            births = [birth.within(dt) for birth in self.birth]
            tracks = tracks.join(self._start_tracks(births, step, dt))
        # Only now, after everything that may raise an error.
        self._held = tracks
        self.step = step
        self._unexplained = []
        self._clock = self._clock.later(dt)

    def update(
        self, scan: ArrayLike | None, sensor: sensors.Sensor | None = None
    ) -> results.TrackingRecord:
        """Update the tracks with a scan, after `predict`; several sensors may give scans at one step.

        Parameters
        ----------
        scan : array_like, shape (k, m), or None
            The detections, m numbers each. In an empty scan all targets were missed; None stands for no scan.
        sensor : Sensor, optional
            Observation functions in place of the model's own, with a ``detection_probability`` and a ``clutter_density``.

        Raises
        ------
        RuntimeError
            If `predict` was not called: there is no scan of step 0.
        TypeError, ValueError
            If the scan has the wrong shape or an infinite entry; if there is no clutter and a detection belongs to no track,
            or a target is missed that exists and is detected for certain; and as from the filters or the association. The
            tracker does not change.
        """
        if self.step == 0:
            raise RuntimeError(
                "update: the tracker stands at the initial state, step 0; call predict first"
            )
        tracks = self._held if scan is None else self._use_scan(scan, sensor)
        count = len(tracks.labels)
        if count > self.max_tracks:
            _log.info(
                "step %d: %d of %d tracks kept, max_tracks", self.step, self.max_tracks, count
            )
            # Of equally probable tracks the older ones stay: they come first.
            bound = np.sort(tracks.existence)[-self.max_tracks]
            tracks = tracks.take(np.flatnonzero(tracks.existence >= bound)[: self.max_tracks])
        self._held = tracks
        reported = tracks.existence >= self.report
        means, covariances = tracks.bank.moments(np.flatnonzero(reported))
        _log.debug("step %d: %d tracks, %d of them reported", self.step, count, len(means))
        dim = self.model.model.dim
        self.record = results.TrackingRecord(
            self.step,
            list(compress(tracks.labels, reported)),
            means.reshape(-1, dim),
            covariances.reshape(-1, dim, dim),
            tracks.existence[reported],
            self.cardinality,
            list(compress(tracks.histories, reported)),
        )
        return self.record

    def _use_scan(self, scan: ArrayLike, sensor: sensors.Sensor | None) -> Tracks:
        """Return the tracks after a scan, and keep its unexplained detections for births."""
        tracks = self._held
        bank = tracks.bank
        model = self.model
        measurement = self._measurement
        if sensor is not None:
            model = sensors.sensed(self.model.model, sensor)
            if not isinstance(model, with_clutter.WithClutter):
                raise ValueError(
                    "sensor: expected one that gives scans, with detection_probability and clutter_density, got "
                    f"{_checks.short_repr(sensor)}"
                )
            # A filter is updated with one detection at a time, as from a sensor without clutter.
            sensor = replace(sensor, detection_probability=None, clutter_density=None, region=None)
            measurement = resolved.Measurement(resolved.only_mode(sensor.on(self.model.model)))
        fixed_births = not isinstance(self.birth, BirthFromMeasurements)
        if not (fixed_births or measurement.has_moments):
            # The error says what is missing; births need it only at the next step.
            contract.require(model.model, "BirthFromMeasurements", contract.OBSERVED)
        try:
            z = _checks.read_only(model.as_scan(scan, self.step, self._start))
        except ValueError as error:
            raise ValueError(f"scan: {str(error).removeprefix('z: ')}") from None

        # P_D of each track, expected over the Gaussian of its moments if it varies with the state.
        detected: with_clutter.Factor = 1.0
        if not callable(model.detection_probability):
            detected = model.detection_probability
        elif tracks.labels:
            means, covariances = bank.moments(np.arange(len(tracks.labels)))
            moments = gaussian.Gaussians(np.ones(len(means)), means, covariance_factor(covariances))
            detected = gaussian.expected_detection(model, moments, UNSCENTED_RULE, self.step)
        clutter = model.clutter_densities(z, self.step)
        with np.errstate(divide="ignore"):
            log_clutter = np.log(clutter)
        detections = Detections(z, self.step, measurement, sensor)
        log_densities, merge = self._update_with_each(detections, detected, log_clutter)
        # Without a gate nothing is left out.
        negligible = track.SMALLEST_GATED_RATIO if self.gate_probability < 1 else 0.0
        matrix = track.association_matrix(
            tracks.existence, detected, log_densities, log_clutter, negligible
        )
        # A row of zeros: the target exists and is detected for certain, but no detection is near it.
        possible = matrix.any(axis=1)
        if not possible.all():
            raise ValueError(
                f"scan: expected a detection of track {tracks.labels[int(np.argmin(possible))]}, which cannot be "
                f"missed, got none near it at step {self.step}; give a detection or a survival probability below 1"
            )
        marginals = solve_clusters(self._method, matrix, self.rng).marginals
        # The probability of each detection that it is of no track.
        unexplained = 1 - marginals[:, 1:].sum(axis=0)
        if fixed_births and unexplained.sum() > MOST_UNEXPLAINED and np.all(clutter == 0):
            j = int(np.argmax(unexplained))
            raise ValueError(
                f"scan: expected only detections of tracks, as the clutter density is zero, got {z[j]} as detection {j} at "
                f"step {self.step}, which belongs to no track; give a clutter density, or births where targets may appear"
            )
        # The marginals of the association become probabilities of existence, and weights of each track's hypotheses.
        existence, weights = track.update_existence(tracks.existence, detected, marginals)
        hits = (marginals[:, 1:].sum(axis=1) > 0.5).tolist()
        histories = track.add_scan(tracks.histories, hits, self.confirm)
        # Hypotheses are merged only for tracks that stay.
        alive = existence >= self.prune
        tracks = Tracks(
            list(compress(tracks.labels, alive)),
            existence[alive],
            merge(np.flatnonzero(alive), weights),
            list(compress(histories, alive)),
        )
        scan_births = UnexplainedDetections(model, z, np.clip(unexplained, 0.0, 1.0))
        self._unexplained = [*self._unexplained, scan_births]
        return tracks

    def _update_with_each(
        self,
        detections: Detections,
        detected: with_clutter.Factor,
        log_clutter: with_clutter.Factor,
    ) -> tuple[Array, Merge]:
        """Update the tracks with each detection in their gates; see `ListedFilters.hypotheses`.

        Where the moments of the prediction show that a hypothesis is too light to be merged, no particles are updated:
        its density is then that of the Gaussian.
        """
        bank = self._held.bank
        # Without a prediction of the detections, or without a gate, all detections are in all gates.
        inside = np.ones((len(self._held.labels), len(detections.z)), dtype=bool)
        log_densities = np.full(inside.shape, -np.inf)
        prediction = bank.predict_detections(detections) if inside.size else None
        if prediction is not None and self.gate_probability < 1:
            hit = self._held.existence * detected
            # The largest weight of a detection over a miss, for a unit of density: where clutter is least.
            with np.errstate(divide="ignore", invalid="ignore"):
                log_odds = np.log(hit) - np.log1p(-hit) - np.min(log_clutter)
            inside, predicted = track.gate_detections(
                detections.z,
                prediction.means,
                prediction.covariances,
                detections.measurement.circular(detections.z.shape[1]),
                log_odds,
                self.gate_probability,
            )
            if bank.negligible_share is not None:
                # The association by Gaussian densities tells which hypotheses will have weight.
                log_densities[inside] = predicted[inside]
                matrix = track.association_matrix(
                    self._held.existence,
                    detected,
                    log_densities,
                    log_clutter,
                    track.SMALLEST_GATED_RATIO,
                )
                if matrix.any(axis=1).all():
                    marginals = solve_clusters(ESTIMATED_ASSOCIATION, matrix, None).marginals
                    inside &= marginals[:, 1:] >= bank.negligible_share
        return log_densities, bank.hypotheses(detections, prediction, inside, log_densities)

    def run(
        self,
        scans: Iterable[ArrayLike | None] | Iterable[Reading],
        dt: float | Sequence[float] | Array | None = None,
        controls: Sequence[Any] | Array | None = None,
        times: ArrayLike | None = None,
        watcher: Watcher | None = None,
        start: Any = None,
        late: Late = "raise",
    ) -> results.TrackingResult:
        """Predict to, and update with, each scan in turn.

        Parameters
        ----------
        scans : iterable, length T
            One scan per step, or None for no scan. Or readings ``(time, sensor, scan)`` of several sensors, None for the
            model's own; readings of the same time are updates at one step.
        dt, controls, times, watcher, start, late
            As in `ParticleFilter.run`.

        Raises
        ------
        TypeError, ValueError
            As in `update`; ValueError before the first step if lengths differ, a time step is not positive, times do not
            increase or a reading is late. The attribute ``result`` of an error holds the results so far.
        """
        start = self._clock if start is None else start
        steps = series(scans, dt, controls, times, start, late, "scans")
        return run(self, steps, watcher=watcher, collect=results.TrackingResult.collect)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return summary_repr(
            self,
            model=self.model.model,
            filter=self.filter,
            association=self.association,
            step=self.step,
            tracks=len(self._held.labels),
            cardinality=self.cardinality,
        )

    def _start_tracks(self, births: Sequence[Birth], born: int, dt: float | None = None) -> Tracks:
        """Return tracks with labels of the step `born`.

        With `dt`, the states of `births` are those at that step, a time `dt` away; without, those at the present step.
        """
        labels = [(born, i) for i in range(len(births))]
        starts = [birth.initial for birth in births]
        predicted = dt is not None
        step = born if predicted else self.step
        bank: ListedFilters | GaussianFilters
        if self._template is not None and starts:
            bank = self._template.born(starts, step, self._clock.later(dt or 0.0))
        else:
            filters = [
                self._start_filter(label, start, step, predicted)
                for label, start in zip(labels, starts, strict=True)
            ]
            bank = GaussianFilters.of(filters) or ListedFilters(filters)
        existence = np.array([birth.probability for birth in births])
        return Tracks(labels, existence, bank, [track.DetectionHistory()] * len(labels))

    def _start_filter(
        self, label: tuple[int, ...], start: GaussianMixture, step: int, predicted: bool
    ) -> Any:
        """Return a filter with a generator of its own, by its label, so that tracks do not disturb one another."""
        key = (*self._seeds.spawn_key, *label)
        seeds = np.random.SeedSequence(self._seeds.entropy, spawn_key=key)
        rng = np.random.Generator(type(self.rng.bit_generator)(seeds))
        build = catalogue_spec(self.filter) if isinstance(self.filter, str) else self.filter
        return start_filter(
            lambda model: build(model, self.n_particles, rng),
            self.model.model,
            start,
            step,
            predicted,
        )


class _Estimate(BeliefPropagation):
    """Belief propagation that may stop before it converges: its marginals only spare work."""

    warns = False


ESTIMATED_ASSOCIATION = _Estimate()


def _as_births(name: str, value: Any) -> tuple[Birth, ...]:
    """Return births as a tuple."""
    births = tuple(value) if isinstance(value, Iterable) else (None,)
    if {*map(type, births)} - {Birth}:
        more = ", or BirthFromMeasurements(initial)" if name == "birth" else ""
        raise TypeError(
            f"{name}: expected a list of herdfilter.tracking.Birth(probability, initial){more}, got "
            f"{_checks.short_repr(value)}"
        )
    return births
