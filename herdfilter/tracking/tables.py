"""Scans from a table with one row for each detection."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import as_array, as_list, short_repr
from herdfilter.models.sensors import Sensor
from herdfilter.models.series import ZERO, Reading

if TYPE_CHECKING:
    import pandas as pd


def scans_from_table(
    table: pd.DataFrame | str | PathLike[str],
    columns: Sequence[str],
    time: str = "time",
    times: Sequence[Any] | None = None,
    sensor: Sensor | None = None,
) -> list[Reading]:
    """Return the scans of a table with one row for each detection, as readings ``(time, sensor, scan)`` in order of time.

    `LMBTracker.run` takes the readings; those of several sensors as one list, with ``late="replay"``.

    Parameters
    ----------
    table : pandas.DataFrame or path
        The table, or a CSV file with a header. Rows of one time are a scan.
    columns : sequence of str, length m
        Columns of a detection's entries: finite numbers.
    time : str
        Column of times: numbers or dates, also as text (ISO 8601).
    times : sequence, optional
        Times of all scans. A scan without a detection has no row: only this list tells the tracker of it, and so of misses.
    sensor : Sensor, optional
        Sensor of the scans; the model's own observation functions unless given.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"time": [1.0, 1.0, 3.0], "x": [0.1, 7.0, 0.3]})
    >>> [(float(time), len(scan)) for time, _, scan in hf.tracking.scans_from_table(table, ["x"], times=[1, 2, 3])]
    [(1.0, 2), (2.0, 0), (3.0, 1)]
    """
    import pandas as pd

    if isinstance(table, str | PathLike):
        try:
            table = pd.read_csv(table)
        except (OSError, ValueError) as error:
            raise OSError(
                f"table: cannot read {short_repr(table)} ({short_repr(error, 200)})"
            ) from None
    if not isinstance(table, pd.DataFrame):
        raise TypeError(
            f"table: expected a pandas.DataFrame or the path of a CSV file, got {short_repr(table)}"
        )
    # A wrong column is named before any of the table is converted.
    names = as_list("columns", columns, "a list of the columns of a detection")
    if not names:
        raise ValueError("columns: expected at least one column of a detection, got none")
    if not isinstance(sensor, Sensor | None):
        raise TypeError(f"sensor: expected a Sensor or None, got {short_repr(sensor)}")
    for name in (*names, time):
        if not pd.api.types.is_hashable(name) or name not in table:
            raise ValueError(
                f"table: expected a column {name!r}, got the columns {short_repr(list(table))}"
            )
    # One column after the other, so that an error names the column.
    z = np.array([as_array(f"column {name!r}", table[name], (None,)) for name in names]).T
    # Time -> rows; a time of `times` without a row is a scan of misses.
    scans: dict[Any, list[int]] = {}
    if times is not None:
        column = pd.Series(as_list("times", times, "the times of all scans"))
        scans = {when: [] for when in _as_times("times", column)}
    for row, when in enumerate(_as_times(f"column {time!r}", table[time])):
        if times is not None and when not in scans:
            raise ValueError(
                f"times: expected the times of all scans, got none at {when}, the time of row {row}"
            )
        scans.setdefault(when, []).append(row)
    return [(when, sensor, z[scans[when]]) for when in sorted(scans)]


def _as_times(name: str, column: pd.Series) -> list[Any]:
    """Return the times of a column: numbers, dates, or dates as text."""
    import pandas as pd

    # Text is parsed strictly: a guess at the order of day and month would go unnoticed.
    times = column
    if column.dtype.kind not in "iufmM":
        times = pd.to_datetime(column, format="ISO8601", errors="coerce")
    if times.isna().any():
        row = int(np.argmax(times.isna()))
        raise ValueError(
            f"{name}: expected numbers or dates, got {short_repr(column.iloc[row])} in row {row}"
        )
    if times.dtype.kind == "f":
        ZERO.elapsed(times.to_numpy(), name)  # names times that a type of few bits has made equal
    return list(times)
