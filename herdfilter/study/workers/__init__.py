"""Executors do tasks in this process, in children of it, or on a Dask cluster whose workers have such children.

Each place of an executor takes one batch of tasks at a time. A worker stops after `BATCH_SECONDS` and hands back the results
so far; the rest of its batch goes to the same place again, which has the recording and the reference of the run at hand.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from herdfilter._checks import one_of
from herdfilter.study.tasks import Task, TaskResult, failure_row
from herdfilter.study.workers.child import BATCH_SECONDS, Batch, ChildWork, LocalProcesses, Work
from herdfilter.study.workers.cluster import Cluster, import_distributed

_log = logging.getLogger(__name__)

ATTEMPTS = 2  # number of processes that a task may take down, alone in each, before it counts as failed


class InProcess:
    """Does one batch after the other in this process; every executor has these methods."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._tasks: Sequence[Task] = ()

    def places(self) -> list[Any]:
        """Return all places, busy or not; they may change in time."""
        return ["here"]

    def submit(self, place: Any, tasks: Sequence[Task]) -> None:
        """Give a batch to a free place."""
        self._tasks = tasks

    def wait(self) -> list[Batch]:
        """Wait until some batches are done, and return them; raise the errors of the work itself."""
        return [Batch("here", self._tasks, self._work(self._tasks))]

    def close(self) -> None:
        """Give up the batches under way."""


Executor = InProcess | LocalProcesses | Cluster


def check_scheduler(scheduler: str | None) -> str:
    """Check a scheduler: ``local`` (or None), ``dask`` or an address such as ``tcp://host:8786``."""
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
    """Return the executor for a checked scheduler; with a limit of time children do the work, because they can be killed."""
    if scheduler != "local":
        return Cluster(ChildWork(work, run_timeout), scheduler, workers)
    if workers > 1 or run_timeout is not None:
        return LocalProcesses(work, workers, run_timeout)
    return InProcess(work)


def distribute(tasks: Iterable[Task], executor: Executor) -> Iterator[list[TaskResult]]:
    """Distribute tasks over the places of an executor, run by run, and yield their results in any order.

    A run stays at one place, so that its recording and reference are made once, unless other places would be idle for longer
    than it takes to make them again. Tasks whose process died are tried again alone, up to `ATTEMPTS` times.
    """
    plan = _Plan(tasks)
    busy: set[Any] = set()
    done: list[list[TaskResult]] = []
    while plan or busy or done:
        places = executor.places()
        free = [place for place in places if place not in busy]
        for place, batch in plan.assign(free, places).items():
            executor.submit(place, batch)
            busy.add(place)
        yield from done  # the places work while the caller stores them
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
    """Decides the next tasks of each place."""

    tasks: Iterable[Task]
    queue: deque[list[Task]] = field(default_factory=deque)
    """Tasks of each run that no place has begun."""
    rests: dict[Any, list[Task]] = field(default_factory=dict)
    """Place -> tasks that it handed back undone."""
    suspects: deque[Task] = field(default_factory=deque)
    """Tasks whose process died: each is tried alone, to find the one that kills it."""
    deaths: Counter[Task] = field(default_factory=Counter)
    task_seconds: float = 0.0
    preparation: float = 0.0

    def __post_init__(self) -> None:
        self.queue.extend(list(group) for _, group in groupby(self.tasks, key=lambda task: task.run))

    def __bool__(self) -> bool:
        return bool(self.queue or self.rests or self.suspects)

    def assign(self, free: Sequence[Any], places: Sequence[Any]) -> dict[Any, list[Task]]:
        """Return batches for free places."""
        for place in [place for place in self.rests if place not in places]:  # a worker that has gone
            self.queue.appendleft(self.rests.pop(place))
        batches: dict[Any, list[Task]] = {}
        for place in free:
            if place in self.rests:
                batches[place] = self.rests.pop(place)
            elif self.suspects:
                batches[place] = [self.suspects.popleft()]
            elif self.queue:
                batches[place] = self._next_runs(len(places))
        for idle in free:
            if idle not in batches and batches:  # half of the largest batch, if that pays for preparing its run again
                donor = max(batches, key=lambda place: len(batches[place]))
                half = len(batches[donor]) // 2
                if half * self.task_seconds > self.preparation + 0.01:
                    batches[idle], batches[donor] = batches[donor][-half:], batches[donor][:-half]
        return batches

    def _next_runs(self, places: int) -> list[Task]:
        """Return whole runs for about one batch, but no more than a fair part of the queue."""
        batch = self.queue.popleft()
        for _ in range(len(self.queue) // (2 * places)):
            if not self.task_seconds or self.task_seconds * len(batch) > BATCH_SECONDS:
                break
            batch = batch + self.queue.popleft()
        return batch

    def take_back(self, back: Batch) -> list[TaskResult]:
        """Keep the undone tasks of a batch, and return the results of the others."""
        if back.results is None:
            _log.warning("a process died with %d runs to make; they are tried again, each on its own", len(back.tasks))
            if len(back.tasks) == 1:
                self.deaths[back.tasks[0]] += 1
                if self.deaths[back.tasks[0]] >= ATTEMPTS:
                    text = "ProcessDied: the process that worked on it ended, killed or out of memory"
                    return [TaskResult(back.tasks[0], failure_row(text))]
            self.suspects.extend(back.tasks)
            return []
        rest = list(back.tasks[len(back.results) :])
        if rest:
            self.rests[back.place] = rest
        for result in back.results:
            self.task_seconds += 0.1 * (result.seconds - self.task_seconds) if self.task_seconds else result.seconds
            self.preparation = max(self.preparation, result.preparation)
        return back.results
