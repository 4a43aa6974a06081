"""Tasks done by processes of this machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from herdfilter.study.executors.base import Batch, Packed, Place, Work
from herdfilter.study.tasks import Outcome, Task


class LocalProcesses:
    """Processes of this machine, by joblib's loky; each a pool of its own, so that a batch finds the process it wants."""

    attempts = 2

    def __init__(self, work: Work, workers: int) -> None:
        self._work = Packed(work)
        self._pools = {place: _idle_pools.pop() if _idle_pools else _new_pool() for place in range(workers)}
        self._running: dict[Future[list[Outcome]], tuple[int, Sequence[Task]]] = {}
        for pool in self._pools.values():
            pool.submit(self._work, ())  # it starts and imports now, while others compile

    def places(self) -> list[Place]:  # noqa: D102
        return list(self._pools)

    def submit(self, place: Any, tasks: Sequence[Task]) -> None:  # noqa: D102
        try:
            future = self._pools[place].submit(self._work, tasks)
        except BrokenProcessPool:  # it died while it had nothing to do
            future = self._renewed(place).submit(self._work, tasks)
        self._running[future] = (place, tasks)

    def wait(self) -> list[Batch]:  # noqa: D102
        batches = []
        for future in wait(self._running, return_when=FIRST_COMPLETED).done:
            place, tasks = self._running.pop(future)
            try:
                outcomes = future.result()
            except BrokenProcessPool:
                outcomes = None
                self._renewed(place)
            batches.append(Batch(place, tasks, outcomes))
        return batches

    def _renewed(self, place: Any) -> Any:
        """Put a new process into the place of one that died."""
        self._pools[place].shutdown(wait=False, kill_workers=True)
        self._pools[place] = _new_pool()
        return self._pools[place]

    def close(self) -> None:  # noqa: D102
        busy = {place for place, _ in self._running.values()}
        for place, pool in self._pools.items():
            if place in busy:
                pool.shutdown(wait=False, kill_workers=True)
            else:
                _idle_pools.append(pool)  # with what it has imported and compiled
        self._pools, self._running = {}, {}


def end_idle_processes() -> None:
    """End the processes that wait for another study.

    Examples
    --------
    >>> from herdfilter.study.executors import end_idle_processes
    >>> end_idle_processes()  # frees their memory; the next study starts new ones
    """
    while _idle_pools:
        _idle_pools.pop().shutdown(wait=False, kill_workers=True)


_idle_pools: list[Any] = []
_IDLE_SECONDS = 300.0
ONE_THREAD = dict.fromkeys(
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

    return ProcessPoolExecutor(1, timeout=_IDLE_SECONDS, env=ONE_THREAD, initializer=begin_work, initargs=(os.getpid(),))


def begin_work(parent: int) -> None:
    """Have this process end with its parent, even if that was killed, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
