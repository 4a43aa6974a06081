"""The unit of work, of storage and of failure, and what it gives."""

from __future__ import annotations

import math
import re
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from herdfilter._checks import Array

Key = tuple[str, int]
"""Filter name and particle count."""


class Task(NamedTuple):
    """One run of one filter at one particle count: the unit of work, of storage and of failure."""

    filter: str
    n_particles: int
    run: int

    @property
    def key(self) -> Key:
        """Filter name and particle count."""
        return self.filter, self.n_particles


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a task gives.

    Attributes
    ----------
    task : Task
    row : dict
        Its part of the table: ``reference``, ``reference_sd``, ``diverged``, ``error``, ``traceback``, and the numbers
        measured, none of a run that failed.
    series : dict
        Name -> values at every step (T,): squared errors against ``truth`` and ``reference``, and more.
    shown : dict
        (filter, name) -> array, what run 0 gives to the `Trajectory`; what all filters share has the filter ``""``.
    seconds, preparation : float
        What the filter took, and what recording and reference took if they had to be made.
    """

    task: Task
    row: Mapping[str, Any]
    series: Mapping[str, Array] = field(default_factory=dict)
    shown: Mapping[tuple[str, str], Array] = field(default_factory=dict)
    seconds: float = 0.0
    preparation: float = 0.0


def failed(error: str, traceback: str = "") -> dict[str, Any]:
    """Return the row of a task that failed; where code of the user's own did, the error tells its file and line."""
    place = own_code(traceback)
    row = {"reference": "", "reference_sd": math.nan, "diverged": True}
    return row | {"error": " ".join(f"{error} {place}".split()), "traceback": traceback}


def own_code(traceback: str) -> str:
    """Return where a traceback last passes through code of the user's own; empty if it never does.

    Such as ``(pendulum.py, line 12, in transition_mean)``. Code is not the user's own if it stands in this package, in the
    standard library or where packages are installed.
    """
    paths = sysconfig.get_paths()
    others = [Path(paths[name]) for name in ("stdlib", "purelib", "platlib")] + [Path(__file__).parents[1]]
    for name, line, function in reversed(re.findall(r'File "(.+?)", line (\d+), in (.+)', traceback)):
        file = Path(name)
        if file.is_file() and not any(file.is_relative_to(other) for other in others):
            return f"({file.name}, line {line}, in {function})"
    return ""
