"""The machine that a study runs on: its memory, its software, and the folder where references are kept."""

from __future__ import annotations

import copy
import inspect
import logging
import os
import platform
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from herdfilter._checks import Array
from herdfilter._version import __version__

NUMBER = 8
"""Bytes of a number."""

ROW = 400
"""Bytes of a finished run, at least: its place in the list of tasks, and its row in the table."""


def check_study_fits(particles: Sequence[int], dim: int, steps: int, runs: int, filters: int) -> None:
    """Raise ValueError, naming the argument and what it would need, if a study cannot be held in memory.

    Parameters
    ----------
    particles : sequence of int
        Particle counts.
    dim : int
        Of the state.
    steps, runs, filters : int
        How many there are.
    """
    most = max(particles)
    check_fits("particles", f"{most} in {dim} dimensions", most * (dim + 1) * NUMBER)
    check_fits("steps", f"{steps} in {dim} dimensions", steps * dim * NUMBER)
    rows = f"{runs} of {filters} filters at {len(particles)} particle counts"
    check_fits("runs", rows, runs * filters * len(particles) * ROW)


def check_fits(name: str, what: str, needed: int) -> None:
    """Raise ValueError if so many bytes are more than this machine has."""
    there = machine_bytes()
    if there is not None and needed > there:
        raise ValueError(
            f"{name}: {what} need at least {_told(needed)} of memory, this machine has {_told(there)}; take fewer"
        )


def machine_bytes() -> int | None:
    """Return the memory of this machine in bytes; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _told(count: int) -> str:
    return f"{min(count, 10**300) / 1e9:.3g} GB"


_PACKAGES = ("herdfilter", "numpy", "scipy", "numba", "pandas", "joblib", "filterpy", "threadpoolctl", "distributed")


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, SQLite and the packages that matter."""
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def machine() -> dict[str, Any]:
    """Return system, processor, number of cores and byte order."""
    return {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count(), "byteorder": sys.byteorder}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


_log = logging.getLogger(__name__)

T = TypeVar("T")

VARIABLE = "HERDFILTER_CACHE"
"""Environment variable that names the folder; empty or ``off`` means that nothing is kept."""


def remembered(
    compute: Callable[[], T],
    to_arrays: Callable[[T], dict[str, Array]],
    from_arrays: Callable[[dict[str, Array]], T],
    *decided_by: Any,
) -> T:
    """Return ``compute()``, from the disk if it is there for equal arguments `decided_by`.

    It is computed without a folder that can be written, if an argument cannot be pickled (which only tells it from
    others), and if the file is damaged: `from_arrays` raises where arrays are not what `to_arrays` makes.
    """
    place, _ = _place(_folder())
    if place is None:
        return compute()
    try:
        file = place / f"{_digest(decided_by)}.npz"
    except Exception:  # whatever a user's class raises when it is pickled
        return compute()
    with suppress(Exception):  # there is none, or whatever a damaged archive leads to
        return from_arrays(_read(file))
    begin = time.perf_counter()
    value = compute()
    _log.info("a reference was computed in %.1f s: %s", time.perf_counter() - begin, file)
    with suppress(OSError):  # a full disk, or a folder removed in the meantime
        _write(file, to_arrays(value))
    return value


def _read(file: Path) -> dict[str, Array]:
    """Return the arrays of a file. They are numbers: no code is in them."""
    with np.load(file, allow_pickle=False) as arrays:
        return {name: np.asarray(arrays[name], dtype=np.float64) for name in arrays.files}


def _write(file: Path, arrays: dict[str, Any]) -> None:
    """Write a file at once, so that no other process finds half of it."""
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            np.savez(part, **arrays)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise


def warn_if_unusable() -> None:
    """Warn, once a process, if there should be a cache but its folder cannot be written."""
    folder = _folder()
    reason = _place(folder)[1]
    if reason:
        _warn(f"{VARIABLE}: cannot write into {folder} ({reason}); references are computed anew every time")


def sources(model: Any) -> list[str]:
    """Text of the files in which the model's classes stand, so that an edited model is another one.

    Raises
    ------
    OSError
        If there is no such file, as for a class typed in at a prompt.
    """
    classes = [cls for cls in type(model).__mro__ if cls.__module__ != "builtins"]
    return [inspect.getsource(sys.modules[cls.__module__]) for cls in classes]


def bare(model: Any) -> Any:
    """Return a copy of the model without the properties that it has cached: they come with use and decide nothing."""
    model = copy.copy(model)
    for cls in type(model).__mro__:
        for name, attribute in vars(cls).items():
            if isinstance(attribute, cached_property):
                vars(model).pop(name, None)
    return model


def generator_state(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return what decides the numbers that a generator, and those spawned from it, will give."""
    return rng.bit_generator.state, getattr(rng.bit_generator.seed_seq, "state", None)


def _digest(decided_by: Any) -> str:
    import joblib

    return str(joblib.hash((__version__, decided_by)))


def _folder() -> str | None:
    place = os.environ.get(VARIABLE)
    if place is None:
        return str(user_cache())
    return None if place.strip().lower() in ("", "off") else str(Path(place).expanduser())


def user_cache() -> Path:
    """Return the folder of this system for files that can be made again."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "herdfilter"


@cache
def _place(folder: str | None) -> tuple[Path | None, str]:
    """Return where the files lie in a folder, or None and the reason why there is no such place."""
    if folder is None:
        return None, ""
    place = Path(folder) / "references"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
        return place, ""
    except OSError as error:
        return None, error.strerror or str(error)


@cache
def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
