"""References that took long to compute, kept on disk from one comparison to the next."""

from __future__ import annotations

import copy
import inspect
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from herdfilter._version import __version__

VARIABLE = "HERDFILTER_CACHE"
"""Environment variable that names the folder; empty or ``off`` means that nothing is kept."""


def remembered(compute: Callable[[], Any], *decided_by: Any) -> Any:
    """Return ``compute()``, from the disk if it is there for equal arguments `decided_by`.

    It is computed without a folder that can be written, if an argument cannot be pickled, and if the file is damaged.
    """
    memory, _ = _memory(_folder())
    if memory is None:
        return compute()
    try:
        key = _digest(decided_by)
    except Exception:  # whatever a user's class raises when it is pickled
        return compute()
    try:
        return memory.cache(_kept, ignore=["compute"])(key, compute)
    except OSError:  # a full disk, or a folder removed in the meantime
        return compute()


def warn_if_unusable() -> None:
    """Warn, once a process, if there should be a cache but its folder cannot be written."""
    folder = _folder()
    reason = _memory(folder)[1]
    if reason:
        _warn(f"{VARIABLE}: cannot write into {folder} ({reason}); references are computed anew every time")


def sources(model: Any) -> list[str]:
    """Text of the files in which the model's classes stand, so that an edited model is another one.

    Raises
    ------
    OSError
        If there is no such file, as for a class typed in at a prompt.
    """
    classes = [cls for cls in type(model).__mro__ if cls is not object]
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


def _kept(key: str, compute: Callable[[], Any]) -> Any:
    """Compute; joblib keeps what comes out in a folder named after this function."""
    return compute()


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
def _memory(folder: str | None) -> tuple[Any, str]:
    """Return the `joblib.Memory` in a folder, or None and the reason why there is none."""
    import joblib

    if folder is None:
        return None, ""
    place = Path(folder) / "references"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
        return joblib.Memory(place, verbose=0), ""
    except OSError as error:
        return None, error.strerror or str(error)


@cache
def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
