"""The loop of a batch run over a series of observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from herdfilter._checks import check_methods
from herdfilter.filters.results import FilterResult
from herdfilter.models.series import Step


class Watcher(Protocol):
    """Looks at a filter while it runs, and changes nothing."""

    def predicted(self, online: Any, z: ArrayLike | None) -> None:
        """Look at a filter that stands at its prediction, before it takes up `z`."""

    def updated(self, online: Any) -> None:
        """Look at a filter after its update."""


def run(
    online: Any,
    steps: Sequence[Step],
    keep_particles: bool = False,
    watcher: Watcher | None = None,
    gate: float | None = None,
    collect: Callable[..., Any] | None = None,
) -> Any:
    """Predict to, and update with, each observation in turn.

    Where no time passes there is an update alone. `collect` makes the result, a `FilterResult` unless given, from the
    records, the model, the particles kept and the times. If an error is raised, its attribute ``result`` holds the steps
    completed.
    """
    if watcher is not None:
        check_methods("watcher", watcher, "predicted", "updated")
    collect = FilterResult.collect if collect is None else collect
    gated = {} if gate is None else {"gate": gate}
    kept: list[tuple[Any, ...]] | None = [] if keep_particles and online.has_weights else None
    records: list[Any] = []
    times = [step.time for step in steps]
    try:
        for step in steps:
            if step.dt > 0:
                online.predict(step.dt, step.control)
            online._clock = step.clock
            if watcher is not None:
                watcher.predicted(online, step.z)
            sensor = () if step.sensor is None else (step.sensor,)
            records.append(online.update(step.z, *sensor, **gated))
            if watcher is not None:
                watcher.updated(online)
            if kept is not None:
                kept.append((online.particles, online.weights, online.ancestors))
    except (Exception, KeyboardInterrupt) as error:
        error.result = collect(records, online.model, kept, times)  # type: ignore[union-attr]
        raise
    return collect(records, online.model, kept, times)
