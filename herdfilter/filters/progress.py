"""What is being done, told on the error output, so that nobody waits in the dark."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unicodedata import combining, east_asian_width

from numba.core import event

from herdfilter._checks import printable

EVERY = 2.5
"""Seconds after which a line is written in a log; on a terminal and in a notebook one line is drawn anew all the time."""

_PATIENCE = 1.0  # seconds that something may take without being told

_COMPILING = 3.0  # seconds that a call may compile without telling

_last = [time.monotonic()]
"""When the latest line was written."""

lines = [0]
"""Number of lines that are shown; a process whose parent tells what is being done counts one for it."""


@contextmanager
def live_line(text: str | Callable[[float], str], visible: bool = True) -> Iterator[None]:
    """Tell what is being done as long as it lasts, and for how long; a function takes the seconds to the whole line."""
    if not visible:
        yield
        return
    begin, over = time.monotonic(), threading.Event()
    line = _Notebook() if notebook() else _Terminal() if sys.stderr.isatty() else _Log()

    def tell(show: Callable[[str], None]) -> None:
        seconds = time.monotonic() - begin
        if seconds >= _PATIENCE:
            show(f"{text} ({seconds:.0f} s)" if isinstance(text, str) else text(seconds))

    def watch() -> None:
        while not over.wait(0.2):
            tell(line.show)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    lines[0] += 1
    try:
        yield
    finally:
        lines[0] -= 1
        over.set()
        thread.join()
        tell(line.end)


class _Log:
    """Now and then a line of its own."""

    def show(self, text: str) -> None:
        if time.monotonic() - _last[0] >= EVERY:
            say(text)

    def end(self, text: str) -> None:
        pass


class _Terminal(_Log):
    """One line that is drawn anew, and gone at the end."""

    def show(self, text: str) -> None:
        columns = 80
        with suppress(OSError, ValueError):  # its size is not known
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or columns
        sys.stderr.write(f"\r\x1b[K{cut(printable(text), columns - 1)}")
        sys.stderr.flush()

    def end(self, text: str) -> None:
        self.show("")


def cut(text: str, columns: int) -> str:
    """Cut a text to so many columns of a terminal: more would take a second line, which is not drawn anew."""
    width = 0
    for i, sign in enumerate(text):
        width += 0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1
        if width > columns:
            return text[:i]
    return text


class _Notebook(_Log):
    """One line below the cell that is replaced, and stays at the end; it is no error output, which notebooks draw in red."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        if self._handle is None:
            from IPython.display import display

            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)

    def end(self, text: str) -> None:
        self.show(text)


def notebook() -> bool:
    """Whether this is the kernel of a notebook, whose error output is no terminal and keeps every line."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def say(line: str) -> None:
    """Write a line on the error output."""
    print(printable(line), file=sys.stderr, flush=True)
    _last[0] = time.monotonic()


class Counter:
    """How many of the runs of a study, or of other things, are finished, in one line; `done` were so before the start."""

    def __init__(self, name: str, done: int, left: int, counted: str = "runs of a filter") -> None:
        self.name, self.done, self.total, self.counted = name, done, done + left, counted
        self.finished, self.failures = 0, 0

    def add(self, finished: int, failures: int) -> None:
        """Count runs that were finished now, and those of them that failed."""
        self.finished += finished
        self.failures += failures

    def __call__(self, seconds: float) -> str:
        """Return the line, after so many seconds of work."""
        done, rate = self.done + self.finished, self.finished / max(seconds, 1e-3)
        bar = "#" * (10 * done // self.total)
        failed = f" ({self.failures} failed)" if self.failures else ""
        left = f", {(self.total - done) / rate:.0f} s left" if self.finished else ""
        speed = f", {rate:.3g} per second" if self.finished else ""
        return f"{self.name} [{bar:.<10}] {done} of {self.total} {self.counted}{failed}{left}{speed}"


class _Compilation(event.Listener):
    """Adds up the time for which numba compiles functions of this package, one at a time, with others inside."""

    def __init__(self) -> None:
        self._depth, self._latest, self._seconds = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        if not (self._depth or str(event.data["dispatcher"].__module__).startswith("herdfilter.")):
            return
        now, before = time.monotonic(), self._seconds
        if self._depth:
            self._seconds += now - self._latest
        elif now > self._latest + 1.0:  # another call compiles
            self._seconds = 0.0
        self._depth += 1 if event.is_start else -1
        self._latest = now
        if before <= _COMPILING < self._seconds:
            _tell(f"herdfilter compiles, once ({self._seconds:.0f} s so far)")

    on_end = on_start


def _tell(text: str) -> None:
    """Write a line where somebody waits for this process and sees no other line of it."""
    from multiprocessing import parent_process

    with suppress(AttributeError, OSError, ValueError):  # there is no error output
        if lines[0] or parent_process() is not None:
            return
        if notebook():
            _Notebook().show(text)
        elif sys.stderr.isatty():
            say(text)


def tell_compilation() -> None:
    """Tell from now on, on a terminal or in a notebook, when a call compiles for long and no other line says so."""
    event.register("numba:compile", _Compilation())  # type: ignore[no-untyped-call]
