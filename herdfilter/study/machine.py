"""The machine that a study runs on: its hardware, its software, and the folder where references are cached."""

from __future__ import annotations

import copy
import inspect
import os
import platform
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import IO, Any

_PACKAGES = (
    "herdfilter",
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "joblib",
    "filterpy",
    "threadpoolctl",
    "distributed",
)


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, SQLite and the packages that matter."""
    installed = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def machine() -> dict[str, Any]:
    """Return system, processor, number of cores and byte order."""
    processor = platform.processor() or platform.machine()
    # On Linux `platform` does not know the processor's name.
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8") as lines:
        processor = next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    return {
        "system": platform.platform(),
        "processor": processor,
        "cores": os.cpu_count(),
        "byteorder": sys.byteorder,
    }


# Environment variable that names the cache's folder; empty or ``off`` disables the cache.
VARIABLE = "HERDFILTER_CACHE"


@contextmanager
def written_at_once(file: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file that replaces `file` when it is complete, so that no other process reads half of it."""
    # In the same folder, because a file is only replaced in one go within a file system.
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            yield part
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise


def warn_if_unusable() -> None:
    """Warn, once per process, if the cache is wanted but its folder cannot be written."""
    reason = reference_folder()[1]
    if reason:
        folder = os.environ.get(VARIABLE, "the user's cache")
        _warn_once(
            f"{VARIABLE}: cannot write into {folder} ({reason}); references are computed anew every time"
        )


def sources(model: Any) -> list[str]:
    """Return the text of the files that define the model's classes, which tells an edited model apart; OSError without."""
    classes = [cls for cls in type(model).__mro__ if cls.__module__ != "builtins"]
    return [inspect.getsource(sys.modules[cls.__module__]) for cls in classes]


def bare(model: Any) -> Any:
    """Return a copy of the model without its cached properties, which depend on its use so far and decide nothing."""
    model = copy.copy(model)
    for cls in type(model).__mro__:
        for name, attribute in vars(cls).items():
            if isinstance(attribute, cached_property):
                vars(model).pop(name, None)
    return model


def user_cache() -> Path:
    """Return this system's folder for files that can be computed or downloaded again; OSError if it has none."""
    # Each system's own convention; on Linux the XDG Base Directory Specification.
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base, "herdfilter").expanduser()
    except RuntimeError:
        raise OSError(
            f"no home directory for {base}; set HOME or XDG_CACHE_HOME, or name a folder"
        ) from None


def reference_folder() -> tuple[Path | None, str]:
    """Return the cache's folder of references, or None and why it cannot be written (no reason if the cache is off)."""
    named = os.environ.get(VARIABLE)
    if named is not None and named.strip().lower() in ("", "off"):
        return None, ""
    try:
        references = (user_cache() if named is None else Path(named).expanduser()) / "references"
        check_folder(references)
        return references, ""
    except (OSError, RuntimeError) as error:
        return None, getattr(error, "strerror", None) or str(error)


def check_folder(folder: Path) -> None:
    """Make a folder, and raise OSError if no file can be written into it."""
    folder.mkdir(parents=True, exist_ok=True)
    # Writing is the only sure test: permissions do not tell of read-only or full disks.
    with tempfile.TemporaryFile(dir=folder):
        pass


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=2)
