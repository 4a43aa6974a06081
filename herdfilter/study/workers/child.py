"""Child processes that do tasks: both ends of the pipe, and the executor that has one at every place.

With a limit of time a child names each stage of a task as it begins, and is killed when one takes too long: nothing else
ends a loop in compiled code.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from numba.core import event

from herdfilter.filters.progress import compilation
from herdfilter.models.from_functions import cloudpickle
from herdfilter.study.tasks import Task, TaskResult, failure_row

BATCH_SECONDS = 0.2  # time after which a worker hands back its results: a power cut loses these, and the tasks under way

Work = Callable[..., list[TaskResult]]
"""``work(tasks, stage=...)`` does tasks in turn and returns the results of the first ones, at least one.

It calls ``stage(name)`` when a stage of a task begins, such as ``"the filter"``.
"""


@dataclass(frozen=True)
class Batch:
    """A batch that came back from a place: the results of its first tasks, or None if their process has died."""

    place: Any
    tasks: Sequence[Task]
    results: list[TaskResult] | None


class Packed:
    """A function pickled once, with classes from a script or a notebook, and unpickled once in each process.

    Modules are found where this process finds them now: the other may have started before `sys.path` got their folder.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.token = uuid.uuid4().hex
        self._data = cloudpickle().dumps(function)
        self._path = [os.path.abspath(folder) for folder in sys.path]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        function = _unpacked.get(self.token)
        if function is None:
            sys.path.extend(folder for folder in self._path if folder not in sys.path)
            function = pickle.loads(self._data)
            _unpacked.clear()  # of an earlier study
            _unpacked[self.token] = function
        return function(*arguments, **options)


_unpacked: dict[str, Callable[..., Any]] = {}


class ChildWork:
    """Work done by a child of the process that calls it; each of several threads has a child of its own.

    A stage may take so many `seconds`, if a limit is given; starting the process and compiling do not count.
    """

    def __init__(self, work: Work | Packed, seconds: float | None = None) -> None:
        self._work = work if isinstance(work, Packed) else Packed(work)
        self._seconds = seconds
        self._lock, self._closed = threading.Lock(), False
        self._free: list[_Child] = []
        self._busy: list[_Child] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return ChildWork, (self._work, self._seconds)

    def __call__(self, tasks: Sequence[Task]) -> list[TaskResult] | None:
        """Return the results of the first tasks, or None if the process has died at the first one."""
        results: list[TaskResult] = []
        end = time.perf_counter() + BATCH_SECONDS
        # With a limit one by one: the task that takes too long must be known.
        for batch in [tasks] if self._seconds is None else [[task] for task in tasks]:
            try:
                results += self._do(batch)
            except _LateError as error:
                results.append(TaskResult(batch[0], failure_row(f"TimeoutError: {error}"), seconds=self._seconds or 0.0))
            except _DeadError:
                break
            if time.perf_counter() > end:
                break
        return results or None

    def _do(self, tasks: Sequence[Task]) -> list[TaskResult]:
        with self._lock:
            if self._closed:
                raise _DeadError
            child = self._free.pop() if self._free else _living_child()
            if not child.alive:
                child = _living_child()
            self._busy.append(child)
        try:
            return child.do(self._work, tasks, self._seconds)
        finally:
            with self._lock:
                self._busy.remove(child)
                if child.alive:
                    self._free.append(child)

    def start(self) -> None:
        """Start a child now, which imports while others compile."""
        self._free.append(_living_child())

    def close(self) -> None:
        """End the children at work, and keep the others for the next study: they have imported and compiled."""
        with self._lock:
            self._closed = True
            for child in self._busy:
                child.kill()
            _idle_children.extend(self._free)
            self._free.clear()


class LocalProcesses:
    """Does tasks in children of this process, one for each place, so that a batch finds the process that knows its run."""

    def __init__(self, work: Work, workers: int, seconds: float | None = None) -> None:
        packed = Packed(work)
        self._works = {place: ChildWork(packed, seconds) for place in range(workers)}
        self._threads = ThreadPoolExecutor(workers)
        self._running: dict[Future[list[TaskResult] | None], tuple[int, Sequence[Task]]] = {}
        for one in self._works.values():
            one.start()

    def places(self) -> list[Any]:
        return list(self._works)

    def submit(self, place: Any, tasks: Sequence[Task]) -> None:
        self._running[self._threads.submit(self._works[place], tasks)] = (place, tasks)

    def wait(self) -> list[Batch]:
        done = wait(self._running, return_when=FIRST_COMPLETED).done
        return [Batch(*self._running.pop(future), future.result()) for future in done]

    def close(self) -> None:
        for work in self._works.values():
            work.close()
        self._threads.shutdown()


