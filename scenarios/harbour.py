"""Radar and lidar of the autoferry recordings as sensors: what they are like, by comparison with the GPS of the vessels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize
import scipy.special

from herdfilter._checks import Array, as_array, check_count, short_repr
from herdfilter.models.sensors import Sensor
from herdfilter.study.recording import DataSet, Recording

from .autoferry import VESSELS, AutoferryData, load_autoferry

__all__ = ["Harbour", "SensorConstants", "load_harbour", "sensor_constants"]

GATE = 20.0
"""Metres from a vessel's antenna within which the nearest detection counts as the vessel's; the larger one is 36 m long."""

SURROUNDINGS = 60.0
"""Metres from a vessel within which other detections count for the density of clutter."""

SPEED_SD = 3.0
"""Standard deviation of an unknown velocity in each direction, in m/s: vessels in the harbour keep below 5 knots."""

_WINDOW = 1.0  # seconds before and after, over which a velocity is taken from the GPS


@dataclass(frozen=True)
class SensorConstants:
    """Constants of a sensor in a recording, averaged over time and vessels.

    Attributes
    ----------
    delay : float
        Seconds that a detection lies behind the vessel on its way: the least squares fit of position - delay * velocity.
        It holds for one recording and its vessels: the radar's is 0.9 to 2.7 s in the nine of the repository.
    sd : float
        Standard deviation of a detection about that, in metres and each of the two directions; what differs between
        antenna and middle of the echo is in it.
    detection_probability : float
        Share of the scans that have a detection of a vessel.
    clutter_density : float
        Other detections per square metre and scan in the surroundings of a vessel.
    detection : DetectionByDistance, optional
        The share of the scans that have a detection of a vessel at some distance from the sensor.

    Examples
    --------
    >>> from herdfilter.study.data.harbour import SensorConstants
    >>> radar = SensorConstants(delay=0.5, sd=4.0, detection_probability=0.9, clutter_density=1e-4)
    >>> moving_north = np.array([[100.0, 50.0, 2.0, 0.0]])
    >>> print(radar.sensor.mean(moving_north))  # seen where it was half a second ago
    [[99. 50.]]
    """

    delay: float
    sd: float
    detection_probability: float
    clutter_density: float
    detection: DetectionByDistance | None = None

    @property
    def sensor(self) -> Sensor:
        """The sensor of a state (north, east, and the velocities), with the same P_D at all distances."""
        return Sensor(
            LatePosition(self.delay),
            self.sd**2 * np.eye(2),
            detection_probability=self.detection_probability,
            clutter_density=self.clutter_density,
        )

    def sensor_at(self, place: Array) -> Sensor:
        """Return the sensor that stands at a place (2,), with P_D by the distance from there."""
        return (
            self.sensor
            if self.detection is None
            else replace(self.sensor, detection_probability=self.detection.at(place))
        )

    def prior(self, detection: Array) -> dict[str, Array]:
        """Mean (4,) and covariance (4, 4) of the state where a detection is all that is known, beside `SPEED_SD`."""
        late, v = self.delay, SPEED_SD**2 * np.eye(2)
        covariance = np.block([[self.sd**2 * np.eye(2) + late**2 * v, late * v], [late * v, v]])
        return {"initial_mean": np.append(detection, [0.0, 0.0]), "initial_covariance": covariance}


@dataclass(frozen=True)
class DetectionByDistance:
    """Detection probability ``highest / (1 + exp((r - reach) / width))`` at a distance r from a place, all in metres.

    Examples
    --------
    >>> from herdfilter.study.data.harbour import DetectionByDistance
    >>> lidar = DetectionByDistance(highest=0.96, reach=120.0, width=5.0).at([10.0, 0.0])
    >>> print(lidar(np.array([[60.0, 0.0, 0.0, 0.0], [130.0, 0.0, 0.0, 0.0], [210.0, 0.0, 0.0, 0.0]])).round(2))
    [0.96 0.48 0.  ]
    """

    highest: float
    reach: float
    width: float
    place: tuple[float, ...] = (0.0, 0.0)

    def at(self, place: Array) -> DetectionByDistance:
        """Return the same of a sensor that stands at a place (2,)."""
        return replace(self, place=tuple(place))

    def __call__(self, x: Array) -> Array:
        """Probabilities (n,) of states (n, 4), or of positions (n, 2)."""
        distances = np.linalg.norm(x[:, :2] - self.place, axis=1)
        return np.asarray(self.highest * scipy.special.expit((self.reach - distances) / self.width))

    @classmethod
    def fit(cls, distances: Array, found: Array, least_width: float) -> DetectionByDistance:
        """Return the likeliest one, given whether a vessel was found (N,) at distances (N,), and a miss more at the nearest.

        The likelihood is maximised from a reach at each tenth of the distances.
        """
        r, hit = np.append(distances, distances.min()), np.append(found, False)

        def from_parameters(parameters: Array) -> DetectionByDistance:
            reach, width = np.exp(parameters[1:])
            return cls(
                float(scipy.special.expit(parameters[0])), float(reach), least_width + float(width)
            )

        def cost(parameters: Array) -> float:
            p = from_parameters(parameters)(r[:, None] * [1.0, 0.0])
            return -float(np.log(np.maximum(np.where(hit, p, 1 - p), 1e-12)).mean())

        reaches = np.quantile(distances, np.arange(1, 11) / 10)
        starts = [np.array([2.0, np.log(reach), np.log(reach / 10)]) for reach in reaches]
        tried = [
            scipy.optimize.minimize(cost, start, method="Nelder-Mead", options={"maxiter": 2000})
            for start in starts
        ]
        return from_parameters(min(tried, key=lambda one: one.fun).x)


@dataclass(frozen=True)
class LatePosition:
    """Position of a target `delay` seconds ago, by its velocity: the mean of a sensor that reports late."""

    delay: float

    def __call__(self, x: Array) -> Array:
        """Positions (n, 2) of states (n, 4)."""
        return x[:, :2] - self.delay * x[:, 2:]


@dataclass(frozen=True, eq=False)
class Sightings:
    """Detections of one vessel by one sensor: a row for each scan.

    Attributes
    ----------
    error : ndarray, shape (T, 2)
        From the antenna to the nearest detection, in metres north and east; NaN where there is none of the vessel.
    velocity : ndarray, shape (T, 2)
        Of the vessel, in m/s.
    sight : ndarray, shape (T, 2)
        From the own ship to the vessel, in metres.
    others : ndarray, shape (T,)
        Other detections in the vessel's surroundings.
    area : ndarray, shape (T,)
        Of these surroundings, without what lies near a vessel, in square metres.
    """

    error: Array
    velocity: Array
    sight: Array
    others: Array
    area: Array


def sightings(data: AutoferryData, sensor: str, vessel: int) -> Sightings:
    """Compare the scans of a sensor with where a vessel was; scans without truth are left out.

    The nearest detection of those within `GATE` that are not nearer to the other vessel counts as the vessel's.
    """
    here, there = data.truth[:, vessel - 1], data.truth[:, 2 - vessel]
    velocity = velocities(data.time, here)
    rows = []
    for k, scan in enumerate(data.scans):
        if data.sensors[k] != sensor or not np.isfinite(here[k]).all():
            continue
        nearest = _of_vessel(scan, here[k], there[k])
        error = np.full(2, np.nan) if nearest is None else nearest - here[k]
        apart, from_other = _distances(scan, here[k], there[k])
        others = np.sum((apart > GATE) & (apart < SURROUNDINGS) & (from_other > GATE))
        rows.append(
            (*error, *velocity[k], *(here[k] - data.own_ship[k]), others, _area(there[k] - here[k]))
        )
    table = np.array(rows).reshape(-1, 8)
    return Sightings(table[:, :2], table[:, 2:4], table[:, 4:6], table[:, 6], table[:, 7])


def sensor_constants(data: AutoferryData, sensor: str) -> SensorConstants:
    """Estimate what a sensor is like in a recording, of both vessels together.

    Examples
    --------
    >>> from herdfilter.study.data.autoferry import AutoferryData
    >>> from herdfilter.study.data.harbour import sensor_constants
    >>> time = np.arange(20.0)
    >>> path = np.stack([2 * time, 0 * time], axis=1)  # north at 2 m/s
    >>> truth = np.stack([path, path + 1000.0], axis=1)
    >>> scans = [place + [[-1.0, 0.0]] for place in path]  # of the first vessel only, a metre behind
    >>> data = AutoferryData(2, 0.0, time, ["radar"] * 20, scans, np.full((20, 2), -100.0), truth)
    >>> constants = sensor_constants(data, "radar")
    >>> print(round(constants.delay, 3), constants.detection_probability)
    0.5 0.5
    """
    seen = [sightings(data, sensor, vessel) for vessel in VESSELS]
    names = "error", "velocity", "sight"
    error, velocity, sight = (
        np.concatenate([getattr(one, name) for one in seen]) for name in names
    )
    found = np.isfinite(error[:, 0])
    if not found.any():
        raise ValueError(
            f"sensor: expected detections of a vessel by the {sensor} of recording {data.scenario}, got none"
        )
    error, velocity = error[found], velocity[found]
    delay = -float((error * velocity).sum() / (velocity**2).sum())
    sd = float(np.sqrt(np.mean((error + delay * velocity) ** 2)))
    return SensorConstants(
        delay=delay,
        sd=sd,
        detection_probability=float(found.mean()),
        clutter_density=float(
            sum(one.others.sum() for one in seen) / sum(one.area.sum() for one in seen)
        ),
        detection=DetectionByDistance.fit(
            np.linalg.norm(sight, axis=1), found, least_width=sd
        ),  # an echo is off the antenna by that
    )


def velocities(time: Array, path: Array) -> Array:
    """Velocity (T, 2) of a path (T, 2), of which rows may be NaN, over a second before and a second after."""
    known = np.isfinite(path[:, 0])
    before, after = (np.clip(time + side, *time[known][[0, -1]]) for side in (-_WINDOW, _WINDOW))
    first, last = (
        np.column_stack([np.interp(when, time[known], axis[known]) for axis in path.T])
        for when in (before, after)
    )
    return np.where(known[:, None], (last - first) / (after - before)[:, None], np.nan)


def _area(to_other: Array) -> float:
    """Square metres of the surroundings of a vessel that are near neither it nor the other one, `to_other` (2,) from it."""
    if not np.linalg.norm(to_other) < SURROUNDINGS + GATE:
        return float(np.pi * (SURROUNDINGS**2 - GATE**2))
    return float((np.hypot(*(_GRID - to_other).T) > GATE).sum() * _CELL**2)


_CELL = 2.0
_LINE = np.arange(-SURROUNDINGS, SURROUNDINGS, _CELL) + _CELL / 2
_GRID = np.stack(np.meshgrid(_LINE, _LINE), axis=-1).reshape(-1, 2)
_GRID = _GRID[(np.hypot(*_GRID.T) > GATE) & (np.hypot(*_GRID.T) < SURROUNDINGS)]


@dataclass(frozen=True, eq=False)
class Harbour:
    """A task of tracking in a recording: scans, what the sensors are like, and the truth.

    Attributes
    ----------
    dt : ndarray, shape (T,)
        Seconds to each scan from the one before; to the first one, from the detection that the tracking starts with.
    scans : list of ndarray, length T
        Detections (k, 2).
    sensors : list of str, length T
        The sensor of each scan.
    constants : dict
        Sensor -> what it is like in another recording.
    truth : ndarray, shape (T, 4), or (T, 2, 4) of both vessels
        North, east and the velocities.
    initial : dict
        Mean and covariance of the state of one vessel at the detection that its tracking starts with, as ``initial_mean``
        (4,) and ``initial_covariance`` (4, 4); empty of both vessels.
    own_ship : ndarray, shape (T, 2), optional
        Where the sensors stand at each scan, for P_D by distance; P_D is the same at all distances unless given.

    Examples
    --------
    >>> from herdfilter.study.data.harbour import Harbour, SensorConstants
    >>> radar = SensorConstants(delay=0.0, sd=4.0, detection_probability=0.9, clutter_density=1e-4)
    >>> harbour = Harbour(
    ...     dt=np.ones(2), scans=[np.array([[30.0, 40.0]]), np.empty((0, 2))],
    ...     sensors=["radar", "radar"], constants={"radar": radar}, truth=np.zeros((2, 4)), initial={},
    ... )
    >>> [len(scan) for scan in harbour.scans]
    [1, 0]
    """

    dt: Array
    scans: list[Array]
    sensors: list[str]
    constants: Mapping[str, SensorConstants]
    truth: Array
    initial: Mapping[str, Array]
    own_ship: Array | None = None

    @property
    def data_set(self) -> DataSet:
        """The recording, each scan with its sensor, and the prior for the model."""
        if self.own_ship is None:
            known = {name: self.constants[name].sensor for name in set(self.sensors)}
            sensors = [known[name] for name in self.sensors]
        else:
            pairs = zip(self.sensors, self.own_ship, strict=True)
            sensors = [self.constants[name].sensor_at(place) for name, place in pairs]
        return DataSet(Recording(self.truth, self.scans, self.dt, sensors=sensors), self.initial)


def load_harbour(
    folder: str | os.PathLike[str] | None = None,
    recording: int = 2,
    constants_from: int = 4,
    vessel: int | None = None,
    sensors: Iterable[str] = ("radar", "lidar"),
    area: Sequence[Sequence[float]] | None = None,
    nearest: float = 0.0,
    max_scans: int | None = None,
    by_distance: Iterable[str] = ("lidar",),
    base_url: str | None = None,
) -> Harbour:
    """Load a recording as a task of tracking; what the sensors are like is found in another recording.

    Parameters
    ----------
    folder, sensors, base_url
        See `load_autoferry`; of the sensors, radar and lidar.
    recording : int
        Number of the recording.
    constants_from : int
        Number of the recording that tells what the sensors are like: another one, so that nothing is found in the data
        with which a filter is judged.
    vessel : int, optional
        1 or 2: the one to track, from its first detection on. Both, from the first scan on, unless given.
    area : array_like, shape (2, 2), optional
        Least and largest north, and east, in metres: detections outside are left out.
    nearest : float
        Metres: detections nearer to the own ship are left out.
    max_scans : int, optional
        Keep only the first scans.
    by_distance : iterable of str
        The sensors whose P_D depends on the distance from the own ship; that of others is the same everywhere. By default
        the lidar, which sees nothing beyond 140 m. What the radar misses is mostly hidden by another vessel.

    Raises
    ------
    FileNotFoundError, OSError, ValueError
        See `load_autoferry`; ValueError if both recordings are the same one, or a vessel is not seen.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from herdfilter.study.data.harbour import load_harbour
    >>> for number in (2, 4):  # to track in, and to learn from
    ...     scans, fixes = [], []
    ...     for k in range(20):
    ...         place = [50.0 + 2 * k, 40.0 + (k % 2)]
    ...         scans.append({"sensorID": 2, "time": k, "ownshipPosition": [0, 0],
    ...                       "measurement": [[place[0]], [place[1]]]})
    ...         fixes.append([{"targetID": 1, "time": k, "position": [50.0 + 2 * k, 40.5, 0.0]},
    ...                       {"targetID": 2, "time": k, "position": [500.0, 500.0, 0.0]}])
    ...     _ = Path(f"scenario{number}_detections.json").write_text(json.dumps(scans))
    ...     _ = Path(f"scenario{number}_groundTruth.json").write_text(json.dumps(fixes))
    >>> harbour = load_harbour(".", recording=2, constants_from=4, vessel=1, sensors=["radar"])
    >>> len(harbour.scans), round(harbour.constants["radar"].sd, 1)
    (19, 0.4)
    >>> print(harbour.truth[0].round(1))
    [52.  40.5  2.   0. ]
    """
    sensors = tuple(sensors)
    by_distance = tuple(by_distance)
    limit = None if max_scans is None else check_count("max_scans", max_scans)
    if vessel is not None and (isinstance(vessel, bool) or vessel not in VESSELS):
        raise ValueError(f"vessel: expected 1 or 2, got {short_repr(vessel)}")
    if not set(sensors) <= {"radar", "lidar"}:
        raise ValueError(
            f"sensors: expected radar and lidar, which see positions, got {short_repr(sensors)}"
        )
    if not set(by_distance) <= {"radar", "lidar"}:
        raise ValueError(
            f"by_distance: expected radar and lidar, or none, got {short_repr(by_distance)}"
        )
    bounds = None if area is None else as_array("area", area, (2, 2))
    if bounds is not None and not (bounds[:, 0] < bounds[:, 1]).all():
        raise ValueError(
            f"area: expected rows (least, largest) of north and east, got {short_repr(area)}"
        )
    close = float(as_array("nearest", nearest, ()))
    if recording == constants_from:
        raise ValueError(
            f"constants_from: expected another recording than the one to track in, got {constants_from}"
        )
    other = load_autoferry(folder, constants_from, sensors, base_url=base_url)
    data = load_autoferry(folder, recording, sensors, base_url=base_url)
    constants = {sensor: sensor_constants(other, sensor) for sensor in sensors}
    constants |= {
        name: replace(constants[name], detection=None)
        for name in sensors
        if name not in by_distance
    }
    data = replace(
        data,
        scans=[
            _within(*entry, bounds, close) for entry in zip(data.scans, data.own_ship, strict=True)
        ],
    )
    states = np.stack(
        [np.hstack([path, velocities(data.time, path)]) for path in np.moveaxis(data.truth, 1, 0)],
        axis=1,
    )
    if vessel is None:
        first, before, initial = 0, -np.diff(data.time).mean(), {}
    else:
        k, detection = _first_detection(data, vessel)
        first, before, initial = k + 1, data.time[k], constants[data.sensors[k]].prior(detection)
        states = states[:, vessel - 1]
    places = [k for k in range(first, len(data)) if vessel is None or np.isfinite(states[k]).all()][
        :limit
    ]
    return Harbour(
        dt=np.diff(data.time[places], prepend=before),
        scans=[data.scans[k] for k in places],
        sensors=[data.sensors[k] for k in places],
        constants=constants,
        truth=states[places],
        initial=initial,
        own_ship=data.own_ship[places],
    )


def _within(scan: Array, own_ship: Array, bounds: Array | None, close: float) -> Array:
    """Return the detections (k, 2) within the bounds that are not close to the own ship."""
    kept = np.linalg.norm(scan - own_ship, axis=1) >= close
    if bounds is not None:
        kept &= ((scan >= bounds[:, 0]) & (scan <= bounds[:, 1])).all(axis=1)
    detections: Array = scan[kept]
    return detections


def _first_detection(data: AutoferryData, vessel: int) -> tuple[int, Array]:
    """Place of the first scan with a detection of a vessel, and the detection."""
    for k, scan in enumerate(data.scans):
        detection = _of_vessel(scan, data.truth[k, vessel - 1], data.truth[k, 2 - vessel])
        if detection is not None:
            return k, detection
    raise ValueError(
        f"vessel: expected one that is seen in recording {data.scenario}, got {vessel}"
    )


def _of_vessel(scan: Array, here: Array, there: Array) -> Array | None:
    """Return the detection (2,) of the vessel that is `here`, the other one `there`; None if there is none."""
    apart, from_other = _distances(scan, here, there)
    near = (apart < GATE) & (apart < from_other)
    return scan[np.where(near, apart, np.inf).argmin()] if near.any() else None


def _distances(scan: Array, here: Array, there: Array) -> tuple[Array, Array]:
    """Distances (k,) of detections from both vessels; of a vessel that is nowhere they are infinite."""
    apart, from_other = (np.linalg.norm(scan - place, axis=1) for place in (here, there))
    return np.nan_to_num(apart, nan=np.inf), np.nan_to_num(from_other, nan=np.inf)
