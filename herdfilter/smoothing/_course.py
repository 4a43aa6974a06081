"""The steps that a filter went through, read off its result: which rows are of which step, and the moves between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.filters import FilterResult, ParticleFilter, Transition
from herdfilter.filters.kalman import KalmanFilter
from herdfilter.filters.series import elapsed, series
from herdfilter.models.contract import Model


class Course(NamedTuple):
    """S steps, of one or more of T rows each.

    Attributes
    ----------
    last : ndarray of int, shape (S,)
        The last row of each step, which has all readings of its time.
    place : ndarray of int, shape (T,)
        Which of the steps each row is of.
    moves : list of Transition, length S - 1
        From each step to the next.
    """

    last: np.ndarray
    place: np.ndarray
    moves: list[Transition]

    @classmethod
    def of(
        cls,
        model: Model,
        result: FilterResult,
        dt: float | Sequence[float] | Array | None,
        controls: Sequence[Any] | Array | None,
        times: ArrayLike | None,
    ) -> Course:
        """Read the steps off a result; time steps are those of its own times unless others are given."""
        rows = len(result)
        entries = series([None] * rows, 1.0 if dt is None else dt, controls, times)
        numbers = np.arange(1, rows + 1) if result.steps is None else result.steps
        first = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        intervals = np.array([entry.dt for entry in entries])
        if dt is None and times is None and result.times is not None:
            since = elapsed(list(result.times), result.times[0])
            intervals[first[1:]] = since[first[1:]] - since[first[:-1]]
        moves = [Transition(model, float(intervals[row]), entries[row].control, int(numbers[row])) for row in first[1:]]
        place = np.repeat(np.arange(len(first)), np.diff(first, append=rows))
        return cls(np.append(first[1:], rows) - 1, place, moves)


def model_of(given: Any) -> Model:
    """Return the model of a filter, or the model that was given."""
    return given.model if isinstance(given, ParticleFilter | KalmanFilter) else given


def checked(result: Any, model: Model) -> FilterResult:
    """Return the result of a run of at least one step with this model."""
    if not isinstance(result, FilterResult):
        raise TypeError(f"result: expected a FilterResult, got {type(result).__name__}")
    if not len(result):
        raise ValueError("result: expected at least one step, got none")
    if result.means.shape[1] != model.dim:
        raise ValueError(f"result: expected states of the model's dimension, {model.dim}, got {result.means.shape[1]}")
    return result


def particles_of(result: FilterResult) -> tuple[Array, Array]:
    """Particles (T, n, d) and weights (T, n) of a result that has them."""
    if result.particles is None or result.weights is None:
        raise ValueError("result: expected particles, which ParticleFilter.run(..., keep_particles=True) keeps; got none")
    return result.particles, result.weights
