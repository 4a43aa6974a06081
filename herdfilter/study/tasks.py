"""The unit of work, of storage and of failure; what it gives, and what stops it."""

from __future__ import annotations

import math
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
    """The result of a task: its row of the table, series, and arrays of the `Trajectory` in run 0."""

    task: Task
    row: Mapping[str, Any]  # the measured numbers are left out if it failed
    series: Mapping[str, Array] = field(default_factory=dict)  # name -> values at every step (T,)
    shown: Mapping[tuple[str, str], Array] = field(default_factory=dict)  # (filter, name), filter "" for what all share


def failure_row(text: str, traceback: str = "") -> dict[str, Any]:
    """Return the row of a task that failed; the text gets file and line if the user's own code raised the error."""
    text = " ".join(f"{text} {own_code(traceback)}".split())
    return {"reference": "", "reference_sd": math.nan, "diverged": True, "error": text, "traceback": traceback}


def own_code(traceback: str) -> str:
    """Return the place where a traceback last passes through the user's own code; empty if it never does.

    Such as ``(pendulum.py, line 12, in transition_mean)``. Code is not the user's own if it stands in this package, in the
    standard library or where packages are installed.
    """
    paths = sysconfig.get_paths()
    others = [Path(paths[name]) for name in ("stdlib", "purelib", "platlib")] + [Path(__file__).parents[1]]
    for name, line, function in reversed(re.findall(r'File "(.+?)", line (\d+), in (.+)', traceback)):
        file = Path(name)
        if file.is_file() and not any(file.is_relative_to(other) for other in others):
            return f"({file.name}, line {line}, in {function})"
    return ""


def row_of_error(error: BaseException) -> dict[str, Any]:
    """Return the row of a task that failed by an error that is being handled."""
    return failure_row(error_text(error), _escape_surrogates(traceback.format_exc()))


def error_text(error: BaseException) -> str:
    """Return type and text of an error, even of one whose text cannot be made."""
    try:
        text = str(error)
    except Exception as another:
        text = f"(its text cannot be made: {type(another).__name__})"
    return _escape_surrogates(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _escape_surrogates(text: str) -> str:
    """Escape the halves of surrogate pairs, as in names of files: they cannot be written."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Stopped(KeyboardInterrupt):
    """A signal, given by its number, asks this process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stop_on_signals(*names: str) -> Iterator[None]:
    """Raise `Stopped` when a signal comes that would end this process, or raise KeyboardInterrupt in it.

    Names are such as ``"SIGTERM"``; those that the system does not have are left out. A second signal during the tidying up
    is ignored, except Ctrl-C. Signals that are ignored (``nohup``) stay so. Outside the main thread nothing changes: Python
    does not handle signals there.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) not in (signal.SIG_IGN, None)}

    def stop(number: int, frame: FrameType | None) -> None:
        handler = before[number]
        if callable(handler):
            try:
                handler(number, frame)
            except KeyboardInterrupt:
                raise Stopped(number) from None
            return
        for other in before.keys() - {signal.SIGINT}:
            signal.signal(other, signal.SIG_IGN)
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
