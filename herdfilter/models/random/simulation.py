"""A short simulation of a system, from which its spread, its sensors and its grid are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract

CHAINS = 400
"""Independent trajectories of a simulation."""

KEPT = 10
"""How many of its last steps count as the long run."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """States (n, d): of the long run, the two successors of each of the last of them, and the extremes from the start on.

    A chaotic system doubles a difference of the last bit at every step or so: its run is short enough for the three digits
    that are kept of whatever is found here.
    """

    states: Array
    one: Array
    other: Array
    lowest: Array
    highest: Array

    @property
    def centre(self) -> Array:
        """Mean of each coordinate."""
        return self.states.mean(axis=0)

    @property
    def spread(self) -> Array:
        """Standard deviation of each coordinate."""
        return self.states.std(axis=0)


def simulated(motion: Any, initial: GaussianMixture) -> Simulation:
    """Simulate a transition from an initial distribution until its drift has settled."""
    rng = np.random.Generator(np.random.PCG64(0))
    x = initial.sample(CHAINS, rng)
    lowest, highest, kept = x.min(axis=0), x.max(axis=0), []
    for step in range(motion.drift.settled + KEPT):
        x = contract.sample_transition(motion, x, rng, 1.0, None, 1)
        lowest, highest = np.minimum(lowest, x.min(axis=0)), np.maximum(highest, x.max(axis=0))
        if step >= motion.drift.settled:
            kept.append(x)
    one, other = (contract.sample_transition(motion, x, rng, 1.0, None, 1) for _ in range(2))
    return Simulation(np.concatenate(kept), one, other, lowest, highest)
