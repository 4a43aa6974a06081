"""A look ahead: where successors come from, and what an observation says about the noise on the way to them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from herdfilter._checks import Array, read_only
from herdfilter.angles import unwrap, wrap
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.kalman.rules import UNSCENTED_RULE, regress
from herdfilter.filters.kalman.update import factorise, factorise_noise, rotate
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import balanced
from herdfilter.filters.proposals.quadratic import linear_observations, stencil
from herdfilter.filters.state import Indices, Particles
from herdfilter.models.resolved import Transition
from herdfilter.samplers.base import Sampler
from herdfilter.samplers.compiled import IN_PLACE, njit

SPARE_POINTS = 1000
"""Number of sigma points that take little more time than a few, most of it in the call of the model's functions."""

_sigma_points = lru_cache(maxsize=64)(UNSCENTED_RULE.points)


@lru_cache(maxsize=64)
def _distinct_starts(noise_dim: int, d: int) -> tuple[Indices, Indices]:
    """Sigma points that differ in the first d entries (2 d + 1,), and for each point (p,) which of those it agrees with."""
    starts = np.concatenate([np.arange(d + 1), np.arange(noise_dim + 1, noise_dim + d + 1)])
    start_of = np.zeros(2 * noise_dim + 1, dtype=np.int64)
    start_of[starts] = np.arange(2 * d + 1)
    return starts, start_of


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
    members_are_particles : bool
        False of one Gaussian for all particles.
    """

    transition: Transition
    x: Array
    weights: Array
    noise_dim: int
    root: Array | None = None
    means: Array | None = None
    members_are_particles: bool = True

    @classmethod
    def of(cls, transition: Transition, particles: Particles) -> Ancestors:
        """Take the particles as they are."""
        means = transition.mean(particles.x) if transition.additive else None
        return cls(transition, particles.x, particles.weights, transition.motion.noise_dim, None, means)

    @classmethod
    def gaussian(cls, transition: Transition, mean: Array, root: Array) -> Ancestors:
        """Take one Gaussian, N(mean, root @ root.T)."""
        return cls(transition, mean[None], np.ones(1), len(root) + transition.motion.noise_dim, root, None, False)

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
        circular = self.transition.circular
        return self.transition.propagate(wrap(start, circular) if circular else start, noise[:, d:])

    @property
    def sigma_points(self) -> tuple[Array, Array]:
        """Points of the noise by the unscented rule, the first of them 0, and their weights; (p, noise_dim) and (p,)."""
        return _sigma_points(self.noise_dim)

    def centres(self) -> Array:
        """Successors (M, d) of all members at no noise."""
        if self.means is not None:
            return self.transition.wrapped(self.means)
        return self.successors(np.arange(len(self.x)), np.zeros((len(self.x), self.noise_dim)))

    def sigma_successors(self, members: Indices) -> Array:
        """Successors (B, p, d) of members (B,) at the p `sigma_points` of their noise."""
        noise, _ = _sigma_points(self.noise_dim)
        d, p = self.x.shape[1], len(noise)
        if self.means is not None:
            return self.transition.wrapped(self.means[members, None] + noise @ self.transition.factor.T)
        if self.root is None or not self.transition.additive:
            return self.successors(np.repeat(members, p), np.tile(noise, (len(members), 1))).reshape(-1, p, d)
        # points that start from the same state share its transition mean
        starts, start_of = _distinct_starts(self.noise_dim, d)
        x = (self.x[members, None] + noise[starts, :d] @ self.root.T).reshape(-1, d)
        circular = self.transition.circular
        means = self.transition.mean(wrap(x, circular) if circular else x).reshape(-1, len(starts), d)
        successors = means[:, start_of] + noise[:, d:] @ self.transition.factor.T
        return wrap(successors, circular) if circular else successors

    def spreads(self) -> tuple[Array, Array]:
        """Covariances (d, d) of the successors: what the transition noise makes of it, and the whole.

        Noise that is not additive is linearised by the sigma points of the first member, which must have a width.
        """
        if self.means is not None:
            noise = self.transition.factor @ self.transition.factor.T
            means = unwrap(self.means, self.weights, self.transition.circular)
            centred = means - self.weights @ means
            return noise, noise + (self.weights * centred.T) @ centred
        weights = self.sigma_points[1]
        x = unwrap(self.sigma_successors(np.zeros(1, dtype=np.int64))[0], weights, self.transition.circular)
        slopes = (x[1 : self.noise_dim + 1] - x[self.noise_dim + 1 :]) * np.sqrt(0.5 * weights[1])
        noise = slopes[self.x.shape[1] :]
        return noise.T @ noise, slopes.T @ slopes

    def look_ahead(self, observation: Observation) -> tuple[Array, NoiseUpdate]:
        """Return where the members will be at no noise (M, d), and what an observation says about their noise.

        Where members are many, neighbours along the Hilbert curve of where they will be share the gain of the one in their
        middle; each has its own residual. There are so many gains that each function of the model is asked at `SPARE_POINTS`
        more states than there are members, at most.
        """
        points, weights = _sigma_points(self.noise_dim)
        (count, d), p = self.x.shape, len(points)
        asked = p if observation.has_moments else max(p, len(stencil(d)[0]))
        gains = min(count, -(-(count + SPARE_POINTS) // asked))
        group = np.arange(count)
        members = group.copy()
        if gains < count:
            centres = self.centres()
            order = balanced.hilbert_order(centres, self.weights, self.transition.circular)
            group[order] = members * gains // count
            members = order[(2 * members[:gains] + 1) * count // (2 * gains)]
        ahead = self.sigma_successors(members)
        if gains == count:
            centres = ahead[:, 0]
        if not observation.has_moments:
            up, down = ahead[:, 1 : self.noise_dim + 1], ahead[:, self.noise_dim + 1 :]
            slopes = wrap(up - down, self.transition.circular) * np.sqrt(0.5 * weights[1])
            made = linear_observations(observation, self.transition, centres, self.weights, members, group, slopes, points)
            update = update_noise(made[0], weights, points, made[1], np.eye(d)[None], group, observation.step)
            return centres, update._replace(log_densities=update.log_densities + made[2])
        states = ahead.reshape(-1, d)
        values = observation.mean(states if gains == count else np.concatenate([states, centres]))
        by_gain = values[: len(states)].reshape(-1, p, values.shape[1])
        offsets: Array = by_gain - by_gain[:, :1]
        if observation.circular:
            offsets = wrap(offsets, observation.circular)
        offsets = offsets[:, :, observation.observed_entries]
        residuals = observation.residuals(by_gain[:, 0] if gains == count else values[len(states) :])
        noises = observation.noises(states)
        if len(noises) > 1:
            noises = np.tensordot(noises.reshape(gains, p, *noises.shape[1:]), weights, (1, 0))
        return centres, update_noise(offsets, weights, points, residuals, noises, group, observation.step)

    def particles(self, chosen: Indices, noise: Array, log_weights: Array) -> Particles:
        """Successors of the chosen members (m,) at noise (m, noise_dim), with their ancestors if members are particles."""
        ancestors = chosen if self.members_are_particles else None
        return Particles.unchecked(self.successors(chosen, noise), log_weights, ancestors=ancestors)

    def updated(
        self, observation: Observation, update: NoiseUpdate, chosen: Indices, z: Array, log_weights: Array
    ) -> Particles:
        """Do as `particles` at updated noise, z (m, noise_dim) before; with exact weights."""
        noise, log_ratio = update.draw(chosen, z)
        return observation.weigh(self.particles(chosen, noise, log_weights + log_ratio))


class NoiseUpdate(NamedTuple):
    """Kalman's update of the noise of each of n particles by an observation: N(0, I) becomes N(mean, N N'), N = I - G' B G.

    The matrix N, a square root of the updated covariance ``I - G' G``, is never formed: with few entries k observed,
    products with it cost k times the dimension D, not its square. With T the Cholesky factor of ``I - G G'`` its part B
    is ``(I + T)^-1`` (after Andrews 1968, "A square root formulation of the Kalman covariance equations"). It is
    ``T = L^-1 R``, with R R' the covariance of what the noise says nothing about, so that nothing is subtracted.

    Attributes
    ----------
    group : ndarray of int, shape (n,)
        Whose gain, of B, each particle has.
    means : ndarray, shape (n, D)
    gains : ndarray, shape (B, k, D)
        The matrices G: L^-1 times the covariance of observation and noise, with L L' that of the observation.
    roots : ndarray, shape (B, k, k)
        The matrices T, lower triangular.
    log_dets : ndarray, shape (B,)
        Logarithms of the determinants of N.
    log_densities : ndarray, shape (n,)
        Of the observation, as each particle predicts it.
    offsets : ndarray, shape (B, p, k)
        Mean observations at sigma points of the noise, less that at no noise.
    residuals : ndarray, shape (n, k)
        The observation less the mean observation of each particle at no noise.
    noises : ndarray, shape (B or 1, k, k)
        Covariances of the observation's own noise.
    room : ndarray, shape (k + 1, k)
        Room for intermediate results.
    """

    group: Indices
    means: Array
    gains: Array
    roots: Array
    log_dets: Array
    log_densities: Array
    offsets: Array
    residuals: Array
    noises: Array
    room: Array

    def share(self, noise: Array, log_weights: Array) -> float:
        """Effective share, from 0 to 1, of points at noise (m, D) of the first particle, as far as its sigma points tell.

        The mean observation is taken for quadratic in each entry of the noise. Log-weights (m,) lack the likelihood.
        """
        noise = read_only(noise) if noise.flags.writeable else noise
        return float(_share(self, noise, log_weights.copy()))

    def draw(self, chosen: Indices, z: Array) -> tuple[Array, Array]:
        """Noise of the chosen particles (m,) at standard normal z (m, D), and log of N(0, I) over the density there (m,)."""
        noise = np.empty_like(z)
        log_ratio = np.empty(len(z))
        _draw(self, chosen, read_only(z) if z.flags.writeable else z, noise, log_ratio)
        return noise, log_ratio

    def draw_mixed(self, chosen: Indices, z: Array, unguided: Any, share: float) -> tuple[Array, Array]:
        """Do as `draw`, but leave the noise of the `unguided` (m,); the density is the mixture, `share` of it theirs."""
        noise, log_ratio = self.draw(chosen, z)
        noise[unguided] = z = z[unguided]
        chosen = chosen[unguided]
        g = self.group[chosen]
        away = z - self.means[chosen]  # the inverse of I - G' G = N N' is I + (T^-1 G)' T^-1 G
        along = np.linalg.solve(self.roots[g], self.gains[g] @ away[:, :, None])[:, :, 0]
        log_ratio[unguided] = 0.5 * ((away**2).sum(axis=1) + (along**2).sum(axis=1) - (z**2).sum(axis=1)) + self.log_dets[g]
        return noise, -np.logaddexp(np.log1p(-share) - log_ratio, np.log(share))


def update_noise(
    values: Array, weights: Array, points: Array, residuals: Array, noise: Array, group: Indices, step: int
) -> NoiseUpdate:
    """Update the noise of n particles by the mean observations at p points of the noise of B of them.

    Parameters
    ----------
    values : ndarray, shape (B, p, k)
        Mean observation at each point of each particle's noise, less that at no noise, angles unwrapped.
    weights : ndarray, shape (p,)
    points : ndarray, shape (p, D)
        Of N(0, I): their weighted mean is 0 and their covariance I.
    residuals : ndarray, shape (n, k)
        The observation less the mean observation of each particle at no noise.
    noise : ndarray, shape (B or 1, k, k)
        Covariance of the observation's own noise.
    group : ndarray of int, shape (n,)
        Which of the B each particle takes the gain of.
    """
    arrays = np.array(residuals, order="C"), np.array(noise, order="C")
    update, sound = new_update(np.ascontiguousarray(values), weights, points, *arrays, group)
    if not sound:
        raise IndefiniteCovarianceError(step, "observation's")
    return update


@register_jitable
def new_update(
    values: Array, weights: Array, points: Array, residuals: Array, noise: Array, group: Indices
) -> tuple[NoiseUpdate, bool]:
    """Do as `update_noise`, but say whether all covariances are positive definite."""
    (count, p, k), (n, dim) = values.shape, (len(residuals), points.shape[1])
    update = NoiseUpdate(
        group,
        np.zeros((n, dim)),
        np.zeros((count, k, dim)),
        np.zeros((count, k, k)),
        np.zeros(count),
        np.zeros(n),
        values,
        residuals,
        noise,
        np.zeros((k + 1, k)),
    )
    room = UpdateRoom(
        np.zeros((count, k, k)), np.zeros((count, k)), np.zeros(count), np.zeros((k, dim)), np.zeros((2, k, p))
    )
    return update, _update_noise(update, weights, points, room)


class UpdateRoom(NamedTuple):
    """Room for the results on the way to a `NoiseUpdate`.

    Attributes
    ----------
    factors : ndarray, shape (B, k, k)
        The matrices L of the covariance L L' of the observation.
    means : ndarray, shape (B, k)
        Mean observations, less that at no noise.
    constants : ndarray, shape (B,)
        Log-densities of the observation at its mean.
    slopes : ndarray, shape (k, D)
    rows : ndarray, shape (2, k, p)
        Of `regress`.
    """

    factors: Array
    means: Array
    constants: Array
    slopes: Array
    rows: Array


LEAST_NOISE = 1e-13
"""Least share that is left of the deviation of noise: less is rounding, and an observation without noise leaves none."""


@njit(**IN_PLACE)
def _update_noise(update, weights, points, room):
    """Fill the five arrays of a `NoiseUpdate`; return True if all covariances are positive definite."""
    (count, _, k), dim = update.offsets.shape, points.shape[1]
    means, gains, roots, log_dets, noises = update.means, update.gains, update.roots, update.log_dets, update.noises
    lowers, constants, slopes = room.factors, room.constants, room.slopes
    row = update.room[k]  # variances, then a residual
    regress(update.offsets, points, weights, weights, room.rows, room.means, gains, lowers)
    for i in range(count):
        for a in range(k):
            for b in range(a + 1):
                lowers[i, a, b] += noises[i if len(noises) > 1 else 0, a, b]
            row[a] = lowers[i, a, a]
            for j in range(dim):
                slopes[a, j] = gains[i, a, j]
                row[a] += slopes[a, j] ** 2
        if not factorise_noise(lowers[i], row, roots[i]):
            return False
        for a in range(k):
            for b in range(a + 1):
                lowers[i, a, b] = roots[i, a, b]
        rotate(lowers[i], slopes, slopes[:0], slopes[:0])
        constants[i] = -0.5 * k * np.log(2 * np.pi)
        for a in range(k):  # by L^-1: the rows of the cross-covariance
            if not 0.0 < lowers[i, a, a] < np.inf:
                return False
            scale = 1.0 / lowers[i, a, a]
            constants[i] += np.log(scale)
            for j in range(dim):
                for b in range(a):
                    gains[i, a, j] -= lowers[i, a, b] * gains[i, b, j]
                gains[i, a, j] *= scale
            for b in range(a + 1):
                for c in range(b, a):
                    roots[i, a, b] -= lowers[i, a, c] * roots[i, c, b]
                roots[i, a, b] *= scale
            roots[i, a, a] = max(roots[i, a, a], LEAST_NOISE)
            log_dets[i] += np.log(roots[i, a, a])
    for i in range(len(means)):
        g = update.group[i]
        log_density = constants[g]
        for a in range(k):  # by L^-1: the residual
            row[a] = update.residuals[i, a] - room.means[g, a]
            for b in range(a):
                row[a] -= lowers[g, a, b] * row[b]
            row[a] /= lowers[g, a, a]
            log_density -= 0.5 * row[a] ** 2
            for j in range(dim):
                means[i, j] += gains[g, a, j] * row[a]
        update.log_densities[i] = log_density
    return True


@njit(**IN_PLACE)
def _draw(update, chosen, z, noise, log_ratio):
    """Fill noise (m, D) and the logarithms (m,) of N(noise; 0, I) over the density it is drawn from."""
    means, gains, roots = update.means, update.gains, update.roots
    (m, dim), k = z.shape, gains.shape[1]
    along = update.room[k]
    for t in range(m):
        i = chosen[t]
        g = update.group[i]
        twice = 0.0
        for j in range(dim):
            noise[t, j] = means[i, j] + z[t, j]
            twice += z[t, j] ** 2
        for a in range(k):  # (I + T)^-1 G z
            entry = 0.0
            for j in range(dim):
                entry += gains[g, a, j] * z[t, j]
            for b in range(a):
                entry -= roots[g, a, b] * along[b]
            along[a] = entry / (1.0 + roots[g, a, a])
            for j in range(dim):
                noise[t, j] -= gains[g, a, j] * along[a]
        for j in range(dim):
            twice -= noise[t, j] ** 2
        log_ratio[t] = 0.5 * twice + update.log_dets[g]


@njit(**IN_PLACE)
def _share(update, z, log_weights):
    """Return what `NoiseUpdate.share` does; the log-likelihoods are added to the log-weights (m,)."""
    offsets, residual, lower = update.offsets[0], update.residuals[0], update.room
    (m, dim), k = z.shape, len(residual)
    scale, white, peak = 1.0 / np.sqrt(dim + 1.0), lower[k], -np.inf  # scale of the sigma points
    factorise(update.noises[0], lower)
    for t in range(m):
        for a in range(k):
            entry = residual[a]
            for j in range(dim):
                along = scale * z[t, j]
                up, down = offsets[1 + j, a], offsets[1 + dim + j, a]
                entry -= 0.5 * along * (up - down + along * (up + down))
            for b in range(a):
                entry -= lower[a, b] * white[b]
            white[a] = entry / lower[a, a]
            log_weights[t] -= 0.5 * white[a] ** 2
        if log_weights[t] > peak:
            peak = log_weights[t]
    total = squares = 0.0
    for t in range(m):
        weight = np.exp(log_weights[t] - peak)
        total += weight
        squares += weight**2
    share: float = total**2 / (m * squares)
    return share
