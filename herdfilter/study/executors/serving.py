"""A process that does the tasks which another one sends: the other end of `supervised`."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from numba.core import event

from herdfilter.study.executors.processes import begin_work
from herdfilter.study.tasks import Task


def serve(parent: int) -> None:
    """Do the tasks that come on the standard input, and answer on the standard output, until it is closed.

    An answer is a pair: ``"stage"`` and what begins now, or nothing while code is compiled; ``"done"`` and the outcomes;
    or ``"raised"`` and the error, pickled and as text.
    """
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # models read nothing here,
    os.dup2(2, 1)  # and what they print goes where errors go
    begin_work(parent)
    stages = _Stages(outward)
    event.register("numba:compile", stages)
    with suppress(EOFError):
        work = pickle.load(inward)
        while True:
            task = pickle.load(inward)
            _answer(outward, *_done(work, task, stages.begin))


def _done(work: Callable[..., Any], task: Task, stage: Callable[[str], None]) -> tuple[str, Any]:
    try:
        return "done", work([task], stage=stage)
    except BaseException as error:
        data = b""
        with suppress(Exception):
            error.add_note(traceback.format_exc())  # what was here is not seen there
            data = pickle.dumps(error)
        return "raised", (data, f"{type(error).__name__}: {error}")


def _answer(outward: BinaryIO, kind: str, value: Any) -> None:
    pickle.dump((kind, value), outward)
    outward.flush()


class _Stages(event.Listener):
    """Tells which stage begins; compiling interrupts it."""

    def __init__(self, outward: BinaryIO) -> None:
        self._outward, self._stage, self._depth = outward, "", 0

    def begin(self, stage: str) -> None:
        self._stage = stage
        _answer(self._outward, "stage", stage)

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            _answer(self._outward, "stage", "")

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            _answer(self._outward, "stage", self._stage)
