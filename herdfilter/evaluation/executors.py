"""Where tasks are done: in this process, in others on this machine, or on a Dask cluster; and who gets which.

An executor has places that take one batch of tasks each. A worker stops after `BATCH_SECONDS` and hands back what it has
finished; the rest of its batch goes to the same place again, which has the recording and the reference of the run at hand.
"""

from __future__ import annotations

import math
import os
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

from herdfilter._checks import as_count, one_of
from herdfilter.evaluation.study import Outcome, Task

BATCH_SECONDS = 0.2
"""How long a worker goes on before it hands back what it has: what a power cut may lose, beside the tasks under way."""

Place = Hashable
Work = Callable[[Sequence[Task]], list[Outcome]]
"""Does tasks in turn and returns the outcomes of the first ones, at least one."""


@dataclass(frozen=True)
class Batch:
    """What came back from a place: the outcomes of its first tasks, or None if the process that did them has died."""

    place: Place
    tasks: Sequence[Task]
    outcomes: list[Outcome] | None


class Executor(Protocol):
    """Where tasks are done.

    Attributes
    ----------
    attempts : int
        How often a task alone may take a process down before it counts as failed.
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


class LocalProcesses:
    """Processes of this machine, by joblib's loky; each a pool of its own, so that a batch finds the process it wants."""

    attempts = 2

    def __init__(self, work: Work, workers: int) -> None:
        self._work = _Packed(work)
        self._pools = {place: _idle_pools.pop() if _idle_pools else _new_pool() for place in range(workers)}
        self._running: dict[Future[list[Outcome]], tuple[int, Sequence[Task]]] = {}

    def places(self) -> list[Place]:  # noqa: D102
        return list(self._pools)

    def submit(self, place: Any, tasks: Sequence[Task]) -> None:  # noqa: D102
        self._running[self._pools[place].submit(self._work, tasks)] = (place, tasks)

    def wait(self) -> list[Batch]:  # noqa: D102
        batches = []
        for future in wait(self._running, return_when=FIRST_COMPLETED).done:
            place, tasks = self._running.pop(future)
            try:
                outcomes = future.result()
            except BrokenProcessPool:
                outcomes = None
                self._pools[place].shutdown(wait=False, kill_workers=True)
                self._pools[place] = _new_pool()
            batches.append(Batch(place, tasks, outcomes))
        return batches

    def close(self) -> None:  # noqa: D102
        busy = {place for place, _ in self._running.values()}
        for place, pool in self._pools.items():
            if place in busy:
                pool.shutdown(wait=False, kill_workers=True)
            else:
                _idle_pools.append(pool)  # with what it has imported and compiled
        self._pools, self._running = {}, {}


_idle_pools: list[Any] = []
_IDLE_SECONDS = 300.0
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)


def _new_pool() -> Any:
    """Return a pool of one process, which is started when there is work and ends when there is none for long."""
    try:
        from loky import ProcessPoolExecutor
    except ImportError:  # joblib brings its own
        from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(
        1, timeout=_IDLE_SECONDS, env=_ONE_THREAD, initializer=_end_with, initargs=(os.getpid(),)
    )


