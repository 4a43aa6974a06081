"""The bootstrap proposal: every particle draws its own successor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter.filters.cloud import Cloud
from herdfilter.filters.move import Move
from herdfilter.filters.proposals.base import initial_points
from herdfilter.models.contract import Model, require


@dataclass(frozen=True)
class BootstrapProposal:
    """Draws from the transition density (Gordon, Salmond and Smith 1993); weights stay with their particles."""

    absorbs_weights: ClassVar[bool] = False

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        require(
            model,
            "BootstrapProposal",
            ("transition_mean", "transition_covariance"),
            ("transition", "noise_dim"),
            ("sample_transition",),
        )

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        return initial_points(model, n, rng)

    def propose(self, move: Move, cloud: Cloud, rng: np.random.Generator) -> Cloud:
        """See `Proposal`."""
        return Cloud(move.sample(cloud.particles, rng), cloud.log_weights)
