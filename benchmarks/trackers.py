"""Trackers of other libraries, on the scans that ours are given; each is told what ours is told.

`Task` holds a linear Gaussian model with clutter and births; every function takes one and the scans, and returns estimates
of each step as (labels, means (m, d)).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from common import mean_with_interval

import herdfilter as hf
from herdfilter.study.scenario import Scenario, load_scenario
from herdfilter.tracking import DetectionHistory, TrackingRecord, TrackingResult

Estimates = list[tuple[list[Any], np.ndarray]]

KEYS = ["scenario", "tracker"]
"""Columns that tell the rows of the table apart."""


@dataclass(frozen=True)
class Task:
    """What a tracker is told: x' = F x + noise of covariance Q, z = H x + noise of covariance R, and the rest.

    `births` are (probability, mean (d,), covariance (d, d)); `clutter_rate` false alarms fall uniformly into `volume`.
    `merge` is the squared distance at which Gaussians of a mixture are merged.
    """

    F: np.ndarray
    Q: np.ndarray
    H: np.ndarray
    R: np.ndarray
    detection_probability: float
    survival_probability: float
    clutter_rate: float
    volume: float
    births: Sequence[tuple[float, np.ndarray, np.ndarray]]
    dt: float = 1.0
    merge: float = np.inf


def lmb_of_robertson(
    task: Task, scans: Sequence[np.ndarray], association: str, seed: int = 0
) -> Estimates:
    """Labelled multi-Bernoulli filter of Gaussian mixtures, by loopy belief propagation or 1,000 Gibbs samples.

    The Rust port of S. Robertson's programs (Robertson, van Daalen, du Preez 2022), package multisensor-lmb-filters-rs.
    """
    import multisensor_lmb_filters_rs as lmb  # type: ignore[import-not-found]

    d = len(task.F)
    chosen = {"lbp": lmb.AssociatorConfig.lbp(), "gibbs": lmb.AssociatorConfig.gibbs(1000)}[
        association
    ]
    r = task.births[0][0]
    tracker = lmb.FilterLmb(
        lmb.MotionModel(task.F, task.Q, np.zeros(d), task.survival_probability),
        lmb.SensorModel(task.H, task.R, task.detection_probability, task.clutter_rate, task.volume),
        lmb.BirthModel(
            [lmb.BirthLocation(i, m, P) for i, (_, m, P) in enumerate(task.births)], r, r
        ),
        chosen,
        # tracks are kept down to the existence that ours are
        lmb.FilterThresholds(
            existence=1e-3, gm_weight=1e-3, max_components=20, gm_merge=task.merge
        ),
        seed,
    )
    found: Estimates = []
    for t, scan in enumerate(scans):
        tracks = list(tracker.step(list(np.ascontiguousarray(scan)), t))
        labels = [(one.label.birth_time, one.label.birth_location) for one in tracks]
        found.append((labels, np.array([one.mean for one in tracks]).reshape(-1, d)))
    return found


def jpda_of_stone_soup(task: Task, scans: Sequence[np.ndarray]) -> Estimates:
    """Joint probabilistic data association with Kalman filters, exact by efficient hypothesis management; Stone Soup."""
    from stonesoup.dataassociator.probability import JPDAwithEHM2
    from stonesoup.hypothesiser.probability import PDAHypothesiser
    from stonesoup.tracker.simple import MultiTargetMixtureTracker

    parts = _StoneSoup(task)
    hypothesiser = PDAHypothesiser(
        parts.predictor,
        parts.updater,
        clutter_spatial_density=task.clutter_rate / task.volume,
        prob_detect=task.detection_probability,
        prob_gate=0.9999,
    )
    return parts.run(MultiTargetMixtureTracker, JPDAwithEHM2(hypothesiser), parts.initiator, scans)


def particles_of_stone_soup(
    task: Task, scans: Sequence[np.ndarray], n: int, seed: int = 0
) -> Estimates:
    """Bootstrap particle filters, each given its nearest detection in a global assignment; Stone Soup."""
    from stonesoup.initiator.simple import GaussianParticleInitiator
    from stonesoup.predictor.particle import ParticlePredictor
    from stonesoup.resampler.particle import ESSResampler
    from stonesoup.tracker.simple import MultiTargetTracker
    from stonesoup.updater.particle import ParticleUpdater

    np.random.seed(seed)  # noqa: NPY002  # the generator that it draws from
    parts = _StoneSoup(task)
    updater = ParticleUpdater(measurement_model=parts.sensor, resampler=ESSResampler())
    associator = parts.nearest(ParticlePredictor(parts.motion), updater)
    initiator = GaussianParticleInitiator(parts.initiator, number_particles=n)
    return parts.run(MultiTargetTracker, associator, initiator, scans, updater)


class _StoneSoup:
    """The parts that its trackers share."""

    def __init__(self, task: Task) -> None:
        from stonesoup.models.measurement.linear import LinearGaussian
        from stonesoup.models.transition.linear import LinearGaussianTimeInvariantTransitionModel
        from stonesoup.predictor.kalman import KalmanPredictor
        from stonesoup.updater.kalman import KalmanUpdater

        self.task = task
        self.motion = LinearGaussianTimeInvariantTransitionModel(
            transition_matrix=task.F, covariance_matrix=task.Q
        )
        seen = [int(np.flatnonzero(row)[0]) for row in task.H]
        self.sensor = LinearGaussian(ndim_state=len(task.F), mapping=seen, noise_covar=task.R)
        self.predictor = KalmanPredictor(self.motion)
        self.updater = KalmanUpdater(self.sensor)
        self.start = datetime(2000, 1, 1)
        self.initiator = self._births()

    def nearest(self, predictor: Any, updater: Any) -> Any:
        """Return the global nearest neighbours within a gate of five standard deviations."""
        from stonesoup.dataassociator.neighbour import GNNWith2DAssignment
        from stonesoup.hypothesiser.distance import DistanceHypothesiser
        from stonesoup.measures import Mahalanobis

        return GNNWith2DAssignment(
            DistanceHypothesiser(predictor, updater, measure=Mahalanobis(), missed_distance=5)
        )

    def _deleter(self) -> Any:
        """Return what ends a track: so many scans without a detection, or a position that is too uncertain."""
        from stonesoup.deleter.error import CovarianceBasedDeleter
        from stonesoup.deleter.multi import CompositeDeleter
        from stonesoup.deleter.time import UpdateTimeStepsDeleter

        seen = [int(np.flatnonzero(row)[0]) for row in self.task.H]
        bound = CovarianceBasedDeleter(LOST * float(np.trace(self.task.R)), mapping=seen)
        return CompositeDeleter([UpdateTimeStepsDeleter(MISSED), bound], intersect=False)

    def _births(self) -> Any:
        """Return an initiator that knows where targets are born; `CONFIRM` detections make a track."""
        from stonesoup.initiator.base import Initiator
        from stonesoup.initiator.simple import MultiMeasurementInitiator, SinglePointInitiator
        from stonesoup.types.state import GaussianState

        class Births(Initiator):
            def initiate(self, detections: Any, timestamp: Any, **kwargs: Any) -> Any:
                rest, found = set(detections), set()
                for place, mean, inverse in self.places:
                    inside = {
                        one
                        for one in rest
                        if (v := one.state_vector - mean).T @ inverse @ v
                        < 25  # five standard deviations
                        or place.holding_tracks
                    }
                    found |= place.initiate(inside, timestamp)
                return found

        task = self.task
        births = Births()
        first = task.births[0]
        births.prior_state = GaussianState(
            np.asarray(first[1])[:, None], first[2]
        )  # particles ask for one
        births.places = []
        for _, mean, covariance in task.births:
            prior = GaussianState(np.asarray(mean)[:, None], covariance, timestamp=self.start)
            single = _near(SinglePointInitiator, mean, covariance, task)(prior, self.sensor)
            place = MultiMeasurementInitiator(
                prior,
                self._deleter(),
                self.nearest(self.predictor, self.updater),
                self.updater,
                self.sensor,
                min_points=CONFIRM,
                initiator=single,
            )
            births.places.append((place, *_gate(mean, covariance, task)))
        return births

    def run(
        self,
        tracker: Callable[..., Any],
        associator: Any,
        initiator: Any,
        scans: Sequence[np.ndarray],
        updater: Any = None,
    ) -> Estimates:
        """Track through the scans."""
        from stonesoup.types.detection import Detection

        task = self.task

        def detector() -> Any:
            for t, scan in enumerate(scans, 1):
                time = self.start + timedelta(seconds=t * task.dt)
                yield (
                    time,
                    {
                        Detection(z[:, None], timestamp=time, measurement_model=self.sensor)
                        for z in np.asarray(scan)
                    },
                )

        found: Estimates = []
        for time, tracks in tracker(
            initiator, self._deleter(), detector(), associator, updater or self.updater
        ):
            alive = [one for one in tracks if one.timestamp == time]
            means = [np.asarray(one.state.mean, dtype=float).ravel() for one in alive]
            found.append(([one.id for one in alive], np.array(means).reshape(-1, len(task.F))))
        return found


def _gate(mean: np.ndarray, covariance: np.ndarray, task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Mean (k, 1) and inverse covariance of the first detection of a target born here."""
    return (task.H @ mean)[:, None], np.linalg.inv(task.H @ covariance @ task.H.T + task.R)


