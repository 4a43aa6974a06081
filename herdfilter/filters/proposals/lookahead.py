"""A look ahead: where successors come from, and what an observation says about the noise on the way to them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.angles import unwrap, wrap
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.kalman.update import factorise
from herdfilter.filters.observation import Observation
from herdfilter.filters.particles import Particles
from herdfilter.filters.proposals import balanced
from herdfilter.filters.resampling.base import Indices
from herdfilter.filters.transition import Transition
from herdfilter.samplers.base import Sampler

_sigma_points = lru_cache(maxsize=64)(UNSCENTED_RULE.points)


class Ancestors(NamedTuple):
    """M weighted states, and the width of the Gaussian about each; successors are a function of their noise, N(0, I).

    Attributes
    ----------
    transition : Transition
    x : ndarray, shape (M, d)
    weights : ndarray, shape (M,)
    noise_dim : int
        Entries of the noise: those of the state about its centre, if there is a width, then those of the transition.
    root : ndarray, shape (d, d), or None
        Factor of the covariance about each state.
    means : ndarray, shape (M, d), or None
        Transition means of the states, where the noise is additive and there is no width: computed once.
    """

    transition: Transition
    x: Array
    weights: Array
    noise_dim: int
    root: Array | None = None
    means: Array | None = None

    @classmethod
    def of(cls, transition: Transition, particles: Particles) -> Ancestors:
        """Take the particles as they are."""
        means = transition.mean(particles.x) if transition.additive else None
        return cls(transition, particles.x, particles.weights, transition.noise_dim, None, means)

    @classmethod
    def gaussian(cls, transition: Transition, mean: Array, root: Array) -> Ancestors:
        """Take one Gaussian, N(mean, root @ root.T)."""
        return cls(transition, mean[None], np.ones(1), len(root) + transition.noise_dim, root)

    @classmethod
    def kernels(cls, transition: Transition, particles: Particles, mean: Array, root: Array, width: float) -> Ancestors:
        """Put a Gaussian about every particle, `width` of the standard deviation of all; mean and covariance stay.

        The particles are drawn together about their mean, in compensation (Liu and West 2001).
        """
        x = unwrap(particles.x, particles.weights, transition.circular)
        x = transition.wrapped(mean + np.sqrt(1 - width**2) * (x - mean))
        return cls(transition, x, particles.weights, len(root) + transition.noise_dim, width * root)

    def standard_noise(self, sampler: Sampler | None, n: int, rng: np.random.Generator) -> Array:
        """Points (n, noise_dim) of N(0, I): those of a sampler, or else the balanced set that serves at this step."""
        if sampler is None:
            return balanced.balanced_noise(n, self.noise_dim, self.transition.step % balanced.SETS)
        return balanced.sampled_noise(sampler, n, self.noise_dim, rng)

    def successors(self, chosen: Any, noise: Array) -> Array:
        """Successors (m, d) of the chosen members (m,) at noise (m, noise_dim)."""
        if self.means is not None:
            return self.transition.wrapped(self.means[chosen] + noise @ self.transition.factor.T)
        start = self.x[chosen]
        if self.root is None:
            return self.transition.propagate(start, noise)
        d = len(self.root)
        start = start + noise[:, :d] @ self.root.T
        if self.transition.circular:
            start = self.transition.wrapped(start)
        return self.transition.propagate(start, noise[:, d:])

    @property
    def sigma_points(self) -> tuple[Array, Array]:
        """Points of the noise by the unscented rule, the first of them 0, and their weights; (p, noise_dim) and (p,)."""
        return _sigma_points(self.noise_dim)

    def sigma_successors(self) -> Array:
        """Successors (M, p, d) of every member at the p `sigma_points` of its noise."""
        noise, _ = _sigma_points(self.noise_dim)
        count, p = len(self.x), len(noise)
        if self.means is not None:
            return self.transition.wrapped(self.means[:, None] + noise @ self.transition.factor.T)
        return self.successors(np.repeat(np.arange(count), p), np.tile(noise, (count, 1))).reshape(count, p, -1)

    def update_noise(self, observation: Observation, ahead: Array) -> NoiseUpdate:
        """Return what an observation says about the noise of every member; `ahead` are the `sigma_successors`."""
        points, weights = _sigma_points(self.noise_dim)
        flat = ahead.reshape(-1, ahead.shape[-1])
        values = observation.mean(flat).reshape(*ahead.shape[:2], -1)
        about = values[:, :1]
        offsets = wrap(values - about, observation.circular)[..., observation.observed_entries]
        noises = observation.noises(flat)
        if len(noises) > 1:
            k = len(observation.observed_entries)
            noises = np.tensordot(noises.reshape(*ahead.shape[:2], k, k), weights, (1, 0))
        return update_noise(offsets, weights, points, observation.residuals(about[:, 0]), noises, observation.step)

    def particles(
        self, observation: Observation, update: NoiseUpdate, chosen: Indices, z: Array, log_weights: Array
    ) -> Particles:
        """Successors of the chosen members (m,) at updated noise, z (m, noise_dim) before; with exact weights."""
        noise, log_ratio = update.draw(chosen, z)
        x = self.successors(chosen, noise)
        return Particles.unchecked(x, log_weights + log_ratio + observation.log_likelihood(x))


class NoiseUpdate(NamedTuple):
    """Kalman's update of the noise of each of n particles by an observation: N(0, I) becomes N(mean, N N'), N = I - G' B G.

    The matrix N, a square root of the updated covariance ``I - G' G``, is never formed: with few entries k observed,
    products with it cost k times the dimension D, not its square. With T the Cholesky factor of ``I - G G'`` its part B
    is ``(I + T)^-1`` (after Andrews 1968, "A square root formulation of the Kalman covariance equations").

    Attributes
    ----------
    means : ndarray, shape (n, D)
    gains : ndarray, shape (n, k, D)
        The matrices G: L^-1 times the covariance of observation and noise, with L L' that of the observation.
    roots : ndarray, shape (n, k, k)
        The matrices T, lower triangular.
    log_dets : ndarray, shape (n,)
        Logarithms of the determinants of N.
    log_densities : ndarray, shape (n,)
        Of the observation, as each particle predicts it.
    """

    means: Array
    gains: Array
    roots: Array
    log_dets: Array
    log_densities: Array

    def draw(self, chosen: Indices, z: Array) -> tuple[Array, Array]:
        """Noise of the chosen particles (m,) at standard normal z (m, D), and log of N(0, I) over the density there (m,)."""
        noise, log_ratio = np.empty_like(z), np.empty(len(z))
        z = z.view()
        z.flags.writeable = False  # as some are: `_draw` is not compiled for both
        _draw(self.means, self.gains, self.roots, self.log_dets, chosen, z, noise, log_ratio)
        return noise, log_ratio


def update_noise(values: Array, weights: Array, points: Array, residuals: Array, noise: Array, step: int) -> NoiseUpdate:
    """Update the noise of n particles by their mean observations at p points of it.

    Parameters
    ----------
    values : ndarray, shape (n, p, k)
        Mean observation at each point of each particle's noise, less some value of the particle's, angles unwrapped.
    weights : ndarray, shape (p,)
    points : ndarray, shape (p, D)
        Of N(0, I): their weighted mean is 0 and their covariance I.
    residuals : ndarray, shape (n, k)
        The observation less that value.
    noise : ndarray, shape (n or 1, k, k)
        Covariance of the observation's own noise.
    """
    (n, _, k), dim = values.shape, points.shape[1]
    means, gains, roots = np.zeros((n, dim)), np.zeros((n, k, dim)), np.zeros((n, k, k))
    log_dets, log_densities = np.zeros(n), np.zeros(n)
    scratch = np.empty((1, k, k)), np.empty((2, k))
    arrays = np.ascontiguousarray(values), np.ascontiguousarray(residuals), np.ascontiguousarray(noise)
    if not _update_noise(*arrays, weights, points, means, gains, roots, log_dets, log_densities, *scratch):
        raise IndefiniteCovarianceError(step, "observation's")
    return NoiseUpdate(means, gains, roots, log_dets, log_densities)


LEAST_NOISE_VARIANCE = 1e-12
"""Least share that is left of the variance of noise: a sharp observation would leave none, by rounding less than none."""


@njit(cache=True, nogil=True)
def _update_noise(
    values: Array,
    residuals: Array,
    noise: Array,
    weights: Array,
    points: Array,
    means: Array,
    gains: Array,
    roots: Array,
    log_dets: Array,
    log_densities: Array,
    square: Array,
    line: Array,
) -> bool:
    """Fill the five arrays of a `NoiseUpdate`; return True if all covariances are positive definite."""
    (n, p, k), dim = values.shape, points.shape[1]
    lower = square[0]
    mean, white = line[0], line[1]
    for i in range(n):
        gain, rest = gains[i], roots[i]
        own = min(i, len(noise) - 1)
        for a in range(k):
            mean[a] = 0.0
            for b in range(a + 1):
                lower[a, b] = noise[own, a, b]
        for t in range(p):
            for a in range(k):
                mean[a] += weights[t] * values[i, t, a]
        for t in range(p):
            for a in range(k):
                offset = weights[t] * (values[i, t, a] - mean[a])
                for b in range(a + 1):
                    lower[a, b] += offset * (values[i, t, b] - mean[b])
                if offset != 0.0:
                    for j in range(dim):
                        gain[a, j] += offset * points[t, j]
        if not factorise(square, 0, k, lower):  # in place
            return False
        log_density = -0.5 * k * np.log(2 * np.pi)
        for a in range(k):  # by L^-1: the residual and the rows of the cross-covariance
            white[a] = residuals[i, a] - mean[a]
            for b in range(a):
                white[a] -= lower[a, b] * white[b]
                for j in range(dim):
                    gain[a, j] -= lower[a, b] * gain[b, j]
            scale = 1.0 / lower[a, a]
            white[a] *= scale
            log_density += np.log(scale) - 0.5 * white[a] ** 2
            for j in range(dim):
                gain[a, j] *= scale
                means[i, j] += gain[a, j] * white[a]
        log_densities[i] = log_density
        for a in range(k):
            for b in range(a + 1):
                rest[a, b] = 1.0 + LEAST_NOISE_VARIANCE if a == b else 0.0
                for j in range(dim):
                    rest[a, b] -= gain[a, j] * gain[b, j]
        if not factorise(roots, i, k, rest):
            return False
        for a in range(k):
            log_dets[i] += np.log(rest[a, a])
    return True


@njit(cache=True, nogil=True)
def _draw(
    means: Array,
    gains: Array,
    roots: Array,
    log_dets: Array,
    chosen: Indices,
    z: Array,
    noise: Array,
    log_ratio: Array,
) -> None:
    """Fill noise (m, D) and the logarithms (m,) of N(noise; 0, I) over the density that it is drawn from."""
    (m, dim), k = z.shape, gains.shape[1]
    along = np.empty(k)
    for t in range(m):
        i = chosen[t]
        twice = 0.0
        for j in range(dim):
            noise[t, j] = means[i, j] + z[t, j]
            twice += z[t, j] ** 2
        for a in range(k):  # (I + T)^-1 G z
            entry = 0.0
            for j in range(dim):
                entry += gains[i, a, j] * z[t, j]
            for b in range(a):
                entry -= roots[i, a, b] * along[b]
            along[a] = entry / (1.0 + roots[i, a, a])
            for j in range(dim):
                noise[t, j] -= gains[i, a, j] * along[a]
        for j in range(dim):
            twice -= noise[t, j] ** 2
        log_ratio[t] = 0.5 * twice + log_dets[i]
