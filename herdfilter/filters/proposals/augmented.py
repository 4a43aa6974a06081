"""Augmented proposals: state and noise drawn together, with or without the observation in view, then propagated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._covariances import regularised
from herdfilter.filters.kalman.rules import MomentRule
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import base, guided
from herdfilter.filters.proposals.herded import SampledProposal
from herdfilter.filters.resampling.mixture import check_fit
from herdfilter.filters.state import Particles
from herdfilter.fitting.base import Fit
from herdfilter.mixture import GaussianMixture
from herdfilter.models.resolved import Transition
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
    uses = base.Uses(weights=True)
    check = base.BaseProposal.check  # the sampler draws more dimensions than the state has

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fit(self.fit)

    def propose(
        self,
        transition: Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        posterior = self.fit.fit(particles.x, particles.weights, transition.circular)
        joint, log_weights = self.draw(
            with_noise(posterior, transition.noise_dim), particles.n_next, rng
        )
        successors = Particles(transition.propagate_joint(joint), log_weights)
        return successors if observation is None else observation.weigh(successors)


@dataclass(frozen=True)
class GuidedAugmentedProposal(guided.GuidedSampledProposal, AugmentedProposal):
    r"""Draws (state, noise) from their posterior given the NEXT observation, by Kalman filters, and pushes both through.

    As in `AugmentedProposal`, a mixture p is fitted to the particles and multiplied by the density of the transition noise,
    N(0, I). Its components are updated with the observation of the state that x and v lead to (`kalman_mixture`). Points are
    drawn from the result, q; the point (x, v), which leads to y, has the weight

    .. math:: p(z \mid y)\, p(x)\, N(v; 0, I) \,/\, q(x, v),

    so that the Kalman filters choose the points, and the weights correct the errors of the Kalman filters; only that of the
    fit remains. With one Gaussian and random draws this is a Gaussian particle filter (Kotecha and Djuric 2003). On a linear
    Gaussian model points that have the moments of q, as those of `MappedSampling` do, give the exact mean and covariance.

    The noise may be additive or not, and its covariance rank-deficient. If an observation is missing this is
    `AugmentedProposal`.

    Parameters
    ----------
    fit : Fit
        Weighted particles to mixture: one Gaussian where the posterior is unimodal, more components where it is not.
    sampler : Sampler
        Mixture to points, in the d + ``noise_dim`` dimensions of state and noise.
    rule : {"unscented", "extended", "cubature"} or MomentRule
        How the moments of the observation are computed: as in the Kalman filter of that name.
    defensive_share : float
        Share a, from 0 to below 1, of the prior weights w_i in the weights (1 - a) w_i' + a w_i that components are drawn
        with; each component is updated in full. Where a Kalman filter misjudges the evidence of a component, points still
        go there (a defensive mixture, Hesterberg 1995).

    Raises
    ------
    TypeError, ValueError
        If a part is not of its kind, the share is out of range or the rule unknown.

    Examples
    --------
    On a linear Gaussian model it is the Kalman filter, with as few as 20 particles: mapped points have its moments.

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> proposal = hf.GuidedAugmentedProposal(hf.GaussianFit(), hf.MappedSampling(hf.KernelHerding()))
    >>> result = hf.ParticleFilter(model, n_particles=20, proposal=proposal).run(z)
    >>> kalman = hf.ExtendedKalmanFilter(model).run(z)
    >>> np.allclose(result.means, kalman.means), np.allclose(result.log_likelihood, kalman.log_likelihood)
    (True, True)
    """

    rule: str | MomentRule = "unscented"
    defensive_share: float = 0.2

    def propose(
        self,
        transition: Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        if observation is None or not observation.has_moments:
            return super().propose(transition, particles, rng, observation)
        fitted = self.fit.fit(particles.x, particles.weights, transition.circular)
        # the weights need the density p(x), so that no covariance may be singular
        regular = np.array([regularised(covariance) for covariance in fitted.distinct_covariances])
        prior = with_noise(
            GaussianMixture.unchecked(fitted.weights, fitted.means, regular), transition.noise_dim
        )
        q = guided.guided_mixture(
            observation.after(transition), prior, self.rule, self.defensive_share
        )
        joint, log_weights = self.draw(q, particles.n_next, rng, prior)
        x = transition.propagate_joint(joint)
        return Particles(x, log_weights + observation.log_likelihood(x))


def with_noise(mixture: GaussianMixture, dim: int) -> GaussianMixture:
    """Joint distribution of the mixture (d) and independent N(0, I) noise (dim)."""
    d = mixture.dim
    joint_dim = d + dim
    means = np.zeros((len(mixture), joint_dim))
    means[:, :d] = mixture.means
    joint = np.zeros((len(mixture.distinct_covariances), joint_dim, joint_dim))
    joint[:, :d, :d] = mixture.distinct_covariances
    # the diagonal from d on
    joint.reshape(len(joint), -1)[:, d * (joint_dim + 1) :: joint_dim + 1] = 1.0
    return GaussianMixture.unchecked(mixture.weights, means, joint)
