"""Workers: tasks are done in this process, in child processes, or on a Dask cluster whose workers have such children.

A `concurrent.futures.Executor`, of threads or of the cluster, gets a batch of tasks for every worker, and has a child
process do it (`in_child`). A child stops after `BATCH_SECONDS` and returns the results so far; the remaining tasks of its
batch are submitted again.
"""

from __future__ import annotations

import atexit
import faulthandler
import logging
import multiprocessing
import os
import pickle
import re
import signal
import sys
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import groupby
from typing import Any, Self

from joblib.externals import loky
from joblib.externals.loky.process_executor import ShutdownExecutorError
from numba.core import event

from herdfilter._checks import one_of
from herdfilter.filters.progress import compilation
from herdfilter.models.from_functions import cloudpickle
from herdfilter.study.tasks import Task, TaskResult, failure_row

# Time after which a worker returns its results; at most these and the current tasks can be lost.
BATCH_SECONDS = 0.2

# Number of processes that a task, alone in each, may kill before it counts as failed.
ATTEMPTS = 2

CONNECT_SECONDS = 15.0  # time to connect to a scheduler
LOOK_SECONDS = 0.5  # time after which workers are counted again
NOBODY_SECONDS = 60.0  # time that a cluster may have no workers
ROUNDS = 12  # times that one is asked for meanwhile
IDLE_SECONDS = 300.0  # time after which a child without work ends

LIBRARIES = (
    "OMP_NUM",
    "OPENBLAS_NUM",
    "MKL_NUM",
    "BLIS_NUM",
    "VECLIB_MAXIMUM",
    "NUMEXPR_NUM",
    "NUMBA_NUM",
)
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}

Work = Callable[..., list[TaskResult]]
"""``work(tasks)`` does some of the tasks, in turn and at least one, and returns their results.

With ``limit=seconds`` it ends its process with exit code 1 if a task takes longer (`Deadline`).
"""

_log = logging.getLogger(__name__)


def check_scheduler(scheduler: str | None) -> str:
    """Check and return a scheduler: ``local`` (or None), ``dask`` or an address such as ``tcp://host:8786``."""
    if scheduler in (None, "local"):
        return "local"
    if not isinstance(scheduler, str) or "://" not in scheduler:
        one_of("scheduler", scheduler, ("local", "dask", "tcp://host:port"))
    elif not re.fullmatch(r"(tcp|tls|ucx|wss?)://.+:\d+", scheduler):
        raise ValueError(
            f"scheduler: expected an address such as tcp://host:8786, got {scheduler!r}"
        )
    _import_distributed()
    return str(scheduler)


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"scheduler: a Dask cluster needs the package distributed ({error}); install herdfilter[cluster]"
        ) from error
    return distributed


