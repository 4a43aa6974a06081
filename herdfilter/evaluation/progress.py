"""What is being done, told on the error output, so that nobody waits in the dark."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 2.5
"""Seconds after which a line is written where there is no terminal; on a terminal one line is drawn anew all the time."""

_PATIENCE = 1.0
"""Seconds that something may take without being told."""

_last = [time.monotonic()]
"""When the latest line was written."""


@contextmanager
def told(text: Callable[[float], str], visible: bool = True) -> Iterator[None]:
    """Tell what is being done as long as it lasts.

    Parameters
    ----------
    text : callable
        Seconds since the beginning -> one line.
    visible : bool
        Whether to tell anything.
    """
    if not visible:
        yield
        return
    begin, over = time.monotonic(), threading.Event()
    terminal = sys.stderr.isatty()

    def tell() -> None:
        while not over.wait(0.2):
            now = time.monotonic()
            if now - begin < _PATIENCE:
                continue
            if terminal:
                sys.stderr.write(f"\r\x1b[K{text(now - begin)}")
                sys.stderr.flush()
            elif now - _last[0] >= EVERY:
                say(text(now - begin))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if terminal and time.monotonic() - begin >= _PATIENCE:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def say(line: str) -> None:
    """Write a line on the error output."""
    print(line, file=sys.stderr, flush=True)
    _last[0] = time.monotonic()


@contextmanager
def stage(name: str, visible: bool = True) -> Iterator[None]:
    """Tell that something is being done, and at the end how long it took; nothing where it is done at once."""
    begin = time.monotonic()
    with told(lambda seconds: f"{name} ({seconds:.0f} s)", visible):
        yield
    if visible and time.monotonic() - begin >= _PATIENCE:
        say(f"{name}: done in {time.monotonic() - begin:.0f} s")


class Counter:
    """How many of the runs of a study, or of other things, are finished, in one line.

    Parameters
    ----------
    name : str
        Of the study.
    done, left : int
        Runs of a filter that were finished before, and that are to be made.
    counted : str
        What they are called.
    """

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
        bar = "#" * (20 * done // self.total)
        failed = f" ({self.failures} failed)" if self.failures else ""
        left = f", {(self.total - done) / rate:.0f} s left" if self.finished else ""
        speed = f", {rate:.3g} per second" if self.finished else ""
        return f"{self.name} [{bar:.<20}] {done} of {self.total} {self.counted}{failed}{speed}{left}"
