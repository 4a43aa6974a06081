"""Augmented prediction: state and noise drawn together, then pushed through the transition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.base import BaseProposal, Uses
from herdfilter.filters.proposals.sampled import SampledProposal
from herdfilter.filters.resampling.mixture import check_fit
from herdfilter.filters.transition import Transition
from herdfilter.fitting.base import Fit
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.base import Sampler


@dataclass(frozen=True)
class AugmentedProposal(SampledProposal):
    """Draws (state, noise) from the posterior's fitted mixture times N(0, I) and pushes both through the transition.

    With a deterministic sampler no random number is left in the filter. It serves additive and non-additive noise alike.

    Parameters
    ----------
    fit : Fit
        Weighted particles to mixture: one Gaussian where the posterior is unimodal, more components where it is not.
    sampler : Sampler
        Mixture to points; ``MappedSampling(KernelHerding())`` costs about as much as random draws.

    Raises
    ------
    TypeError
        If a part is not of its kind; in a filter, if the model's transition can only be simulated.

    Examples
    --------
    Points in five dimensions of the state and five of the noise, herded once and then mapped; the initial particles are
    herded, too. Nothing is left to a seed.

    >>> model = hf.models.CoordinatedTurn()
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> proposal = hf.AugmentedProposal(hf.GaussianFit(), hf.MappedSampling(hf.KernelHerding()))
    >>> one, other = (hf.ParticleFilter(model, 100, proposal=proposal, rng=seed).run(z) for seed in (0, 1))
    >>> np.array_equal(one.means, other.means)
    True
    """

    fit: Fit
    sampler: Sampler
    uses: ClassVar[Uses] = Uses(weights=True)
    check = BaseProposal.check  # the sampler draws more dimensions than the state has

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fit(self.fit)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        posterior = self.fit.fit(particles.x, particles.weights, transition.circular)
        joint, log_weights = self.draw(with_noise(posterior, transition.noise_dim), particles.n_next, rng)
        moved = Particles(transition.propagate_joint(joint), log_weights)
        return moved if observation is None else observation.weigh(moved)


def with_noise(mixture: GaussianMixture, dim: int) -> GaussianMixture:
    """Joint distribution of the mixture (d) and independent N(0, I) noise (dim)."""
    d, joint_dim = mixture.dim, mixture.dim + dim
    means = np.zeros((len(mixture), joint_dim))
    means[:, :d] = mixture.means
    joint = np.zeros((len(mixture.distinct_covariances), joint_dim, joint_dim))
    joint[:, :d, :d] = mixture.distinct_covariances
    joint.reshape(len(joint), -1)[:, d * (joint_dim + 1) :: joint_dim + 1] = 1.0  # the rest of the diagonal
    return GaussianMixture.unchecked(mixture.weights, means, joint)
