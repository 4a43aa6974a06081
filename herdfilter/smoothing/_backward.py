"""The recursion of all smoothers: what is believed of a step, given later observations, is carried to the step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters import FilterResult
from herdfilter.models.contract import Model, circular_dims
from herdfilter.smoothing._course import Course
from herdfilter.smoothing.results import SmoothedResult

Belief = tuple[Array, ...]
"""Moments of Gaussians, or weights of particles: one row of each array for each of K horizons, which are the last steps
whose observations are used."""


class Filtered(Protocol):
    """A step of a filter, and the way from there to the next step."""

    @property
    def belief(self) -> Belief:
        """What the observations up to this step say of it: one horizon."""
        ...

    def back(self, after: Filtered, later: Belief) -> Belief:
        """Carry what is believed of the step after this one, K horizons, to this one."""
        ...

    def moments(self, belief: Belief) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of the state by the first horizon."""
        ...


def smoothed(steps: Sequence[Filtered], lag: int) -> list[Belief]:
    """Return what is believed of each step given the observations up to `lag` steps after it, one horizon each.

    Going back, a step has the horizons that it or a step before it asks for, from the farthest on: with a lag of all steps
    that is the last one alone, and this is the smoother of the whole series.
    """
    last = horizon = len(steps) - 1
    beliefs, found = steps[last].belief, []
    for k in range(last, -1, -1):
        if k < last:
            if k + lag < horizon:
                beliefs, horizon = tuple(part[1:] for part in beliefs), horizon - 1
            if len(beliefs[0]):
                beliefs = steps[k].back(steps[k + 1], beliefs)
            if k >= lag:
                own = steps[k].belief
                beliefs = tuple(np.concatenate(pair) for pair in zip(beliefs, own, strict=True))
        found.append(tuple(part[:1] for part in beliefs))
    return found[::-1]


def collected(
    model: Model, result: FilterResult, course: Course, steps: Sequence[Filtered], lag: int | None = None
) -> SmoothedResult:
    """Smooth the steps of a result, up to `lag` steps after each or to the last."""
    beliefs = smoothed(steps, len(steps) if lag is None else lag)
    moments = [step.moments(belief) for step, belief in zip(steps, beliefs, strict=True)]
    shared = len(course.last) < len(result)  # by readings of the same time
    of_particles = len(beliefs[0]) == 1
    particles = result.particles if of_particles else None
    return SmoothedResult(
        means=np.array([mean for mean, _ in moments])[course.place],
        covariances=np.array([covariance for _, covariance in moments])[course.place],
        particles=particles[course.last][course.place] if shared and particles is not None else particles,
        weights=np.vstack([belief[0] for belief in beliefs])[course.place] if of_particles else None,
        steps=result.steps,
        times=result.times,
        circular=circular_dims(model),
    )
