"""Series of observations, or of readings of sensors, with times and control inputs; and the clock of a filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, timedelta
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import (
    Array,
    as_any,
    as_array,
    as_list,
    as_numbers,
    as_positive,
    one_of,
    read_only,
    short_repr,
)
from herdfilter.models.sensors import Sensor

Reading = tuple[Any, Sensor | None, ArrayLike | None]
"""Time, sensor (None for the model's own observation functions) and observation."""

Late = Literal["raise", "replay"]
"""Treatment of a reading that arrives after a later one: refuse it, or insert it at its time."""

SECOND = np.timedelta64(1, "s")
# times the median time step: if the first step is longer, the user forgot the time of the state
LONGEST_START = 1000


class Clock(NamedTuple):
    """The time of a filter's state: a number, or a date and the seconds since then."""

    origin: Any = None  # date, None if times are numbers
    since: float = 0.0  # seconds since the origin
    zoned: bool = False  # True if dates have a time zone

    @classmethod
    def at(cls, start: Any) -> Clock:
        """Return a clock that shows this time: a number, a duration or a date."""
        entry = as_objects([start])
        if _kind(start) == "dates":
            return cls(_universal(entry)[0], zoned=_zoned(start))
        try:
            return cls(None, float(_seconds("start", entry)[0]))
        except ValueError:
            raise ValueError(
                f"start: expected a number, a duration or a date, got {short_repr(start)}; pandas.to_datetime converts texts"
            ) from None

    @property
    def time(self) -> Any:
        """The time that the clock shows; a date is a `numpy.datetime64` in universal time."""
        if self.origin is None:
            return self.since
        # dates are exact to the microsecond
        return self.origin + np.timedelta64(round(self.since * 1e6), "us")

    def later(self, dt: float) -> Clock:
        """Return the clock `dt` later."""
        return self._replace(since=self.since + dt)

    def elapsed(self, times: Any, name: str = "times", set_by_user: bool = True) -> Array:
        """Return times (T,) as numbers; durations in seconds, and dates in seconds since the origin.

        Raises ValueError if the clock shows another kind of time; if it was not `set_by_user` and is so far before the first
        time that the user must have forgotten to give `start`; or if times are equal because they are of type float32.
        """
        array = as_objects(times)
        kinds = {_kind(time) for time in array}
        if not kinds:
            return np.empty(0)
        if "texts" in kinds:
            raise ValueError(
                f"{name}: expected numbers, durations or dates, got the text {short_repr(times[0])}; pandas.to_datetime "
                "converts texts"
            )
        if len(kinds) > 1:
            raise ValueError(
                f"{name}: expected times of one kind, got {' and '.join(sorted(kinds))}"
            )
        if self.origin is None and kinds == {"dates"}:
            raise ValueError(
                f"start: expected the date of the state before, as {name} are dates, got the time {self.since:g}; the first "
                f"date is {short_repr(times[0])}"
            )
        if self.origin is not None and kinds != {"dates"}:
            raise ValueError(
                f"{name}: expected dates, as the filter stands at {self.time}, got {short_repr(times[0])}"
            )
        # sorted, as readings may come late
        since = _seconds(name, array, self.origin, self.zoned)
        gaps = np.diff(np.sort(since))
        usual = np.median(gaps[gaps > 0]) if gaps.any() else 1.0
        unset = not set_by_user and self.origin is None
        if unset and gaps.any() and since.min() - self.since > LONGEST_START * usual:
            raise ValueError(
                "start: expected the time of the filter's state, as the first step is over "
                f"{LONGEST_START} times the median of the others, {since.min() - self.since:g} and {usual:g}; got None: "
                f"give it, {self.since:g} if that is right, or count times from it"
            )
        # float32 holds seconds since 1970 to two minutes
        if array.dtype in (np.float16, np.float32) and (gaps == 0).any():
            spacing = np.spacing(np.abs(array).max())
            if spacing > usual / LONGEST_START:
                raise ValueError(
                    f"{name}: expected times of type float64, got equal ones of type {array.dtype}, which tells no "
                    f"{spacing:g} apart; count them from a later zero"
                )
        return since


ZERO = Clock()


class Timed:
    """A filter with a clock."""

    _clock = ZERO

    @property
    def time(self) -> Any:
        """Time of the state: a number that starts at 0 and grows by `dt`, or a date (universal) if a run began at one."""
        return self._clock.time


class Step(NamedTuple):
    """A step of a series: its observation, the time since the step before, and the control input between the two.

    If no time passes, it is the same step observed once more.
    """

    z: ArrayLike | None
    dt: float
    control: Any
    sensor: Sensor | None = None
    time: Any = None
    clock: Clock = ZERO


def series(
    observations: Iterable[Any],
    dt: float | Sequence[float] | Array | None = None,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
    start: Any = None,
    late: Late = "raise",
    name: str = "observations",
) -> list[Step]:
    """Combine T observations with their time steps and control inputs; all are checked before the first step is taken.

    A table, of pandas for example, is read by rows; dates in its index are the times unless `dt` or `times` is given.
    Readings are sorted by their times, if `late` allows it. `start` is the time of the filter's state as the user gives it,
    or its clock. Raises ValueError if lengths, time steps or times do not fit.
    """
    one_of("late", late, ("raise", "replay"))
    set_by_user = start is not None and not isinstance(start, Clock)
    clock = Clock.at(start) if set_by_user else (start or ZERO)
    if dt is None and times is None:
        times = own_times(observations)
        # Dates alone do not say when the filter's state was: without it the first time step is unknown.
        if times is not None and clock.origin is None and "dates" in map(_kind, times):
            raise ValueError(
                f"{name}: have dates, from {times[0]} on; give the date of the filter's state as start to use them, or "
                "dt=1.0 for equal steps"
            )
    observations = as_list(name, observations)
    steps = len(observations)
    inputs = [None] * steps
    if controls is not None:
        inputs = [as_control(control) for control in as_list("controls", controls)]
    if len(inputs) != steps:
        raise ValueError(f"controls: expected one per step, {steps}, got {len(inputs)}")
    sensors: Sequence[Any] = [None] * steps
    order = np.arange(steps)
    from_readings = any(is_reading(name, entry) for entry in observations)
    if from_readings:
        if times is not None or dt is not None:
            raise ValueError(
                f"{name}: expected readings, which have times, or times or dt; got both"
            )
        for k, entry in enumerate(observations):
            # among readings the sensor of a list may be None, too
            if not is_reading(name, tuple(entry) if isinstance(entry, list) else entry):
                raise ValueError(
                    f"{name}: expected readings (time, sensor, z) throughout, got {short_repr(entry)} at place {k}"
                )
        times, sensors, observations = zip(*observations, strict=True)
    if times is None:
        dts = _time_steps(1.0 if dt is None else dt, steps)
        since: Array = clock.since + np.cumsum(dts)
    else:
        if dt is not None:
            raise ValueError("times: expected either times or dt, got both")
        times = as_list("times", times)
        if len(times) != steps:
            first = "; the time of the filter's state is start" if len(times) == steps + 1 else ""
            raise ValueError(f"times: expected one per step, {steps}, got {len(times)}{first}")
        since = clock.elapsed(times, set_by_user=set_by_user)
        if from_readings:
            # several readings may have one time: they keep the order in which they came
            order = np.argsort(since, kind="stable")
        dts = np.diff(since[order], prepend=clock.since)
    clocks = [clock._replace(since=value) for value in since.tolist()]
    times = [entry.time for entry in clocks] if times is None else times
    if late == "raise" and (np.diff(order) < 0).any():
        k = int(np.argmax(np.diff(since) < 0)) + 1
        raise ValueError(
            f"{name}: expected readings in the order of their times, got {times[k]} after {times[k - 1]} at place {k}; "
            "late='replay' inserts late ones at their times"
        )
    if from_readings and dts[0] < 0:
        raise ValueError(
            f"{name}: expected readings not before the time of the filter's state, {clock.time}, got the time "
            f"{times[order[0]]}; give that of the state as start"
        )
    # the first time may be that of the filter's state, which is then observed itself
    wrong = np.flatnonzero((dts < 0) | ((dts == 0) & (order > 0)))
    if len(wrong) and not from_readings:
        k = wrong[0]
        before = short_repr(times[k - 1]) if k else f"{clock.time}, the time of the filter's state,"
        raise ValueError(
            f"times: expected increasing times, got {short_repr(times[k])} after {before} at step {k + 1}; readings "
            "(time, sensor, z) may have the same time"
        )
    return [
        Step(observations[k], value, inputs[k], sensors[k], times[k], clocks[k])
        for k, value in zip(order.tolist(), dts.tolist(), strict=True)
    ]


def own_times(observations: Any) -> list[Any] | None:
    """Return the times in the index of a table of pandas, or the coordinate of an array of xarray; None if it has none."""
    # duck-typed, so that neither pandas nor xarray needs to be installed
    index: Any = getattr(observations, "index", None)
    # an index of periods becomes their starts
    index = getattr(index, "to_timestamp", lambda: index)()
    dims = getattr(observations, "dims", ())
    if dims and hasattr(observations, "coords"):
        index = observations.coords.get(dims[0])
    kind = getattr(getattr(index, "dtype", None), "kind", None)
    if not (kind in ("M", "m") or (kind in ("i", "f") and dims[:1] == ("time",))):
        return None
    return list(index.to_numpy() if getattr(index, "tz", None) is None else index)


def as_control(control: Any) -> Any:
    """Return a control input; a list of numbers as an array."""
    if isinstance(control, list | tuple):
        control = np.array(as_numbers("control", control, (None,)))
    return read_only(control)


def _time_steps(dt: Any, steps: int) -> Array:
    """Return the time before each step; 0 before the first one means that the present state is observed."""
    dts = as_any("dt", dt)
    if dts.ndim == 0:
        return np.full(steps, as_duration("dt", dt))
    if len(dts) != steps:
        raise ValueError(f"dt: expected one per step, {steps}, got {len(dts)}")
    # only the first may be 0: later steps of no duration need readings, which say what observes them
    first = 1 if steps and dts[0] in (0, timedelta(0)) else 0
    later = [
        as_duration(f"dt of step {k}", value) for k, value in enumerate(dts[first:], first + 1)
    ]
    return np.array([0.0] * first + later)


def is_reading(name: str, entry: Any) -> bool:
    """Return True if an entry is (time, sensor, observation); only in a tuple may the sensor be None."""
    if not isinstance(entry, tuple | list) or len(entry) != 3:
        return False
    if isinstance(entry[1], str):
        raise ValueError(
            f"{name}: expected a herdfilter.Sensor in readings (time, sensor, z), got {short_repr(entry)}"
        )
    return isinstance(entry[1], Sensor) or (isinstance(entry, tuple) and entry[1] is None)


def as_duration(name: str, value: Any) -> float:
    """Return a time step as a positive finite number; a `timedelta`, of Python, NumPy or pandas, in seconds."""
    try:
        if isinstance(value, timedelta):
            return as_positive(name, value.total_seconds())
        if isinstance(value, np.timedelta64):
            return as_positive(name, float(value / SECOND))
        return as_positive(name, value)
    except (TypeError, ValueError) as error:  # NumPy's months and years have no fixed length
        text = str(error)
        if isinstance(value, timedelta | np.timedelta64):
            text = f"{name}: expected a positive duration, got {short_repr(value)}"
        if isinstance(value, Real | timedelta | np.timedelta64) and not value:
            text += "; for another reading at the same time call update(z, sensor=...), or run readings (time, sensor, z)"
        raise ValueError(text) from None


def _seconds(name: str, array: np.ndarray, origin: Any = None, zoned: bool = False) -> Array:
    """Return times (T,) as numbers: durations in seconds, dates in seconds since an origin, which may have a time zone."""
    if origin is not None:
        mismatched = [time for time in array if _zoned(time) != zoned]
        if mismatched:
            zone = "a" if zoned else "no"
            raise ValueError(
                f"{name}: expected dates with {zone} time zone, as start has, got {short_repr(mismatched[0])}"
            )
        array = _universal(array) - origin
    elif len(array) and _kind(array[0]) == "durations":
        finest = np.result_type(array.dtype, "m8[us]") if array.dtype.kind == "m" else "m8[us]"
        array = array.astype(finest)
    return as_array(name, array / SECOND if array.dtype.kind == "m" else array, (None,))


def _zoned(time: Any) -> bool:
    return getattr(time, "tzinfo", None) is not None


def _kind(time: Any) -> str:
    if isinstance(time, str | bytes):
        return "texts"
    if isinstance(time, date | np.datetime64):
        return "dates"
    return "durations" if isinstance(time, timedelta | np.timedelta64) else "numbers"


def _universal(dates: np.ndarray) -> np.ndarray:
    """Convert dates to NumPy's, in universal time if they have a zone, with a resolution of a microsecond or finer."""
    if dates.dtype.kind == "M":
        return dates.astype(np.result_type(dates.dtype, "M8[us]"))
    universal = [
        entry.astimezone(UTC).replace(tzinfo=None) if _zoned(entry) else entry for entry in dates
    ]
    return np.array(universal, dtype=object).astype("M8[us]")


def as_objects(times: Sequence[Any]) -> np.ndarray:
    """Return times as a one-dimensional array: of numbers or NumPy's dates if all of them are, else of objects."""
    entries = list(times)
    if all(isinstance(time, int | float | np.generic) for time in entries):
        return np.array(entries)
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array
