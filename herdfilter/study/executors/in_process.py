"""Tasks done here, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from herdfilter.study.executors.base import Batch, Place, Work
from herdfilter.study.tasks import Task


class InProcess:
    """One place: here."""

    attempts = 1

    def __init__(self, work: Work) -> None:
        self._work = work
        self._tasks: Sequence[Task] = ()

    def places(self) -> list[Place]:  # noqa: D102
        return ["here"]

    def submit(self, place: Place, tasks: Sequence[Task]) -> None:  # noqa: D102
        self._tasks = tasks

    def wait(self) -> list[Batch]:  # noqa: D102
        return [Batch("here", self._tasks, self._work(self._tasks))]

    def close(self) -> None:  # noqa: D102
        pass
