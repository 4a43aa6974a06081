"""Odd calls: each public callable, from a valid call, with one argument at a time replaced by an odd value.

`valid_calls.py` has the valid calls. Positional arguments stay as they are; every other parameter, given or not, is replaced
in the first call of its function. Left out is what only the package itself calls, with what it has checked: methods of
proposals, resampling schemes, kernels and models.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import multiprocessing
import os
import random
import re
import resource
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime, timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import valid_calls

import herdfilter as hf

PACKAGE = str(Path(hf.__file__).parent)
SECONDS = 10.0
"""Of the processor, that a call may take."""
MEMORY = 4 << 30
"""Bytes that a call may ask for beyond what its process has."""
CLASSES = [
    "fine",
    "refused",
    "refused for another",
    "several lines",
    "raw error",
    "not finite",
    "hang",
    "crash",
]
BAD = CLASSES[3:]
COLUMNS = ["folder", "callable", "parameter", "value", "class", "text"]


class Odd:
    """Takes whatever it is given, and is good for nothing."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        pass


ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "''": lambda: "",
    "'abc'": lambda: "abc",
    "bytes": lambda: b"abc",
    "NaN": lambda: np.nan,
    "inf": lambda: np.inf,
    "-1": lambda: -1,
    "0": lambda: 0,
    "10**30": lambda: 10**30,
    "5e-324": lambda: 5e-324,
    "1e308": lambda: 1e308,
    "complex": lambda: 1 + 2j,
    "True": lambda: True,
    "date": lambda: datetime(2026, 1, 1),
    "timedelta": lambda: timedelta(seconds=1),
    "datetime64": lambda: np.datetime64("2026-01-01"),
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "empty list": lambda: [],
    "empty array": lambda: np.empty((0, 2)),
    "pd.NA": lambda: pd.NA,
    "structured": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "dict": lambda: {"a": 1},
    "set": lambda: {1.0, 2.0},
    "generator": lambda: (k for k in range(3)),
    "lambda": lambda: lambda *arguments, **keywords: None,
    "class": lambda: Odd,
    "object": object,
}
"""What stands for any argument."""
OF_NUMBERS: dict[str, Callable[[np.ndarray], Any]] = {
    "in a list": lambda x: [x.tolist()],
    "as text": lambda x: x.astype(str).tolist(),
    "object array": lambda x: x.astype(object),
    "masked": lambda x: np.ma.masked_array(x, mask=np.arange(x.size).reshape(x.shape) == 0),
    "float32": lambda x: x.astype(np.float32),
    "big-endian": lambda x: x.astype(">f8"),
    "complex array": lambda x: x + 1j,
}
"""What is made of numbers that are valid."""
OF_ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "transposed": lambda x: x.T if x.ndim > 1 else x[:, None],
    "too long": lambda x: np.concatenate([x, x]),
    "too short": lambda x: x[:-1],
    "not contiguous": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "Fortran order": lambda x: np.asfortranarray(x),
    "read-only": lambda x: _read_only(x),
    "with NaN": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 0, np.nan, x),
    "with inf": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 0, np.inf, x),
    "times 1e200": lambda x: x * 1e200,
}
"""The same of arrays that have an axis."""


def _read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


class Call(NamedTuple):
    """A statement of `valid`, and the parameter of the call in it, by its place, that is replaced by an odd value."""

    statement: int
    place: int
    name: str
    parameter: str
    value: str


class Statements:
    """The valid calls, in which one argument can be replaced."""

    def __init__(self) -> None:
        body = ast.parse(inspect.getsource(valid_calls.valid)).body[0].body[1:]  # type: ignore[attr-defined]
        self.codes = [_compiled(statement) for statement in body]

    def run(self, statement: int, call: Callable[..., Any]) -> Any:
        """Return what a statement gives; `call` makes its calls."""
        names = {**vars(valid_calls), "_call": call}
        exec(self.codes[statement], names)
        return names["_result"]

    def calls(self, statements: Iterable[int]) -> Iterator[Call]:
        """Odd calls of some statements, after a run of each as it is."""
        known: set[tuple[str, str]] = set()
        for k in statements:
            made: list[tuple[int, str, dict[str, Any]]] = []
            result = self.run(k, partial(_noted, made))
            if not finite(result):
                raise ValueError(
                    f"the valid call {k + 1} gives numbers that are not finite: {result}"
                )
            for place, name, replaced in made:
                once = name if name.startswith("herdfilter") else f"{name} {k}"
                for parameter, value in replaced.items():
                    if (once, parameter) not in known:
                        known.add((once, parameter))
                        yield from (Call(k, place, name, parameter, odd) for odd in _values(value))

    def try_one(self, odd: Call) -> tuple[str, str]:
        """Return the class of a call, and the error's text or what came."""

        def call(place: int, function: Any, /, *arguments: Any, **given: Any) -> Any:
            if place == odd.place:
                valid = _replaced(function, arguments, given)[odd.parameter]
                given[odd.parameter] = _values(valid)[odd.value]()
            return function(*arguments, **given)

        try:
            result = self.run(odd.statement, call)
            shown = repr(result)
        except Exception as error:
            return _class_of(error, odd.parameter), f"{type(error).__name__}: {error}"
        return ("fine" if finite(result) else "not finite"), " ".join(shown.split())


def _noted(made: list, place: int, function: Any, /, *arguments: Any, **given: Any) -> Any:
    made.append((place, _name(function), _replaced(function, arguments, given)))
    return function(*arguments, **given)