def distribute(
    tasks: Sequence[Task],
    work: Work,
    scheduler: str = "local",
    count: int = 1,
    limit: float | None = None,
) -> Generator[list[TaskResult]]:
    """Have the workers of a checked scheduler do tasks, run by run, and yield their results in any order.

    With a limit in seconds children do the work, because they can be killed. A run stays with one child, which caches its
    recording and reference, unless another child would be idle. Tasks whose process died are tried again alone, up to
    `ATTEMPTS` times.
    """
    if scheduler == "local" and count == 1 and limit is None:
        while tasks:
            results = work(tasks)
            yield results
            tasks = tasks[len(results) :]
        return
    runs = deque(list(group) for _, group in groupby(tasks, key=lambda task: task.run))
    batches: deque[list[Task]] = deque()
    running: dict[Future[list[TaskResult] | None], list[Task]] = {}
    finished: list[list[TaskResult]] = []
    deaths: Counter[Task] = Counter()
    packed = Packed(work if limit is None else partial(work, limit=limit))
    opened = _threads(packed.token, count) if scheduler == "local" else _cluster(scheduler, count)
    with opened as (executor, count_workers, fatal_errors):
        try:
            while runs or batches or running or finished:
                workers = count_workers()
                while len(running) < workers and (batches or runs):
                    batch = batches.popleft() if batches else []
                    # Several runs in a batch save transfers while there are many; towards the end they are spread out.
                    for _ in range(0 if batch else max(1, len(runs) // (2 * workers))):
                        batch += runs.popleft()
                    if not batches and not runs and len(running) + 1 < workers and len(batch) > 1:
                        half = len(batch) // 2  # for a worker that would be idle
                        batches.append(batch[half:])
                        batch = batch[:half]
                    running[executor.submit(in_child, packed, batch, limit)] = batch
                yield from finished  # while the caller stores them, the workers work
                finished = []
                for future in wait(running, LOOK_SECONDS, FIRST_COMPLETED).done:
                    batch = running.pop(future)
                    try:
                        results = future.result() or []
                    except CancelledError:
                        raise _lost_scheduler() from None
                    except fatal_errors:
                        results = []
                    if not results:
                        # Any task of the batch may be to blame: only one that was alone in its process is counted.
                        _log.warning(
                            "a process died with %d runs to make; they are tried again, each on its own",
                            len(batch),
                        )
                        deaths.update(batch if len(batch) == 1 else ())
                        text = "ProcessDied: the process that worked on it ended, killed or out of memory"
                        results = [
                            TaskResult(task, failure_row(text))
                            for task in batch
                            if deaths[task] >= ATTEMPTS
                        ]
                        batches.extend([task] for task in batch if deaths[task] < ATTEMPTS)
                    elif len(results) < len(batch):
                        batches.appendleft(batch[len(results) :])
                    finished.append(results)
        except Exception:
            yield from finished
            raise


Opened = tuple[Executor, Callable[[], int], tuple[type[Exception], ...]]
"""An executor, a function that counts its workers, and the errors of a future whose worker died."""


@contextmanager
def _threads(token: str, count: int) -> Iterator[Opened]:
    """Open an executor of threads, each of which waits for a child process; at the end kill children still at work."""
    executor = ThreadPoolExecutor(count)
    try:
        yield executor, lambda: count, ()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        # Only those of this study: another thread may run another one.
        for child in [child for child in _busy_children if child.latest[0] == token]:
            child.executor.shutdown(kill_workers=True)
        executor.shutdown()


@contextmanager
def _cluster(scheduler: str, count: int) -> Iterator[Opened]:
    """Open the executor of a Dask cluster at an address, or of one with `count` workers on this machine."""
    distributed = _import_distributed()
    log = logging.getLogger("distributed.client")
    with ExitStack() as stack:
        stack.callback(log.setLevel, log.level)
        # A lost scheduler raises an error here, and need not be logged, too.
        log.setLevel(logging.CRITICAL)
        address: Any = scheduler
        if scheduler == "dask":
            address = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs="ERROR",
                # `distribute` tries again itself.
                scheduler_kwargs={"allowed_failures": 0},
                preload=[__name__],
            )
            stack.callback(address.close)
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            stack.callback(client.close)
        except (OSError, ValueError) as error:
            raise ConnectionError(f"scheduler: nothing answers at {scheduler} ({error})") from error

        def count_workers() -> int:
            try:
                for _ in range(ROUNDS):
                    threads: int = sum(client.nthreads().values())
                    if threads:
                        return threads
                    if scheduler == "dask":
                        # Dask neither restarts a worker that dies while it starts, nor one that is long in starting anew.
                        address.scale(count)
                    with suppress(TimeoutError):
                        client.wait_for_workers(1, timeout=NOBODY_SECONDS / ROUNDS)
            except (OSError, RuntimeError) as error:
                raise _lost_scheduler() from error
            text = f"scheduler: the cluster at {scheduler} has had no worker for {NOBODY_SECONDS:g} s; start workers"
            raise ConnectionError(text)

        yield client.get_executor(pure=False), count_workers, (distributed.KilledWorker,)


def _lost_scheduler() -> ConnectionError:
    return ConnectionError("scheduler: the connection to the cluster is lost")


def dask_setup(worker: object) -> None:
    """Ignore Ctrl-C, which the parent process handles; Dask calls this in every worker of a cluster that we started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Packed:
    """A function pickled once, with classes from a script or a notebook, and unpickled once in each process.

    Its `sys.path` is sent along, because the other process may have started before a folder was added.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.token = uuid.uuid4().hex
        self._data = cloudpickle().dumps(function)
        self._path = [os.path.abspath(folder) for folder in sys.path]

    def __call__(self, *arguments: Any) -> Any:
        function = _unpacked.get(self.token)
        if function is None:
            sys.path.extend(folder for folder in self._path if folder not in sys.path)
            function = pickle.loads(self._data)
            _unpacked.clear()  # frees an earlier study
            _unpacked[self.token] = function
        return function(*arguments)


_unpacked: dict[str, Callable[..., Any]] = {}


class _Child:
    """A process that does tasks; `latest` is the token of the packed study and the run that it has cached."""

    def __init__(self) -> None:
        # Dask's workers may have no children otherwise; ours end with it.
        multiprocessing.current_process().daemon = False
        self.executor = loky.ProcessPoolExecutor(
            1,
            timeout=IDLE_SECONDS,
            initializer=_begin_child,
            initargs=(os.getpid(),),
            env=ONE_THREAD,
        )
        self.latest = ("", 0)


_idle_children: list[_Child] = []
_busy_children: list[_Child] = []
_lock = threading.Lock()


def _begin_child(parent: int) -> None:
    """Prepare this process to work for its parent, and to end with it, even if the parent is killed."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a model must not read the terminal,
    os.dup2(2, 1)  # and its output must not mix with the command's
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    event.unregister("numba:compile", compilation)  # type: ignore[no-untyped-call]  # the parent reports progress

    def watch() -> None:
        # An orphan has another parent.
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def in_child(work: Packed, tasks: Sequence[Task], limit: float | None) -> list[TaskResult] | None:
    """Have a child of this process do tasks, or with a limit only the first one; return None if the child died.

    Children are kept for the next batch and the next study, because they have imported and compiled.
    """
    if limit is not None:
        tasks = tasks[:1]  # so that it is known which one took too long
    with _lock:
        prepared = [child for child in _idle_children if child.latest == (work.token, tasks[0].run)]
        child = (prepared or _idle_children or [_Child()])[-1]
        if child in _idle_children:
            _idle_children.remove(child)
        _busy_children.append(child)
    child.latest = work.token, tasks[0].run
    alive = True
    try:
        results: list[TaskResult] = child.executor.submit(work, tasks).result()
        child.latest = work.token, tasks[len(results) - 1].run
        return results
    except (BrokenExecutor, ShutdownExecutorError) as error:
        alive = False
        # `Deadline` ends a process with exit code 1; any other end is a death.
        if limit is None or "EXIT(1)" not in str(error):
            return None
        text = f"TimeoutError: the filter, or recording and reference of the run, took longer than {limit:g} s"
        return [TaskResult(tasks[0], failure_row(text))]
    finally:
        with _lock:
            _busy_children.remove(child)
            if alive:
                _idle_children.append(child)


@atexit.register
def end_idle_children() -> None:
    """End the children that wait for another study."""
    while _idle_children:
        _idle_children.pop().executor.shutdown(kill_workers=True)


def begin(function: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
    """Have an idle child, if there is one, call a function; return a function that waits for its result."""
    if not _idle_children:
        return function
    child = _idle_children.pop()
    future = child.executor.submit(Packed(function))

    def result() -> list[Any]:
        try:
            values: list[Any] = future.result()
        except BrokenExecutor:
            return function()
        _idle_children.append(child)
        return values

    return result


class Deadline(event.Listener):
    """Ends this process with exit code 1 when some seconds have passed since `restart`; compiling restarts it.

    Only the end of the process stops a loop in compiled code. Without a limit nothing happens.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._depth = 0

    def __enter__(self) -> Self:
        event.register("numba:compile", self)  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: object) -> None:
        event.unregister("numba:compile", self)  # type: ignore[no-untyped-call]
        self._stop()

    def restart(self) -> None:
        """Give the next stage its full time."""
        if self._seconds is not None:
            # A thread in C, which needs no interpreter lock, and replaces the timer before.
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=_NOTHING)

    def _stop(self) -> None:
        if self._seconds is not None:
            faulthandler.cancel_dump_traceback_later()

    def on_start(self, event: Any) -> None:
        self._depth += 1  # compiling one function may compile others
        self._stop()

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.restart()


_NOTHING = os.open(os.devnull, os.O_WRONLY)
