"""The contract of a proposal: `propose`, and the inputs that it uses; the bootstrap proposal, the simplest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from herdfilter.angles import wrap_angles
from herdfilter.filters import state
from herdfilter.filters.observation import Observation
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract, resolved
from herdfilter.samplers import base


class Uses(NamedTuple):
    """The inputs that a proposal uses: all that a filter asks about it.

    Attributes
    ----------
    weights : bool
        It draws new particles from the weighted set as a whole. Otherwise the filter resamples where weights are uneven, and
        the proposal leaves each particle its weight.
    observation : bool
        It looks at the observation before it moves the particles; the filter then waits for one. Otherwise the filter moves
        the particles in `predict`, and weighs them in `update`.
    whole_scan : bool
        It uses a scan of detections as a whole, by its likelihood. Otherwise it gets one detection after the other, each
        with a share of the particles.

    Examples
    --------
    >>> hf.RankedProposal().uses
    Uses(weights=True, observation=True, whole_scan=False)
    """

    weights: bool = False
    observation: bool = False
    whole_scan: bool = False


@runtime_checkable
class Proposal(Protocol):
    """Anything that carries weighted particles through a transition.

    Derive your own proposal from `BootstrapProposal`, which has all parts but `propose`. One that uses the
    observation says so (`Uses`), and multiplies the weights by its likelihood, as ``observation.weigh(moved)`` does.

    Examples
    --------
    Pairs of particles get opposite noise: 50 random numbers serve 100 particles, whose mean follows the transition
    exactly.

    >>> class Antithetic(hf.BootstrapProposal):
    ...     def propose(self, transition, particles, rng, observation=None):
    ...         noise = rng.standard_normal((len(particles) // 2, transition.noise_dim))
    ...         x = transition.propagate(particles.x, np.concatenate([noise, -noise]))
    ...         return hf.Particles(x, particles.log_weights, ancestors=np.arange(len(particles)))
    ...
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=100, proposal=Antithetic(), rng=0)
    >>> before = pf.mean
    >>> pf.predict()
    >>> np.allclose(pf.mean, 0.42 * before)
    True
    """

    @property
    def uses(self) -> Uses:
        """The inputs that it uses."""

    def check(self, model: contract.Model) -> None:
        """Raise TypeError, naming what is missing, if the model lacks a function that the proposal needs."""

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> state.Particles:
        """Return n particles for the initial state, with weights that sum to 1."""

    def propose(
        self,
        transition: resolved.Transition,
        particles: state.Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> state.Particles:
        """Return particles at the step that `transition` leads to.

        One that uses the weights returns ``particles.n_next`` particles, any other as many as there are; these numbers are
        the same unless `particles` is a part, or the union of several parts, of the particles of a filter.

        Without an observation it is a prediction, whose weights sum to 1. Else the weights include the likelihood and are
        not normalised: their sum estimates the density of the observation given those before, but for the constant that
        ``observation.log_likelihood`` leaves out (`Observation.log_offset`), which the filter adds. The filter gives an
        observation only to a proposal that uses it. Entries of ``observation.z`` are NaN only where the model takes
        ``partial_observations``.

        The particles know their ``ancestors``, the indices of those in `particles` that each comes from, if there are any.
        """


class BaseProposal:
    """The parts that proposals share: a subclass declares what it needs of a model, and defines `propose`."""

    transitions: ClassVar[tuple[tuple[str, ...], ...]] = (contract.ADDITIVE, contract.FROM_NOISE)
    """Functions of the transition that it needs: alternatives, each a set of names."""
    needs_moments = False
    """True if it needs mean and covariance of the observation."""

    def check(self, model: contract.Model) -> None:
        """See `Proposal`."""
        contract.require(model, type(self).__name__, *self.transitions)
        if self.needs_moments:
            contract.require(model, type(self).__name__, contract.OBSERVED)

    @property
    def initial_sampler(self) -> base.Sampler | None:
        """Sampler of the initial particles where the initial distribution is a mixture; None for random ones."""
        return None

    def initial(self, model: contract.Model, n: int, rng: np.random.Generator) -> state.Particles:
        """See `Proposal`."""
        # Points can only be drawn from a mixture; other distributions have a method `sample` of their own.
        sampler = self.initial_sampler
        if sampler is None or not isinstance(model.initial, GaussianMixture):
            return state.Particles.equal(resolved.Motion(model).sample_initial(n, rng))
        points = base.draw_points(sampler, model.initial, n, rng)
        return state.Particles(
            wrap_angles(points.x, contract.circular_dims(model)), points.log_weights
        )


@dataclass(frozen=True)
class BootstrapProposal(BaseProposal):
    """Draws from the transition density (Gordon, Salmond and Smith 1993); weights stay with their particles.

    Examples
    --------
    It needs nothing of a model but draws from the transition and a likelihood: here with Laplace noise in both.

    >>> class Walk:
    ...     dim = 1
    ...     initial = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])
    ...     def sample_transition(self, x, rng, dt, control, step):
    ...         return x + rng.laplace(size=x.shape)
    ...     def log_likelihood(self, z, x, step):
    ...         return -abs(z - x[:, 0])
    ...
    >>> pf = hf.ParticleFilter(Walk(), n_particles=300, proposal=hf.BootstrapProposal(), rng=0)
    >>> result = pf.run([1.0, 2.0, 3.0, 4.0])
    >>> bool(abs(result.means[-1, 0] - 4.0) < 1)
    True
    """

    uses = Uses()
    # a simulator is enough
    transitions = (*BaseProposal.transitions, ("sample_transition",))

    def propose(
        self,
        transition: resolved.Transition,
        particles: state.Particles,
        rng: np.random.Generator,
        observation: Observation | None = None,
    ) -> state.Particles:
        """See `Proposal`."""
        ancestors = state.each_its_own(len(particles.x))
        successors = state.Particles.unchecked(
            transition.sample(particles.x, rng), particles.log_weights, ancestors=ancestors
        )
        return successors if observation is None else observation.weigh(successors)
