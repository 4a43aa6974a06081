"""Results of smoothers, and the backward recursion that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import filters
from herdfilter._checks import Array, as_list
from herdfilter._repr import summary_repr
from herdfilter.filters.results import Views
from herdfilter.filters.series import Controls, TimeSteps
from herdfilter.models.contract import Model, circular_dims, position_dims
from herdfilter.models.series import Clock, series


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedResult(Views):
    """Moments of the states of T steps, given the observations before and after each.

    Attributes
    ----------
    means, covariances : ndarray, shapes (T, d) and (T, d, d)
        One row for each row of the filter's result; rows of the same time are the same state.
    particles, weights : ndarray, shapes (T, n, d) and (T, n), or None
        The particles of a particle filter with their smoothed weights.
    steps : ndarray of int, shape (T,), or None
        Time index of each row.
    times : ndarray, shape (T,), or None
        Time of each row, as it was given to the filter.
    circular, position_dims : tuple of int
        Indices of the angle-valued dimensions, and of those that the model calls positions.

    Examples
    --------
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(2), n_particles=50, proposal=hf.RankedProposal())
    >>> filtered = pf.run([[0.5, 0.1], [1.0, -0.2], [0.3, 0.4]], keep_particles=True)
    >>> smoothed = hf.marginal_smoother(pf, filtered)
    >>> smoothed.means.shape, smoothed.covariances.shape, smoothed.particles.shape, smoothed.weights.shape
    ((3, 2), (3, 2, 2), (3, 50, 2), (3, 50))
    """

    means: Array
    covariances: Array
    particles: Array | None = None
    weights: Array | None = None
    steps: np.ndarray | None = None
    times: np.ndarray | None = None
    circular: tuple[int, ...] = ()
    position_dims: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return summary_repr(
            self, steps=len(self), dim=self.means.shape[1], particles=self.particles
        )


class UnreachableStateError(RuntimeError):
    """The transition density vanishes from all particles of a step to a state that has weight at the next step.

    Attributes
    ----------
    step : int
        The step whose particles all have a backward weight of zero.

    Examples
    --------
    A density that contradicts the simulation of its model:

    >>> class Wrong(hf.models.UNGM):
    ...     def transition_log_density(self, x_next, x, dt, control, step):
    ...         return np.full((len(x_next), len(x)), -np.inf)
    ...
    >>> pf = hf.ParticleFilter(Wrong(), n_particles=50, rng=0)
    >>> filtered = pf.run([1.0, 2.0, 3.0], keep_particles=True)
    >>> try:
    ...     hf.marginal_smoother(pf, filtered)
    ... except hf.UnreachableStateError as error:
    ...     print(error.step)
    ...
    2
    """

    def __init__(self, step: int, n: int) -> None:
        super().__init__(step, n)  # what the error is pickled with
        self.step = step
        self.n = n

    def __str__(self) -> str:
        return (
            f"step {self.step}: the transition density vanishes from all {self.n} particles to a state that has weight at "
            f"step {self.step + 1}; use more particles, a proposal that draws from the transition, or noise of wider support"
        )


Horizons = tuple[Array, ...]
"""Moments of Gaussians, or weights and moments of particles, with a row for each of K horizons.

