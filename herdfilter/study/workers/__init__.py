"""Where tasks are done: in this process, in children of it, or on a Dask cluster whose workers have such children.

An executor has places that take one batch of tasks each. A worker stops after `BATCH_SECONDS` and hands back what it has
finished; the rest of its batch goes to the same place again, which has the recording and the reference of the run at hand.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from herdfilter._checks import check_count, one_of
from herdfilter.study.tasks import Task, TaskResult, failure_row
from herdfilter.study.workers.child import BATCH_SECONDS, Batch, ChildWork, LocalProcesses, Work, end_idle_processes
from herdfilter.study.workers.cluster import Cluster, import_distributed

__all__ = ["end_idle_processes"]

_log = logging.getLogger(__name__)

ATTEMPTS = 2
"""How often a task alone may take a process down before it counts as failed."""

Slot = Hashable
"""A place of an executor, which takes one batch at a time."""


class Executor(Protocol):
    """Where tasks are done."""

    def places(self) -> Sequence[Slot]:
        """Return all places, busy or not; they may change while work goes on."""

    def submit(self, place: Slot, tasks: Sequence[Task]) -> None:
        """Give work to a place that has none."""

    def wait(self) -> list[Batch]:
        """Wait until some batches are done, and return them; what work raises is raised here."""

    def close(self) -> None:
        """Give up what is under way."""


class InProcess:
    """One place: here, one batch after the other."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._tasks: Sequence[Task] = ()

    def places(self) -> Sequence[Slot]:
        return ["here"]

    def submit(self, place: Slot, tasks: Sequence[Task]) -> None:
        self._tasks = tasks

    def wait(self) -> list[Batch]:
        return [Batch("here", self._tasks, self._work(self._tasks))]

    def close(self) -> None:
        pass


def check_scheduler(scheduler: str | None) -> str:
    """Return the scheduler if it is one: ``local``, ``dask`` or an address such as ``tcp://host:8786``."""
    if scheduler is None:
        return "local"
    if isinstance(scheduler, str) and "://" in scheduler:
        protocol, _, address = scheduler.partition("://")
        one_of("scheduler: protocol", protocol, ("tcp", "tls", "ucx", "ws", "wss"))
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"scheduler: expected an address such as tcp://host:8786, got {scheduler!r}")
        import_distributed()
        return scheduler
    if one_of("scheduler", scheduler, ("local", "dask", "tcp://host:port")) == "dask":
        import_distributed()
    return scheduler


def make_executor(work: Work, scheduler: str, workers: int, run_timeout: float | None = None) -> Executor:
    """Return the executor for a scheduler that `check_scheduler` has passed.

    With a limit of time the work is done by children even for one worker, because they can be killed.
    """
    workers = check_count("workers", workers)
    if scheduler != "local":
        return Cluster(ChildWork(work, run_timeout), scheduler, workers)
    if workers > 1 or run_timeout is not None:
        return LocalProcesses(work, workers, run_timeout)
    return InProcess(work)


def distribute(tasks: Iterable[Task], executor: Executor) -> Iterator[list[TaskResult]]:
    """Have tasks done, run by run, and give their results as they come, in any order.

    A run stays at one place, so that its recording and reference are made once, unless others would stand idle for longer
    than making them again takes. Tasks whose process died are tried again, each on its own, `ATTEMPTS` times.
    """
    plan = _Plan(tasks)
    busy: set[Slot] = set()
    done: list[list[TaskResult]] = []
    while plan or busy or done:
        places = executor.places()
        free = [place for place in places if place not in busy]
        for place, batch in plan.assign(free, places).items():
            executor.submit(place, batch)
            busy.add(place)
        yield from done  # whoever stores them keeps no place waiting
        done = []
        if busy:
            for back in executor.wait():
                busy.discard(back.place)
                results = plan.take_back(back)
                if results:
                    done.append(results)
        elif plan:
            time.sleep(0.1)  # every worker of the cluster has gone; others may come


@dataclass
class _Plan:
    """Which place does which tasks next."""

    tasks: Iterable[Task]
    queue: deque[list[Task]] = field(default_factory=deque)
    """Tasks of runs that nobody has begun."""
    rests: dict[Slot, list[Task]] = field(default_factory=dict)
    """Place -> what it handed back undone."""
    suspects: deque[Task] = field(default_factory=deque)
    """Tasks whose process died: each alone, to find the one that did it."""
    deaths: Counter[Task] = field(default_factory=Counter)
    task_seconds: float = 0.0
    preparation: float = 0.0

    def __post_init__(self) -> None:
        self.queue.extend(list(group) for _, group in groupby(self.tasks, key=lambda task: task.run))

    def __bool__(self) -> bool:
        return bool(self.queue or self.rests or self.suspects)

    def assign(self, free: Sequence[Slot], places: Sequence[Slot]) -> dict[Slot, list[Task]]:
        """Return batches for free places."""
        for place in [place for place in self.rests if place not in places]:  # a worker that has gone
            self.queue.appendleft(self.rests.pop(place))
        batches: dict[Slot, list[Task]] = {}
        for place in free:
            if place in self.rests:
                batches[place] = self.rests.pop(place)
            elif self.suspects:
                batches[place] = [self.suspects.popleft()]
            elif self.queue:
                batches[place] = self._next_runs(len(places))
        for place in free:
            if place not in batches and batches:
                self._share(batches, place)
        return batches

    def _next_runs(self, places: int) -> list[Task]:
        """Whole runs for about one batch, but no more than a fair part of what is left."""
        batch = self.queue.popleft()
        for _ in range(len(self.queue) // (2 * places)):
            if not self.task_seconds or self.task_seconds * len(batch) > BATCH_SECONDS:
                break
            batch = batch + self.queue.popleft()
        return batch

    def _share(self, batches: dict[Slot, list[Task]], idle: Slot) -> None:
        """Give half of the largest batch to an idle place, if it takes longer than preparing its run again."""
        donor = max(batches, key=lambda place: len(batches[place]))
        half = len(batches[donor]) // 2
        if half * self.task_seconds > self.preparation + 0.01:
            batches[idle] = batches[donor][-half:]
            batches[donor] = batches[donor][:-half]

    def take_back(self, back: Batch) -> list[TaskResult]:
        """Keep the tasks that are undone, and return the results of the others."""
        if back.results is None:
            return self._after_death(back.tasks)
        rest = list(back.tasks[len(back.results) :])
        if rest:
            self.rests[back.place] = rest
        for result in back.results:
            self.task_seconds += 0.1 * (result.seconds - self.task_seconds) if self.task_seconds else result.seconds
            self.preparation = max(self.preparation, result.preparation)
        return back.results

    def _after_death(self, tasks: Sequence[Task]) -> list[TaskResult]:
        _log.warning("a process died with %d runs to make; they are tried again, each on its own", len(tasks))
        if len(tasks) > 1:
            self.suspects.extend(tasks)
            return []
        self.deaths[tasks[0]] += 1
        if self.deaths[tasks[0]] < ATTEMPTS:
            self.suspects.extend(tasks)
            return []
        text = "ProcessDied: the process that worked on it ended, killed or out of memory"
        return [TaskResult(tasks[0], failure_row(text))]
