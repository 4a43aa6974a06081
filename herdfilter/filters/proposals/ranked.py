"""Ranked particles: a deterministic particle filter without a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import base
from herdfilter.filters.proposals.herded import SampledProposal
from herdfilter.filters.proposals.lookahead import Ancestors
from herdfilter.filters.proposals.quasi_monte_carlo import SequentialQuasiMonteCarlo
from herdfilter.filters.resampling.base import ranked_members
from herdfilter.filters.state import Particles
from herdfilter.models import contract, resolved
from herdfilter.samplers import balanced
from herdfilter.samplers.base import Sampler


@dataclass(frozen=True)
class RankedProposal(SampledProposal):
    r"""Takes ancestors at even steps through the ranked particles, with noise that is balanced along the ranks.

    The particles are sorted: by value in one dimension, else along a Hilbert curve. The i-th of n new particles has as
    its ancestor the one at (i - 1/2) / n of the cumulative weights in that order, and takes the i-th of n fixed points of
    N(0, I) as its noise. Any run of these is balanced, so that neighbours in the state get noise that is spread like all of
    it. There is no random number and no fit, and the cost is that of sorting: sequential quasi-Monte Carlo (Gerber and
    Chopin 2015) with fixed points in place of random ones.

    The observation is looked at first (`guided`), by its mean and covariance or else by an expansion of its likelihood. The
    noise of every particle, N(0, I), is updated by an unscented Kalman filter to :math:`N(\mu_i, N_i N_i^T)`, the
    particle's weight is multiplied by its evidence, and the particles are sorted by their predicted states. In that order
    groups of neighbours share the gain of the particle in their middle, each with its own residual: with few particles each
    has its own gain, with many there are about as many sigma points in total as particles. With an ancestor a of
    weight :math:`w_a`, taken with the weight :math:`q_a`, and noise v that leads to x, the new particle has the exact weight

    .. math:: \frac{w_a}{q_a} \, \frac{N(v; 0, I)}{N(v; \mu_a, N_a N_a^T)} \, p(z \mid x) ,

    which has no bias whatever the errors of the Kalman filter. But where it makes the noise far too narrow the weights are
    not bounded, and estimates may hardly improve as n grows; with ``guided=False`` they do. Below :math:`\sqrt n` effective
    particles the step is also made without guidance, and that result is taken if its evidence is n times as large: after a
    jump the update may move all particles away from the state. Where a transition can only be simulated, only the choice of
    ancestors is deterministic.

    With ``randomised=True`` the likelihood has no bias, as particle Markov chain Monte Carlo requires. The i-th ancestor is
    at a random number between (i - 1) / n and i / n; its noise is the i-th point of a Sobol sequence that is scrambled anew
    at every step, so that each point is N(0, I). Ranks, gains and shares depend on the particles before alone; given these,
    the expected mean of the weights is the predicted density of the observation. No second attempt is made: it would be
    selected by the random numbers that it is judged by. Instead a share of the particles, each with the same probability,
    keeps its noise unguided, and the mixture of both densities replaces :math:`N(v; \mu_a, N_a N_a^T)`, which bounds the
    weights.

    Parameters
    ----------
    sampler : Sampler, optional
        Draws the points of N(0, I), anew at every step: ``RandomSampling()`` gives the random counterpart of this proposal,
        ``MappedSampling(KernelHerding())`` herded points. The default are scrambled Sobol points, in eight fixed
        sets that are used in turn.
    guided : bool
        Whether to look at the observation before the particles are moved; a scan of detections is not looked at.
    defensive_share : float
        Share a, from 0 to below 1, of the prior weights w_i in the weights ``(1 - a) w_i' + a w_i`` that ancestors are taken
        with, w_i' those after the update. Where a Kalman filter misjudges the evidence of a particle, it still gets
        successors (a defensive mixture, Hesterberg 1995). If `randomised`, it is also the share of unguided particles.
    randomised : bool
        Whether ancestors and noise are drawn anew from `rng`, for a likelihood without bias; a `sampler` must then draw
        every point from N(0, I), as ``RandomSampling()`` does.

    Raises
    ------
    TypeError, ValueError
        If `sampler` has no method ``sample``, or the share is out of range; in a filter, if the state has more than 62
        dimensions, the most that a position on the Hilbert curve can encode.

    Examples
    --------
    The error of the posterior means of a linear Gaussian model, against Kalman's, falls faster than by half with four times
    as many particles, and no random number is used.

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> kalman = hf.ExtendedKalmanFilter(model).run(z)
    >>> errors = []
    >>> for n in [50, 200, 800]:
    ...     result = hf.ParticleFilter(model, n, proposal=hf.RankedProposal()).run(z)
    ...     errors.append(np.sqrt(np.mean((result.means - kalman.means) ** 2)))
    ...
    >>> bool(errors[0] < 0.02), bool(errors[2] < errors[0] / 4)
    (True, True)

    Randomised, the mean of the likelihoods is the exact one.

    >>> z, randomised = z[:3], hf.RankedProposal(randomised=True)
    >>> runs = [hf.ParticleFilter(model, 20, randomised, rng=seed).run(z).log_likelihood for seed in range(100)]
    >>> ratios = np.exp(np.array(runs) - hf.ExtendedKalmanFilter(model).run(z).log_likelihood)
    >>> bool(abs(ratios.mean() - 1) < 4 * ratios.std() / 10 < 0.05)
    True
    """

    sampler: Sampler | None = None
    guided: bool = True
    defensive_share: float = 0.1
    randomised: bool = False

    def __post_init__(self) -> None:
        _checks.check_flags(guided=self.guided, randomised=self.randomised)
        if self.sampler is not None:
            super().__post_init__()
        _checks.check_share("defensive_share", self.defensive_share)

    @property
    def uses(self) -> base.Uses:
        """See `Proposal`."""
        return base.Uses(weights=True, observation=True, whole_scan=not self.guided)

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        user = type(self).__name__
        contract.require(
            model, user, contract.ADDITIVE, contract.FROM_NOISE, ("sample_transition",)
        )
        if self.guided and contract.has(model, contract.OBSERVED):
            contract.require(model, user, contract.OBSERVED)
        if not resolved.Motion(model).simulated_only:
            self.check_sampler("noise_dim", resolved.Motion(model).noise_dim)
        balanced.check_hilbert(model.dim)

    @property
    def initial_sampler(self) -> Sampler:
        """See `BaseProposal`."""
        return balanced.INITIAL_POINTS if self.sampler is None else self.sampler

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        if self.randomised and self.sampler is None:
            return SequentialQuasiMonteCarlo().initial(model, n, rng)
        return super().initial(model, n, rng)

    def propose(
        self,
        transition: resolved.Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        n = particles.n_next
        if not transition.simulated_only:
            return self.follow(Ancestors.of(transition, particles), n, rng, observation)
        # uneven weights cost less than the variance of another selection
        if len(particles) == n <= 2 * particles.ess:
            return base.BootstrapProposal().propose(transition, particles, rng, observation)
        ancestors = ranked_members(
            particles.x, particles.weights, transition.circular, self._steps(n, rng)
        )
        successors = Particles.equal(transition.sample(particles.x[ancestors], rng), ancestors)
        return successors if observation is None else observation.weigh(successors)

    def follow(
        self,
        ancestors: Ancestors,
        n: int,
        rng: np.random.Generator,
        observation: Observation | None = None,
        unguided_first: bool = False,
    ) -> Particles:
        """Return n successors of ancestors, which may be Gaussians; weighted as in `propose`."""
        looks = self.guided and observation is not None and observation.guides
        guided_first = looks and not unguided_first
        successors = self._take(ancestors, n, rng, observation, guided_first)
        if self.randomised or not looks:  # a second attempt would bias the likelihood
            return successors
        weighted, evidence = successors.normalised()
        if evidence > -np.inf and weighted.ess >= np.sqrt(n):
            return successors
        alternative = self._take(ancestors, n, rng, observation, not guided_first)
        other_evidence = alternative.normalised()[1]
        # The unguided result needs n times the evidence of the guided one, whichever was made first.
        if guided_first:
            return alternative if other_evidence > evidence + np.log(n) else successors
        return successors if evidence > other_evidence + np.log(n) else alternative

    def _steps(self, n: int, rng: np.random.Generator) -> int | Array:
        """Return the number of ancestors, to be taken at even steps; if randomised, their cumulative weights (n,)."""
        return (np.arange(n) + rng.random(n)) / n if self.randomised else n

    def _take(
        self,
        ancestors: Ancestors,
        n: int,
        rng: np.random.Generator,
        observation: Any,
        guided: bool,
    ) -> Particles:
        """Take ancestors at even steps, sorted by their states.

        If `guided`, they are sorted by their predicted states, and have updated noise and exact weights.
        """
        steps = self._steps(n, rng)
        # numbers below the share stay unguided
        u: Any = 1.0
        if self.randomised and self.sampler is None:
            points = balanced.scrambled_sobol(n, ancestors.noise_dim + 1, rng)
            noise: Array = scipy.special.ndtri(points[:, :-1])
            u = points[:, -1]
        else:
            noise = ancestors.standard_noise(self.sampler, n, rng)
            if self.randomised:
                u = rng.random(n)
        share = self.defensive_share
        unguided = u < share if self.randomised and share else None
        guide = observation if guided else None
        successors = ancestors.take(steps, noise, guide, share, unguided)
        return successors if observation is None else observation.weigh(successors)
