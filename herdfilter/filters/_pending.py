"""A prediction that is put off until the observation is known, or until somebody asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter.filters._parts import returned
from herdfilter.filters.cloud import Cloud
from herdfilter.filters.move import Move
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import ObservingProposal


class Pending:
    """A move that an observing proposal has to make: guided by the observation, or without one.

    The particles without the observation are drawn when they are first asked for, from where the generator stands, which
    is then put back: asking does not change what follows.
    """

    def __init__(
        self, proposal: ObservingProposal, move: Move, start: Cloud, rng: np.random.Generator
    ) -> None:
        self.proposal, self.move, self.start, self.rng = proposal, move, start, rng
        self._predicted: tuple[Cloud, Any] | None = None  # and the generator's state after it

    def guided(self, seen: Observation) -> Cloud:
        """Particles with their weights times the likelihood, not normalised."""
        cloud = self.proposal.guide(self.move, self.start, seen, self.rng)
        return returned(cloud, self.proposal, "guide", self.start.particles.shape)

    def prediction(self) -> Cloud:
        """Particles without the observation."""
        return self._drawn()[0]

    def kept(self) -> Cloud:
        """Particles without the observation, with the generator left after their draw."""
        cloud, self.rng.bit_generator.state = self._drawn()
        return cloud

    def _drawn(self) -> tuple[Cloud, Any]:
        if self._predicted is None:
            stream = self.rng.bit_generator
            before = stream.state
            cloud = self.proposal.propose(self.move, self.start, self.rng)
            shape = self.start.particles.shape
            self._predicted = returned(cloud, self.proposal, "propose", shape), stream.state
            stream.state = before
        return self._predicted
