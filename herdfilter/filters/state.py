"""The state of a filter: taken as one frozen thing, and given back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class FilterState:
    """The state of a filter or a tracker; what it holds is replaced at every step, never changed.

    That is its particles or belief, a transition that waits for its observation, step, clock and log-likelihood; and the
    states of its generators, and of those of its tracks. `OnlineFilter.state` is the same as arrays.
    """

    attributes: dict[str, Any]
    streams: list[tuple[Any, Any]]  # bit generators, each with its state

    @classmethod
    def of(cls, online: Any) -> FilterState:
        """Take the state of a filter or a tracker."""
        filters = [online, *(track.filter for track in getattr(online, "tracks", ()))]
        generators = [one.rng for one in filters if isinstance(getattr(one, "rng", None), np.random.Generator)]
        return cls(dict(vars(online)), [(rng.bit_generator, rng.bit_generator.state) for rng in generators])

    def give_back(self, online: Any) -> None:
        """Let the filter or tracker stand there again."""
        vars(online).clear()
        vars(online).update(self.attributes)
        for stream, state in self.streams:
            stream.state = state
