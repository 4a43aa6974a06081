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
    """What a task gives.

    Attributes
    ----------
    task : Task
    row : dict
        Its part of the table: ``reference``, ``reference_sd``, ``diverged``, ``error``, ``traceback``, and the numbers
        measured, none of a run that failed.
    series : dict
        Name -> values at every step (T,): squared errors against ``truth`` and ``reference``, and more.
    shown : dict
        (filter, name) -> array, what run 0 gives to the `Trajectory`; what all filters share has the filter ``""``.
    seconds, preparation : float
        What the filter took, and what recording and reference took if they had to be made.
    """

    task: Task
    row: Mapping[str, Any]
    series: Mapping[str, Array] = field(default_factory=dict)
    shown: Mapping[tuple[str, str], Array] = field(default_factory=dict)
    seconds: float = 0.0
    preparation: float = 0.0


def failed(error: str, traceback: str = "") -> dict[str, Any]:
    """Return the row of a task that failed; where code of the user's own did, the error tells its file and line."""
    place = own_code(traceback)
    row = {"reference": "", "reference_sd": math.nan, "diverged": True}
    return row | {"error": " ".join(f"{error} {place}".split()), "traceback": traceback}


def own_code(traceback: str) -> str:
    """Return where a traceback last passes through code of the user's own; empty if it never does.

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


def failed_by(error: BaseException) -> dict[str, Any]:
    """Return the row of a task that failed by an error which is being handled."""
    return failed(summary_repr(error), _storable(traceback.format_exc()))


def summary_repr(error: BaseException) -> str:
    """Return type and text of an error, even of one whose text cannot be made."""
    try:
        text = str(error)
    except Exception as another:
        text = f"(its text cannot be made: {type(another).__name__})"
    return _storable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _storable(text: str) -> str:
    """Return a text that can be written: half of a surrogate pair, as in names of files, cannot."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Stopped(KeyboardInterrupt):
    """A signal asks this process to stop.

    Parameters
    ----------
    number : int
        Of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stopped_by(*names: str) -> Iterator[None]:
    """Raise `Stopped` when a signal comes that would end this process, or raise KeyboardInterrupt in it.

    A second one during the tidying up is ignored, but for Ctrl-C. Signals that are ignored (``nohup``) stay so. Outside the
    main thread nothing changes: Python does not handle signals there.

    Parameters
    ----------
    *names : str
        Such as ``"SIGTERM"``; names that the system does not have are left out.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        known = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {one: signal.getsignal(one) for one in known}
        before = {one: handler for one, handler in before.items() if handler not in (signal.SIG_IGN, None)}

    def stop(number: int, frame: FrameType | None) -> None:
        handler = before[number]
        if callable(handler):
            try:
                handler(number, frame)
            except KeyboardInterrupt:
                raise Stopped(number) from None
            return
        for one in before:
            if one != signal.SIGINT:
                signal.signal(one, signal.SIG_IGN)
        raise Stopped(number)

    for one in before:
        signal.signal(one, stop)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def unless_stopped() -> Iterator[None]:
    """Suppress whatever is raised, SystemExit too, but `Stopped`."""
    try:
        yield
    except Stopped:
        raise
    except BaseException:
        pass
