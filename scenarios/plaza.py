"""The Plaza data sets: ranges between a robot mower and radio beacons."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from herdfilter._checks import Array, check_count, one_of
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap_angles
from herdfilter.study.data import locate
from herdfilter.study.recording import DataSet, Recording

__all__ = ["PlazaData", "load_plaza"]

SHORTEST_STEP = 1e-3
"""Seconds between ranges that share a time stamp, so that every step has a duration."""

_TURNED = {"Plaza1": 0.0, "Plaza2": np.pi}


@dataclass(frozen=True, eq=False)
class PlazaData:
    """Ranges between a robot mower and radio beacons, one event a range, in order of time.

    Attributes
    ----------
    beacons : ndarray, shape (B, 2)
        Beacon positions, in metres.
    beacon_ids : ndarray, shape (B,)
        Numbers of the beacons in the file; observations use the row in `beacons` instead.
    time : ndarray, shape (T,)
        Time of each range, in seconds since the start of the log.
    dt : ndarray, shape (T,)
        Time since the range before (for the first one: since the start of the log), in seconds; ranges with one time stamp
        count as a millisecond apart.
    controls : ndarray, shape (T, 3)
        Dead-reckoned motion in that time (forward m, lateral m, turn rad), in the body frame before it.
    observations : ndarray, shape (T, 2)
        Beacon (row in `beacons`) and range in metres.
    truth : ndarray, shape (T, 3)
        Surveyed x m, y m and heading rad in [-pi, pi) at the time of the range.

    Examples
    --------
    >>> from herdfilter.study.data.plaza import PlazaData
    >>> time = np.array([1.0, 2.0])
    >>> data = PlazaData(
    ...     beacons=np.array([[10.0, 0.0]]), beacon_ids=np.array([7]), time=time, dt=np.ones(2),
    ...     controls=np.zeros((2, 3)), observations=np.array([[0, 10.0], [0, 10.0]]),
    ...     truth=np.zeros((2, 3)),
    ... )
    >>> len(data)
    2
    >>> print(data.beacon_ids[data.observations[:, 0].astype(int)])  # whose ranges they are
    [7 7]
    """

    beacons: Array
    beacon_ids: np.ndarray
    time: Array
    dt: Array
    controls: Array
    observations: Array
    truth: Array

    __repr__ = fields_in_line

    def __len__(self) -> int:
        return len(self.time)

    @property
    def data_set(self) -> DataSet:
        """The recording, and the beacons for the model."""
        return DataSet(
            Recording(self.truth, self.observations, self.dt, self.controls),
            {"beacons": self.beacons},
        )


def load_plaza(
    folder: str | os.PathLike[str] | None = None,
    name: str = "Plaza1",
    max_ranges: int | None = None,
    heading_offset: float | None = None,
    base_url: str | None = None,
) -> PlazaData:
    """Load a Plaza data set (Djugash, Hamner and Roth 2009, Journal of Field Robotics 26).

    Parameters
    ----------
    folder : path, optional
        Folder that holds the file. If omitted, the one that the environment variable ``HERDFILTER_DATA``
        names; without it, the file is downloaded into the user's cache, once, and its checksum compared.
    name : {"Plaza1", "Plaza2"}
        Which of the two; the file is ``<name>_.mat``.
    max_ranges : int, optional
        Keep only the first ranges.
    heading_offset : float, optional
        Angle in radians added to the surveyed heading. By default 0 for Plaza1 and pi for Plaza2, whose
        survey has the robot drive backwards.
    base_url : str, optional
        Where to download from, in place of ``HERDFILTER_DATA_URL`` and of where it is published.

    Raises
    ------
    FileNotFoundError
        If the folder does not hold the file.
    ValueError
        If the name is unknown, a number does not fit, or the file is not what it should be.
    OSError
        If the download fails.

    Examples
    --------
    >>> from scipy.io import savemat
    >>> from herdfilter.study.data.plaza import load_plaza
    >>> time = np.arange(5.0)
    >>> pose = np.column_stack([time, time, 0 * time, 0 * time])  # time, x, y, heading
    >>> odometry = np.column_stack([time, np.ones(5), 0 * time])  # time, distance, turn
    >>> ranges = np.column_stack([time, 0 * time, 7 + 0 * time, 10 - time])  # time, robot, beacon, range
    >>> beacons = [[7.0, 10.0, 0.0]]  # number, x, y
    >>> savemat("Plaza1_.mat", {"GT": pose, "DR": odometry, "TL": beacons, "TD": ranges})
    >>> data = load_plaza(".", max_ranges=3)
    >>> print(data.beacons, data.observations.tolist())
    [[10.  0.]] [[0.0, 10.0], [0.0, 9.0], [0.0, 8.0]]
    """
    name = one_of("name", name, _TURNED)
    limit = None if max_ranges is None else check_count("max_ranges", max_ranges)
    path = locate(f"{name}_.mat", folder, base_url)
    table = _read(path)
    survey, odometry = table["GT"], table["DR"]
    in_time = np.argsort(table["TD"][:, 0], kind="stable")  # blocks of the file overlap
    ranges = table["TD"][in_time][:limit]
    time, start = ranges[:, 0], survey[0, 0]
    ids = table["TL"][:, 0].astype(int)
    is_beacon = ranges[:, 2:3] == ids
    if not is_beacon.any(axis=1).all():
        raise ValueError(f"{path}: expected ranges to beacons {ids.tolist()}, got one to another")

    offset = _TURNED[name] if heading_offset is None else heading_offset
    pose = survey[:, 1:] + [0.0, 0.0, offset]
    pose[:, 2] = np.unwrap(pose[:, 2])
    truth = wrap_angles(_interpolate(time, survey[:, 0], pose), [2])
    reckoned = _interpolate(
        np.append(start, time), np.append(start, odometry[:, 0]), _dead_reckon(odometry)
    )
    return PlazaData(
        beacons=table["TL"][:, 1:],
        beacon_ids=ids,
        time=time - start,
        dt=np.maximum(np.diff(time, prepend=start), SHORTEST_STEP),
        controls=_body_motions(reckoned),
        observations=np.column_stack([is_beacon.argmax(axis=1), ranges[:, 3]]),
        truth=truth,
    )


def _dead_reckon(odometry: Array) -> Array:
    """Path of poses (n + 1, 3), from the origin, for increments (n, 3) of time, distance and heading."""
    heading = np.append(0.0, np.cumsum(odometry[:, 2]))
    halfway = (heading[1:] + heading[:-1]) / 2
    steps = odometry[:, 1:2] * np.column_stack([np.cos(halfway), np.sin(halfway)])
    return np.column_stack([np.vstack([[0.0, 0.0], np.cumsum(steps, axis=0)]), heading])


def _body_motions(poses: Array) -> Array:
    """Rigid motions (n, 3) between successive poses (n + 1, 3), each in the frame of the pose before it."""
    (dx, dy, turn), heading = np.diff(poses, axis=0).T, poses[:-1, 2]
    cos, sin = np.cos(heading), np.sin(heading)
    return np.column_stack([cos * dx + sin * dy, cos * dy - sin * dx, turn])


def _interpolate(time: Array, known: Array, poses: Array) -> Array:
    """Poses at given times, linear between the known ones; headings must be unwrapped."""
    return np.column_stack([np.interp(time, known, column) for column in poses.T])


def _read(path: Path) -> dict[str, Any]:
    """Tables of a Plaza file."""
    from scipy.io import loadmat

    columns = {"GT": 4, "DR": 3, "TL": 3, "TD": 4}
    try:
        table = loadmat(path, variable_names=list(columns))
    except Exception as error:
        raise ValueError(f"{path}: expected a MATLAB v5 file, got {error}") from None
    for key, width in columns.items():
        shape: tuple[int, ...] = np.shape(table[key]) if key in table else ()
        if len(shape) != 2 or shape[1] != width:
            raise ValueError(
                f"{path}: expected a table {key} with {width} columns, got shape {shape}"
            )
    return table
