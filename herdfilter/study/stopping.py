"""How a study is stopped from outside, told apart from what a model raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