def _near(single: Any, mean: np.ndarray, covariance: np.ndarray, task: Task) -> Any:
    """Return an initiator class that starts tracks at detections near a place of birth alone."""
    centre, inverse = _gate(mean, covariance, task)

    class Near(single):  # type: ignore[misc]
        def initiate(self, detections: Any, timestamp: Any, **kwargs: Any) -> Any:
            near = {
                one for one in detections if (v := one.state_vector - centre).T @ inverse @ v < 25
            }
            return super().initiate(near, timestamp, **kwargs)

    return Near


PEERS: dict[str, tuple[str, Callable[[Task, Sequence[np.ndarray], int], Estimates]]] = {
    "LMB, belief propagation (multisensor-lmb-filters-rs)": (
        "multisensor_lmb_filters_rs",
        lambda task, scans, seed: lmb_of_robertson(task, scans, "lbp", seed),
    ),
    "LMB, Gibbs (multisensor-lmb-filters-rs)": (
        "multisensor_lmb_filters_rs",
        lambda task, scans, seed: lmb_of_robertson(task, scans, "gibbs", seed),
    ),
    "JPDA (Stone Soup)": ("stonesoup", lambda task, scans, seed: jpda_of_stone_soup(task, scans)),
    "nearest neighbours, bootstrap, n = 1,000 (Stone Soup)": (
        "stonesoup",
        lambda task, scans, seed: particles_of_stone_soup(task, scans, 1000, seed),
    ),
}
"""Name -> the module that it needs, and the tracker."""


