"""The autoferry recordings: two vessels in a harbour, seen by radar, lidar and cameras among other boats and the shore."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_numbers, check_count, one_of, short_repr
from herdfilter._repr import fields_in_line
from herdfilter.study.data import locate

__all__ = ["AutoferryData", "load_autoferry"]

SENSORS = {"lidar": 1, "radar": 2, "infrared": 3, "daylight": 4}
"""Name of a sensor -> its number in the files."""

VESSELS = (1, 2)
"""Numbers of the vessels in the files: a leisure craft (Havfruen), and a research vessel of 36 m (Gunnerus)."""

LONGEST_GAP = 1.0
"""Seconds between two GPS fixes over which the position is still taken to be on the line between them."""


@dataclass(frozen=True, eq=False)
class AutoferryData:
    """Scans of several sensors on an own ship, in order of time, and where two vessels were.

    Attributes
    ----------
    scenario : int
        Number of the recording.
    start : float
        Time of the first kept scan, in unix seconds.
    time : ndarray, shape (T,)
        Time of each scan since `start`, in seconds.
    sensors : list of str, length T
        The sensor of each scan.
    scans : list of ndarray, length T
        Detections of each scan. Radar and lidar: (k, 2), metres north and east of the harbour's origin. Cameras:
        (k, 1), bearings from the own ship in radians, from north towards east.
    own_ship : ndarray, shape (T, 2)
        Where the own ship is, in the harbour's frame.
    truth : ndarray, shape (T, 2, 2)
        Where the GPS antenna of each vessel is at the time of the scan, in the harbour's frame: (scan, vessel, north and
        east). NaN where there is no fix close enough in time.

    Examples
    --------
    >>> from herdfilter.study.data.autoferry import AutoferryData
    >>> data = AutoferryData(
    ...     scenario=2, start=0.0, time=np.array([0.0]), sensors=["radar"],
    ...     scans=[np.array([[30.0, 40.0]])], own_ship=np.zeros((1, 2)),
    ...     truth=np.array([[[31.0, 40.0], [60.0, 40.0]]]),
    ... )
    >>> print(np.linalg.norm(data.scans[0] - data.truth[0, 0], axis=1))  # from the first vessel
    [1.]
    """

    scenario: int
    start: float
    time: Array
    sensors: list[str]
    scans: list[Array]
    own_ship: Array
    truth: Array

    __repr__ = fields_in_line

    def __len__(self) -> int:
        return len(self.time)


def load_autoferry(
    folder: str | os.PathLike[str] | None = None,
    scenario: int = 2,
    sensors: Iterable[str] = ("radar", "lidar"),
    max_scans: int | None = None,
    base_url: str | None = None,
) -> AutoferryData:
    """Load a recording of the autoferry data (Helgesen and others 2022, Ocean Engineering 252; public domain).

    Parameters
    ----------
    folder : path, optional
        Folder that holds ``scenario2_detections.json`` and ``scenario2_groundTruth.json``, or a folder ``autoferry`` with
        them. If omitted, the one that the environment variable ``HERDFILTER_DATA`` names; without it, they are
        downloaded into the user's cache, once, and their checksums compared.
    scenario : int
        Number of the recording; 2 and 4 can be downloaded, others of the repository have the same form.
    sensors : sequence of str
        Whose scans to keep: ``radar``, ``lidar``, ``infrared`` and ``daylight`` (cameras).
    max_scans : int, optional
        Keep only the first scans of these.
    base_url : str, optional
        Where to download from, in place of ``HERDFILTER_DATA_URL`` and of where it is published.

    Raises
    ------
    FileNotFoundError
        If the folder does not hold the files.
    ValueError
        If a sensor is unknown, a number does not fit, or a file is not what it should be.
    OSError
        If the download fails.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from herdfilter.study.data.autoferry import load_autoferry
    >>> scan = {"sensorID": 2, "time": 0, "ownshipPosition": [0, 0], "measurement": [[30.0], [40.0]]}
    >>> fixes = [{"targetID": k, "time": 0, "position": [30.0 * k, 40.0, 0.0]} for k in (1, 2)]
    >>> _ = Path("scenario2_detections.json").write_text(json.dumps([scan]))
    >>> _ = Path("scenario2_groundTruth.json").write_text(json.dumps([fixes]))
    >>> data = load_autoferry(".")
    >>> data.sensors, data.scans[0].tolist(), data.truth[0].tolist()
    (['radar'], [[30.0, 40.0]], [[30.0, 40.0], [60.0, 40.0]])
    """
    number = check_count("scenario", scenario)
    limit = None if max_scans is None else check_count("max_scans", max_scans)
    if isinstance(sensors, str):
        raise ValueError(f"sensors: expected a sequence of names, got {short_repr(sensors)}")
    wanted = {SENSORS[one_of("sensors", name, SENSORS)]: name for name in sensors}
    if not wanted:
        raise ValueError(f"sensors: expected at least one of {', '.join(SENSORS)}, got none")
    seen = locate(f"scenario{number}_detections.json", folder, base_url)
    known = locate(f"scenario{number}_groundTruth.json", folder, base_url)
    rows = [_scan(seen, i, entry) for i, entry in enumerate(_read(seen))]
    fixes = _fixes(known, _read(known), len(rows))
    rows = sorted((row for row in rows if row[1] in wanted), key=lambda row: row[0])[:limit]
    if not rows:
        raise ValueError(f"{seen}: expected scans of {' or '.join(wanted.values())}, got none")
    time = np.array([row[0] for row in rows])
    return AutoferryData(
        scenario=number,
        start=float(time[0]),
        time=time - time[0],
        sensors=[wanted[row[1]] for row in rows],
        scans=[
            row[3] if wanted[row[1]] in ("infrared", "daylight") else row[3] + row[2]
            for row in rows
        ],
        own_ship=np.array([row[2] for row in rows]),
        truth=np.stack([_positions(time, *fixes[vessel]) for vessel in VESSELS], axis=1),
    )


def _read(path: Path) -> list[Any]:
    """Entries of a file."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        reason = short_repr(str(error)) if str(error) else type(error).__name__
        raise ValueError(f"{path}: expected a JSON file, got {reason}") from None
    if not isinstance(entries, list):
        raise ValueError(f"{path}: expected a list of scans, got {short_repr(entries)}")
    return entries