A horizon is the last step whose observations are used.
"""


class FilteredStep(Protocol):
    """A step of a filter, and the transition to the next step."""

    @property
    def particles(self) -> Array | None:
        """The particles (n, d); None for a Gaussian."""

    @property
    def onward(self) -> filters.Transition:
        """The transition to the next step; not used in the last one."""

    @property
    def belief(self) -> Horizons:
        """Moments or weights given the observations up to this step, which is the only horizon."""

    def back(self, after: FilteredStep, later: Horizons) -> Horizons:
        """Return the moments or weights of this step from those of the next one, for the same K horizons."""

    def moments(self, belief: Horizons) -> tuple[Array, Array]:
        """Return mean (d,) and covariance (d, d) of the state for the first horizon."""


def smooth_back(
    filtered: Sequence[FilteredStep], lag: int, rows: Any = ..., **labels: Any
) -> SmoothedResult:
    """Smooth each step by the observations up to `lag` steps after it, and return a row of the result for each of `rows`.

    In the backward sweep a step holds all horizons that it or an earlier step needs, the farthest first. If `lag` covers all
    steps, that is only the last one, and the whole series is smoothed.
    """
    last = len(filtered) - 1
    of_particles = filtered[last].particles is not None
    beliefs = filtered[last].belief
    model = filtered[last].onward.model
    weights = []
    moments = []
    for k in range(last, -1, -1):
        if k < last:
            # From here on the farthest horizon is more than `lag` steps ahead: one is dropped at each step.
            if k + lag < last:
                beliefs = tuple(part[1:] for part in beliefs)
            if len(beliefs[0]):
                beliefs = filtered[k].back(filtered[k + 1], beliefs)
            # This step is the horizon of the step `lag` before it, if there is one.
            if k >= lag:
                beliefs = tuple(
                    np.concatenate(pair) for pair in zip(beliefs, filtered[k].belief, strict=True)
                )
        weights.append(beliefs[0][0])
        moments.append(filtered[k].moments(beliefs))
    means, covariances = map(np.array, zip(*reversed(moments), strict=True))
    return SmoothedResult(
        means=means[rows],
        covariances=covariances[rows],
        particles=np.array([step.particles for step in filtered])[rows] if of_particles else None,
        weights=np.array(weights[::-1])[rows] if of_particles else None,
        circular=circular_dims(model),
        position_dims=position_dims(model),
        **labels,
    )


class Course(NamedTuple):
    """The S steps of a filter; each has one or more of the T rows of the filter's result."""

    result: filters.FilterResult
    last: np.ndarray  # (S,), the last row of each step, after all readings of its time
    step_of_row: np.ndarray  # (T,), index of each row's step
    transitions: list[filters.Transition]  # S, from each step to the next; the last one is not used

    @classmethod
    def of(
        cls,
        model: Model,
        result: filters.FilterResult,
        dt: TimeSteps | None,
        controls: Controls | None,
        times: ArrayLike | None,
    ) -> Course:
        """Find the steps of a result; without `dt` and `times` its own times give the time steps."""
        if not isinstance(result, filters.FilterResult):
            raise TypeError(f"result: expected a FilterResult, got {type(result).__name__}")
        rows = len(result)
        if not rows:
            raise ValueError("result: expected at least one step, got none")
        if result.means.shape[1] != model.dim:
            raise ValueError(
                f"result: expected states of the model's dimension, {model.dim}, got {result.means.shape[1]}"
            )
        # The time before the first row is not known; its interval leads to the first step, and is not used.
        start = None if times is None else next(iter(as_list("times", times)), None)
        entries = series([None] * rows, dt, controls, times, start)
        numbers = np.arange(1, rows + 1) if result.steps is None else result.steps
        # Rows with the same number are readings of the same time, and one step.
        _, first, step_of_row, counts = np.unique(
            numbers, return_index=True, return_inverse=True, return_counts=True
        )
        intervals = np.array([entry.dt for entry in entries])
        if dt is None and times is None and result.times is not None:
            elapsed = Clock.at(result.times[0]).elapsed(list(result.times))
            intervals[first[1:]] = np.diff(elapsed[first])
        transitions = [
            filters.Transition(
                model, float(intervals[row]), entries[row].control, int(numbers[row])
            )
            for row in first[1:]
        ]
        last = first + counts - 1
        return cls(result, last, step_of_row, [*transitions, filters.Transition(model)])

    def smooth(self, steps: Sequence[FilteredStep], lag: int | None = None) -> SmoothedResult:
        """Smooth each step by the observations up to `lag` steps after it, by default to the last."""
        lag = len(steps) if lag is None else lag
        times = self.result.times
        return smooth_back(steps, lag, self.step_of_row, steps=self.result.steps, times=times)
