"""How late radar and lidar are: by GPS in all recordings at hand, and as a state of a filter, with GPS and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from harbour import RECORDINGS
from herdfilter.study.data.autoferry import AutoferryData, load_autoferry
from herdfilter.study.data.harbour import Harbour, load_harbour, sensor_constants, sightings

import herdfilter as hf

EVERY = (2, 3, 4, 5, 6, 13, 16, 17, 22)
"""The recordings of the repository; the package can download 2 and 4."""

PRIOR = 1.3, 0.6
"""Mean and standard deviation of a delay in seconds before anything is known; in the other recordings it is 0.9 to 2.7 s."""

DENSITY = 0.05
"""Spectral density of the acceleration, in m^2/s^3, as in the scenarios."""

LOST = 20.0
"""RMSE over the last quarter, in metres, from which on a vessel is lost, as in the scenario."""

LATE = {
    "radar": lambda x: x[:, :2] - x[:, 4:5] * x[:, 2:4],
    "lidar": lambda x: x[:, :2] - x[:, 5:6] * x[:, 2:4],
}
"""Sensor -> mean of its detections of states (n, 6)."""

GPS = hf.Sensor(lambda x: x[:, :2], np.eye(2))
"""A position that is not late."""


def by_recording(folder: Path | None) -> pd.DataFrame:
    """Return the delays of radar and lidar against GPS in every recording that the folder has."""
    rows = []
    for recording in EVERY:
        try:
            data = load_autoferry(folder, recording)
        except FileNotFoundError:
            print(f"recording {recording}: left out, the folder does not have it", flush=True)
            continue
        row = {"recording": recording, "own_constants": recording in RECORDINGS}
        for sensor in ("radar", "lidar"):
            row[sensor] = sensor_constants(data, sensor).delay
            row |= {f"{sensor}_{vessel}": by_gps(data, sensor, vessel)[0] for vessel in (1, 2)}
        rows.append(
            row | {f"speed_{vessel}": by_gps(data, "radar", vessel)[1] for vessel in (1, 2)}
        )
    return pd.DataFrame(rows)


def by_gps(data: AutoferryData, sensor: str, vessel: int) -> tuple[float, float]:
    """Least squares of error = -delay * velocity for one vessel, and its mean speed where it is detected."""
    seen = sightings(data, sensor, vessel)
    found = np.isfinite(seen.error[:, 0])
    error, velocity = seen.error[found], seen.velocity[found]
    return -float((error * velocity).sum() / (velocity**2).sum()), float(
        np.linalg.norm(velocity, axis=1).mean()
    )


def as_states(folder: Path | None) -> pd.DataFrame:
    """Return what filters find whose state holds the delays, for each vessel of each recording, and the errors."""
    rows = []
    for recording, other in RECORDINGS.items():
        for vessel in (1, 2):
            data = load_autoferry(folder, recording)
            radar, lidar = (by_gps(data, sensor, vessel)[0] for sensor in ("radar", "lidar"))
            row = {
                "recording": recording,
                "vessel": vessel,
                "radar": radar,
                "difference": radar - lidar,
            }
            alone = load_harbour(folder, recording, other, vessel, ["radar"], by_distance=())
            both = load_harbour(folder, recording, other, vessel, by_distance=())
            results = {
                "alone": run(alone),
                "auto": run(alone, "auto"),
                "gps": run(alone, gps=True),
                "lidar": run(both),
            }
            for name, result in results.items():
                weights = np.array([1.0, -1.0] if name == "lidar" else [1.0, 0.0])
                spread = weights @ result.covariances[-1, 4:, 4:] @ weights
                row |= {
                    f"{name}_delay": weights @ result.means[-1, 4:],
                    f"{name}_sd": np.sqrt(spread),
                }
            row["grid_delay"], row["grid_sd"] = on_grid(alone)
            row["lidar_lost"] = errors(results["lidar"], both.truth)["lost"]
            results |= {
                "constant": constant(alone, alone.constants["radar"].delay),
                "guess": constant(alone, PRIOR[0]),
            }
            for name in ("constant", "guess", "alone"):
                row |= {
                    f"{name}_{key}": value
                    for key, value in errors(results[name], alone.truth).items()
                }
            rows.append(row)
    return pd.DataFrame(rows)


def on_grid(harbour: Harbour) -> tuple[float, float]:
    """Mean and sd of the radar's delay by the likelihood of 25 constants; nothing else of the model is not linear."""
    mean, sd = PRIOR
    delays = mean + sd * np.linspace(-3, 3, 25)
    log_weights = (
        np.array([constant(harbour, delay).log_likelihood for delay in delays])
        - ((delays - mean) / sd) ** 2 / 2
    )
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    centre = float(weights @ delays)
    return centre, float(np.sqrt(weights @ (delays - centre) ** 2))


