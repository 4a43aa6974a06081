"""Tasks with a limit of time: done by processes that are killed when one stage of a task takes too long."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from herdfilter.study.executors.base import BATCH_SECONDS, Batch, Packed, Place
from herdfilter.study.executors.processes import ONE_THREAD
from herdfilter.study.executors.serving import serve
from herdfilter.study.tasks import Outcome, Task, failed

StagedWork = Callable[..., list[Outcome]]
"""Does tasks in turn and tells the function `stage` which stage of a task begins, such as ``"the filter"``."""


class Supervised:
    """Does tasks in a process of its own, one at a time, and kills it when a stage of a task takes too long.

    It may be called from several threads, and be sent to other processes; each thread has a process then. A loop in compiled
    code can be ended in no other way.

    Parameters
    ----------
    work : callable
        See `StagedWork`.
    seconds : float
        What a stage may take; starting the process and compiling do not count.
    """

    def __init__(self, work: StagedWork | Packed, seconds: float) -> None:
        self._work = work if isinstance(work, Packed) else Packed(work)
        self._seconds = seconds
        self._lock, self._closed = threading.Lock(), False
        self._idle: list[_Child] = []
        self._all: list[_Child] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Supervised, (self._work, self._seconds)

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome] | None:
        """Return the outcomes of the first tasks, or None if the process has died at the first of them."""
        child = self._idle.pop() if self._idle else None
        outcomes: list[Outcome] = []
        end = time.perf_counter() + BATCH_SECONDS
        for task in tasks:
            try:
                if child is None or not child.alive:
                    child = self._new()
                outcomes += child.do(task, self._seconds)
            except _LateError as error:
                outcomes.append(Outcome(task, failed(f"TimeoutError: {error}"), seconds=self._seconds))
            except _DeadError:
                break
            if time.perf_counter() > end:
                break
        if child is not None and child.alive:
            self._idle.append(child)
        return outcomes or None

    def _new(self) -> _Child:
        with self._lock:
            if self._closed:
                raise _DeadError
            self._all = [one for one in self._all if one.alive] + [_Child(self._work)]
            return self._all[-1]

    def close(self) -> None:
        """End all processes, those at work too."""
        with self._lock:
            self._closed = True
            for child in self._all:
                child.kill()


class _LateError(Exception):
    """A stage took too long, and the process was killed."""


class _DeadError(Exception):
    """The process has died."""


class _Child:
    """A process that does tasks (`serve`), seen from here."""

    def __init__(self, work: Packed) -> None:
        folders = [folder for folder in sys.path if folder]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {serve.__module__} import serve; serve({os.getpid()})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(folders)},
        )
        self._late = False
        with suppress(OSError):
            self._send(work)

    @property
    def alive(self) -> bool:
        return not self._late and self._process.poll() is None

    def _send(self, message: Any) -> None:
        assert self._process.stdin is not None
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()

    def do(self, task: Task, seconds: float) -> list[Outcome]:
        """Have a task done; raise _LateError if a stage of it takes too long, _DeadError if the process dies."""
        with suppress(OSError):  # it has died; reading tells
            self._send(task)
        kind, value = self._answer("", seconds)
        while kind == "stage":
            kind, value = self._answer(value, seconds)
        if kind == "raised":
            raise _unpickled(*value)
        outcomes: list[Outcome] = value
        return outcomes

    def _answer(self, stage: str, seconds: float) -> tuple[str, Any]:
        """Wait for the end of a stage, without limit if it has no name."""
        assert self._process.stdout is not None
        timer = threading.Timer(seconds, self._end)
        if stage:
            timer.start()
        try:
            answer: tuple[str, Any] = pickle.load(self._process.stdout)
            return answer
        except (EOFError, OSError, pickle.UnpicklingError):
            self.kill()
            if self._late:
                raise _LateError(f"{stage} took longer than {seconds:g} s") from None
            raise _DeadError from None
        finally:
            timer.cancel()

    def _end(self) -> None:
        self._late = True
        self._process.kill()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()


def _unpickled(data: bytes, text: str) -> BaseException:
    with suppress(Exception):
        error = pickle.loads(data)
        if isinstance(error, BaseException):
            return error
    return RuntimeError(text)


class SupervisedPlaces:
    """Places on this machine, each with a process that is killed when a stage of a task takes too long."""

    attempts = 2

    def __init__(self, work: StagedWork, workers: int, seconds: float) -> None:
        packed = Packed(work)
        self._works = {place: Supervised(packed, seconds) for place in range(workers)}
        self._threads = ThreadPoolExecutor(workers)
        self._running: dict[Future[list[Outcome] | None], tuple[int, Sequence[Task]]] = {}

    def places(self) -> list[Place]:  # noqa: D102
        return list(self._works)

    def submit(self, place: Any, tasks: Sequence[Task]) -> None:  # noqa: D102
        self._running[self._threads.submit(self._works[place], tasks)] = (place, tasks)

    def wait(self) -> list[Batch]:  # noqa: D102
        done = wait(self._running, return_when=FIRST_COMPLETED).done
        return [Batch(*self._running.pop(future), future.result()) for future in done]

    def close(self) -> None:  # noqa: D102
        for work in self._works.values():
            work.close()
        self._threads.shutdown()
