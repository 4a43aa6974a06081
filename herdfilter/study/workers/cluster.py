"""The executor that does tasks on a Dask cluster."""

from __future__ import annotations

import logging
import math
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from herdfilter.study.tasks import Task, TaskResult
from herdfilter.study.workers.child import Batch, Packed


class Cluster:
    """Does tasks on a Dask cluster: one that listens at an address, or one of `workers` processes on this machine.

    It raises ImportError if distributed is not installed, and ConnectionError if nothing answers at the address, if there
    are no workers or all of them leave, or if the scheduler is lost.

    Tasks are pinned to their worker. The scheduler would keep a task whose worker was the last to leave until one with the
    same address comes, whatever `allow_other_workers` says; and it would give a task that kills its worker to all others,
    one after the other. So batches under way at workers that have left are taken back here.
    """

    def __init__(self, work: Callable[[Sequence[Task]], list[TaskResult] | None], scheduler: str, workers: int) -> None:
        distributed = import_distributed()
        self._distributed = distributed
        self._log = logging.getLogger("distributed.client")
        self._level = self._log.level
        self._log.setLevel(logging.CRITICAL)  # an error is raised here if the scheduler is lost
        self._work = Packed(work)
        self._running: dict[Any, tuple[Any, Sequence[Task]]] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._places: list[tuple[str, int]] = []
        self._here: dict[str, int] = {}
        self._looked = -math.inf
        self._own, self._workers = None, workers
        if scheduler == "dask":
            self._own = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs="ERROR",
                scheduler_kwargs={"allowed_failures": 0},  # `distribute` tries again itself
                preload=["herdfilter.study.workers.cluster"],
            )
        try:
            self._client = distributed.Client(self._own or scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConnectionError(f"scheduler: nothing answers at {scheduler} ({error})") from error
        end = time.monotonic() + (_CONNECT_SECONDS if self._own is None else _NOBODY_SECONDS)
        while True:
            if self._own is not None:
                self._own.scale(workers)  # as in `_look`: a worker may have died as it had just started
            try:
                self._client.wait_for_workers(1, timeout=_LOOK_SECONDS)
                break
            except TimeoutError:
                if time.monotonic() > end:
                    self.close()
                    raise ConnectionError(f"scheduler: the cluster at {scheduler} has no workers") from None
        self._inhabited = time.monotonic()

    def places(self) -> list[Any]:
        """Return a place for every thread of every worker that takes tasks."""
        self._look()
        return self._places

    def _look(self) -> None:
        """Ask the scheduler which workers it has."""
        now = time.monotonic()
        if now < self._looked + _LOOK_SECONDS:
            return
        free = self._ask(self._client.scheduler.ncores_running)  # a worker short of memory takes no tasks
        # All workers are asked for last: one that comes in between must not count as gone, one that leaves is no place.
        self._looked, self._here = now, self._ask(self._client.scheduler.ncores)
        self._places = [(worker, i) for worker, n in free.items() if worker in self._here for i in range(n)]
        if self._own is not None and len(self._here) < self._workers:
            self._own.scale(self._workers)  # nobody else restarts a worker that died as it had just started
        if self._places or self._running:
            self._inhabited = now
        elif now > self._inhabited + _NOBODY_SECONDS:
            raise ConnectionError(
                f"scheduler: the cluster has had no worker that takes tasks for {_NOBODY_SECONDS:g} s; start workers"
            )

    def submit(self, place: Any, tasks: Sequence[Task]) -> None:
        future = self._client.submit(self._work, tasks, workers=[place[0]], pure=False, key=f"runs-{uuid.uuid4().hex}")
        self._running[future] = (place, tasks)
        future.add_done_callback(self._done.put)

    def wait(self) -> list[Batch]:
        batches: list[Batch] = []
        while not batches:
            with suppress(Empty):
                futures = [self._done.get(timeout=_LOOK_SECONDS)]
                while not self._done.empty():
                    futures.append(self._done.get())
                batches = [self._batch(future) for future in futures if future in self._running]
            self._look()
            gone = [future for future, (place, _) in self._running.items() if place[0] not in self._here]
            if gone:  # workers that have left
                self._client.cancel(gone)
                batches += [Batch(*self._running.pop(future), None) for future in gone]
        return batches

    def _batch(self, future: Any) -> Batch:
        """Return the batch of a future that is done."""
        place, tasks = self._running.pop(future)
        if future.status == "cancelled":  # by the client itself, when it loses the scheduler
            raise self._lost()
        results = self._result(future, place)
        if results is None:
            self._looked = -math.inf  # the next batch must not go to the worker that died
        return Batch(place, tasks, results)

    def _result(self, future: Any, place: Any) -> list[TaskResult] | None:
        """Return the results that a worker holds, None if it died before they could be fetched."""
        while future.status != "lost":  # its worker has died with the results
            try:
                results: list[TaskResult] = future.result(timeout=_LOOK_SECONDS)
                return results
            except self._distributed.KilledWorker:
                return None
            except TimeoutError:
                if future.status == "error":  # raised by the work itself
                    raise
            except OSError as error:
                if future.status == "error":
                    raise
                raise self._lost() from error
            self._look()
            if place[0] not in self._here:
                break
        self._client.cancel([future])
        return None

    def _ask(self, question: Any) -> dict[str, int]:
        """Return workers and their numbers of threads, as the scheduler answers."""
        if self._client.status == "running":
            with suppress(OSError):
                return dict(self._client.sync(question))
        raise self._lost()

    def _lost(self) -> ConnectionError:
        self._running.clear()  # there is nobody to cancel it
        return ConnectionError("scheduler: the connection to the cluster is lost")

    def close(self) -> None:
        if self._running:
            self._client.cancel(list(self._running))
        self._client.close()
        if self._own is not None:
            self._own.close()
        self._log.setLevel(self._level)


_CONNECT_SECONDS = 15
_LOOK_SECONDS = 0.5  # time between two questions to the scheduler for its workers
_NOBODY_SECONDS = 60.0  # time that a cluster may be without workers that take tasks


def import_distributed() -> Any:
    """Import distributed, or raise an ImportError that names the extra."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"scheduler: a Dask cluster needs the package distributed ({error}); install herdfilter[cluster]"
        ) from error
    return distributed


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the parent of this process: a worker of a cluster of our own calls this first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
