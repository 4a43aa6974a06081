"""What every executor is, and what goes to it and comes back."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from herdfilter.models.pickling import cloudpickle
from herdfilter.study.tasks import Outcome, Task

BATCH_SECONDS = 0.2
"""How long a worker goes on before it hands back what it has: what a power cut may lose, beside the tasks under way."""

Place = Hashable
Work = Callable[[Sequence[Task]], list[Outcome] | None]
"""Does tasks in turn and returns the outcomes of the first ones, at least one; None if a process of its own has died."""


@dataclass(frozen=True)
class Batch:
    """What came back from a place: the outcomes of its first tasks, or None if the process that did them has died.

    Examples
    --------
    >>> from herdfilter.study.executors import Batch
    >>> from herdfilter.study.tasks import Task
    >>> lost = Batch(place="worker 1", tasks=[Task("bootstrap", 20, run=0)], outcomes=None)
    >>> lost.outcomes is None  # its process has died
    True
    """

    place: Place
    tasks: Sequence[Task]
    outcomes: list[Outcome] | None


class Executor(Protocol):
    """Where tasks are done.

    Attributes
    ----------
    attempts : int
        How often a task alone may take a process down before it counts as failed.

    Examples
    --------
    >>> from herdfilter.study.executors import Batch, distribute
    >>> from herdfilter.study.tasks import Outcome, Task
    >>> class OneAfterTheOther:
    ...     attempts = 1
    ...
    ...     def places(self):
    ...         return ["here"]
    ...
    ...     def submit(self, place, tasks):
    ...         outcomes = [Outcome(task, {"error": ""}, {}, {}, 0.0, 0.0) for task in tasks]
    ...         self.done = [Batch(place, tasks, outcomes)]
    ...
    ...     def wait(self):
    ...         return self.done
    ...
    ...     def close(self):
    ...         pass
    >>> tasks = [Task("bootstrap", 20, run) for run in range(3)]
    >>> sum(len(batch) for batch in distribute(tasks, OneAfterTheOther()))
    3
    """

    attempts: int

    def places(self) -> list[Place]:
        """Return all places, busy or not; they may change while work goes on."""

    def submit(self, place: Place, tasks: Sequence[Task]) -> None:
        """Give work to a place that has none."""

    def wait(self) -> list[Batch]:
        """Wait until some batches are done, and return them; what work raises is raised here."""

    def close(self) -> None:
        """Give up what is under way."""


class Packed:
    """A function pickled once, and unpickled once in each process.

    Classes from a script or a notebook travel with it. Modules are looked up where this process would find them now:
    the other one may have started before their folder was put on `sys.path`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._token = uuid.uuid4().hex
        self._data = cloudpickle().dumps(function)
        self._path = [os.path.abspath(folder) for folder in sys.path]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function."""
        import pickle

        function = _unpacked.get(self._token)
        if function is None:
            sys.path.extend(folder for folder in self._path if folder not in sys.path)
            function = pickle.loads(self._data)
            _unpacked.clear()  # of an earlier study
            _unpacked[self._token] = function
        return function(*arguments, **options)


_unpacked: dict[str, Callable[..., Any]] = {}
