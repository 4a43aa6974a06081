"""A resampler for Stone Soup's particle updater, by one of this package's schemes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from stonesoup.base import Property
from stonesoup.resampler.base import Resampler as TheirResampler
from stonesoup.types.particle import Particle
from stonesoup.types.state import ParticleState

from herdfilter._checks import as_fraction, as_generator, short_repr
from herdfilter.adapters.stone_soup.states import angles, cloud_of, particle_state, vectors
from herdfilter.filters import Resampling, SystematicResampling
from herdfilter.filters.proposals.base import check_part
from herdfilter.filters.resampling.base import CopyingResampling


class HerdfilterResampler(TheirResampler):
    """A scheme of this package for Stone Soup's `ParticleUpdater`: its argument ``resampler``.

    Where the weights are even enough the very object that came is returned: so the updater knows that nothing was
    resampled, and runs no regulariser. Schemes that copy particles keep what belongs to each, parents and models too;
    `MixtureResampling` makes new particles, which have none.

    Parameters
    ----------
    resampling : herdfilter.filters.Resampling, optional
        `SystematicResampling` unless given; `MixtureResampling(fit, sampler)` herds the new particles.
    resample_below : float
        Fraction of the number of particles that the effective sample size may fall to.
    seed : int, numpy.random.Generator, optional
        Of the random numbers, where the scheme draws any; fresh ones without it.

    Raises
    ------
    TypeError, ValueError
        If the scheme is none, the fraction is out of range, or the particles cannot be resampled by it.

    Examples
    --------
    >>> from stonesoup.types.state import ParticleState, StateVectors
    >>> from herdfilter.adapters.stone_soup import HerdfilterResampler
    >>> weights = np.array([0.01, 0.97, 0.01, 0.01])
    >>> particles = ParticleState(StateVectors([[0.0, 1.0, 2.0, 3.0]]), weight=weights)
    >>> resampled = HerdfilterResampler(hf.SystematicResampling(), seed=0).resample(particles)
    >>> np.ravel(resampled.state_vector).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    resampling: Any = Property(default=None, doc="Scheme of herdfilter; default `SystematicResampling`.")
    resample_below: float = Property(
        default=0.5, doc="Fraction of the number of particles that the effective sample size may fall to."
    )
    seed: Any = Property(default=None, doc="Seed of random numbers, where the scheme draws any.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.resampling is None:
            self.resampling = SystematicResampling()
        check_part("resampling", self.resampling, Resampling, "a scheme such as SystematicResampling()")
        self.resample_below = as_fraction("resample_below", self.resample_below)
        self._rng = as_generator(self.seed)

    def resample(self, particles: ParticleState | Sequence[Particle], nparts: int | None = None) -> ParticleState:
        """Return as many particles, less unevenly weighted, or the same object where the weights are even enough.

        Parameters
        ----------
        particles : stonesoup.types.state.ParticleState or list of stonesoup.types.particle.Particle
        nparts : int, optional
            Number of particles, which must be that of those given.
        """
        if isinstance(particles, list) and particles and isinstance(particles[0], Particle):
            particles = ParticleState(None, particle_list=particles)
        copies = isinstance(self.resampling, CopyingResampling)
        state = particle_state("particles", particles, plain=not copies)
        n = len(state)
        if nparts not in (None, n):
            raise ValueError(
                f"nparts: expected None or the number of particles, {n}, got {short_repr(nparts)}; a SystematicResampler of "
                "Stone Soup changes their number"
            )
        weighted, _ = cloud_of(state)
        if weighted.ess >= (1 - 1e-9) * self.resample_below * n:
            return state
        if copies:
            chosen = state[self.resampling.ancestors(weighted.weights, self._rng)]
            chosen.log_weight = np.full(n, -np.log(n))
            return chosen
        new = self.resampling.resample(weighted, self._rng, angles(state))
        return type(state).from_state(state, state_vector=vectors(new.x, state), log_weight=new.log_weights, parent=None)
