"""The herded proposal that a model, and a step, ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import regularised
from herdfilter.angles import unwrap_angles
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals.gaussianity import Shape, noise_share, nonlinear_share
from herdfilter.filters.proposals.herded import HerdedProposal
from herdfilter.filters.proposals.kalman_mixture import KalmanMixtureProposal
from herdfilter.filters.proposals.lookahead import Source
from herdfilter.filters.proposals.ranked import RankedProposal
from herdfilter.filters.transition import Transition
from herdfilter.models.contract import OBSERVED, Model, has, noise_dim, simulated_only
from herdfilter.samplers import QuantileSampling
from herdfilter.samplers.base import Sampler, check_dim

UNGUIDED = 0.3
"""Share of the predictive mixture in what quantiles are taken of after Kalman's updates, against weights without bound."""

FAR = 10.0
"""How far beyond the bound the weights of a few points must lie for those of all not to be computed."""


@dataclass(frozen=True)
class AutomaticProposal:
    r"""One Gaussian while nothing speaks against it, else the particles themselves, ranked or at exact quantiles.

    The rule has three sentences. The step is made from one Gaussian where at most half of the particles' squared third and
    fourth cumulants is more than chance, and where it is as good as linear: the chi-square distance that is left to correct,
    of the weights after Kalman's update, or of the successors from a linear function of their noise where there is no
    observation, is at most 1/n, so that no mean is off by more than by chance of n random draws. Else every particle stands
    for itself: at exact quantiles of the predictive mixture in one dimension, and of what Kalman filters make of it where
    the likelihood would leave an effective sample size below :math:`\sqrt n`; as ranked particles in more. Where the
    transition noise is too narrow to part ranked particles, with less than :math:`n^{-1/2}` of the predicted variance in
    some direction, each is widened to a Gaussian with that share of the particles' variance, and with less where that would
    take more from their cumulants than chance has put there.

    All bounds follow n, so that any misfit is seen, and any widening vanishes, once there are particles enough. On a linear
    Gaussian model the first way is the Kalman filter, exactly. Every model of the contract is served: without a mean and a
    covariance of the observation points are placed by the transition alone, from one Gaussian where the particles cannot be
    told from it, and widened where the noise is too narrow; where the transition can only be simulated, ancestors are ranked
    and their successors random; only there are random numbers used, and for an initial distribution that is not a
    `GaussianMixture`.

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
    absorbs_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        RankedProposal(self.sampler)  # names a sampler that is none

    def check(self, model: Model) -> None:
        """See `Proposal`."""
        self._ranked.check(model)
        if not simulated_only(model):
            of_both = model.dim + noise_dim(model)
            check_dim("state and noise", self.sampler, of_both, "AutomaticProposal with ")

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        return (self._line if model.dim == 1 else self._ranked).initial(model, n, rng)

    def propose(self, transition: Transition, particles: Particles, rng: np.random.Generator) -> Particles:
        """See `Proposal`."""
        shape = None if transition.simulated_only else Shape.of(transition, particles)
        if shape is not None and shape.gaussian:
            source = Source.gaussian(transition, shape.mean, shape.root)
            noise = self._ranked.noise(particles.n_next, source.dim, transition.step, rng)
            moved = source.at(np.zeros(len(noise), dtype=np.int64), noise)
            straight = unwrap_angles(moved, np.full(len(noise), 1.0 / len(noise)), transition.circular)
            if len(particles) * nonlinear_share(straight, noise) <= 1:
                return Particles.equal(moved)
        return (self._line if self._on_line(transition) else self._ranked).propose(transition, particles, rng)

    def unguided(self, transition: Transition, particles: Particles, rng: np.random.Generator) -> Particles:
        """Propose, and widen the particles where `guide` would: where nothing guides them, as in parts of a scan."""
        if transition.simulated_only or self._on_line(transition):
            return self.propose(transition, particles, rng)
        shape = Shape.of(transition, particles)
        points, shares = UNSCENTED_RULE.points(transition.model.dim + transition.noise_dim)
        if shape.gaussian:
            return self._ranked.moved(Source.gaussian(transition, shape.mean, shape.root), rng, particles.n_next)
        ahead = Source.gaussian(transition, shape.mean, shape.root).at_all(points)
        if shape.width > 0 and noise_share(ahead[0], shares, transition) < len(particles) ** -0.5:
            source = Source.kernels(transition, particles, shape.mean, shape.root, shape.width)
            return self._ranked.moved(source, rng, particles.n_next)
        return self._ranked.propose(transition, particles, rng)

    def guide(self, transition: Transition, particles: Particles, seen: Observation, rng: np.random.Generator) -> Particles:
        """See `ObservingProposal`."""
        if transition.simulated_only or not has(seen.model, OBSERVED):
            moved = (self._line.propose if self._on_line(transition) else self.unguided)(transition, particles, rng)
            return moved.reweighted(seen.log_likelihood(moved.x))
        shape = Shape.of(transition, particles)
        source = Source.gaussian(transition, shape.mean, shape.root)
        points, shares = UNSCENTED_RULE.points(source.dim)
        ahead = source.at_all(points)
        if shape.gaussian:
            whole = self._of_gaussian(source, seen, ahead, particles, rng)
            if whole is not None:
                return whole
        if self._on_line(transition):
            return self._of_quantiles(transition, particles, seen, rng)
        source = Source.of(transition, particles)
        if shape.width > 0 and noise_share(ahead[0], shares, transition) < len(particles) ** -0.5:
            source = Source.kernels(transition, particles, shape.mean, shape.root, shape.width)
        return self._ranked.looked_ahead(source, seen, particles.n_next, rng)

    def _of_gaussian(
        self, source: Source, seen: Observation, ahead: Array, particles: Particles, rng: np.random.Generator
    ) -> Particles | None:
        """Return successors of one Gaussian, not normalised; None if their weights are further from even than chance allows.

        A few points of the updated Gaussian tell in advance, and spare most steps that will not do the rest.
        """
        guidance, _ = source.guided(seen, ahead)
        points, shares = UNSCENTED_RULE.points(source.dim)
        n = particles.n_next
        for z, weights, bound in (
            (points, shares, FAR),
            (self._ranked.noise(n, source.dim, source.transition.step, rng), np.full(n, 1.0 / n), 1.0),
        ):
            log_weights = np.log(weights)
            moved = source.particles(seen, guidance, np.zeros(len(z), dtype=np.int64), z, log_weights)
            relative = moved.log_weights - log_weights
            with np.errstate(invalid="ignore"):  # NaN if the likelihood vanishes at all of them
                relative = np.exp(relative - relative.max())
            distance = weights @ (relative / (weights @ relative) - 1) ** 2
            if not len(particles) * distance <= bound:
                return None
        return moved

    def _of_quantiles(
        self, transition: Transition, particles: Particles, seen: Observation, rng: np.random.Generator
    ) -> Particles:
        moved = self._line.propose(transition, particles, rng)
        moved = moved.reweighted(seen.log_likelihood(moved.x))
        weighted, evidence = moved.normalised()
        if evidence > -np.inf and weighted.ess >= np.sqrt(len(particles)):
            return moved
        return self._guided_line.guide(transition, particles, seen, rng)

    def _on_line(self, transition: Transition) -> bool:
        """Whether the predictive density is a mixture on a line."""
        return (
            transition.model.dim == 1
            and transition.additive
            and regularised(covariance := transition.covariance) is covariance
        )

    @cached_property
    def _ranked(self) -> RankedProposal:
        return RankedProposal(self.sampler)

    @cached_property
    def _line(self) -> HerdedProposal:
        return HerdedProposal(QuantileSampling() if self.sampler is None else self.sampler)

    @cached_property
    def _guided_line(self) -> KalmanMixtureProposal:
        return KalmanMixtureProposal(QuantileSampling() if self.sampler is None else self.sampler, unguided_share=UNGUIDED)
