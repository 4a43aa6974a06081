"""A log-likelihood as a function of parameters: what a filter that is built for them makes of the observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from herdfilter._checks import Array, short_repr
from herdfilter.filters.results import DegenerateWeightsError


class LogLikelihood:
    """The log-likelihood as a function of the parameters: -inf where it is none, computed once everywhere."""

    def __init__(self, build: Callable[[Array], Any], observations: Any, run: dict[str, Any]) -> None:
        if not callable(build):
            raise TypeError(f"build: expected a function from parameters to a filter, got {short_repr(build)}")
        self.build, self.observations, self.run = build, observations, run
        self.seen: dict[tuple[float, ...], float] = {}
        self.evaluations = 0
        self._last: Any = None

    def __call__(self, theta: Array) -> float:
        # to 13 digits: places that different sums of steps lead to are the same
        theta = np.array([float(f"{value:.13g}") for value in theta])
        key = tuple(theta)
        if key not in self.seen:
            self.evaluations += 1
            try:
                value = self._computed(theta)
            except DegenerateWeightsError as error:
                if not self.seen:
                    error.add_note(f"at theta0 = {theta.tolist()}")
                    raise
                value = -np.inf
            except Exception as error:
                error.add_note(f"at theta = {theta.tolist()}")
                raise
            self.seen[key] = -np.inf if np.isnan(value) and self.seen else value
        return self.seen[key]

    def _computed(self, theta: Array) -> float:
        online = self.build(theta)
        if not callable(getattr(online, "run", None)):
            raise TypeError(f"build: expected a filter, which has a method run, got {short_repr(online)}")
        if online is self._last:
            raise ValueError(f"build: expected a new filter every time, got the same {type(online).__name__} again")
        self._last = online
        return float(online.run(self.observations, **self.run).log_likelihood)

    def best(self) -> Array:
        """Return the best place so far."""
        return np.array(max(self.seen, key=lambda theta: self.seen[theta]))

    def differences(self, x: Array, i: int, step: float) -> tuple[float, float]:
        """First and second derivative along parameter i, by central differences."""
        e = np.zeros(len(x))
        e[i] = step
        ahead, behind = self(x + e), self(x - e)
        return (ahead - behind) / (2 * step), (ahead - 2 * self(x) + behind) / step**2
