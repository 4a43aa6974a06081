"""Times and time steps as numbers: dates and durations are taken in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_any, as_array, as_positive, short_repr

SECOND = np.timedelta64(1, "s")


def as_duration(name: str, value: Any) -> float:
    """Return a time step as a positive finite number; a `timedelta`, of Python, NumPy or pandas, in seconds."""
    try:
        if isinstance(value, timedelta):
            return as_positive(name, value.total_seconds())
        if isinstance(value, np.timedelta64):
            return as_positive(name, float(value / SECOND))
    except (TypeError, ValueError):  # months and years have no length
        raise ValueError(f"{name}: expected a positive duration, got {short_repr(value)}") from None
    return as_positive(name, value)


def since_start(times: ArrayLike, steps: int, name: str = "times") -> Array:
    """Return the time of each step (T,), where the filter now stands at time 0.

    Dates are one more than steps: the first is that of the state where the filter stands, from which seconds are counted.
    """
    array = as_any(name, times)
    if array.ndim == 1 and array.size and _all(array, date, "M"):
        if len(array) != steps + 1:
            raise ValueError(
                f"{name}: expected {steps + 1} dates, of the state where the filter stands and of each step, "
                f"got {len(array)}"
            )
        instants = _in_one_zone(array)
        numbers = (instants[1:] - instants[0]) / SECOND
    elif array.ndim == 1 and array.size and _all(array, timedelta, "m"):
        numbers = array.astype(np.result_type(array.dtype, "m8[us]") if array.dtype.kind == "m" else "m8[us]") / SECOND
    else:
        numbers = as_array(name, times, (None,))
    if len(numbers) != steps:
        raise ValueError(f"{name}: expected one per step, {steps}, got {len(numbers)}")
    return as_array(name, numbers, (None,))


def elapsed(times: Sequence[Any], start: Any, name: str = "times") -> Array:
    """Return the times of readings (T,) since `start`: numbers as they are, durations and dates in seconds."""
    array = as_objects(times)
    kinds = {_kind(time) for time in array}
    if len(kinds) > 1:
        raise ValueError(f"{name}: expected times of one kind, got {' and '.join(sorted(kinds))}")
    if _all(array, date, "M"):
        if start is None:
            raise ValueError(
                f"start: expected the date of the state where the filter stands, as readings have dates; got None, and "
                f"{short_repr(times[0])} as the first date"
            )
        return since_start(as_objects([start, *times]), len(times))
    origin = since_start(as_objects([0.0 if start is None else start]), 1, "start")[0]
    return since_start(array, len(times), name) - origin


def _kind(time: Any) -> str:
    if isinstance(time, date | np.datetime64):
        return "dates"
    return "durations" if isinstance(time, timedelta | np.timedelta64) else "numbers"


def as_objects(times: Sequence[Any]) -> np.ndarray:
    """Return times as an array in one dimension: of numbers or NumPy's dates if all are, else of objects."""
    array = np.empty(len(times), dtype=object)
    array[:] = list(times)
    of_numpy = all(isinstance(time, int | float | np.generic) for time in array)
    return np.array(list(array)) if of_numpy and len(array) else array


def _all(array: np.ndarray, kind: type, code: str) -> bool:
    """Whether all entries are dates, or durations: of NumPy, or objects of a kind."""
    return array.dtype.kind == code or (array.dtype.kind == "O" and all(isinstance(entry, kind) for entry in array))


def _in_one_zone(dates: np.ndarray) -> np.ndarray:
    """Dates as those of NumPy, to the microsecond at least; refused if their time zones differ."""
    if dates.dtype.kind == "M":
        return dates.astype(np.result_type(dates.dtype, "M8[us]"))
    zones = {getattr(entry, "tzinfo", None) for entry in dates}
    if len(zones) > 1:
        raise ValueError(
            f"times: expected dates of one time zone, got {', '.join(sorted(map(str, zones)))}; convert them to one"
        )
    if zones != {None}:
        dates = np.array([_plain(entry) for entry in dates], dtype=object)
    return dates.astype("M8[us]")


def _plain(moment: datetime) -> datetime:
    """Return the same moment in universal time, without its saying so: NumPy knows no zones."""
    return moment.astimezone(UTC).replace(tzinfo=None)