def _compiled(statement: ast.stmt) -> Any:
    """Return the code that stores the value of a statement, and hands every call in it to `_call`, by number."""

    class Calls(ast.NodeTransformer):
        place = 0

        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            self.place += 1
            name = ast.Name("_call", ast.Load())
            return ast.Call(name, [ast.Constant(self.place), node.func, *node.args], node.keywords)

    assert isinstance(statement, ast.Expr | ast.Assign)
    value = Calls().visit(statement.value)
    module = ast.Module([ast.Assign([ast.Name("_result", ast.Store())], value)], [])
    return compile(ast.fix_missing_locations(module), "valid_calls", "exec")


def _name(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _replaced(function: Any, arguments: tuple, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a function of ours that are not given by position, and their valid values."""
    if not function.__module__.startswith(("herdfilter", "valid_calls")):
        return {}
    named = [p for p in inspect.signature(function).parameters.values() if p.kind in (1, 3)][
        len(arguments) :
    ]
    return {p.name: p.default for p in named if p.default is not p.empty} | given


def _values(valid: Any) -> dict[str, Callable[[], Any]]:
    """Return the odd values that may stand in place of a valid one."""
    values = dict(ODD)
    try:
        x = np.array(valid)
    except ValueError:
        return values
    if x.dtype.kind in "iuf":
        of = OF_NUMBERS | (OF_ARRAYS if x.ndim and x.size else {})
        values |= {name: lambda make=make: make(x.astype(float)) for name, make in of.items()}
    return values


def _class_of(error: Exception, parameter: str) -> str:
    """Return the class of an error: raw unless a `raise` of the package raised it.

    It may name another argument, which the odd one spoils.
    """
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    frame = trace.tb_frame.f_code.co_filename if trace else ""
    line = linecache.getline(frame, trace.tb_lineno).strip() if trace else ""
    text = str(error)
    if not (frame.startswith(PACKAGE) and line.startswith("raise")):
        return "raw error"
    if "\n" in text.strip():
        return "several lines"
    return (
        "refused"
        if re.search(rf"(?<![a-z]){parameter.rstrip('s')}", text, re.I)
        else "refused for another"
    )


def finite(result: Any, depth: int = 4) -> bool:
    """Whether all numbers of a result are finite; minus infinity is a logarithm, NaN the ESS of no particles."""
    if np.ma.is_masked(result):
        return False
    if isinstance(result, float | complex | np.number):
        return bool(np.isfinite(result) or result == -np.inf)
    if isinstance(result, np.ndarray):
        return result.dtype.kind not in "fc" or bool(
            (np.isfinite(result) | (result == -np.inf)).all()
        )
    if isinstance(
        result, hf.MaximumLikelihood
    ):  # of a flat or rough one there are no standard errors
        return finite([result.theta, result.log_likelihood])
    if depth == 0 or isinstance(result, str | type | pd.DataFrame) or inspect.isroutine(result):
        return True
    if isinstance(result, hf.Replay):  # it also holds the control inputs that the user gave
        return finite(result.filter, depth)
    if isinstance(result, dict):
        return finite(list(result.values()), depth)
    if isinstance(result, list | tuple | set):
        return all(finite(part, depth - 1) for part in result)
    names = {*getattr(result, "__dict__", ()), *getattr(type(result), "__slots__", ())} - {
        "ess",
        "distinct_ancestors",
    }
    parts = [getattr(result, name, None) for name in sorted(names)]
    if isinstance(result, hf.ParticleFilter | hf.filters.kalman.KalmanFilter):
        parts += [result.mean, result.covariance]
    return finite(parts, depth)


def measured(
    statements: int | None = None, most: int | None = None, seed: int = 0, apart: bool = True
) -> pd.DataFrame:
    """Return a row for each odd call, of all valid calls or of so many by chance, and of those at `most` so many.

    Each is made in a process apart, which may hang or crash, or else in this one.
    """
    chance, valid = random.Random(seed), Statements()
    kept = range(len(valid.codes))
    odd = list(valid.calls(kept if statements is None else sorted(chance.sample(kept, statements))))
    odd = chance.sample(odd, len(odd))[:most]
    with tempfile.TemporaryDirectory() as folder:
        found = list(_apart(valid, odd, folder) if apart else map(partial(_quiet, valid), odd))
    rows = [
        (
            call.name.split(".")[1].replace("steps", "models"),
            call.name,
            call.parameter,
            call.value,
            *outcome,
        )
        for call, outcome in zip(odd, found, strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _quiet(valid: Statements, odd: Call) -> tuple[str, str]:
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return valid.try_one(odd)


def _apart(statements: Statements, calls: list[Call], folder: str) -> Iterator[tuple[str, str]]:
    """Try the calls one after another in a forked process; where one ends it, a new one goes on."""
    context = multiprocessing.get_context("fork")
    done = 0
    while done < len(calls):
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(statements, calls[done:], sending, folder))
        process.start()
        sending.close()
        try:
            while done < len(calls) and receiving.poll(6 * SECONDS):
                yield receiving.recv()
                done += 1
        except EOFError:
            pass
        if done < len(calls):
            process.kill() if process.is_alive() and not receiving.poll(0) else None
            process.join()
            hung = process.exitcode in (-signal.SIGPROF, -signal.SIGKILL)
            yield ("hang" if hung else "crash"), f"the process ended with {process.exitcode}"
            done += 1
        process.join()


def _work(statements: Statements, calls: list[Call], sending: Any, folder: str) -> None:
    os.chdir(folder)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    for odd in calls:
        signal.setitimer(
            signal.ITIMER_PROF, SECONDS
        )  # its signal ends the process, compiled loops included
        outcome = _quiet(statements, odd)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sending.send((outcome[0], outcome[1][:500]))


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """Return how many calls of each folder are of each class."""
    counts = pd.crosstab(table["folder"], table["class"]).reindex(columns=CLASSES, fill_value=0)
    counts.insert(0, "calls", counts.sum(axis=1))
    counts.loc["all"] = counts.sum()
    return counts.reset_index()
