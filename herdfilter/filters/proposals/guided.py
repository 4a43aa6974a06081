"""Proposals that draw with the observation in view: each particle its successor, or a sampler from Kalman's posterior."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from herdfilter._checks import check_share
from herdfilter._covariances import regularised
from herdfilter.angles import wrap
from herdfilter.filters import state
from herdfilter.filters.kalman import gaussian, rules
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import base, herded, limits
from herdfilter.filters.results import DegenerateWeightsError
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.contract import ADDITIVE
from herdfilter.models.resolved import Motion, Transition
from herdfilter.samplers.base import Sampler

WIDENING = 1e-9
"""This share of the variances before an update is added after it: where the observation is sharp, or the fit nearly
singular, rounding could leave a covariance without a density. The importance weights account for it."""

# share of the points that are drawn from the prior, where its update may be wrong
UNGUIDED_SHARE = 0.1
# covariances that differ by less than this share of the variances are taken as equal
EQUAL_COVARIANCES = 1e-6


@dataclass(frozen=True)
class GuidedProposal(base.BootstrapProposal):
    r"""Draws the successor of each particle from its transition density, updated with the observation.

    The transition density of particle i, :math:`N(f(x_i), Q)`, goes through a Kalman filter's update to :math:`N(m_i, P_i)`;
    the successor x drawn from that has the weight :math:`w_i\, p(z \mid x)\, N(x; f(x_i), Q) / N(x; m_i, P_i)`. With the
    unscented rule this is the unscented particle filter (van der Merwe, Doucet, de Freitas and Wan 2000). Where the
    observation is linear and Gaussian the proposal is the optimal one: the weight does not depend on x (Doucet, Godsill and
    Andrieu 2000).

    Points are random; resampling takes place as with `BootstrapProposal`. Weights are exact whatever the likelihood. If an
    observation is missing this is the bootstrap proposal.

    Parameters
    ----------
    rule : {"unscented", "extended", "cubature"} or MomentRule
        How the moments of the observation are computed: as in the Kalman filter of that name.

    Raises
    ------
    ValueError
        If the rule is unknown; in a filter, if Q is rank-deficient, which has no density.

    Examples
    --------
    The range is known thirty times as precisely as it is predicted. Of 100 particles moved without a look at it fewer than
    ten count after the update; of guided ones several times as many.

    >>> model = hf.models.CirclingRange(range_sd=0.01)
    >>> truth, z = hf.simulate(model, steps=20, rng=1)
    >>> blind = hf.ParticleFilter(model, 100, proposal=hf.BootstrapProposal(), rng=0, on_degeneracy="predict").run(z)
    >>> guided = hf.ParticleFilter(model, 100, proposal=hf.GuidedProposal(), rng=0).run(z)
    >>> bool(blind.ess.mean() < 10), bool(guided.ess.mean() > 20)
    (True, True)
    """

    rule: str | rules.MomentRule = "unscented"
    uses = base.Uses(observation=True)
    transitions = (ADDITIVE,)
    needs_moments = True

    def __post_init__(self) -> None:
        rules.moment_rule(self.rule)

    def propose(
        self,
        transition: Transition,
        particles: state.Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> state.Particles:
        """See `Proposal`."""
        if observation is None or not observation.has_moments:
            return super().propose(transition, particles, rng, observation)
        centres = transition.mean(particles.x)
        transition.check_density("GuidedProposal")
        noises = transition.noises(particles.x)
        root = np.linalg.cholesky(noises)
        means, factors, _ = gaussian.update_gaussians(
            observation, centres, root, rules.moment_rule(self.rule)
        )
        roots = np.linalg.cholesky(factors @ factors.mT + WIDENING * noises)
        white = rng.standard_normal(particles.x.shape)
        # not wrapped yet: the densities are those of unwrapped angles
        x = means + (roots @ white[:, :, None])[:, :, 0]
        # the transition noise that leads to x
        prior_white = np.linalg.solve(root, (x - centres)[:, :, None])[:, :, 0]
        # log N(x; f, Q) - log N(x; m, P), by the white noise and the determinants of both
        log_dets, log_det = (
            np.log(np.diagonal(part, axis1=-2, axis2=-1)).sum(-1) for part in (roots, root)
        )
        log_ratio = (
            0.5 * ((white**2).sum(axis=1) - (prior_white**2).sum(axis=1)) + log_dets - log_det
        )
        wrapped = transition.wrapped(x)
        log_weights = particles.log_weights + log_ratio + observation.log_likelihood(wrapped)
        return state.Particles(wrapped, log_weights, ancestors=state.each_its_own(len(wrapped)))


class GuidedSampledProposal(herded.SampledProposal):
    """Base of proposals whose points a sampler draws from a `guided_mixture`."""

    rule: str | rules.MomentRule
    defensive_share: float
    uses = base.Uses(weights=True, observation=True)
    needs_moments = True

    def __post_init__(self) -> None:
        super().__post_init__()
        rules.moment_rule(self.rule)
        check_share("defensive_share", self.defensive_share)


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
        Share, from 0 to below 1, of points that are drawn from the predictive mixture itself: its components are added to
        the others with this total weight. Weights are then bounded, by the inverse of the share, where a Kalman filter's
        covariance is too small or another mode escapes it; without it estimates may hardly improve as n grows.

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
    rule: str | rules.MomentRule = "unscented"
    defensive_share: float = 0.2
    unguided_share: float = 0.0
    transitions = (ADDITIVE,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("unguided_share", self.unguided_share)

    def propose(
        self,
        transition: Transition,
        particles: state.Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> state.Particles:
        """See `Proposal`."""
        if observation is None or not observation.has_moments:
            return herded.HerdedProposal(self.sampler).propose(
                transition, particles, rng, observation
            )
        transition.check_density("KalmanMixtureProposal")
        prediction = transition.predictive(particles.x, particles.weights)
        q = guided_mixture(
            observation, prediction, self.rule, self.defensive_share, self.unguided_share
        )
        # The prediction in the components of q, where the updated ones have no weight: densities are then shared.
        if self.unguided_share:
            weights = np.concatenate([np.zeros(len(prediction)), prediction.weights])
            prediction = GaussianMixture.unchecked(weights, q.means, q.distinct_covariances)
        x, log_weights = self.draw(q, particles.n_next, rng, prediction)
        x = transition.wrapped(x)
        return state.Particles(x, log_weights + observation.log_likelihood(x))


def guided_mixture(
    observation: Observation,
    prior: GaussianMixture,
    rule: str | rules.MomentRule | None,
    defensive_share: float,
    unguided_share: float = 0.0,
) -> GaussianMixture:
    """Return the mixture to draw points from with the observation in view: Kalman's posterior, made nonsingular.

    Its weights are ``(1 - defensive_share) w' + defensive_share w``, with w those of the prior and w' of the posterior. The
    components of the prior are added with the total weight `unguided_share`. Where the observation is linear the updated
    components differ only by rounding in their covariances, and share one: samplers are faster then.
    """
    posterior, _ = gaussian.kalman_mixture(observation, prior, rule)
    # WIDENING keeps every covariance positive definite, relative to the variances of the prior.
    before = np.diagonal(prior.distinct_covariances, axis1=1, axis2=2)
    covariances = posterior.distinct_covariances + WIDENING * before[:, None, :] * np.eye(prior.dim)
    spread = np.sqrt(np.diagonal(covariances[0]))
    if (np.ptp(covariances, axis=0) <= EQUAL_COVARIANCES * np.outer(spread, spread)).all():
        covariances = covariances[:1]
    # A defensive mixture: components that the Kalman filter misjudges still get points.
    weights = (1 - defensive_share) * posterior.weights + defensive_share * prior.weights
    guided = GaussianMixture.unchecked(weights, posterior.means, covariances)
    if not unguided_share:
        return guided
    return GaussianMixture.unchecked(
        np.concatenate([(1 - unguided_share) * weights, unguided_share * prior.weights]),
        np.concatenate([guided.means, prior.means]),
        np.concatenate([guided.covariances, prior.covariances]),
    )


def first_update(
    proposal: base.Proposal,
    prior: Any,
    particles: state.Particles,
    observation: Observation,
    rng: np.random.Generator,
) -> state.Particles:
    """Return particles of the prior given its first observation, with exact weights, not normalised.

    If the prior is Gaussian they are drawn anew from its iterated extended Kalman update, so that a track with a wide prior
    can start from its first measurement. If the weights are then uneven, a share of the points is drawn from the prior.
    For other priors the `particles` are weighted by the likelihood.
    """
    model = observation.model
    with_moments = isinstance(prior, GaussianMixture) and observation.has_moments
    # of points, and neither in modes nor by a scan
    plain = (
        type(particles) is state.Particles
        and particles.modes is None
        and not observation.measurement.scans
    )
    # A singular prior has no density to compare with.
    if not (with_moments and plain) or any(
        regularised(matrix) is not matrix for matrix in prior.distinct_covariances
    ):
        return particles.updated(observation)
    n = len(particles)
    circular = contract.circular_dims(model)
    motion = Motion(model)
    feasible = motion.inside if motion.limited else None
    for share in (0.0, UNGUIDED_SHARE):
        q = guided_mixture(observation, prior, None, 0.0, share)
        drawn_model = SimpleNamespace(
            dim=model.dim, circular=circular, initial=q, feasible=feasible
        )
        try:
            start = limits.draw_initial(proposal, Motion(drawn_model), n, rng)
        except DegenerateWeightsError:  # the observation leads all points outside
            return particles.updated(observation)
        x = prior.mean + wrap(start.x - prior.mean, circular)
        log_ratio = herded.log_ratio(prior, q, x) + start.log_feasible
        posterior = start.reweighted(log_ratio + observation.log_likelihood(start.x))
        posterior.log_feasible = 0.0
        weighted, evidence = posterior.normalised()
        # as even as chance would leave them
        if evidence > -np.inf and n * (n / weighted.ess - 1) <= 1:
            break
    return posterior
