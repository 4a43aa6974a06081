"""A series of observations, or of readings of sensors, with their times, and the loop of a batch run over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_any, as_array, as_list, as_positive, check_methods, one_of, short_repr, unmasked
from herdfilter.filters.results import FilterResult, as_objects
from herdfilter.models.contract import circular_dims
from herdfilter.models.sensors import Sensor

Reading = tuple[Any, Sensor | None, ArrayLike | None]
"""Time, sensor (None for the model's own observation functions) and observation."""

Late = Literal["raise", "replay"]
"""What becomes of a reading that comes after a later one."""


class Step(NamedTuple):
    """What leads to a step: the time since the step before, the control input on the way, the observation there.

    Where no time passes the step is the one before, observed once more.
    """

    z: ArrayLike | None
    dt: float
    control: Any
    sensor: Sensor | None = None
    time: Any = None


class Watcher(Protocol):
    """Looks at a filter while it runs, and changes nothing."""

    def predicted(self, online: Any, z: ArrayLike | None) -> None:
        """Look at a filter that stands at its prediction, before it takes up `z`."""

    def updated(self, online: Any) -> None:
        """Look at a filter after its update."""


def series(
    observations: Iterable[Any],
    dt: float | Sequence[float] | Array = 1.0,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
    start: Any = None,
    late: Late = "raise",
    name: str = "observations",
) -> list[Step]:
    """Bring a series of T observations together with its time steps and control inputs, checked before the first step.

    Tables of pandas and the like stand for their rows, whatever their columns and index are called. Readings are put in the
    order of their times, where `late` allows it. ValueError if lengths, time steps or times do not fit.
    """
    observations, dt = as_list(name, observations), unmasked("dt", dt)
    steps = len(observations)
    inputs = [None] * steps if controls is None else as_list("controls", unmasked("controls", controls))
    one_of("late", late, ("raise", "replay"))
    if any(is_reading(entry) for entry in observations):
        if times is not None or as_any("dt", dt).ndim or dt != 1.0:
            raise ValueError("observations: expected readings, which have times, or times or dt; got both")
        if len(inputs) != steps:
            raise ValueError(f"controls: expected one per step, {steps}, got {len(inputs)}")
        return _of_readings(observations, inputs, start, late)
    if start is not None:
        raise ValueError(f"start: expected None for observations without times of their own, got {short_repr(start)}")
    if times is not None:
        dt = _intervals(times, dt, steps)
    dts: list[Any] = [dt] * steps if as_any("dt", dt).ndim == 0 else list(np.asarray(dt))
    for name, count in (("dt", len(dts)), ("controls", len(inputs))):
        if count != steps:
            raise ValueError(f"{name}: expected one per step, {steps}, got {count}")
    for k, value in enumerate(dts):
        try:
            dts[k] = dts[k - 1] if k and value is dt else as_duration("dt", value)  # one for all is checked once
        except ValueError as error:
            raise ValueError(f"{error} before step {k + 1}") from None
    given = list(np.cumsum(dts)) if times is None else list(np.asarray(times))[-steps:]
    return [Step(z, dt, control, None, time) for z, dt, control, time in zip(observations, dts, inputs, given, strict=True)]


def is_reading(entry: Any) -> bool:
    """Whether an entry is (time, sensor, observation), in a tuple if the sensor is None: a list may be of numbers."""
    return _is_triple(entry) and (isinstance(entry[1], Sensor) or (isinstance(entry, tuple) and entry[1] is None))


def _is_triple(entry: Any) -> bool:
    return isinstance(entry, tuple | list) and len(entry) == 3


def _of_readings(readings: Sequence[Any], controls: Sequence[Any], start: Any, late: Late) -> list[Step]:
    """Return steps of readings; those of the same time, in the order given, lead to one step."""
    for k, entry in enumerate(readings):
        if not (_is_triple(entry) and (entry[1] is None or isinstance(entry[1], Sensor))):
            raise ValueError(
                f"observations: expected readings (time, sensor, z) throughout, got {short_repr(entry)} at place {k}"
            )
    times = [entry[0] for entry in readings]
    since = elapsed(times, start)
    order = np.argsort(since, kind="stable")
    if late == "raise" and (order != np.arange(len(order))).any():
        k = int(np.argmax(np.diff(since) < 0)) + 1
        raise ValueError(
            f"observations: expected readings in the order of their times, got {times[k]} after {times[k - 1]} at place "
            f"{k}; late='replay' inserts late ones at their times"
        )
    dts = np.diff(since[order], prepend=0.0)
    if not dts[0] > 0:
        raise ValueError(
            f"observations: expected readings later than the filter's state, got the time {times[order[0]]}; "
            "give the time of the state as start"
        )
    return [Step(readings[k][2], float(dt), controls[k], readings[k][1], times[k]) for k, dt in zip(order, dts, strict=True)]


def _intervals(times: ArrayLike, dt: Any, steps: int) -> Array:
    """Time steps (T,) to the times (T,), the first from 0."""
    if as_any("dt", dt).ndim or dt != 1.0:
        raise ValueError("times: expected either times or dt, got both")
    numbers = since_start(times, steps)
    dts = np.diff(numbers, prepend=0.0)
    if (dts <= 0).any():
        k = int(np.argmax(dts <= 0))
        before = f"{numbers[k - 1]:g}" if k else "0, the initial state's,"
        raise ValueError(f"times: expected increasing times, got {numbers[k]:g} after {before} at step {k + 1}")
    return dts


def run(
    online: Any,
    steps: Sequence[Step],
    dim: int,
    kept: list[tuple[Array, Array]] | None = None,
    watcher: Watcher | None = None,
    collect: Callable[..., Any] | None = None,
    predict: Callable[[float, Any], None] | None = None,
) -> Any:
    """Predict to, and update with, each observation in turn; `kept` collects particles and weights.

    Where no time passes there is an update alone. `collect` makes the result, a `FilterResult` unless given, from the
    records, times and dimension. If an error is raised, its attribute ``result`` holds the steps completed.
    """
    if watcher is not None:
        check_methods("watcher", watcher, "predicted", "updated")
    if collect is None:
        model, positions = online.model, getattr(online.model, "position_dims", ())
        collect = partial(FilterResult.collect, kept=kept, circular=circular_dims(model), position_dims=positions)
    predict = online.predict if predict is None else predict
    records: list[Any] = []
    times = [step.time for step in steps]
    try:
        for step in steps:
            if step.dt > 0:
                predict(step.dt, step.control)
            if watcher is not None:
                watcher.predicted(online, step.z)
            records.append(online.update(step.z) if step.sensor is None else online.update(step.z, step.sensor))
            if watcher is not None:
                watcher.updated(online)
            if kept is not None:
                kept.append((online.particles, online.weights))
    except (Exception, KeyboardInterrupt) as error:
        error.result = collect(records, times=times, dim=dim)  # type: ignore[union-attr]
        raise
    return collect(records, times=times, dim=dim)


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
                f"{name}: expected {steps + 1} dates, for the filter's state and for each step, got {len(array)}"
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
                f"start: expected the date of the filter's state, as readings have dates, got None; the first date is "
                f"{short_repr(times[0])}"
            )
        return since_start(as_objects([start, *times]), len(times))
    origin: float = since_start(as_objects([0.0 if start is None else start]), 1, "start")[0]
    return since_start(array, len(times), name) - origin


def _kind(time: Any) -> str:
    if isinstance(time, date | np.datetime64):
        return "dates"
    return "durations" if isinstance(time, timedelta | np.timedelta64) else "numbers"


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
    if zones != {None}:  # NumPy knows no zones: universal time, without its saying so
        dates = np.array([entry.astimezone(UTC).replace(tzinfo=None) for entry in dates], dtype=object)
    return dates.astype("M8[us]")