def _scan(path: Path, i: int, entry: Any) -> tuple[float, int, Array, Array]:
    """Time, number of the sensor, own ship (2,) and detections (k, 2) or (k, 1), relative to it, of one entry."""
    place = f"{path}: entry {i}"
    keys = ("sensorID", "time", "ownshipPosition", "measurement")
    sensor, time, own_ship, measured = _values(place, entry, keys)
    if isinstance(sensor, bool) or sensor not in SENSORS.values():
        raise ValueError(f"{place}: expected a sensorID from 1 to 4, got {short_repr(sensor)}")
    detections = _numbers(place, "a measurement", measured)
    if sensor in (SENSORS["infrared"], SENSORS["daylight"]):
        if detections.ndim > 1:
            raise ValueError(f"{place}: expected bearings in a list, got shape {detections.shape}")
        detections = detections.reshape(-1, 1)  # a bearing alone is a number, none an empty list
    elif detections.size == 0:
        detections = np.empty((0, 2))
    elif len(np.atleast_1d(detections)) != 2 or detections.ndim > 2:
        raise ValueError(
            f"{place}: expected a row of norths and a row of easts, got shape {detections.shape}"
        )
    else:
        detections = detections.reshape(2, -1).T  # a detection alone is a flat pair
    return (
        float(_numbers(place, "a time", time, ())),
        int(sensor),
        _numbers(place, "an ownshipPosition", own_ship, (2,)),
        detections,
    )


def _fixes(path: Path, entries: list[Any], count: int) -> dict[int, tuple[Array, Array]]:
    """Return the times (n,), each once and in order, and positions (n, 2) of every vessel."""
    if len(entries) != count:
        raise ValueError(f"{path}: expected {count} entries as there are scans, got {len(entries)}")
    fixes: dict[int, dict[float, Array]] = {vessel: {} for vessel in VESSELS}
    for i, entry in enumerate(entries):
        place = f"{path}: entry {i}"
        for fix in entry if isinstance(entry, list) else [entry]:
            vessel, time, position = _values(place, fix, ("targetID", "time", "position"))
            if isinstance(vessel, bool) or vessel not in VESSELS:
                raise ValueError(
                    f"{place}: expected a targetID of 1 or 2, got {short_repr(vessel)}"
                )
            when = float(_numbers(place, "a time", time, ()))
            fixes[vessel][when] = _numbers(place, "a position", position, (3,))[:2]
    in_order = {vessel: sorted(known.items()) for vessel, known in fixes.items()}
    return {
        vessel: (
            np.array([when for when, _ in known]),
            np.array([x for _, x in known]).reshape(-1, 2),
        )
        for vessel, known in in_order.items()
    }


def _positions(time: Array, known: Array, fixes: Array) -> Array:
    """Positions (T, 2) at given times, on the lines between the fixes; NaN outside them and in long gaps."""
    if len(known) == 0:
        return np.full((len(time), 2), np.nan)
    positions = np.column_stack([np.interp(time, known, axis) for axis in fixes.T])
    after = np.searchsorted(known, time)  # the first fix at the time or later
    exact = (after < len(known)) & (known[np.minimum(after, len(known) - 1)] == time)
    inside = (after > 0) & (after < len(known))
    gap = np.full(len(time), np.inf)
    gap[inside] = known[after[inside]] - known[after[inside] - 1]
    positions[~exact & (gap > LONGEST_GAP)] = np.nan
    return positions


def _values(place: str, entry: Any, keys: tuple[str, ...]) -> list[Any]:
    """Values of an entry under the given keys."""
    if not isinstance(entry, dict) or not all(key in entry for key in keys):
        raise ValueError(f"{place}: expected {', '.join(keys)}, got {short_repr(entry)}")
    return [entry[key] for key in keys]


def _numbers(place: str, what: str, value: Any, shape: tuple[int, ...] | None = None) -> Array:
    """Return finite numbers, of the given shape if any."""
    try:
        array = as_numbers(what, value, ())
    except (ValueError, OverflowError):
        array = np.array(np.nan)
    if not np.isfinite(array).all() or shape not in (None, array.shape):
        raise ValueError(f"{place}: expected {what} of finite numbers, got {short_repr(value)}")
    return array
