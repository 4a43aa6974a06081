"""The bootstrap proposal: every particle draws its own successor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.base import BaseProposal, Uses
from herdfilter.filters.transition import Transition


@dataclass(frozen=True)
class BootstrapProposal(BaseProposal):
    """Draws from the transition density (Gordon, Salmond and Smith 1993); weights stay with their particles.

    Examples
    --------
    It asks a model for nothing but draws from the transition and a likelihood: here steps of Laplace's distribution, and
    an observation with noise of that kind.

    >>> class Walk:
    ...     dim = 1
    ...     initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])
    ...     def sample_transition(self, x, rng, dt, control, step):
    ...         return x + rng.laplace(size=x.shape)
    ...     def log_likelihood(self, z, x, step):
    ...         return -abs(z - x[:, 0])
    ...
    >>> pf = hf.ParticleFilter(Walk(), n_particles=300, proposal=hf.BootstrapProposal(), rng=0)
    >>> result = pf.run([1.0, 2.0, 3.0, 4.0])
    >>> bool(abs(result.means[-1, 0] - 4.0) < 1)
    True
    """

    uses: ClassVar[Uses] = Uses()
    transitions = (*BaseProposal.transitions, ("sample_transition",))

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        moved = Particles.unchecked(transition.sample(particles.x, rng), particles.log_weights)
        return moved if observation is None else observation.weigh(moved)
