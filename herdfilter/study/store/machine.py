"""Where and with what the work is done."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from typing import Any

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
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def machine() -> dict[str, Any]:
    """Return system, processor, number of cores and byte order."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "byteorder": sys.byteorder,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
