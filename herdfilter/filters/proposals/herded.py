"""Herding from the predictive mixture, and from the posterior that Kalman filters make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter._checks import check_share
from herdfilter.filters.kalman.rules import MomentRule
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals.base import Uses
from herdfilter.filters.proposals.guided import GuidedSampledProposal, guided_mixture
from herdfilter.filters.proposals.sampled import SampledProposal
from herdfilter.filters.state import Particles
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import ADDITIVE
from herdfilter.models.resolved import Transition
from herdfilter.samplers.base import Sampler


@dataclass(frozen=True)
class HerdedProposal(SampledProposal):
    r"""Draws from :math:`\sum_i w_i N(f(x_i), Q)`, the predictive density of additive Gaussian transition noise.

    With a herding sampler this is sequential kernel herding (Lacoste-Julien, Lindsten and Bach 2015). The weights enter the
    mixture, so that no resampling takes place.

    A mode of weight below 1/n would get no deterministic point, ever, and the filter could not find back to it. Points are
    therefore drawn from the mixture with weights :math:`(1 - a) w_i + a / n` (a defensive mixture, Hesterberg 1995) and
    given the exact importance weights, which are at most :math:`1 / (1 - a)`.

    Parameters
    ----------
    sampler : Sampler
        Mixture to points.
    defensive_share : float
        The share a, from 0 (points from the predictive density itself) to below 1. Not used where Q is rank-deficient:
        there the components have no densities to weigh, and the herding samplers work on the mixture smoothed by their
        kernel, whose covariance is floored in the whitened frame (`herdfilter._covariances.regularised`).

    Raises
    ------
    TypeError, ValueError
        If `sampler` has no method ``sample``, or the share is out of range.

    Examples
    --------
    The root mean square error of the posterior means of a linear Gaussian model, against Kalman's: 64 herded points come
    closer than as many random ones.

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> def error(proposal):
    ...     result = hf.ParticleFilter(model, n_particles=64, proposal=proposal, rng=0).run(z)
    ...     return np.sqrt(np.mean((result.means - hf.ExtendedKalmanFilter(model).run(z).means) ** 2))
    ...
    >>> bool(error(hf.HerdedProposal(hf.KernelHerding())) < 0.7 * error(hf.BootstrapProposal()))
    True
    """

    sampler: Sampler
    defensive_share: float = 0.3
    uses: ClassVar[Uses] = Uses(weights=True)
    transitions = (ADDITIVE,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("defensive_share", self.defensive_share)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        target = transition.predictive(particles.x, particles.weights)
        share = self.defensive_share if transition.has_density else 0.0
        defended = (1 - share) * target.weights + share / len(target)
        q = GaussianMixture.unchecked(defended, target.means, target.distinct_covariances)
        x, log_weights = self.draw(q, particles.n_next, rng, target if share else None)
        moved, _ = Particles(transition.wrapped(x), log_weights).normalised()
        return moved if observation is None else observation.weigh(moved)


@dataclass(frozen=True)
class KalmanMixtureProposal(GuidedSampledProposal):
    r"""Draws from the Gaussian-sum posterior that Kalman filters make of the predictive mixture.

    Every component of the predictive density :math:`\sum_i w_i N(f(x_i), Q)` is updated with the observation as by a Kalman
    filter of its own (`kalman_mixture`), which is exact where the observation is linear (Alspach and Sorenson 1972). Points
    are drawn where the posterior is, and not where the prediction was, which matters the more, the sharper the observation.
    What the Kalman filters get wrong the exact weights put right: point x has

    .. math:: p(z \mid x) \sum_i w_i N(x; f(x_i), Q) \,/\, q(x),

    with q the density drawn from, whose mean estimates the evidence.

    Parameters
    ----------
    sampler : Sampler
        Mixture to points.
    rule : {"unscented", "extended", "cubature"} or MomentRule
        How the moments of the observation are computed: as in the Kalman filter of that name.
    defensive_share : float
        Share a, from 0 to below 1, of the weights before the update in those that points are drawn with: component i is
        updated in full, but has the weight (1 - a) w_i' + a w_i. Where a Kalman filter is wrong about the evidence of a
        component, and thus of a mode, points still go there (a defensive mixture, Hesterberg 1995).
    unguided_share : float
        Share, from 0 to below 1, of points that are drawn from the predictive mixture itself: it joins the other as so many
        components more. Weights are then bounded, by the inverse of the share, where a Kalman filter's covariance is too
        small or another mode escapes it; without it estimates may hardly improve as n grows.

    Raises
    ------
    TypeError, ValueError
        If a part is not of its kind, a share is out of range or the rule unknown; in a filter, ValueError if Q is
        rank-deficient, which has no density.

    Examples
    --------
    A range thirty times as sharp as the prediction is wide: points are drawn from the thin arc that it leaves, where those
    of `HerdedProposal` would hardly be.

    >>> model = hf.models.CirclingRange(range_sd=0.01)
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> for kind in [hf.HerdedProposal, hf.KalmanMixtureProposal]:
    ...     pf = hf.ParticleFilter(model, 50, proposal=kind(hf.KernelHerding()), on_degeneracy="predict")
    ...     print(kind.__name__, bool(pf.run(z).ess.mean() > 10))
    ...
    HerdedProposal False
    KalmanMixtureProposal True
    """

    sampler: Sampler
    rule: str | MomentRule = "unscented"
    defensive_share: float = 0.2
    unguided_share: float = 0.0
    transitions = (ADDITIVE,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("unguided_share", self.unguided_share)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        if observation is None or not observation.has_moments:
            return HerdedProposal(self.sampler).propose(transition, particles, rng, observation)
        transition.check_density("KalmanMixtureProposal")
        prediction = transition.predictive(particles.x, particles.weights)
        q = guided_mixture(observation, prediction, self.rule, self.defensive_share, self.unguided_share)
        if self.unguided_share:  # the same mixture, as one of the components of q
            weights = np.concatenate([np.zeros(len(prediction)), prediction.weights])
            prediction = GaussianMixture.unchecked(weights, q.means, q.distinct_covariances)
        x, log_weights = self.draw(q, particles.n_next, rng, prediction)
        moved = transition.wrapped(x)
        return Particles(moved, log_weights + observation.log_likelihood(moved))
