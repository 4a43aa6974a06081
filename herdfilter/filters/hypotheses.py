"""Hypotheses about what a filter has seen: copies of it that take up one observation or another, and one filter for all."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.filters.results import DegenerateWeightsError, Outcome, StepRecord
from herdfilter.models.sensors import Sensor


class Supposing(Protocol):
    """A filter that can stand for several hypotheses. It replaces what it holds, and changes none of it."""

    @property
    def mean(self) -> Array:
        """Mean of the state, (d,)."""
        ...

    @property
    def covariance(self) -> Array:
        """Covariance of the state, (d, d)."""
        ...

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Go to the next step."""
        ...

    def update(self, z: ArrayLike | None, sensor: Sensor | None = None) -> StepRecord:
        """Take up the observation there."""
        ...

    def predicted_observation(self, sensor: Sensor | None = None) -> tuple[Array, Array] | None:
        """Mean and covariance of the observation before it is taken up; None where there are none."""
        ...

    def combined(self, others: Sequence[Any], weights: Array) -> Any:
        """Return a filter that stands for the mixture of what these believe, weights (H,) that sum to 1."""
        ...


F = TypeVar("F", bound=Supposing)


class Hypothesis(NamedTuple):
    """A filter that has taken up an observation, and the log-density of that by what it believed before."""

    filter: Any
    log_evidence: float


def supposed(online: Supposing, z: ArrayLike | None, sensor: Sensor | None = None) -> Hypothesis:
    """Return a copy of a filter that has taken up an observation; the filter itself stands where it stood.

    The evidence is minus infinity, and the copy of no use, where the likelihood vanishes wherever the filter looks.
    """
    copied = copy.copy(online)
    try:
        record = copied.update(z, sensor)
    except DegenerateWeightsError:
        return Hypothesis(copied, -np.inf)
    vanished = record.outcome is Outcome.DEGENERATE
    return Hypothesis(copied, -np.inf if vanished else record.log_likelihood)


def combined(filters: Sequence[F], weights: Array) -> F:
    """Return one filter for several hypotheses about the same state, with their probabilities (H,), which sum to 1.

    A Gaussian takes the mean and the covariance of the mixture (the JPDA filter of Bar-Shalom and Tse 1975). Particles are
    united, each cloud with its weight; as many as before are made of the union at the next step. A hypothesis that has all
    of the weight is returned as it is.
    """
    kept = np.flatnonzero(weights).tolist()
    if len(kept) == 1:
        return filters[kept[0]]
    return filters[kept[0]].combined([filters[i] for i in kept], weights[kept])
