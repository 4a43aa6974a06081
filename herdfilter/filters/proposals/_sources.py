"""Where successors come from: weighted states, or one Gaussian, with the noise on the way to the next step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles, wrap_angles
from herdfilter.filters.kalman.unscented import UNSCENTED
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals._guidance import Guidance, guided
from herdfilter.filters.resampling.base import Indices
from herdfilter.filters.transition import Transition
from herdfilter.models import contract


class Source(NamedTuple):
    """M states with weights, and the width of the Gaussian about each; what follows is a function of its noise.

    The noise of a source has `dim` entries, N(0, I): those of the state about its centre, if there is a width, and those of
    the transition.

    Attributes
    ----------
    move : Transition
    centres : ndarray, shape (M, d)
    weights : ndarray, shape (M,)
    root : ndarray, shape (d, d), or None
        Factor of the covariance about each centre.
    means : ndarray, shape (M, d), or None
        Transition means of the centres, where the noise is additive and there is no width: computed once.
    """

    transition: Transition
    centres: Array
    weights: Array
    root: Array | None
    means: Array | None

    @classmethod
    def of(cls, transition: Transition, particles: Particles) -> Source:
        """Take the particles as they are."""
        means = transition.mean(particles.x) if transition.additive else None
        return cls(transition, particles.x, particles.weights, None, means)

    @classmethod
    def gaussian(cls, transition: Transition, mean: Array, root: Array) -> Source:
        """Take one Gaussian, N(mean, root @ root.T)."""
        return cls(transition, mean[None], np.ones(1), root, None)

    @classmethod
    def kernels(cls, transition: Transition, particles: Particles, mean: Array, root: Array, width: float) -> Source:
        """Put a Gaussian about every particle, `width` of the standard deviation of all; mean and covariance stay.

        The particles are drawn together about their mean, in compensation (Liu and West 2001).
        """
        x = unwrap_angles(particles.x, particles.weights, transition.circular)
        centres = transition.wrapped(mean + np.sqrt(1 - width**2) * (x - mean))
        return cls(transition, centres, particles.weights, width * root, None)

    @property
    def dim(self) -> int:
        """Entries of the noise."""
        return self.transition.noise_dim + (0 if self.root is None else len(self.root))

    def at(self, chosen: Any, noise: Array) -> Array:
        """Successors (m, d) of the chosen members (m,) at noise (m, `dim`)."""
        if self.means is not None:
            return self.transition.wrapped(self.means[chosen] + noise @ self.transition.factor.T)
        start = self.centres[chosen]
        if self.root is None:
            return self.transition.propagate(start, noise)
        d = len(self.root)
        start = self.transition.wrapped(start + noise[:, :d] @ self.root.T)
        return self.transition.propagate(start, noise[:, d:])

    def at_all(self, noise: Array) -> Array:
        """Successors (M, p, d) of every member at noise (p, `dim`)."""
        count, p = len(self.centres), len(noise)
        if self.means is not None:
            x = self.transition.wrapped(self.means[:, None] + noise @ self.transition.factor.T)
        else:
            x = self.at(np.repeat(np.arange(count), p), np.tile(noise, (count, 1)))
        return x.reshape(count, p, -1)

    def guided(self, seen: Observation, x: Array | None = None) -> tuple[Guidance, Array]:
        """Return what an observation tells about the noise of every member, and the successors (M, d) at no noise.

        `x` are the successors (M, p, d) at the points of the unscented rule, if they are known already.
        """
        points, weights = UNSCENTED.points(self.dim)
        x = self.at_all(points) if x is None else x
        centres, flat = x[:, 0], x.reshape(-1, x.shape[-1])
        values = contract.observation_mean(seen.model, flat, seen.step).reshape(*x.shape[:2], -1)
        seen.expect(values.shape[2:], "observation_mean")
        about = values[:, :1]
        offsets = wrap_angles(values - about, seen.circular)[..., seen.kept]
        noises = seen.noises(flat)
        if len(noises) > 1:
            k = len(seen.kept)
            noises = np.tensordot(noises.reshape(*x.shape[:2], k, k), weights, (1, 0))
        return guided(offsets, weights, points, seen.residuals(about[:, 0]), noises, seen.step), centres

    def particles(self, seen: Observation, guidance: Guidance, chosen: Indices, z: Array, log_weights: Array) -> Particles:
        """Successors of the chosen members (m,) at guided noise, z (m, `dim`) before; weighted exactly, not normalised."""
        noise, log_ratio = guidance.drawn(chosen, z)
        moved = self.at(chosen, noise)
        return Particles(moved, log_weights + log_ratio + seen.log_likelihood(moved))
