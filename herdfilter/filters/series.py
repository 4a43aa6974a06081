"""A series of observations: what every step of a batch run is given, and the loop over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, shown
from herdfilter.filters._times import as_duration, since_start
from herdfilter.filters.results import FilterResult, StepRecord


class Step(NamedTuple):
    """What leads to a step: the time since the step before, the control input on the way, the observation there."""

    z: ArrayLike | None
    dt: float
    control: Any


class Online(Protocol):
    """A filter that goes step by step."""

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Go to the next step."""
        ...

    def update(self, z: ArrayLike | None) -> StepRecord:
        """Take up the observation there."""
        ...


class Watcher(Protocol):
    """Looks at a filter while it runs, and changes nothing."""

    def predicted(self, online: Any, z: ArrayLike | None) -> None:
        """Look at a filter that stands at its prediction, before it takes up `z`."""
        ...

    def updated(self, online: Any) -> None:
        """Look at a filter after its update."""
        ...


def series(
    observations: Iterable[ArrayLike | None],
    dt: float | Sequence[float] | Array = 1.0,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
) -> list[Step]:
    """Bring a series of T observations together with its time steps and control inputs, checked before the first step.

    Tables of pandas and the like stand for their rows, whatever their columns and index are called.

    Raises
    ------
    ValueError
        If lengths differ, a time step is not positive, times do not increase, or both `dt` and `times` are given.
    """
    observations = _entries("observations", observations)
    steps = len(observations)
    if times is not None:
        dt = _intervals(times, dt, steps)
    dts: list[Any] = [dt] * steps if np.ndim(dt) == 0 else list(np.asarray(dt))
    inputs = [None] * steps if controls is None else _entries("controls", controls)
    for name, count in (("dt", len(dts)), ("controls", len(inputs))):
        if count != steps:
            raise ValueError(f"{name}: expected one per step, {steps}, got {count}")
    for k, value in enumerate(dts):
        try:
            dts[k] = as_duration("dt", value)
        except ValueError as error:
            raise ValueError(f"{error} before step {k + 1}") from None
    return [Step(z, dt, control) for z, dt, control in zip(observations, dts, inputs, strict=True)]


def _entries(name: str, values: Any) -> list[Any]:
    """Entries of a series, one per step: the rows of a table, where iteration gives the names of its columns."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    try:
        if isinstance(values, str | bytes | Mapping | Set):
            raise TypeError
        entries = iter(values)
    except TypeError:
        raise ValueError(
            f"{name}: expected a sequence with one entry per step, got {shown(values)}"
        ) from None
    return list(entries)


def _intervals(times: ArrayLike, dt: Any, steps: int) -> Array:
    """Time steps (T,) to the times (T,), the first from 0."""
    if np.ndim(dt) or dt != 1.0:
        raise ValueError("times: expected either times or dt, got both")
    numbers = since_start(times, steps)
    dts = np.diff(numbers, prepend=0.0)
    if (dts <= 0).any():
        k = int(np.argmax(dts <= 0))
        before = f"{numbers[k - 1]:g}" if k else "0, the initial state's,"
        raise ValueError(
            f"times: expected increasing times, got {numbers[k]:g} after {before} at step {k + 1}"
        )
    return dts


def run(
    online: Online,
    steps: Sequence[Step],
    dim: int,
    kept: list[tuple[Array, Array]] | None = None,
    watcher: Watcher | None = None,
) -> FilterResult:
    """Predict to, and update with, each observation in turn; `kept` collects particles and weights.

    Whatever goes wrong, the error's attribute ``result`` holds the steps completed.
    """
    records: list[StepRecord] = []
    try:
        for step in steps:
            online.predict(step.dt, step.control)
            if watcher is not None:
                watcher.predicted(online, step.z)
            records.append(online.update(step.z))
            if watcher is not None:
                watcher.updated(online)
            if kept is not None:
                kept.append((online.particles, online.weights))  # type: ignore[attr-defined]
    except (Exception, KeyboardInterrupt) as error:
        error.result = FilterResult.collect(records, dim, kept)  # type: ignore[union-attr]
        raise
    return FilterResult.collect(records, dim, kept)
