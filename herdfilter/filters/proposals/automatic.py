"""The herded proposal that a model, and a step, ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import gaussianity
from herdfilter.filters.proposals.base import Uses
from herdfilter.filters.proposals.guided import KalmanMixtureProposal
from herdfilter.filters.proposals.herded import HerdedProposal
from herdfilter.filters.proposals.lookahead import Ancestors
from herdfilter.filters.proposals.ranked import RankedProposal
from herdfilter.filters.state import Particles
from herdfilter.models import contract
from herdfilter.models.resolved import Motion, Transition
from herdfilter.samplers import QuantileSampling
from herdfilter.samplers.base import Sampler

UNGUIDED_SHARE = 0.3
"""Share of the predictive mixture in what quantiles are taken of after Kalman's updates, against weights without bound."""

FORETOLD = 100
"""Number of points at which it is foretold what an observation will leave of the particles."""


@dataclass(frozen=True)
class AutomaticProposal:
    r"""One Gaussian while nothing speaks against it, else the particles themselves, ranked or at exact quantiles.

    The rule asks how many of the n particles will count after the step, and at what cost: (1) one Gaussian where the
    particles cannot be told from it and the step is as good as linear; (2) else exact quantiles of the predictive mixture in
    one dimension, ranked particles in more; (3) blind, and then of the Gaussian if they cannot be told from it, where half
    of them will count without a look at the observation; (4) widened where the noise is too narrow to part them; (5) both
    ways where fewer than :math:`\sqrt n` count. Its bounds follow n; the page "Filters" states them.

    On a linear Gaussian model this is the Kalman filter, exactly. Every model of the contract is served: a likelihood
    without a mean and a covariance of the observation guides as a linear observation does. Random numbers are used only
    where the transition can only be simulated, and for an initial distribution that is not a `GaussianMixture`.

    Parameters
    ----------
    sampler : Sampler, optional
        In place of quantiles and balanced points: ``RandomSampling()`` gives the random counterpart of this proposal, which
        shows what the points themselves contribute.

    Raises
    ------
    TypeError
        If `sampler` has no method ``sample``.

    See Also
    --------
    RankedProposal, HerdedProposal, KalmanMixtureProposal, QuantileSampling

    Examples
    --------
    On a linear Gaussian model it is the Kalman filter, with as few as 20 particles.

    >>> model = hf.models.linear_chain(2)
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> result = hf.ParticleFilter(model, n_particles=20, proposal=hf.AutomaticProposal()).run(z)
    >>> kalman = hf.ExtendedKalmanFilter(model).run(z)
    >>> np.allclose(result.means, kalman.means), np.allclose(result.log_likelihood, kalman.log_likelihood)
    (True, True)

    A squared observation leaves two modes. There particles stand for themselves, and both modes have some.

    >>> pf = hf.ParticleFilter(hf.models.UNGM(), n_particles=50, proposal=hf.AutomaticProposal())
    >>> result = pf.run([[5.0], [5.0]])
    >>> bool((pf.particles < 0).any() and (pf.particles > 0).any())
    True
    """

    sampler: Sampler | None = None
    uses: ClassVar[Uses] = Uses(weights=True, observation=True)

    def __post_init__(self) -> None:
        RankedProposal(self.sampler)  # names a sampler that is none

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        self._ranked.check(model)
        if not Motion(model).simulated_only:
            self._ranked.check_sampler("state and noise", model.dim + Motion(model).noise_dim, "AutomaticProposal")

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        return (self._quantiles if model.dim == 1 else self._ranked).initial(model, n, rng)

    def propose(
        self, transition: Transition, particles: Particles, rng: np.random.Generator, observation: Observation | None = None
    ) -> Particles:
        """See `Proposal`."""
        # Where the transition can only be simulated, ancestors are ranked and their successors random.
        if transition.simulated_only:
            return self._ranked.propose(transition, particles, rng, observation)
        n, size, circular = particles.n_next, len(particles.x), transition.circular
        guide = observation if observation is not None and observation.guides else None
        on_line = transition.model.dim == 1 and transition.additive and transition.has_density
        # On a line a scan weighs what would be predicted.
        if on_line and observation is not None and guide is None:
            return observation.weigh(self.propose(transition, particles, rng))

        # (1) From one Gaussian, where the particles cannot be told from it and the step is as good as linear: without an
        # observation, where the successors are almost a linear function of their noise;
        found = gaussianity.Gaussianity.of(particles, circular)
        gaussian = Ancestors.gaussian(transition, found.mean, found.root)
        only, even = np.zeros(n, dtype=np.int64), np.full(n, -np.log(n))
        if found.gaussian and observation is None:
            noise = gaussian.standard_noise(self.sampler, n, rng)
            moved = Particles.unchecked(gaussian.successors(only, noise), even)
            if size * gaussianity.nonlinear_share(moved.x, noise, circular) <= 1:
                return moved
        # with one, where Kalman's update leaves almost even weights: as is foretold, and is so. What will be left of
        # particles that do not look ahead is foretold as well, where that takes little of the time of a step.
        blind = guide is None
        if guide is not None and (found.gaussian or (not on_line and n > gaussianity.FEW)):
            _, update = gaussian.look_ahead(guide)
            z, few = gaussian.standard_noise(self.sampler, n, rng), min(n, FORETOLD)
            blind = update.share(z[:few], np.zeros(few)) >= 0.5
            if found.gaussian and size * (1 / update.share(*update.draw(only[:few], z[:few])) - 1) <= 1:
                moved = gaussian.updated(guide, update, only, z, even)
                weighted, evidence = moved.normalised()
                if evidence > -np.inf and size * (n / weighted.ess - 1) <= 1:
                    return moved

        # (2) Else every particle stands for itself: on a line at exact quantiles of the predictive mixture, or of what
        # Kalman filters make of it where the likelihood leaves too few of them;
        if on_line:
            moved = self._quantiles.propose(transition, particles, rng, observation)
            if observation is None:
                return moved
            weighted, evidence = moved.normalised()
            if evidence > -np.inf and weighted.ess >= np.sqrt(size):
                return moved
            if observation.has_moments:
                return self._guided_quantiles.propose(transition, particles, rng, observation)

        # in more dimensions as ranked particles, (3) blind where enough will be left, then of the Gaussian if they cannot be
        # told from it; (4) else widened where the noise on the way is too narrow to part them.
        ancestors = Ancestors.of(transition, particles)
        if observation is not None and found.gaussian and blind:
            ancestors = gaussian
        elif observation is not None and found.width:
            noise, whole = (ancestors if transition.additive else gaussian).spreads()
            if gaussianity.narrow(noise, whole, 1 / size):
                ancestors = Ancestors.kernels(transition, particles, found.mean, found.root, found.width)
        return self._ranked.follow(ancestors, n, rng, observation, blind)

    @cached_property
    def _ranked(self) -> RankedProposal:
        return RankedProposal(self.sampler)

    @cached_property
    def _quantiles(self) -> HerdedProposal:
        return HerdedProposal(QuantileSampling() if self.sampler is None else self.sampler)

    @cached_property
    def _guided_quantiles(self) -> KalmanMixtureProposal:
        return KalmanMixtureProposal(self._quantiles.sampler, unguided_share=UNGUIDED_SHARE)