CONFIRM, MISSED, LOST = 3, 2, 10.0
"""Of Stone Soup's trackers: detections that make a track, scans without one that end it, and the largest variance of a
position, in that of a detection. Of 18 settings near the least OSPA on a run of either scenario, of seed 0."""

MERGE = {"crossing": 4.0}
"""Squared distance at which the other LMB tracker merges Gaussians; elsewhere none, which does better on the meeting: the
best of five settings of its thresholds on the first three runs of seed 0."""

OURS = ("lmb-ukf", "lmb-bp", "lmb-herded-gibbs", "lmb-random-gibbs", "lmb-auto", "lmb-bootstrap")
"""Names in the catalogue."""


def installed(beginnings: Sequence[str]) -> list[str]:
    """Names of the peers that begin so, and whose library is installed."""
    chosen = {
        name: module for name, (module, _) in PEERS.items() if name.startswith(tuple(beginnings))
    }
    return [name for name, module in chosen.items() if find_spec(module) is not None]


class Peer:
    """A tracker of another library, in the form in which ours are run."""

    def __init__(self, name: str, task: Task, model: Any, n: int, rng: np.random.Generator) -> None:
        self.name, self.task, self.seed = name, task, int(rng.integers(2**31))

    def run(
        self, observations: Sequence[np.ndarray], dt: Any = 1.0, controls: Any = None
    ) -> TrackingResult:
        """Track through all scans."""
        d, records = len(self.task.F), []
        for step, (labels, means) in enumerate(
            PEERS[self.name][1](self.task, observations, self.seed), 1
        ):
            nothing = np.full((len(means), d, d), np.nan)
            there = np.ones(len(means))
            history = [DetectionHistory()] * len(means)
            records.append(
                TrackingRecord(
                    step, [(one,) for one in labels], means, nothing, there, len(means), history
                )
            )
        return TrackingResult.collect(records, list(range(1, len(records) + 1)), d)


def task_of(scenario: Scenario) -> Task:
    """Return what the trackers of a scenario are told; births wherever a detection is are those of one wide place."""
    told, seen = scenario.targets, scenario.build_model()
    places = told.births if isinstance(told.births, tuple) else [told.births]
    births = [
        (
            getattr(one, "probability", None) or one.expected,
            np.array(one.mean),
            np.diag(np.square(one.sd)),
        )
        for one in places
    ]
    volume = float(np.prod(np.ptp(seen.region, axis=1)))
    line = seen.model
    numbers = (
        seen.detection_probability,
        told.survival_probability,
        seen.clutter_density * volume,
        volume,
    )
    told = [one[0] if one.ndim == 3 else one for one in (line.F, line.Q, line.H, line.R)]
    return Task(*told, *numbers, births, merge=MERGE.get(scenario.name, np.inf))


def measured(args: argparse.Namespace) -> Iterator[pd.DataFrame]:
    """Run ours and all that are installed on the scenarios, on the same scans."""
    for name in args.scenarios:
        scenario = load_scenario(name)
        filters: dict[str, Any] = {one: one for one in args.trackers}
        filters |= {one: partial(Peer, one, task_of(scenario)) for one in installed(args.peers)}
        table = hf.compare(
            scenario,
            filters,
            args.particles,
            args.runs,
            args.seed,
            workers=args.workers,
            progress=True,
        )
        yield pd.DataFrame(
            [_row(name, tracker, runs) for tracker, runs in table.groupby("filter", sort=False)]
        )


def _row(scenario: str, tracker: str, runs: pd.DataFrame) -> dict[str, Any]:
    row = {
        "scenario": scenario,
        "tracker": tracker,
        "runs": len(runs),
        "failed": int((runs["error"] != "").sum()),
    }
    for name in ("gospa", "ospa"):
        row[name], row[f"{name}_low"], row[f"{name}_high"] = mean_with_interval(
            runs[name].dropna().to_numpy()
        )
    for name in (
        "gospa_localisation",
        "gospa_missed",
        "gospa_false",
        "label_switches",
        "cardinality_error",
    ):
        row[name] = runs[name].mean()
    return row | {"ms_per_scan": runs["ms_per_step"].median()}