def _end_with(parent: int) -> None:
    """Have this process end with its parent, even if that was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Cluster:
    """A Dask cluster: one that listens at an address, or one of `workers` processes on this machine.

    Raises
    ------
    ImportError
        If distributed is not installed.
    ConnectionError
        If nothing answers at the address, if there are no workers, or if the scheduler is lost.
    """

    attempts = 1  # after those that the scheduler makes

    def __init__(self, work: Work, scheduler: str, workers: int) -> None:
        distributed = _import_distributed()
        self._distributed = distributed
        self._work = _Packed(work)
        self._running: dict[Any, tuple[Place, Sequence[Task]]] = {}
        self._places: list[Place] = []
        self._looked = -math.inf
        self._own = None
        if scheduler == "dask":
            self._own = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs="ERROR",
            )
        try:
            self._client = distributed.Client(
                self._own or scheduler, timeout=_CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise ConnectionError(f"scheduler: nothing answers at {scheduler} ({error})") from error
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError:
            self.close()
            raise ConnectionError(f"scheduler: the cluster at {scheduler} has no workers") from None
        self._done = distributed.as_completed(loop=self._client.loop)

    def places(self) -> list[Place]:
        """Return a place for every thread of every worker."""
        if time.monotonic() > self._looked + 1:  # once a second is enough to see workers come and go
            self._places = [(worker, i) for worker, n in self._client.nthreads().items() for i in range(n)]
            self._looked = time.monotonic()
        return self._places

    def submit(self, place: Any, tasks: Sequence[Task]) -> None:  # noqa: D102
        future = self._client.submit(
            self._work,
            tasks,
            workers=[place[0]],
            allow_other_workers=True,
            pure=False,
            key=f"runs-{uuid.uuid4().hex}",
        )
        self._running[future] = (place, tasks)
        self._done.add(future)

    def wait(self) -> list[Batch]:  # noqa: D102
        batches = []
        for future in self._done.next_batch(block=True):
            place, tasks = self._running.pop(future)
            if future.status in ("cancelled", "lost"):
                self._running.clear()  # there is nobody to cancel it
                raise ConnectionError("scheduler: the connection to the cluster is lost")
            try:
                outcomes = future.result()
            except self._distributed.KilledWorker:
                outcomes = None
            batches.append(Batch(place, tasks, outcomes))
        return batches

    def close(self) -> None:  # noqa: D102
        if self._running:
            self._client.cancel(list(self._running))
        self._client.close()
        if self._own is not None:
            self._own.close()


_CONNECT_SECONDS = 15


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"scheduler: a Dask cluster needs the package distributed ({error}); install herdfilter[cluster]"
        ) from error
    return distributed


class _Packed:
    """A function pickled once, and unpickled once in each process; classes from a script or a notebook travel with it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        import cloudpickle

        self._token = uuid.uuid4().hex
        self._data = cloudpickle.dumps(function)

    def __call__(self, *arguments: Any) -> Any:
        import pickle

        function = _unpacked.get(self._token)
        if function is None:
            function = pickle.loads(self._data)
            _unpacked.clear()  # of an earlier study
            _unpacked[self._token] = function
        return function(*arguments)


_unpacked: dict[str, Callable[..., Any]] = {}


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
        _import_distributed()
        return scheduler
    if one_of("scheduler", scheduler, ("local", "dask", "tcp://host:port")) == "dask":
        _import_distributed()
    return scheduler


def make_executor(work: Work, scheduler: str, workers: int) -> Executor:
    """Return the executor for a scheduler that `check_scheduler` has passed."""
    workers = as_count("workers", workers)
    if scheduler != "local":
        return Cluster(work, scheduler, workers)
    return LocalProcesses(work, workers) if workers > 1 else InProcess(work)


def distribute(tasks: Iterable[Task], executor: Executor) -> Iterator[list[Outcome]]:
    """Have tasks done, run by run, and give their outcomes as they come, in any order.

    A run stays at one place, so that its recording and reference are made once, unless others would stand idle for longer
    than making them again takes. Tasks whose process died are tried again, each on its own, `Executor.attempts` times.
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
            time.sleep(0.1)  # every worker of the cluster has gone; the scheduler waits for others


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
            self.task_seconds += (
                0.1 * (outcome.seconds - self.task_seconds) if self.task_seconds else outcome.seconds
            )
            self.preparation = max(self.preparation, outcome.preparation)
        return back.outcomes

    def _after_death(self, tasks: Sequence[Task], attempts: int) -> list[Outcome]:
        if len(tasks) > 1:
            self.suspects.extend(tasks)
            return []
        self.deaths[tasks[0]] += 1
        if self.deaths[tasks[0]] < attempts:
            self.suspects.extend(tasks)
            return []
        text = "ProcessDied: the process that worked on it ended, killed or out of memory"
        return [Outcome(tasks[0], failed(text))]


def failed(
    error: str, traceback: str = "", reference: str = "", reference_sd: float = math.nan
) -> dict[str, Any]:
    """Return the row of a task that failed."""
    return {
        "reference": reference,
        "reference_sd": reference_sd,
        "diverged": True,
        "error": " ".join(error.split()),
        "traceback": traceback,
    }
