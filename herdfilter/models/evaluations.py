"""Evaluations of a model: the states at which its functions were asked, counted where they are called."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from herdfilter._checks import Array

__all__ = ["Evaluations", "count_evaluations"]


@dataclass(slots=True)
class Evaluations:
    """Numbers of states at which functions of models were asked.

    Attributes
    ----------
    transition : int
        States given to ``transition_mean``, ``transition``, ``sample_transition`` or ``transition_jacobian``; of
        ``transition_log_density`` the states that it starts from.
    observation : int
        States given to ``observation_mean``, ``log_likelihood`` or ``observation_jacobian``, and to
        ``observation_covariance`` if that depends on the state.

    Examples
    --------
    >>> hf.models.Evaluations(transition=100, observation=300).total
    400
    """

    transition: int = 0
    observation: int = 0
    # Grows with every count: a caller sees whether a function has asked another one, which is counted in its place.
    calls: int = field(default=0, repr=False, compare=False)

    @property
    def total(self) -> int:
        """All evaluations."""
        return self.transition + self.observation

    def add(self, transition: int = 0, observation: int = 0) -> None:
        """Count states."""
        self.transition += transition
        self.observation += observation
        self.calls += 1


class _Thread(threading.local):
    def __init__(self) -> None:
        self.evaluations = Evaluations()


THREAD = _Thread()
"""Its `evaluations` are those of the present thread since its start."""


@contextmanager
def count_evaluations() -> Iterator[Evaluations]:
    """Count the evaluations of models in this thread, in a ``with`` block; the numbers are there when it ends.

    An evaluation is one state at which a function of the model was asked. States at which two functions were asked count
    twice, and a Jacobian counts as one evaluation at each state. Where a model contains another one, the functions of the
    inner model count. Initial states, and covariances that are the same for all states, do not. Filters of other libraries
    call a model's functions directly and are not counted.

    Examples
    --------
    A bootstrap filter asks the transition and the likelihood once for each particle, the unscented filter at 2 d + 1 points:

    >>> model = hf.models.UNGM()
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> for estimator in (hf.ParticleFilter(model, 100, rng=0), hf.UnscentedKalmanFilter(model)):
    ...     with hf.models.count_evaluations() as evaluations:
    ...         result = estimator.run(z)
    ...     print(evaluations.transition / 10, evaluations.observation / 10, evaluations.total)
    100.0 100.0 2000
    3.0 3.0 60
    """
    counts = THREAD.evaluations
    before = replace(counts)
    evaluations = Evaluations()
    try:
        yield evaluations
    finally:
        evaluations.transition = counts.transition - before.transition
        evaluations.observation = counts.observation - before.observation


def counted(jacobian: Callable[..., Any] | None, part: str) -> Any:
    """Return a Jacobian of the model's `part` that counts as an evaluation at each state; None if there is none."""

    def values(x: Array, *arguments: Any) -> Any:
        THREAD.evaluations.add(**{part: len(x)})
        return jacobian(x, *arguments)  # type: ignore[misc]

    return jacobian and values
