"""The unit of work, of storage and of failure, and what it gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """Return the row of a task that failed."""
    row = {"reference": "", "reference_sd": math.nan, "diverged": True}
    return row | {"error": " ".join(error.split()), "traceback": traceback}
