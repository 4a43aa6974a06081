"""Who gets which tasks next."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from herdfilter.study.executors.base import BATCH_SECONDS, Batch, Executor, Place
from herdfilter.study.tasks import Outcome, Task, failed

_log = logging.getLogger(__name__)


def distribute(tasks: Iterable[Task], executor: Executor) -> Iterator[list[Outcome]]:
    """Have tasks done, run by run, and give their outcomes as they come, in any order.

    A run stays at one place, so that its recording and reference are made once, unless others would stand idle for longer
    than making them again takes. Tasks whose process died are tried again, each on its own, `Executor.attempts` times.

    Examples
    --------
    >>> from herdfilter.study.executors import distribute, make_executor
    >>> from herdfilter.study.tasks import Outcome, Task
    >>> def work(tasks):
    ...     return [Outcome(task, {"error": ""}, {}, {}, 0.0, 0.0) for task in tasks]
    >>> tasks = [Task("bootstrap", 20, run) for run in range(3)]
    >>> batches = distribute(tasks, make_executor(work, "local", workers=1))
    >>> [outcome.task.run for batch in batches for outcome in batch]
    [0, 1, 2]
    """
    plan = _Plan(tasks)
    busy: set[Place] = set()
    done: list[list[Outcome]] = []
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
                outcomes = plan.take_back(back, executor.attempts)
                if outcomes:
                    done.append(outcomes)
        elif plan:
            time.sleep(0.1)  # every worker of the cluster has gone; others may come


@dataclass
class _Plan:
    """Who does what next."""

    tasks: Iterable[Task]
    queue: deque[list[Task]] = field(default_factory=deque)
    """Tasks of runs that nobody has begun."""
    rests: dict[Place, list[Task]] = field(default_factory=dict)
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

    def assign(self, free: Sequence[Place], places: Sequence[Place]) -> dict[Place, list[Task]]:
        """Return batches for free places."""
        for place in [place for place in self.rests if place not in places]:  # a worker that has gone
            self.queue.appendleft(self.rests.pop(place))
        batches: dict[Place, list[Task]] = {}
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

    def _share(self, batches: dict[Place, list[Task]], idle: Place) -> None:
        """Give half of the largest batch to an idle place, if it takes longer than preparing its run again."""
        donor = max(batches, key=lambda place: len(batches[place]))
        half = len(batches[donor]) // 2
        if half * self.task_seconds > self.preparation + 0.01:
            batches[idle] = batches[donor][-half:]
            batches[donor] = batches[donor][:-half]

    def take_back(self, back: Batch, attempts: int) -> list[Outcome]:
        """Keep what is undone, and return the outcomes of what is done."""
        if back.outcomes is None:
            return self._after_death(back.tasks, attempts)
        rest = list(back.tasks[len(back.outcomes) :])
        if rest:
            self.rests[back.place] = rest
        for outcome in back.outcomes:
            self.task_seconds += 0.1 * (outcome.seconds - self.task_seconds) if self.task_seconds else outcome.seconds
            self.preparation = max(self.preparation, outcome.preparation)
        return back.outcomes

    def _after_death(self, tasks: Sequence[Task], attempts: int) -> list[Outcome]:
        _log.warning("a process died with %d runs to make; they are tried again, each on its own", len(tasks))
        if len(tasks) > 1:
            self.suspects.extend(tasks)
            return []
        self.deaths[tasks[0]] += 1
        if self.deaths[tasks[0]] < attempts:
            self.suspects.extend(tasks)
            return []
        text = "ProcessDied: the process that worked on it ended, killed or out of memory"
        return [Outcome(tasks[0], failed(text))]