def run(harbour: Harbour, name: str = "ukf", gps: bool = False) -> hf.FilterResult:
    """Return the result of a filter whose state holds both delays; with a fix by GPS before each scan if `gps`."""
    readings = []
    for time, sensor, scan, state in zip(
        np.cumsum(harbour.dt), harbour.sensors, harbour.scans, harbour.truth, strict=True
    ):
        reading = time, replace(harbour.constants[sensor].sensor, mean=LATE[sensor]), scan
        readings += [(time, GPS, state[:2]), reading] if gps else [reading]
    return hf.make_filter(name, with_delays(harbour), n_particles=200, rng=0).run(readings)


def with_delays(harbour: Harbour) -> hf.models.FunctionModel:
    """Return the motion of position, velocity and the delays of radar and lidar (6,), from a first detection on."""
    mean, sd = PRIOR
    known = replace(harbour.constants["radar"], delay=mean).prior(
        harbour.initial["initial_mean"][:2]
    )
    covariance = np.diag([0.0] * 4 + [sd**2] * 2)
    covariance[:4, :4] = known["initial_covariance"]
    covariance[[0, 1], [0, 1]] += sd**2 * covariance[2, 2]

    def noise(dt: float) -> np.ndarray:
        q = 1e-6 * dt * np.eye(6)  # a delay wanders by a thousandth of a second in a second
        q[:4, :4] = DENSITY * np.kron([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]], np.eye(2))
        return q

    return hf.models.from_functions(
        lambda x, dt: np.column_stack([x[:, :2] + dt * x[:, 2:4], x[:, 2:]]),
        None,
        noise,
        None,
        [*known["initial_mean"], mean, mean],
        initial_covariance=covariance,
    )


def constant(harbour: Harbour, delay: float) -> hf.FilterResult:
    """Return the result of an unscented Kalman filter that is given the radar's delay."""
    radar = replace(harbour.constants["radar"], delay=delay)
    model = hf.models.ConstantVelocity(
        DENSITY, 3.0, **radar.prior(harbour.initial["initial_mean"][:2])
    )
    readings = [
        (time, radar.sensor, scan)
        for time, scan in zip(np.cumsum(harbour.dt), harbour.scans, strict=True)
    ]
    return hf.UnscentedKalmanFilter(model).run(readings)


def errors(result: hf.FilterResult, truth: np.ndarray) -> dict[str, float]:
    """RMSE of the position, the normalised squared error of position and velocity, and whether the vessel is lost."""
    difference = result.means[:, :4] - truth
    squared = (difference[:, :2] ** 2).sum(axis=1)
    nees = np.einsum(
        "ti,tij,tj->t", difference, np.linalg.inv(result.covariances[:, :4, :4]), difference
    )
    lost = np.sqrt(squared[-(len(squared) // 4) :].mean()) > LOST
    return {"rmse": np.sqrt(squared.mean()), "anees": nees.mean() / 4, "lost": lost}
