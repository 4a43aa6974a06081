"""Progress on the error output: a line that is redrawn, or lines of a log."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from numba.core import event

from herdfilter._checks import printable

if TYPE_CHECKING:
    from tqdm import tqdm

LOG_SECONDS = 4.5  # between two lines in a log; on a terminal and in a notebook one line is redrawn
FIRST_SECONDS = 1.0  # shorter work is not shown
COMPILE_SECONDS = 3.0  # shorter compilation is not shown

_last_line = [time.monotonic()]  # when the latest line of the log was written


@contextmanager
def live_line(
    text: str,
    total: int | None = None,
    done: int = 0,
    unit: str = "",
    visible: bool = True,
) -> Iterator[tqdm[Any]]:
    """Show `text` and the time elapsed; with a `total` also the progress, which ``update(n)`` of the bar advances."""
    from tqdm import tqdm

    redraws = sys.stderr.isatty() or is_notebook()
    bar = tqdm(
        desc=printable(text),
        total=total,
        initial=done,
        unit=f" {unit}",
        bar_format=None
        if total is not None
        else "{desc} ({elapsed}){bar}",  # tqdm cuts only lines with a bar
        smoothing=0,
        ascii=" #",
        leave=False,
        delay=FIRST_SECONDS if redraws else math.inf,
        ncols=_columns(),
        nrows=24,
        disable=not visible,
    )
    start = time.monotonic()
    over = threading.Event()

    # A thread, as the work may take minutes between two calls of `update`.
    def show() -> None:
        while not over.wait(0.2):
            now = time.monotonic()
            if redraws and now > start + FIRST_SECONDS:
                bar.ncols = _columns()  # the window may have changed
                bar.refresh()
            elif not redraws and now > max(start + FIRST_SECONDS, _last_line[0] + LOG_SECONDS):
                say(str(bar).rstrip())

    thread = threading.Thread(target=show, daemon=True)
    if visible:
        thread.start()
    try:
        yield bar
    finally:
        over.set()
        if visible:
            thread.join()
            if redraws:
                bar.clear()
                sys.stderr.flush()
        bar.close()


def _columns() -> int:
    """Return the width for a line: one less than the terminal's, as some terminals wrap when the last column is written."""
    with suppress(OSError, ValueError):  # no terminal
        return (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1
    return 79


def is_notebook() -> bool:
    """Return True in the kernel of a notebook, whose error output is not a terminal but can redraw a line."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None


def say(line: str) -> None:
    """Write a line on the error output."""
    print(printable(line), file=sys.stderr, flush=True)
    _last_line[0] = time.monotonic()


class _Compilation(event.Listener):
    """Announces once, on a terminal or in a notebook, that functions of this package take long to compile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.announced = False
        # functions that are being compiled, each called by the one before
        self._depth = 0
        self._latest = 0.0

    def on_start(self, event: Any) -> None:
        if not str(event.data["dispatcher"].__module__).startswith("herdfilter."):
            return
        now = time.monotonic()
        if self._depth:
            self.seconds += now - self._latest
        self._depth += 1 if event.is_start else -1
        self._latest = now
        if self.seconds > COMPILE_SECONDS and not self.announced:
            self.announced = True
            with suppress(AttributeError, OSError, ValueError):  # without an error output
                if sys.stderr.isatty() or is_notebook():
                    from tqdm import tqdm

                    tqdm.write(
                        f"herdfilter compiles, once ({self.seconds:.0f} s so far)", file=sys.stderr
                    )

    on_end = on_start  # one method for both, so that nested compilations are counted once


compilation = _Compilation()
event.register("numba:compile", compilation)  # type: ignore[no-untyped-call]
