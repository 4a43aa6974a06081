"""The labelled multi-Bernoulli tracker."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_generator, check_count, check_methods, one_of
from herdfilter._repr import summary_repr
from herdfilter.association.calls import as_method
from herdfilter.catalogue import catalogue, make_filter
from herdfilter.filters.series import Late, Reading, Watcher, as_duration, series
from herdfilter.models.contract import OBSERVED, require
from herdfilter.models.sensors import Sensor
from herdfilter.models.with_clutter import WithClutter
from herdfilter.tracking.birth import (
    Birth,
    BirthFromMeasurements,
    Left,
    as_births,
    as_probability,
    birth_places,
)
from herdfilter.tracking.results import TrackingRecord, TrackingResult
from herdfilter.tracking.track import Label, Track, appearing, check_filter, standing
from herdfilter.tracking.update import Detecting, Rules, detections, scanned

_log = logging.getLogger(__name__)


class LMBTracker:
    r"""Labelled multi-Bernoulli tracker (Reuter, Vo, Vo and Dietmayer 2014), whose tracks hold any filter of the catalogue.

    Every track is a target that exists with some probability, and a filter that holds the density of its state. A scan is
    compared with all tracks: a copy of a track's filter takes up each detection in its gate, and the evidence of that is
    the detection's weight in the association of detections to tracks. The probabilities of the associations then decide
    how probable the track is, and with what shares the copies are combined to one filter again.

    Parameters
    ----------
    model : WithClutter
        How one target moves and is seen, and how detections come about.
    birth : sequence of Birth, or BirthFromMeasurements
        Where targets may appear, in every step.
    survival_probability : float
        That a target is still there after a time of 1.
    association : str or object
        Method of `herdfilter.association`, such as ``HerdedGibbs()``; unless given exact, and by belief propagation where
        too many tracks compete for that.
    filter : str or callable
        Name in the catalogue, or ``(model, n_particles, rng)`` -> a filter.
    n_particles : int
        Of each track; not used by filters without any.
    rng : numpy.random.Generator or int, optional
        Source of every random draw, of tracks and of the association. Not used where both are deterministic.
    initial : sequence of Birth
        Targets at step 0, with the probabilities that they are there.
    report : float
        Tracks are reported that exist with at least this probability.
    prune : float
        Tracks are given up that exist with less than this probability.
    max_tracks : int
        Most tracks that are kept after a scan: those with the largest probabilities.
    gate_probability : float
        That the gate of a Gaussian prediction holds the detection; 1 for no gate. It opens further where that loses
        accuracy.

    Attributes
    ----------
    step : int
        Time index of the tracks; 0 at the start.
    tracks : list of Track
        In the order of their births.
    record : TrackingRecord or None
        The last update.

    Raises
    ------
    TypeError, ValueError
        If a part is not of its kind, a number is out of range, or the model lacks what the filter needs.

    Examples
    --------
    Two targets on a line, one of them from the sixth scan on, and a false detection in the thirteenth: what the tracker
    reports at the end are two, with one label each.

    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 0], initial_covariance=np.diag([100.0, 1.0]))
    >>> model = hf.models.WithClutter(walk, detection_probability=0.95, clutter_density=0.005)
    >>> scans = [[[k + 0.1], [-10.2]] if k > 4 else [[k + 0.1]] for k in range(20)]
    >>> scans[12].append([27.0])
    >>> births = hf.tracking.BirthFromMeasurements(walk.initial, expected=0.05)
    >>> tracker = hf.tracking.LMBTracker(model, births, filter="ukf")
    >>> result = tracker.run(scans)
    >>> len(result.names()), np.round(np.sort(result.means[-1][:, 0])).tolist(), round(tracker.cardinality, 2)
    (2, [-10.0, 19.0], 2.0)
    """

    def __init__(
        self,
        model: WithClutter,
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
    ) -> None:
        if not isinstance(model, WithClutter):
            raise TypeError(
                "model: expected a herdfilter.models.WithClutter, which says how detections come about, got "
                f"{type(model).__name__}"
            )
        self.model = model
        self.birth = birth if isinstance(birth, BirthFromMeasurements) else as_births("birth", birth)
        self.survival_probability = as_probability("survival_probability", survival_probability)
        self.association, self.filter = association, filter
        as_method("association", association)
        if not callable(filter):
            one_of("filter", filter, catalogue())
        self.n_particles = check_count("n_particles", n_particles)
        self.rng = as_generator(rng)
        self._seeds: Any = self.rng.bit_generator.seed_seq  # kept here, since copies of a generator lose it before NumPy 2
        self.report = as_probability("report", report)
        self.prune = as_probability("prune", prune)
        self.max_tracks = check_count("max_tracks", max_tracks)
        self.gate_probability = as_probability("gate_probability", gate_probability)
        self.step = 0
        self.record: TrackingRecord | None = None
        self._left: list[Left] = []  # what the scans of this step leave to births
        starts = as_births("initial", initial)
        places = [*birth_places(self.birth), *(one.initial for one in starts)]
        self._place = places[0].means[:1] if places else None  # a state, to see how long a detection is
        check_filter(self._make, model.model, places)
        self.tracks = [self._standing((0, i), one) for i, one in enumerate(starts)]

    @property
    def cardinality(self) -> float:
        """Expected number of targets."""
        return float(sum(track.existence for track in self.tracks))

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Carry all tracks over a time `dt` to the next step, at which others may appear.

        Probabilities of survival and of birth are those of a time of 1: over another time they are ``p ** dt`` and
        ``1 - (1 - r) ** dt``.

        Raises
        ------
        ValueError
            If `dt` is not positive, and as the filters of the tracks do; the tracker stays at the step before.
        """
        dt = as_duration("dt", dt)
        survival, step = self.survival_probability**dt, self.step + 1
        if isinstance(self.birth, BirthFromMeasurements):
            located = self.birth.born(self.model.model, self._left, self.step, dt)
            newborn = [self._standing((step, i), one) for i, one in enumerate(located)]
        else:
            newborn = []
        moved = []
        for track in [*self.tracks, *newborn]:
            online = copy.copy(track.filter)
            online.predict(dt, control)
            alive = survival if track.label[0] < step else 1.0
            moved.append(Track(track.label, alive * track.existence, online))
        if not isinstance(self.birth, BirthFromMeasurements):
            places = enumerate(self.birth)
            moved += [self._appearing((step, i), one.within(dt), step) for i, one in places]
        self.tracks, self.step, self._left = moved, step, []

    def update(self, scan: ArrayLike | None, sensor: Sensor | None = None) -> TrackingRecord:
        """Take up a scan, after `predict`: scans begin at step 1.

        There may be several updates at one step, by one sensor after the other.

        Parameters
        ----------
        scan : array_like, shape (k, m), or None
            The detections, each of the m numbers that model or sensor observe; a scan of none says that all targets were
            missed, None that there is no scan.
        sensor : Sensor, optional
            What the detections are of, in place of the model's own observation functions, with its
            ``detection_probability`` and ``clutter_density``.

        Raises
        ------
        RuntimeError
            If the tracker still stands at step 0, of which there is no scan.
        TypeError, ValueError
            If the scan has the wrong shape or holds what is no finite number; if a target that is detected for certain is
            not, or a detection belongs to none where there is no clutter; and as the filters or the association do. The
            tracker stays at the prediction.
        """
        if self.step == 0:
            raise RuntimeError("update: the tracker stands at the initial state, step 0; call predict first")
        tracks = self.tracks
        if scan is not None:
            by = Detecting.by(self.model, sensor)
            fixed = not isinstance(self.birth, BirthFromMeasurements)
            rules = Rules(self.association, self.gate_probability, self.prune, fixed)
            if not fixed:
                require(by.scans.model, "BirthFromMeasurements", OBSERVED)
            z = detections(scan, by, self._place, self.step)
            tracks, *left = scanned(tracks, self.model.model, z, by, rules, self.rng, self.step)
            by.scans.learn_size(z)
            self._left = [*self._left, Left(by.sensor, *left)]
        if len(tracks) > self.max_tracks:
            least = sorted((track.existence for track in tracks), reverse=True)[self.max_tracks - 1]
            _log.info("step %d: %d of %d tracks kept, max_tracks", self.step, self.max_tracks, len(tracks))
            tracks = [track for track in tracks if track.existence >= least][: self.max_tracks]
        reported = [track for track in tracks if track.existence >= self.report]
        self.tracks = tracks
        self.record = TrackingRecord.of(self.step, tracks, reported, self.model.model.dim)
        _log.debug("step %d: %d tracks, %d of them reported", self.step, len(tracks), len(reported))
        return self.record

    def run(
        self,
        scans: Iterable[ArrayLike | None] | Iterable[Reading],
        dt: float | Sequence[float] | Array = 1.0,
        controls: Sequence[Any] | Array | None = None,
        times: ArrayLike | None = None,
        watcher: Watcher | None = None,
        start: Any = None,
        late: Late = "raise",
    ) -> TrackingResult:
        """Predict to, and update with, each scan in turn.

        Parameters
        ----------
        scans : iterable, length T
            One scan per step, None where there is none. Or readings ``(time, sensor, scan)`` of any sensors in any order,
            each at its own rate; those of the same time are updates at one step, and None for a sensor is the model's own.
        dt, controls, times, watcher, start, late
            As in `ParticleFilter.run`.

        Raises
        ------
        TypeError, ValueError
            As in `update`; ValueError before the first step if lengths differ, a time step is not positive, times do not
            increase or a reading is late.

        Notes
        -----
        Whatever is raised on the way, the error's attribute ``result`` holds the scans completed.
        """
        steps = series(scans, dt, controls, times, start, late, "scans")
        if watcher is not None:
            check_methods("watcher", watcher, "predicted", "updated")
        times_, dim = [step.time for step in steps], self.model.model.dim
        records: list[TrackingRecord] = []
        try:
            for step in steps:
                if step.dt > 0:
                    self.predict(step.dt, step.control)
                if watcher is not None:
                    watcher.predicted(self, step.z)
                records.append(self.update(step.z, step.sensor))
                if watcher is not None:
                    watcher.updated(self)
        except (Exception, KeyboardInterrupt) as error:
            error.result = TrackingResult.collect(records, times_, dim)  # type: ignore[union-attr]
            raise
        return TrackingResult.collect(records, times_, dim)

    def __repr__(self) -> str:
        return summary_repr(
            self,
            model=self.model.model,
            filter=self.filter,
            association=self.association,
            step=self.step,
            tracks=len(self.tracks),
            cardinality=self.cardinality,
        )

    def _standing(self, label: Label, birth: Birth) -> Track:
        """Return a track whose target is there at the step where the tracker stands."""
        online = standing(self._make, self.model.model, birth.initial, self.step)
        return Track(label, birth.probability, online)

    def _appearing(self, label: Label, birth: Birth, step: int) -> Track:
        """Return a track whose target appears at the next step."""
        online = appearing(self._make, self.model.model, birth.initial, step)
        return Track(label, birth.probability, online)

    def _make(self, model: Any) -> Any:
        """Return a filter with a generator of its own, so that tracks do not disturb one another."""
        rng = np.random.Generator(type(self.rng.bit_generator)(self._seeds.spawn(1)[0]))
        if isinstance(self.filter, str):
            return make_filter(self.filter, model, self.n_particles, rng)
        return self.filter(model, self.n_particles, rng)
