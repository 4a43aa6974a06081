"""Herding from the posterior that Kalman filters make of the predictive mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter._checks import Array, check_share
from herdfilter._covariances import regularised
from herdfilter.filters.kalman.gaussian import update_mixture
from herdfilter.filters.kalman.rules import MomentRule, moment_rule
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.base import Uses, initial_points
from herdfilter.filters.proposals.herded import HerdedProposal, log_ratio
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import OBSERVED, Model, require
from herdfilter.samplers.base import Sampler, as_sampler, check_dim, draw_points


@dataclass(frozen=True)
class KalmanMixtureProposal:
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
    uses: ClassVar[Uses] = Uses(weights=True, observation=True)

    def __post_init__(self) -> None:
        as_sampler("sampler", self.sampler)
        moment_rule(self.rule)
        check_share("defensive_share", self.defensive_share)
        check_share("unguided_share", self.unguided_share)

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        require(model, "KalmanMixtureProposal", ("transition_mean", "transition_covariance"))
        require(model, "KalmanMixtureProposal", OBSERVED)
        check_dim("model.dim", self.sampler, model.dim, "KalmanMixtureProposal with ")

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        return initial_points(model, n, rng, self.sampler)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        if observation is None or not observation.has_moments:
            return HerdedProposal(self.sampler).propose(transition, particles, rng, observation)
        regular(transition.covariance, "KalmanMixtureProposal", transition.step)
        prediction = transition.predictive(particles.x, particles.weights)
        posterior, _ = update_mixture(observation, prediction, self.rule)
        q = defended(posterior, prediction, self.defensive_share)
        if share := self.unguided_share:
            both = [np.broadcast_to(part.distinct_covariances, (len(part), part.dim, part.dim)) for part in (q, prediction)]
            weights = np.concatenate([(1 - share) * q.weights, share * prediction.weights])
            q = GaussianMixture.unchecked(weights, np.concatenate([q.means, prediction.means]), np.concatenate(both))
        points = draw_points(self.sampler, q, particles.n_next, rng)
        moved = transition.wrapped(points.x)
        log_weights = points.log_weights + log_ratio(prediction, q, points.x)
        return Particles(moved, log_weights + observation.log_likelihood(moved))


WIDENING = 1e-9
"""Part of the variances before an update that is added after it: where the observation is sharp, or the fit nearly
singular, rounding may leave a covariance without a density. The weights know of it."""

ALIKE = 1e-6
"""Difference of covariances, relative to the variances, up to which they are taken for one."""


def defended(posterior: GaussianMixture, prior: GaussianMixture, share: float) -> GaussianMixture:
    """Components of the posterior, made regular, with weights ``(1 - share) posterior.weights + share prior.weights``.

    Where the observation is linear they have one covariance but for rounding, and get one: samplers are faster then.
    """
    before = np.diagonal(prior.distinct_covariances, axis1=1, axis2=2)
    covariances = posterior.distinct_covariances + WIDENING * before[:, None, :] * np.eye(prior.dim)
    spread = np.sqrt(np.diagonal(covariances[0]))
    if (np.ptp(covariances, axis=0) <= ALIKE * np.outer(spread, spread)).all():
        covariances = covariances[:1]
    weights = (1 - share) * posterior.weights + share * prior.weights
    return GaussianMixture.unchecked(weights, posterior.means, covariances)


def regular(noise: Array, user: str, step: int) -> Array:
    """Return a transition covariance if it has a density, else raise ValueError."""
    if regularised(noise) is not noise:
        raise ValueError(
            f"transition_covariance: expected a positive definite matrix, as {user} weights points by transition "
            f"densities, got {noise.tolist()} at step {step}"
        )
    return noise
