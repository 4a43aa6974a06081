"""The herded proposal that a model, and a step, ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from herdfilter.filters.observation import Observation, Observations
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals import gaussianity
from herdfilter.filters.proposals.base import Uses
from herdfilter.filters.proposals.herded import HerdedProposal
from herdfilter.filters.proposals.kalman_mixture import KalmanMixtureProposal
from herdfilter.filters.proposals.lookahead import Ancestors
from herdfilter.filters.proposals.ranked import RankedProposal
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
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
        if not contract.simulated_only(model):
            self._ranked.check_sampler("state and noise", model.dim + contract.noise_dim(model), "AutomaticProposal")

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

        # One track is a row of tracks, each of which goes its own way.
        circular = transition.circular
        if particles.x.ndim == 2:
            seen, found = observation and Observations([observation]), [gaussianity.Gaussianity.of(particles, circular)]
            return self._of_tracks(transition, particles.of_tracks(None), rng, seen, found).of_tracks(0)
        found = [gaussianity.Gaussianity(particles.of_tracks(k), circular) for k in range(len(particles.x))]
        return self._of_tracks(transition, particles, rng, observation, found)

    def _of_tracks(
        self, transition: Transition, particles: Particles, rng: Any, observation: Any, found: list[gaussianity.Gaussianity]
    ) -> Particles:
        n, size, circular, tracks = particles.n_next, len(particles), transition.circular, len(found)
        guide = observation if observation is not None and observation.guides else None
        on_line = transition.model.dim == 1 and transition.additive and transition.has_density
        # On a line a scan weighs what would be predicted.
        if on_line and observation is not None and guide is None:
            weighed: Particles = observation.weigh(self._of_tracks(transition, particles, rng, None, found))
            return weighed
        done, parts = np.zeros(tracks, dtype=bool), list[tuple[Any, Particles]]()

        # (1) From one Gaussian, where the particles cannot be told from it and the step is as good as linear: without an
        # observation, where the successors are almost a linear function of their noise;
        is_gaussian = np.array([one.gaussian for one in found])
        mean, root = np.array([one.mean for one in found]), np.array([one.root for one in found])
        gaussian = Ancestors.gaussian(transition, mean, root)
        looked = np.flatnonzero(is_gaussian | (guide is not None and not on_line and n > gaussianity.FEW))
        ahead, only = gaussian.of_tracks(looked), gaussian.members[: len(looked)].repeat(n, axis=1)
        if observation is None and len(looked):
            noise = gaussian.standard_noise(self.sampler, n, rng)
            moved = Particles.unchecked(ahead.successors(only, noise), np.full(only.shape, -math.log(n)))
            nonlinear = np.array([gaussianity.nonlinear_share(x, noise, circular) for x in moved.x])
            linear = np.flatnonzero(size * nonlinear <= 1)
            done[looked[linear]] = True
            parts.append((looked[linear], moved.of_tracks(linear)))
        # with one, where Kalman's update leaves almost even weights: as is foretold, and is so. What will be left of
        # particles that do not look ahead is foretold as well, where that takes little of the time of a step.
        blind = np.full(tracks, guide is None)
        if guide is not None and len(looked):
            _, update = ahead.look_ahead(guide.of_tracks(looked))
            z, few = gaussian.standard_noise(self.sampler, n, rng), min(n, FORETOLD)
            blind[looked] = update.shares(z[:few], np.zeros(few)) >= 0.5
            foretold = size * (1 / update.shares(*update.draw(only[:, :few], z[:few])) - 1) <= 1
            if len(chosen := np.flatnonzero(foretold & is_gaussian[looked])):
                noise, log_ratio = update.draw(only[chosen], z)
                x = ahead.of_tracks(chosen).successors(only[: len(chosen)], noise)
                log_likelihood = guide.of_tracks(looked[chosen]).log_likelihood(x)
                moved = Particles.unchecked(x, np.full(n, -np.log(n)) + log_ratio + log_likelihood)
                weighted, evidence = moved.normalised()
                even = np.flatnonzero((evidence > -np.inf) & (size * (n / weighted.ess - 1) <= 1))
                done[looked[chosen[even]]] = True
                parts.append((looked[chosen[even]], moved.of_tracks(even)))

        # (2) Else every particle stands for itself: on a line at exact quantiles of the predictive mixture, or of what
        # Kalman filters make of it where the likelihood leaves too few of them;
        left = np.flatnonzero(~done)
        if on_line and len(left):
            seen, enough = None if observation is None else observation.of_tracks(left), np.ones(len(left), dtype=bool)
            moved = self._quantiles.propose(transition, particles.of_tracks(left), rng, seen)
            if seen is not None:
                weighted, evidence = moved.normalised()
                enough = (evidence > -np.inf) & (weighted.ess >= np.sqrt(size))
            parts.append((left[enough], moved.of_tracks(np.flatnonzero(enough))))
            left = left[~enough]
            for k in left if observation is not None and observation.has_moments else ():
                moved = self._guided_quantiles.propose(transition, particles.of_tracks(k), rng, observation.parts[k])
                parts.append((np.array([k]), moved.of_tracks(None)))
            left = left[:0] if observation is None or observation.has_moments else left
        if not len(left):
            return Particles.placed(parts, tracks)

        # in more dimensions as ranked particles, (3) blind where enough will be left, then of the Gaussian if they cannot be
        # told from it; (4) else widened where the noise on the way is too narrow to part them.
        own = Ancestors.of(transition, particles.of_tracks(left))
        as_one = is_gaussian[left] & blind[left] & (observation is not None)
        wide = ~as_one & (observation is not None) & np.array([found[k].width > 0 for k in left])
        if wide.any():
            noise, whole = (own if transition.additive else gaussian.of_tracks(left)).spreads()
            wide &= np.array([gaussianity.narrow(noise, one, 1 / size) for one in whole.reshape(-1, *noise.shape)])
        for kind, way in product((as_one, wide, ~(as_one | wide)), (False, True)):
            chosen = np.flatnonzero(kind & (blind[left] == way))
            if not len(some := left[chosen]):
                continue
            if kind is as_one:
                ancestors = gaussian.of_tracks(some)
            elif kind is wide:
                width = np.array([found[k].width for k in some])
                ancestors = Ancestors.kernels(transition, particles.of_tracks(some), mean[some], root[some], width)
            else:
                ancestors = own.of_tracks(chosen)
            seen = None if observation is None else observation.of_tracks(some)
            parts.append((some, self._ranked.follow(ancestors, n, rng, seen, way)))
        return Particles.placed(parts, tracks)

    @cached_property
    def _ranked(self) -> RankedProposal:
        return RankedProposal(self.sampler)

    @cached_property
    def _quantiles(self) -> HerdedProposal:
        return HerdedProposal(QuantileSampling() if self.sampler is None else self.sampler)

    @cached_property
    def _guided_quantiles(self) -> KalmanMixtureProposal:
        return KalmanMixtureProposal(self._quantiles.sampler, unguided_share=UNGUIDED_SHARE)