class _LateError(Exception):
    """A stage took too long, and the process was killed."""


class _DeadError(Exception):
    """The process has died."""


class _Child:
    """A process that does tasks (`serve`), seen from its parent."""

    def __init__(self) -> None:
        folders = [os.path.abspath(folder) for folder in sys.path]
        program = f"from {__name__} import serve; serve({os.getpid()})"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {program}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(folders)},
        )
        self._late = False
        self._work = ""

    @property
    def alive(self) -> bool:
        return not self._late and self._process.poll() is None

    def do(self, work: Packed, tasks: Sequence[Task], seconds: float | None) -> list[TaskResult]:
        """Return the results of tasks; raise _LateError if a stage takes too long, _DeadError if the process dies."""
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died; reading tells
            pickle.dump((work if work.token != self._work else None, tasks, seconds is not None), self._process.stdin)
            self._process.stdin.flush()
        self._work = work.token
        kind, value = self._answer("", seconds)
        while kind == "stage":
            kind, value = self._answer(value, seconds)
        if kind == "raised":
            error = None
            with suppress(Exception):
                error = pickle.loads(value[0])
            raise error if isinstance(error, BaseException) else RuntimeError(value[1])
        results: list[TaskResult] = value
        return results

    def _answer(self, stage: str, seconds: float | None) -> tuple[str, Any]:
        """Wait for the end of a stage; without limit if it has no name."""
        assert self._process.stdout is not None
        timer = threading.Timer(seconds or 0.0, self._end)
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


_idle_children: list[_Child] = []
_IDLE_SECONDS = 300.0  # time after which a child without work ends itself
LIBRARIES = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM", "NUMBA_NUM")
ONE_THREAD = {f"{library}_THREADS": "1" for library in LIBRARIES}


def _living_child() -> _Child:
    """Return a child of an earlier study that still lives, or a new one."""
    while _idle_children:
        child = _idle_children.pop()
        if child.alive:
            return child
    return _Child()


def begin(function: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
    """Have a child without work call a function, if there is one; return what waits for the list that it returns."""
    if not _idle_children:
        return function
    work = ChildWork(lambda tasks, stage: function())

    def call() -> list[Any] | None:
        with closing(work):
            return work(())

    called = ThreadPoolExecutor(1).submit(call)
    return lambda: called.result() or function()


@atexit.register
def end_idle_processes() -> None:
    """End the processes that wait for another study."""
    while _idle_children:
        _idle_children.pop().kill()


def serve(parent: int) -> None:
    """Do the tasks that come on the standard input, and answer on the standard output, until it is closed.

    An answer is a pair: ``"stage"`` and its name, which is empty while code is compiled; ``"done"`` and the results; or
    ``"raised"`` and the error, pickled and as text. The process ends with its parent, even if that was killed.
    """
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # models read nothing here,
    os.dup2(2, 1)  # and their output goes where errors go
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    stages = _Stages(outward)
    events: Any = event
    events.unregister("numba:compile", compilation)  # the parent tells what is being done
    events.register("numba:compile", stages)
    idle_since = [time.monotonic()]

    def watch() -> None:
        while os.getppid() == parent and time.monotonic() < idle_since[0] + _IDLE_SECONDS:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    work: Any = None
    with suppress(EOFError):
        while True:
            sent, tasks, stages.timed = pickle.load(inward)
            idle_since[0] = float("inf")
            work = sent or work
            try:
                answer = pickle.dumps(("done", work(tasks, stage=stages.begin)))
            except BaseException as error:
                data = b""
                with suppress(Exception):
                    error.add_note(traceback.format_exc())  # the parent does not see this stack
                    data = pickle.dumps(error)
                answer = pickle.dumps(("raised", (data, f"{type(error).__name__}: {error}")))
            outward.write(answer)
            outward.flush()
            idle_since[0] = time.monotonic()


class _Stages(event.Listener):
    """Tells the parent the name of the stage that begins; compiling interrupts it."""

    def __init__(self, outward: BinaryIO) -> None:
        self.timed = False
        self._outward, self._stage, self._depth = outward, "", 0

    def begin(self, stage: str) -> None:
        self._stage = stage
        self._tell(stage)

    def _tell(self, stage: str) -> None:
        if self.timed:
            pickle.dump(("stage", stage), self._outward)
            self._outward.flush()

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._tell("")

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._tell(self._stage)
