"""The contract of a proposal."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from herdfilter.angles import wrap_angles
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.transition import Transition
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import Model, circular_dims, sample_initial
from herdfilter.samplers.base import Sampler, drawn


@runtime_checkable
class Proposal(Protocol):
    """Anything that carries weighted particles through a transition.

    Examples
    --------
    A proposal of one's own: pairs of particles get opposite noise. So 50 random numbers serve 100 particles, whose mean
    moves with the transition exactly. All else is that of the bootstrap proposal.

    >>> class Antithetic(hf.BootstrapProposal):
    ...     def propose(self, transition, particles, rng):
    ...         noise = rng.standard_normal((len(particles) // 2, transition.noise_dim))
    ...         x = transition.propagate(particles.x, np.concatenate([noise, -noise]))
    ...         return hf.Particles(x, particles.log_weights)
    ...
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=100, proposal=Antithetic(), rng=0)
    >>> isinstance(pf.proposal, hf.Proposal)
    True
    >>> before = pf.mean
    >>> pf.predict()
    >>> np.allclose(pf.mean, 0.42 * before)
    True
    """

    @property
    def absorbs_weights(self) -> bool:
        """Whether new particles are drawn from the weighted set as a whole, so that the filter need not resample first."""
        ...

    def check(self, model: Model) -> None:
        """Raise TypeError, naming what is missing, if the model lacks a function that the proposal needs."""
        ...

    def initial(self, model: Model, n: int, rng: np.random.Generator) -> Particles:
        """Return n particles for the initial state, with weights that sum to 1."""
        ...

    def propose(self, transition: Transition, particles: Particles, rng: np.random.Generator) -> Particles:
        """Return particles at the step that `transition` leads to, with weights that sum to 1.

        A proposal that absorbs weights returns ``particles.n_next`` of them, any other as many as `particles` has; these are
        the same unless the cloud is a part, or the union of several parts, of what a filter believes.
        """
        ...


@runtime_checkable
class ObservingProposal(Proposal, Protocol):
    """A proposal that looks at the observation before it moves the particles.

    Of a scan it is shown one detection at a time, each with a part of the particles, unless it has an attribute
    ``takes_scans`` that is true: it then needs no more of it than its likelihood.

    Examples
    --------
    The least that one does is to move the particles and weigh them by what is seen. That is the bootstrap filter, to the
    last bit; a better one looks at ``seen.z`` before it moves them.

    >>> class Bootstrap(hf.BootstrapProposal):
    ...     def guide(self, transition, particles, seen, rng):
    ...         moved = self.propose(transition, particles, rng)
    ...         return moved.reweighted(seen.log_likelihood(moved.x))
    ...
    >>> isinstance(Bootstrap(), hf.ObservingProposal), isinstance(hf.BootstrapProposal(), hf.ObservingProposal)
    (True, False)
    >>> model, z = hf.models.UNGM(), [[0.2], [1.5], [4.0]]
    >>> result = hf.ParticleFilter(model, 50, proposal=Bootstrap(), rng=0).run(z)
    >>> np.array_equal(result.means, hf.ParticleFilter(model, 50, rng=0).run(z).means)
    True
    """

    def guide(self, transition: Transition, particles: Particles, seen: Observation, rng: np.random.Generator) -> Particles:
        """Return particles at the step that `transition` leads to, weighted with the likelihood of what is seen there.

        The weights are not normalised: their sum estimates the density of the observation given those before, but for the
        constant that ``seen.log_likelihood`` leaves out (`Observation.level`), which the filter adds. Entries of
        ``seen.z`` are NaN only where the model takes ``partial_observations``.
        """
        ...


def initial_points(model: Model, n: int, rng: np.random.Generator, sampler: Sampler | None = None) -> Particles:
    """Draw the initial particles by `sampler` where the initial distribution is a mixture, else at random."""
    if sampler is None or not isinstance(model.initial, GaussianMixture):
        return Particles.equal(sample_initial(model, n, rng))
    points = drawn(sampler, model.initial, n, rng)
    return Particles(wrap_angles(points.x, circular_dims(model)), points.log_weights)


def check_part(name: str, part: object, kind: type, expected: str) -> None:
    """Raise TypeError unless `part` is an instance of this kind."""
    if isinstance(part, type):
        raise TypeError(f"{name}: expected {expected}, an instance, got the class {part.__name__}")
    if isinstance(part, str):
        raise TypeError(
            f"{name}: expected {expected}, got {part!r}; filters that have a name are made by "
            f"herdfilter.make_filter({part!r}, model, n_particles, rng)"
        )
    if not isinstance(part, kind):
        raise TypeError(f"{name}: expected {expected}, got {part!r}")


def returned(particles: Any, part: object, method: str, shape: tuple[int, int]) -> Particles:
    """Return what a method of a part gave, checked to be particles of this shape."""
    if isinstance(particles, Particles):
        x, weights = np.shape(particles.x), np.shape(particles.log_weights)
        if x == shape and weights == shape[:1]:
            return particles
    name = f"{type(part).__name__}.{method}"
    if not isinstance(particles, Particles):
        raise TypeError(
            f"{name}: expected a herdfilter.filters.Particles(particles, log_weights), got {type(particles).__name__}"
        )
    raise ValueError(
        f"{name}: expected particles of shape {shape} and as many weights, got {x} and {weights}; look at the model's "
        "initial and dim, or at the sampler"
    )
