"""The GPS track of an unmanned aircraft, to simulate a radar on."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, check_count
from herdfilter._repr import fields_in_line
from herdfilter.study.data import locate
from herdfilter.study.recording import DataSet, Recording

__all__ = ["UAVData", "load_uav"]

SEMI_MAJOR_AXIS, FLATTENING = 6_378_137.0, 1 / 298.257223563
"""The ellipsoid WGS 84, in metres."""

_COLUMNS = ["timestamp", "latitude", "longitude", "altitude (m)"]


@dataclass(frozen=True, eq=False)
class UAVData:
    """Flight of an unmanned aircraft, one fix per second.

    Attributes
    ----------
    origin : ndarray, shape (3,)
        Latitude and longitude in degrees and altitude in metres of the first fix, which is step 0.
    time : ndarray, shape (T,)
        Time since the first fix, in seconds: 1, 2, ...
    truth : ndarray, shape (T, 6)
        Position east, north and up of the first fix in metres, and velocity in m/s, by central differences.

    Examples
    --------
    >>> from herdfilter.study.data.uav import UAVData
    >>> flight = UAVData(np.array([50.0, 8.0, 100.0]), time=np.arange(1.0, 4.0), truth=np.zeros((3, 6)))
    >>> len(flight)
    3
    """

    origin: Array
    time: Array
    truth: Array

    __repr__ = fields_in_line

    def __len__(self) -> int:
        return len(self.time)

    @property
    def data_set(self) -> DataSet:
        """The track alone: observations of it are simulated in every run."""
        return DataSet(Recording(self.truth, np.empty((len(self), 0))))


def load_uav(
    folder: str | os.PathLike[str] | None = None,
    max_steps: int | None = None,
    base_url: str | None = None,
) -> UAVData:
    """Load the track ``UAV_Rot.csv``, published with Stone Soup (Defence Science and Technology Laboratory, MIT licence).

    Parameters
    ----------
    folder : path, optional
        Folder that holds the file. If omitted, the one that the environment variable ``HERDFILTER_DATA``
        names; without it, the file is downloaded into the user's cache, once, and its checksum compared.
    max_steps : int, optional
        Keep only the first seconds.
    base_url : str, optional
        Where to download from; by default the environment variable ``HERDFILTER_DATA_URL``, then where the file is
        published (`DATA_FILES`).

    Raises
    ------
    FileNotFoundError
        If the folder does not hold the file.
    ValueError
        If a number does not fit, or the file is not what it should be.
    OSError
        If the download fails.

    Examples
    --------
    >>> import pandas as pd
    >>> from herdfilter.study.data.uav import load_uav
    >>> k = np.arange(4)  # north and up
    >>> fixes = {"latitude": 50 + 1e-4 * k, "longitude": 8.0, "altitude (m)": 100 + k}
    >>> pd.DataFrame({"timestamp": k, **fixes}).to_csv("UAV_Rot.csv", index=False)
    >>> print(load_uav(".").truth[:, :3].round(1) + 0.0)
    [[ 0.  11.1  1. ]
     [ 0.  22.2  2. ]
     [ 0.  33.4  3. ]]
    """
    limit = None if max_steps is None else check_count("max_steps", max_steps)
    time, fixes = _read(str(locate("UAV_Rot.csv", folder, base_url)))
    position = local_position(fixes, fixes[0])
    velocity = np.gradient(position, axis=0)
    return UAVData(
        fixes[0], (time - time[0])[1:][:limit], np.hstack([position, velocity])[1:][:limit]
    )


def local_position(fixes: Array, origin: Array) -> Array:
    """Metres east, north and up of `origin`, in its tangent plane, of fixes (n, 3) in degrees, degrees and metres.

    By way of the coordinates fixed to the Earth (Hofmann-Wellenhof, Lichtenegger and Wasle 2008, "GNSS", section 8.2).
    """
    latitude, longitude = np.radians(origin[:2])
    up = np.array(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )
    east = np.array([-np.sin(longitude), np.cos(longitude), 0.0])
    axes = np.stack([east, np.cross(up, east), up])
    local: Array = (_earth_fixed(fixes) - _earth_fixed(origin[None])) @ axes.T
    return local


def _earth_fixed(fixes: Array) -> Array:
    latitude, longitude = np.radians(fixes[:, 0]), np.radians(fixes[:, 1])
    squeeze = (1 - FLATTENING) ** 2
    across = SEMI_MAJOR_AXIS / np.sqrt(np.cos(latitude) ** 2 + squeeze * np.sin(latitude) ** 2)
    level = (across + fixes[:, 2]) * np.cos(latitude)
    return np.column_stack(
        [
            level * np.cos(longitude),
            level * np.sin(longitude),
            (squeeze * across + fixes[:, 2]) * np.sin(latitude),
        ]
    )


def _read(path: str) -> tuple[Array, Array]:
    """Read times (n,) in seconds and fixes (n, 3)."""
    import pandas as pd

    try:
        table = pd.read_csv(path, usecols=_COLUMNS)[_COLUMNS].to_numpy(dtype=np.float64)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: expected a table with the columns {', '.join(_COLUMNS)}, got: {error}"
        ) from None
    if len(table) < 2 or not np.isfinite(table).all() or not np.allclose(np.diff(table[:, 0]), 1.0):
        raise ValueError(
            f"{path}: expected a fix every second, got {len(table)} rows with gaps or too few"
        )
    return table[:, 0], table[:, 1:]
