"""Whether what is asked for fits into the memory of this machine, found out before anything is begun."""

from __future__ import annotations

import os
from collections.abc import Sequence

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
