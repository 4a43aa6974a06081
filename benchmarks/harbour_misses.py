"""What the errors of trackers of the harbour's vessels are made of: ours, a JPDA, and a filter that is told what is whose.

The JPDA is Stone Soup's, with the settings of the benchmark of trackers: none is chosen for the harbour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import trackers
from harbour import RECORDINGS
from herdfilter.study.data.autoferry import load_autoferry
from herdfilter.study.data.harbour import Harbour, load_harbour, sightings
from scipy.optimize import linear_sum_assignment

import herdfilter as hf
from herdfilter.study.scenario import Scenario, load_scenario

DENSITY = 0.05
"""Spectral density of the acceleration, in m^2/s^3, as in the scenario."""

Estimates = Sequence[np.ndarray]
"""Of each scan the states (m, 4)."""


def decomposed(folder: Path | None) -> pd.DataFrame:
    """Return the parts of GOSPA by radar alone, how many vessels are missed, and which of them nobody could have found."""
    scenario, rows = load_scenario("harbour_two"), []
    named = {f"lmb-{name}": partial(lmb, name=name) for name in ("ukf", "auto")}
    named |= {"JPDA (Stone Soup)": jpda} if trackers.installed(["JPDA"]) else {}
    for recording, other in RECORDINGS.items():
        told = {key: value for key, value in scenario.data.items() if key != "type"}
        harbour = load_harbour(folder, **told | {"recording": recording, "constants_from": other})
        own = own_detections(
            replace(load_autoferry(folder, recording, ["radar"]), scans=harbour.scans)
        )
        cutoff = scenario.targets.cutoff
        around = [
            near(x[:, :2], z, cutoff).sum(axis=1)
            for x, z in zip(harbour.truth, harbour.scans, strict=True)
        ]
        shared = {
            "recording": recording,
            "vessels": own.shape[0] * 2,
            "two_detections": (np.array(around) > 1).sum(),
        }
        all_trackers = named | {"told": lambda scenario, harbour, own=own: told_which(harbour, own)}
        for name, tracker in all_trackers.items():
            rows.append(
                shared | {"tracker": name} | parts(harbour, tracker(scenario, harbour), own, cutoff)
            )
    return pd.DataFrame(rows)


def own_detections(data: object) -> np.ndarray:
    """Return the detection of each vessel in each scan, (T, 2, 2), NaN where there is none."""
    error = np.stack([sightings(data, "radar", vessel).error for vessel in (1, 2)], axis=1)
    return data.truth + error


def lmb(scenario: Scenario, harbour: Harbour, name: str) -> Estimates:
    """Estimates of our tracker."""
    model, options = scenario.build_model(), scenario.targets.for_tracker()
    tracker = hf.tracking.LMBTracker(model, filter=name, n_particles=100, rng=0, **options)
    return tracker.run(harbour.data_set.recording.input[0]).means


def jpda(scenario: Scenario, harbour: Harbour) -> Estimates:
    """Estimates of Stone Soup's tracker: of the places where the radar sees the vessels, moved on by the delay."""
    radar, dt, births = (
        harbour.constants["radar"],
        float(np.median(harbour.dt)),
        scenario.targets.births,
    )
    volume = float(np.prod(np.ptp(scenario.data["area"], axis=1)))
    noise = DENSITY * np.kron([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]], np.eye(2))
    task = trackers.Task(
        F=np.kron([[1.0, dt], [0.0, 1.0]], np.eye(2)),
        Q=noise,
        H=np.eye(2, 4),
        R=radar.sd**2 * np.eye(2),
        detection_probability=radar.detection_probability,
        survival_probability=scenario.targets.survival_probability,
        clutter_rate=radar.clutter_density * volume,
        volume=volume,
        births=[(births.expected, np.array(births.mean), np.diag(np.square(births.sd)))],
        dt=dt,
    )
    on = np.eye(4) + radar.delay * np.eye(4, k=2)
    return [states @ on.T for _, states in trackers.jpda_of_stone_soup(task, harbour.scans)]


def told_which(harbour: Harbour, own: np.ndarray) -> Estimates:
    """Estimates of a Kalman filter for each vessel on its own detections alone (T, 2, 2), from the second one on."""
    radar = harbour.constants["radar"]
    sensor = replace(radar.sensor, detection_probability=None, clutter_density=None)
    found: list[list[np.ndarray]] = [[] for _ in own]
    for detections in np.moveaxis(own, 1, 0):
        k = int(np.flatnonzero(np.isfinite(detections[:, 0]))[0])
        kf = hf.UnscentedKalmanFilter(
            hf.models.ConstantVelocity(DENSITY, 3.0, **radar.prior(detections[k]))
        )
        started = False
        for step in range(k + 1, len(own)):
            detected = np.isfinite(detections[step, 0])
            kf.predict(harbour.dt[step])
            kf.update(detections[step] if detected else None, sensor)
            started |= bool(detected)
            if started:
                found[step].append(kf.mean)
    return [np.array(states).reshape(-1, 4) for states in found]


def parts(
    harbour: Harbour, estimates: Estimates, own: np.ndarray, cutoff: float
) -> dict[str, float]:
    """Mean GOSPA, the shares of its parts in the squared sum, the RMSE of tracks, and what is missed and false.

    A missed vessel counts as `unseen` if the scan has no detection of it, or its first one: no track can be there. A false
    estimate is at an echo if a detection lies within the cutoff of where the radar would see it.
    """
    places = [x[:, :2] for x in harbour.truth], [y[:, :2] for y in estimates]
    steps = [hf.tracking.gospa(x, y, cutoff) for x, y in zip(*places, strict=True)]
    sums = {
        name: sum(getattr(one, name) for one in steps)
        for name in ("localisation", "missed", "false")
    }
    pairs = [apart(x, y, cutoff) for x, y in zip(*places, strict=True)]
    missed = np.array([missing for missing, _ in pairs])
    seen = np.isfinite(own[..., 0])
    unseen = ~seen | (seen.cumsum(axis=0) == 1)
    late = np.eye(4) - harbour.constants["radar"].delay * np.eye(4, k=2)
    false = [y[wrong] @ late.T for y, (_, wrong) in zip(estimates, pairs, strict=True)]
    echoes = sum(
        near(y[:, :2], scan, cutoff).any(axis=1).sum()
        for y, scan in zip(false, harbour.scans, strict=True)
    )
    row = {"gospa": np.mean([one.distance for one in steps])}
    row |= {f"{name}_share": value / sum(sums.values()) for name, value in sums.items()}
    row |= {"rmse": np.sqrt(sums["localisation"] / (~missed).sum())}
    row |= {
        "missed": missed.sum(),
        "missed_unseen": (missed & unseen).sum(),
        "unseen": unseen.sum(),
    }
    return row | {"false": sum(map(len, false)), "false_at_echoes": echoes}


def apart(truth: np.ndarray, estimates: np.ndarray, cutoff: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which targets (n, 2) and which estimates (m, 2) have no partner within the cutoff in the best assignment."""
    distances = np.linalg.norm(truth[:, None] - estimates[None], axis=2)
    i, j = linear_sum_assignment(np.minimum(distances, cutoff) ** 2)
    within = distances[i, j] < cutoff
    missed, false = np.ones(len(truth), dtype=bool), np.ones(len(estimates), dtype=bool)
    missed[i[within]] = false[j[within]] = False
    return missed, false


def near(places: np.ndarray, scan: np.ndarray, distance: float) -> np.ndarray:
    """Return which detections (k, 2) lie within a distance of which places (n, 2), (n, k)."""
    return np.linalg.norm(places[:, None] - scan[None], axis=2) < distance
