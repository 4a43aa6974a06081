"""The loop of a batch run over a series of observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from numpy.typing import ArrayLike

from herdfilter._checks import Array, check_methods
from herdfilter.filters.results import FilterResult
from herdfilter.models.contract import circular_dims
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
    dim: int,
    kept: list[tuple[Array, Array]] | None = None,
    watcher: Watcher | None = None,
    collect: Callable[..., Any] | None = None,
    predict: Callable[[float, Any], None] | None = None,
    update: Callable[..., Any] | None = None,
    gate: float | None = None,
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
    update = online.update if update is None else update
    gated = {} if gate is None else {"gate": gate}
    records: list[Any] = []
    times = [step.time for step in steps]
    try:
        for step in steps:
            if step.dt > 0:
                predict(step.dt, step.control)
            online._clock = step.clock
            if watcher is not None:
                watcher.predicted(online, step.z)
            records.append(update(step.z, *([] if step.sensor is None else [step.sensor]), **gated))
            if watcher is not None:
                watcher.updated(online)
            if kept is not None:
                kept.append((online.particles, online.weights))
    except (Exception, KeyboardInterrupt) as error:
        error.result = collect(records, times=times, dim=dim)  # type: ignore[union-attr]
        raise
    return collect(records, times=times, dim=dim)
