"""Tasks done by a Dask cluster."""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Sequence
from typing import Any

from herdfilter.evaluation.executors.base import Batch, Packed, Place, Work
from herdfilter.evaluation.tasks import Task


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
        distributed = import_distributed()
        self._distributed = distributed
        self._log = logging.getLogger("distributed.client")
        self._level = self._log.level
        self._log.setLevel(logging.CRITICAL)  # a lost scheduler is told by what is raised here
        self._work = Packed(work)
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
        self._log.setLevel(self._level)


_CONNECT_SECONDS = 15


def import_distributed() -> Any:
    """Return the package distributed, or raise an ImportError that names the extra."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"scheduler: a Dask cluster needs the package distributed ({error}); install herdfilter[cluster]"
        ) from error
    return distributed
