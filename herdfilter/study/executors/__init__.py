"""Where tasks are done: in this process, in others on this machine, or on a Dask cluster; and who gets which.

An executor has places that take one batch of tasks each. A worker stops after `BATCH_SECONDS` and hands back what it has
finished; the rest of its batch goes to the same place again, which has the recording and the reference of the run at hand.
"""

from __future__ import annotations

from herdfilter._checks import check_count, one_of
from herdfilter.study.executors.base import BATCH_SECONDS, Batch, Executor
from herdfilter.study.executors.cluster import Cluster, import_distributed
from herdfilter.study.executors.in_process import InProcess
from herdfilter.study.executors.planning import distribute
from herdfilter.study.executors.processes import LocalProcesses, end_idle_processes
from herdfilter.study.executors.supervised import StagedWork, Supervised, SupervisedPlaces

__all__ = [
    "BATCH_SECONDS",
    "Batch",
    "Executor",
    "check_scheduler",
    "distribute",
    "end_idle_processes",
    "make_executor",
]


def check_scheduler(scheduler: str | None) -> str:
    """Return the scheduler if it is one: ``local``, ``dask`` or an address such as ``tcp://host:8786``.

    Examples
    --------
    >>> from herdfilter.study.executors import check_scheduler
    >>> check_scheduler(None)
    'local'
    >>> try:
    ...     check_scheduler("slurm")
    ... except ValueError as error:
    ...     print(error)
    scheduler: unknown 'slurm'; expected one of local, dask, tcp://host:port
    """
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


def make_executor(work: StagedWork, scheduler: str, workers: int, run_timeout: float | None = None) -> Executor:
    """Return the executor for a scheduler that `check_scheduler` has passed.

    With a limit of time the work is done by processes that can be killed, wherever their places are.

    Examples
    --------
    >>> from herdfilter.study.executors import make_executor
    >>> from herdfilter.study.tasks import Task
    >>> executor = make_executor(lambda tasks: [], "local", workers=1)
    >>> executor.submit(executor.places()[0], [Task("bootstrap", 20, run=0)])
    >>> [batch.tasks for batch in executor.wait()]
    [[Task(filter='bootstrap', n_particles=20, run=0)]]
    """
    workers = check_count("workers", workers)
    if run_timeout is not None and scheduler == "local":
        return SupervisedPlaces(work, workers, run_timeout)
    if scheduler != "local":
        return Cluster(work if run_timeout is None else Supervised(work, run_timeout), scheduler, workers)
    return LocalProcesses(work, workers) if workers > 1 else InProcess(work)
