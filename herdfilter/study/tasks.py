"""The task, which is the unit of work, of storage and of failure; its result, and the errors and signals that end it."""

from __future__ import annotations

import re
import signal
import sysconfig
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from herdfilter._checks import Array

Key = tuple[str, int]
"""Filter name and particle count."""


class Task(NamedTuple):
    """One run of one filter at one particle count: the unit of work, of storage and of failure."""

    filter: str
    n_particles: int
    run: int

    @property
    def key(self) -> Key:
        """Filter name and particle count."""
        return self.filter, self.n_particles


@dataclass(frozen=True, eq=False)
class TaskResult:
    """The result of a task: its row of the table, its series, and in run 0 the arrays of the `Trajectory`."""

    task: Task
    row: Mapping[str, Any]  # without the measured numbers if it failed
    series: Mapping[str, Array] = field(default_factory=dict)  # name -> values at every step (T,)
    # Filter, or "" if shared by all; name of the array.
    trajectory: Mapping[tuple[str, str], Array] = field(default_factory=dict)


def failure_row(text: str, traceback: str = "") -> dict[str, Any]:
    """Return the row of a task that failed; file and line are added to the text if the user's own code raised the error."""
    # On one line, as tables and logs have it.
    text = " ".join(f"{text} {own_code(traceback)}".split())
    return {"reference": "", "diverged": True, "error": text, "traceback": traceback}


def own_code(traceback: str) -> str:
    """Return the line where a traceback last passes through the user's own code; empty if it never does.

    An example is ``(pendulum.py, line 12, in transition_mean)``. All code is the user's own except this package, the
    standard library and installed packages.
    """
    paths = sysconfig.get_paths()
    library_folders = [paths[name] for name in ("stdlib", "purelib", "platlib")]
    library_folders.append(str(Path(__file__).parents[1]))
    frames = re.findall(r'File "(.+?)", line (\d+), in (.+)', traceback)
    for name, line, function in reversed(frames):
        file = Path(name)
        # A name such as <string> is not a file.
        if file.is_file() and not any(file.is_relative_to(folder) for folder in library_folders):
            return f"({file.name}, line {line}, in {function})"
    return ""


def row_of_error(error: BaseException) -> dict[str, Any]:
    """Return the row of a task that failed with the error that is being handled."""
    return failure_row(error_text(error), _escape_surrogates(traceback.format_exc()))


def error_text(error: BaseException) -> str:
    """Return type and text of an error, even of one whose `str` fails."""
    try:
        text = str(error)
    except Exception as another:  # a user's class of errors may have a bug of its own
        text = f"(its text cannot be made: {type(another).__name__})"
    return _escape_surrogates(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _escape_surrogates(text: str) -> str:
    """Escape lone surrogates, which names of files may hold: neither files nor SQLite take them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Stopped(KeyboardInterrupt):
    """The signal with this number asks the process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stop_on_signals(*names: str) -> Iterator[None]:
    """Raise `Stopped` on signals that would end this process or raise KeyboardInterrupt in it.

    Names are like ``"SIGTERM"``; those unknown to the system are skipped. A second signal during the tidying up is ignored,
    except Ctrl-C. Signals that were ignored before (``nohup``) still are. Outside the main thread nothing changes: Python
    does not handle signals there.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {
            n: signal.getsignal(n)
            for n in numbers
            if signal.getsignal(n) not in (signal.SIG_IGN, None)
        }

    def stop(number: int, frame: FrameType | None) -> None:
        handler = before[number]
        if callable(handler):
            try:
                handler(number, frame)
            except KeyboardInterrupt:
                raise Stopped(number) from None
            return
        for later_number in before.keys() - {signal.SIGINT}:
            signal.signal(later_number, signal.SIG_IGN)
        raise Stopped(number)

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def suppress_errors() -> Iterator[None]:
    """Suppress all exceptions, SystemExit too, except `Stopped`."""
    try:
        yield
    except Stopped:
        raise
    except BaseException:
        pass
