"""Augmented prediction with the observation in view: state and noise drawn together from their Kalman posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter._checks import check_share
from herdfilter._covariances import regularised
from herdfilter.filters.kalman.rules import MomentRule, moment_rule
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.augmented import AugmentedProposal, with_noise
from herdfilter.filters.proposals.base import Uses
from herdfilter.filters.proposals.guided import guided_mixture
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture


@dataclass(frozen=True)
class GuidedAugmentedProposal(AugmentedProposal):
    r"""Draws (state, noise) from what Kalman filters make of them given the NEXT observation, and pushes both through.

    As in `AugmentedProposal`, a mixture p is fitted to the particles and multiplied by the density of the transition noise,
    N(0, I). Its components are updated with the observation of the state that x and v lead to (`kalman_mixture`); points are
    drawn from the result, q, and the point (x, v), which leads to y, has the weight

    .. math:: p(z \mid y)\, p(x)\, N(v; 0, I) \,/\, q(x, v),

    so that the Kalman filters choose the points, and the weights correct what the Kalman filters get wrong; only the fit
    remains. With one Gaussian and random draws this is a Gaussian particle filter (Kotecha and Djuric 2003). On a linear
    Gaussian model points that have the moments of q, as those of `MappedSampling` do, give the exact mean and covariance.

    The noise may be additive or not, and its covariance rank-deficient. An observation that is missing leaves
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
        Share a, from 0 to below 1, of the weights before the update in those that points are drawn with: component i is
        updated in full, but has the weight (1 - a) w_i' + a w_i. Where a Kalman filter is wrong about the evidence of a
        component, and thus of a mode, points still go there (a defensive mixture, Hesterberg 1995).

    Raises
    ------
    TypeError, ValueError
        If a part is not of its kind, the share is out of range or the rule unknown.

    Examples
    --------
    On a linear Gaussian model it is the Kalman filter, with as few as 20 particles: the Kalman filter chooses points, and
    mapped ones have its moments.

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
    uses: ClassVar[Uses] = Uses(weights=True, observation=True)
    needs_moments = True

    def __post_init__(self) -> None:
        super().__post_init__()
        moment_rule(self.rule)
        check_share("defensive_share", self.defensive_share)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        if observation is None or not observation.has_moments:
            return super().propose(transition, particles, rng, observation)
        fitted = self.fit.fit(particles.x, particles.weights, transition.circular)
        regular = np.array([regularised(covariance) for covariance in fitted.distinct_covariances])
        prior = with_noise(GaussianMixture.unchecked(fitted.weights, fitted.means, regular), transition.noise_dim)
        q = guided_mixture(observation.after(transition), prior, self.rule, self.defensive_share)
        joint, log_weights = self.draw(q, particles.n_next, rng, prior)
        moved = transition.propagate_joint(joint)
        return Particles(moved, log_weights + observation.log_likelihood(moved))
