"""The loop of a batch run over a series of observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from herdfilter._checks import Array, check_methods
from herdfilter.filters.results import FilterResult
from herdfilter.models.series import Step

TimeSteps = float | Sequence[float] | Array
"""One time step for all observations, or one for each."""

Controls = Sequence[Any] | Array
"""Control inputs, one on the way to each observation."""


class Watcher(Protocol):
    """Looks at a filter while it runs, and changes nothing."""

    def predicted(self, online: Any, z: ArrayLike | None) -> None:
        """Look at a filter after its prediction, before its update with `z`."""

    def updated(self, online: Any) -> None:
        """Look at a filter after its update."""


def run(
    online: Any,
    steps: Sequence[Step],
    keep_particles: bool = False,
    watcher: Watcher | None = None,
    gate: float | None = None,
    collect: Callable[..., Any] = FilterResult.collect,
) -> Any:
    """Predict to, and update with, each observation in turn; where no time passes, only update.

    `collect` makes the result, by default a `FilterResult`, from the records, the model, the particles kept and the times.
    If an error is raised, its attribute ``result`` holds the steps completed.
    """
    if watcher is not None:
        check_methods("watcher", watcher, "predicted", "updated")
    gated = {} if gate is None else {"gate": gate}
    particle_sets: Any = [] if keep_particles and online.has_weights else None
    records: list[Any] = []
    times = [step.time for step in steps]
    try:
        for step in steps:
            if step.dt > 0:
                online.predict(step.dt, step.control)
            # the time as given; `predict` has added up rounded time steps
            online._clock = step.clock
            if watcher is not None:
                watcher.predicted(online, step.z)
            sensor = () if step.sensor is None else (step.sensor,)
            records.append(online.update(step.z, *sensor, **gated))
            if watcher is not None:
                watcher.updated(online)
            if particle_sets is not None:
                particle_sets.append((online.particles, online.weights, online.ancestors))
    # an interrupted run, too, keeps the steps completed
    except (Exception, KeyboardInterrupt) as error:
        error.result = collect(records, online.model, particle_sets, times)  # type: ignore[union-attr]
        raise
    return collect(records, online.model, particle_sets, times)
