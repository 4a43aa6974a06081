"""The proposal that is chosen at every step by the shape of the particles and the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from herdfilter import samplers
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import gaussianity
from herdfilter.filters.proposals.base import Uses
from herdfilter.filters.proposals.guided import KalmanMixtureProposal
from herdfilter.filters.proposals.herded import HerdedProposal
from herdfilter.filters.proposals.lookahead import Ancestors
from herdfilter.filters.proposals.ranked import RankedProposal
from herdfilter.filters.resampling.mixture import MixtureResampling
from herdfilter.filters.state import Particles
from herdfilter.fitting.kernel_density import KernelDensityFit
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, resolved

AUTO_UNGUIDED_SHARE = 0.3
"""Share of the predictive mixture that is added to Kalman's posterior before quantiles are taken: it bounds the weights."""

PILOT = 100
"""Number of points by which the effective sample size after an observation is predicted."""

ENOUGH = 0.5
"""Share of particles that have to count after an observation for it not to be looked at."""

FEW_PARTICLES = 100
"""Below so many particles a lost target costs most: each missing one allows more sigma points."""

MORE_EACH = 10
"""Number of these."""

CORRECTIONS = 2
"""Number of times that particles are drawn from kernels in the middle of an observation that leaves too few."""


@dataclass(frozen=True)
class AutomaticProposal:
    r"""One Gaussian as long as the particles agree with it, else the particles themselves, ranked or at exact quantiles.

    The rule asks how many of the n particles will count after the step, and at what cost. (1) One Gaussian where it
    fits the particles and the step is almost linear. (2) Else exact quantiles of the predictive mixture in
    one dimension, ranked particles in more. (3) Without a look at the observation where half of the particles will count
    after it; they then start from the Gaussian if it fits. (4) With kernels about the particles where
    the noise is too narrow to separate copies. (5) Both with and without a look where fewer than :math:`\sqrt n` count.
    (6) Where only a likelihood is known and neither leaves so many, it is applied by degrees, with kernels in between.
    The bounds depend on n; the page "Filters" states them, and how many evaluations of the model a step takes.

    On a linear Gaussian model this is the Kalman filter, exactly, with more than 2 d + 2 particles; but for rare numbers of
    them, whose fixed points happen to look bent. It works with every model of the contract: a likelihood
    without a mean and a covariance of the observation is approximated by a linear observation. Random numbers are used only
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

    A squared observation leaves two modes. The particles are then no Gaussian, and both modes have some.

    >>> pf = hf.ParticleFilter(hf.models.UNGM(), n_particles=50, proposal=hf.AutomaticProposal())
    >>> result = pf.run([[5.0], [5.0]])
    >>> bool((pf.particles < 0).any() and (pf.particles > 0).any())
    True
    """

    sampler: samplers.Sampler | None = None
    uses = Uses(weights=True, observation=True)

    def __post_init__(self) -> None:
        RankedProposal(self.sampler)  # checks the sampler

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        self._ranked.check(model)
        if not resolved.Motion(model).simulated_only:
            self._ranked.check_sampler(
                "state and noise", model.dim + resolved.Motion(model).noise_dim, "AutomaticProposal"
            )

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        # Quantiles of one Gaussian have too small a variance; balanced points have its moments.
        of_several = isinstance(model.initial, GaussianMixture) and len(model.initial) > 1
        proposal = self._quantiles if model.dim == 1 and of_several else self._ranked
        return proposal.initial(model, n, rng)

    def propose(
        self,
        transition: resolved.Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> Particles:
        """See `Proposal`."""
        # Where the transition can only be simulated, ancestors are ranked and their successors random.
        if transition.simulated_only:
            return self._ranked.propose(transition, particles, rng, observation)
        n = particles.n_next
        size = len(particles.x)
        circular = transition.circular
        guide = observation if observation is not None and observation.guides else None
        on_line = transition.model.dim == 1 and transition.additive and transition.has_density
        # In one dimension a scan weighs the quantiles of the prediction.
        if on_line and observation is not None and guide is None:
            return observation.weigh(self.propose(transition, particles, rng))

        # (1) From one Gaussian, where it fits the particles and the step is almost linear. Without an
        # observation: the successors are almost a linear function of their noise.
        shape = gaussianity.Gaussianity.of(particles, circular, self.sampler is None)
        gaussian = Ancestors.gaussian(transition, shape.mean, shape.root)
        only_member = np.zeros(n, dtype=np.int64)
        if shape.gaussian and observation is None:
            noise = gaussian.standard_noise(self.sampler, n, rng)
            predicted = gaussian.particles(only_member, noise, np.full(n, -np.log(n)))
            if size * gaussianity.nonlinear_share(predicted.x, noise, circular) <= 1:
                return predicted
        # With one: Kalman's update leaves almost even weights. That is predicted from a few points before all are made, and
        # then checked. The points also tell how many particles would count without a look ahead, which is worth its time
        # only among many particles.
        unguided = guide is None
        spent = 0
        if guide is not None and (shape.gaussian or (not on_line and n > gaussianity.FEW)):
            _, update = gaussian.look_ahead(guide)
            z = gaussian.standard_noise(self.sampler, n, rng)
            spent = 4 * z.shape[1] + 2  # f and h at the sigma points
            m = min(n, PILOT)
            unguided = update.share(z[:m], np.zeros(m)) >= ENOUGH
            if shape.gaussian:
                share = update.share(*update.draw(only_member[:m], z[:m]))
                # After weights that one Gaussian would not have left, all are made only if the first quarter bears it out.
                even = size * (size / particles.ess - 1) <= 1
                for m in (n,) if even else (-(-n // 4), n):
                    if size * (1 - share) <= share:
                        updated = gaussian.updated(guide, update, z[:m])
                        weighted, evidence = updated.normalised()
                        share = weighted.ess / m if evidence > -np.inf else 0.0
                        spent += 2 * m
                if size * (1 - share) <= share:
                    return updated

        # (2) Else from the particles themselves. In one dimension: at exact quantiles of the predictive mixture, or of its
        # update by Kalman filters where the likelihood leaves too few of them.
        if on_line:
            quantiles = self._quantiles.propose(transition, particles, rng, observation)
            if observation is None:
                return quantiles
            weighted, evidence = quantiles.normalised()
            if evidence > -np.inf and weighted.ess >= np.sqrt(size):
                return quantiles
            if observation.has_moments:
                return self._guided_quantiles.propose(transition, particles, rng, observation)

        # In more dimensions: as ranked particles, (3) ignoring the observation where enough of them will count, and then
        # sampling the Gaussian if it fits; (4) else with kernels, where the noise is too narrow to separate copies.
        ancestors = gaussian
        likelihood_alone = guide is not None and not guide.has_moments
        if observation is None or not (shape.gaussian and unguided):
            ancestors = Ancestors.of(transition, particles)
            spreads = (ancestors if transition.additive else gaussian).spreads
            if observation is not None and gaussianity.narrow(*spreads(), 1 / size):
                few_count = likelihood_alone and 2 * particles.ess < size
                if width := shape.density_width if few_count else shape.width:
                    ancestors = Ancestors.kernels(
                        transition, particles, shape.mean, shape.root, width
                    )
            # A sigma point is observed; unless the transition means are known, it moves, too.
            spare = (size - spent) // (1 if ancestors.means is not None else 2)
            spare += MORE_EACH * max(0, FEW_PARTICLES - size)
            ancestors = ancestors._replace(spare=spare)
        # (5) is part of `follow`.
        successors = self._ranked.follow(ancestors, n, rng, observation, unguided)
        # (6) From kernels by degrees, where neither way leaves enough and copies will not separate.
        if (
            likelihood_alone
            and successors.normalised()[0].ess < np.sqrt(n)
            and gaussianity.narrow(*gaussian.spreads(), 1 / size)
        ):
            return self._correct_progressively(transition, particles, rng, observation)
        return successors

    def _correct_progressively(
        self,
        transition: resolved.Transition,
        particles: Particles,
        rng: np.random.Generator,
        observation: Any,
    ) -> Particles:
        """Weigh by powers of the likelihood that leave sqrt(n) particles each, and draw from kernels about these in between.

        It is the progressive correction of Musso, Oudjane and Le Gland (2001); the last power is whatever remains.
        """
        kernels = MixtureResampling(KernelDensityFit(), self.sampler or samplers.SobolSampling())
        particles = kernels.resample(particles, rng, transition.circular)
        successors = RankedProposal(self.sampler, guided=False).propose(transition, particles, rng)
        log_evidence = 0.0
        remaining = 1.0
        for _ in range(CORRECTIONS):
            log_likelihoods = observation.log_likelihood(successors.x)
            power = remaining
            while True:
                weighted, evidence = successors.reweighted(power * log_likelihoods).normalised()
                # where fewer are possible at all no power leaves so many
                if power <= 1e-3 or evidence == -np.inf or weighted.ess >= np.sqrt(len(weighted)):
                    break
                power *= 0.8
            if power == remaining:
                break
            remaining -= power
            log_evidence += evidence
            successors = kernels.resample(weighted, rng, transition.circular)
        log_likelihoods = observation.log_likelihood(successors.x)
        return successors.reweighted(remaining * log_likelihoods + log_evidence)

    @cached_property
    def _ranked(self) -> RankedProposal:
        return RankedProposal(self.sampler)

    @cached_property
    def _quantiles(self) -> HerdedProposal:
        return HerdedProposal(samplers.QuantileSampling() if self.sampler is None else self.sampler)

    @cached_property
    def _guided_quantiles(self) -> KalmanMixtureProposal:
        return KalmanMixtureProposal(self._quantiles.sampler, unguided_share=AUTO_UNGUIDED_SHARE)
