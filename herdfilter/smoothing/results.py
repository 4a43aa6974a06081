"""What smoothers report: the moments of every state, and a named failure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter._one_line import one_line
from herdfilter.filters.views import Views


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedResult(Views):
    """What observations before and after each of T steps say of its state.

    Attributes
    ----------
    means, covariances : ndarray, shapes (T, d) and (T, d, d)
        One row for each row of the filter's result: those of the same time are the same state.
    particles, weights : ndarray, shapes (T, n, d) and (T, n), or None
        The filter's particles with their smoothed weights, where it has particles.
    steps : ndarray of int, shape (T,), or None
        Time index of each row.
    times : ndarray, shape (T,), or None
        Time of each row, as it was given to the filter.
    circular : tuple of int
        Indices of the angle-valued dimensions.
    """

    means: Array
    covariances: Array
    particles: Array | None = None
    weights: Array | None = None
    steps: np.ndarray | None = None
    times: np.ndarray | None = None
    circular: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return one_line(self, steps=len(self), dim=self.means.shape[1], particles=self.particles)


class UnreachableStateError(RuntimeError):
    """No particle leads to a state that has weight at the step after it.

    Only a transition density that is zero in places can bring this about.

    Attributes
    ----------
    step : int
        The step whose particles all have a backward weight of zero.
    """

    def __init__(self, step: int, n: int) -> None:
        super().__init__(
            f"step {step}: the transition density vanishes from all {n} particles to a state that has weight at step "
            f"{step + 1}; use more particles, a proposal that draws from the transition, or noise of wider support"
        )
        self.step = step
        self.n = n

    def __reduce__(self) -> tuple[type, tuple[int, int]]:
        return type(self), (self.step, self.n)
