"""Looking ahead: the ancestors of a step, and the Kalman update of their transition noise by an observation."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from herdfilter import angles
from herdfilter._checks import Array
from herdfilter.filters import state
from herdfilter.filters.kalman import update as kalman
from herdfilter.filters.kalman.rules import UNSCENTED_RULE, regress
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import quadratic
from herdfilter.filters.resampling.base import ranked_members
from herdfilter.models.resolved import Transition
from herdfilter.samplers import balanced, compiled
from herdfilter.samplers.base import Sampler

SPARE_POINTS = 1000
"""A call of the model's functions with so many states takes little more time than one with a few."""


_sigma_points = lru_cache(maxsize=64)(
    UNSCENTED_RULE.points
)  # the cache of the rule itself costs a hash of its parameters


@lru_cache(maxsize=64)
def _distinct_starts(noise_dim: int, d: int) -> tuple[state.Indices, state.Indices]:
    """Return the sigma points with distinct first d entries (2 d + 1,), and which of them each point (p,) agrees with."""
    starts = np.concatenate([np.arange(d + 1), np.arange(noise_dim + 1, noise_dim + d + 1)])
    start_of = np.zeros(2 * noise_dim + 1, dtype=np.int64)
    start_of[starts] = np.arange(2 * d + 1)
    return starts, start_of


class Ancestors(NamedTuple):
    """M weighted states, or Gaussians about them, whose successors are functions of noise, N(0, I).

    Attributes
    ----------
    transition : Transition
    x : ndarray, shape (M, d)
    weights : ndarray, shape (M,)
    root : ndarray, shape (d, d), or None
        Factor of the covariance of the Gaussians.
    means : ndarray, shape (M, d), or None
        Transition means of the states, computed once where members are points and the noise is additive.
    members_are_particles : bool
        False for one Gaussian that replaces all particles.
    spare : int
        Number of sigma points that may be looked at.
    """

    transition: Transition
    x: Array
    weights: Array
    root: Array | None = None
    means: Array | None = None
    members_are_particles: bool = True
    spare: int = 0

    @classmethod
    def of(cls, transition: Transition, particles: state.Particles) -> Ancestors:
        """Take the particles as they are."""
        means = transition.mean(particles.x) if transition.additive else None
        spare = len(particles.x) + SPARE_POINTS
        return cls(transition, particles.x, particles.weights, None, means, spare=spare)

    @classmethod
    def gaussian(cls, transition: Transition, mean: Array, root: Array) -> Ancestors:
        """Take one Gaussian, N(mean, root @ root.T)."""
        return cls(transition, mean[None], np.ones(1), root, members_are_particles=False)

    @classmethod
    def kernels(
        cls,
        transition: Transition,
        particles: state.Particles,
        mean: Array,
        root: Array,
        width: float,
    ) -> Ancestors:
        """Put a Gaussian about every particle, of `width` standard deviations of all; mean and covariance stay.

        In compensation the particles are moved towards their mean (Liu and West 2001).
        """
        x = angles.unwrap(particles.x, particles.weights, transition.circular)
        x = transition.wrapped(mean + np.sqrt(1 - width**2) * (x - mean))
        return cls(transition, x, particles.weights, width * root)

    @property
    def noise_dim(self) -> int:
        """Number of entries of the noise: d for the state, if members are Gaussians, then those of the transition."""
        return (0 if self.root is None else len(self.root)) + self.transition.motion.noise_dim

    def standard_noise(self, sampler: Sampler | None, n: int, rng: np.random.Generator) -> Array:
        """Points (n, noise_dim) of N(0, I): those of a sampler, or else the balanced set for this step."""
        if sampler is None:
            return balanced.balanced_noise(n, self.noise_dim, self.transition.step % balanced.SETS)
        return balanced.sampled_noise(sampler, n, self.noise_dim, rng)

    def successors(self, members: Any, noise: Array) -> Array:
        """Successors (m, d) of members (m,) at noise (m, noise_dim)."""
        if self.means is not None:
            x = self.means[members] + noise @ self.transition.noise.factor.T
            return self.transition.wrapped(x) if self.transition.circular else x
        start = self.x[members]
        if self.root is None:
            return self.transition.propagate(start, noise)
        # the first d entries of the noise are the state's, about the centre
        d = len(self.root)
        start = self.transition.wrapped(start + noise[:, :d] @ self.root.T)
        return self.transition.propagate(start, noise[:, d:])

    @property
    def sigma_points(self) -> tuple[Array, Array]:
        """Points of the noise by the unscented rule, the first of them 0, and their weights; (p, noise_dim) and (p,)."""
        return _sigma_points(self.noise_dim)

    def centres(self) -> Array:
        """Successors (M, d) of all members without noise."""
        if self.means is not None:
            return self.transition.wrapped(self.means)
        return self.successors(np.arange(len(self.x)), np.zeros((len(self.x), self.noise_dim)))

    def sigma_successors(self, members: state.Indices, noise: Array) -> Array:
        """Successors (B, p, d) of members (B,) at the p `sigma_points` (p, noise_dim) of their noise."""
        d = self.x.shape[1]
        if self.means is not None:
            return self.successors(members[:, None], noise)
        if self.root is None or not self.transition.additive:
            repeated = np.repeat(members, len(noise)), np.tile(noise, (len(members), 1))
            return self.successors(*repeated).reshape(-1, len(noise), d)
        # points that start from the same state share its transition mean
        starts, start_of = _distinct_starts(noise.shape[1], d)
        x = (self.x[members, None] + noise[starts, :d] @ self.root.T).reshape(-1, d)
        means = self.transition.mean(self.transition.wrapped(x)).reshape(-1, len(starts), d)
        x = means[:, start_of] + noise[:, d:] @ self.transition.noise.factor.T
        return self.transition.wrapped(x) if self.transition.circular else x

    def spreads(self) -> tuple[Array, Array]:
        """Covariances (d, d) of the successors: that due to the transition noise, and the total.

        Noise that is not additive is linearised by the sigma points of the first member, which must be a Gaussian.
        """
        # the law of total covariance: of the means, and of the noise
        if self.means is not None:
            noise = self.transition.noise.factor @ self.transition.noise.factor.T
            means = angles.unwrap(self.means, self.weights, self.transition.circular)
            centred = means - self.weights @ means
            return noise, noise + (self.weights * centred.T) @ centred
        ahead = self.sigma_successors(np.zeros(1, dtype=np.int64), self.sigma_points[0])
        slopes = self.slopes(ahead)[0]
        noise = slopes[self.x.shape[1] :]
        return noise.T @ noise, slopes.T @ slopes

    def slopes(self, ahead: Array) -> Array:
        """Return derivatives (B, D, d) in the noise of successors at the sigma points, (B, p, d): central differences."""
        half = 1 + self.noise_dim
        differences = self.transition.wrapped(ahead[:, 1:half] - ahead[:, half:])
        # The points +- c e_j have the weight 1 / (2 c^2).
        return differences * float(np.sqrt(0.5 * self.sigma_points[1][1]))

    def look_ahead(self, observation: Observation) -> tuple[Array, NoiseUpdate]:
        """Return the successors (M, d) of all members without noise, and the update of their noise by an observation.

        Groups of neighbours along the Hilbert curve through these successors share the gain of the member in their middle;
        each member has its own residual. There are about as many gains as `spare` sigma points allow, and at least one.
        """
        points, weights = self.sigma_points
        count, d = self.x.shape
        p = len(points)
        evaluations = p if observation.has_moments else max(p, len(quadratic.stencil(d)))
        gains = max(1, min(count, -(-self.spare // evaluations)))
        group = np.arange(count)
        members = group.copy()
        if gains < count:
            centres = self.centres()
            order = balanced.hilbert_order(centres, self.weights, self.transition.circular)
            # `gains` runs of almost equal length; the member in the middle of each represents it.
            group[order] = members * gains // count
            members = order[(2 * members[:gains] + 1) * count // (2 * gains)]
        ahead = self.sigma_successors(members, points)
        if gains == count:
            centres = ahead[:, 0]
        log_peaks = None
        if observation.has_moments:
            # One call of the model for the centres and the other sigma points of all gains.
            values = observation.mean(np.concatenate([centres, ahead[:, 1:].reshape(-1, d)]))
            at_centres = values[:count]
            offsets = np.zeros((gains, p, values.shape[1]))
            offsets[:, 1:] = values[count:].reshape(gains, p - 1, -1) - at_centres[members, None]
            if observation.circular:
                offsets = angles.wrap(offsets, observation.circular)
            offsets = offsets[:, :, observation.observed_entries]
            residuals = observation.residuals(at_centres)
            noises = observation.noises(ahead.reshape(-1, d))
            # noise that depends on the state: its expectation over each gain's points
            if len(noises) > 1:
                noises = np.tensordot(noises.reshape(gains, p, *noises.shape[1:]), weights, (1, 0))
        else:
            noises = np.eye(d)[None]
            offsets, residuals, log_peaks = quadratic.linear_observations(
                observation, self, centres, members, group, ahead
            )
        update, sound = update_noise(
            np.ascontiguousarray(offsets),
            weights,
            points,
            np.array(residuals, order="C"),
            np.array(noises, order="C"),
            group,
        )
        if not sound:
            raise kalman.IndefiniteCovarianceError(observation.step, "observation's")
        if log_peaks is not None:
            update = update._replace(log_densities=update.log_densities + log_peaks)
        return centres, update

    def take(
        self,
        steps: int | Array,
        noise: Array,
        guide: Observation | None = None,
        share: float = 0.0,
        unguided: Any = None,
    ) -> state.Particles:
        """Return the successors, at noise (n, D), of members taken in their order along a curve; not weighed.

        Members are taken at so many even steps, or ascending numbers (n,), of their cumulative weights. With a `guide` they
        are ordered by their successors without noise, and weighted by what they predict of it, with a `share` of their
        weights before; the noise is updated, but not that of `unguided` (n,) particles, a share of all.
        """
        if guide is None:
            members = ranked_members(self.x, self.weights, self.transition.circular, steps)
            return self.particles(members, noise, np.full(len(noise), -np.log(len(noise))))
        centres, update = self.look_ahead(guide)
        weights, log_ratio = mixed_weights(self.weights, update.log_densities, share)
        members = ranked_members(centres, weights, self.transition.circular, steps)
        if unguided is None:
            noise, log_noise_ratio = update.draw(members, noise)
        else:
            noise, log_noise_ratio = update.draw_mixed(members, noise, unguided, share)
        log_weights = log_ratio[members] - np.log(len(noise)) + log_noise_ratio
        return self.particles(members, noise, log_weights)

    def particles(
        self, members: state.Indices, noise: Array, log_weights: Array
    ) -> state.Particles:
        """Successors of members (m,) at noise (m, noise_dim), with their ancestors if members are particles."""
        ancestors = members if self.members_are_particles else None
        return state.Particles.unchecked(
            self.successors(members, noise), log_weights, ancestors=ancestors
        )

    def updated(self, observation: Observation, update: NoiseUpdate, z: Array) -> state.Particles:
        """Successors of one Gaussian at updated noise, drawn by standard normal z (m, noise_dim), with exact weights."""
        members = np.zeros(len(z), dtype=np.int64)
        noise, log_ratio = update.draw(members, z)
        return self.particles(members, noise, log_ratio - np.log(len(z))).updated(observation)


class NoiseUpdate(NamedTuple):
    """Kalman update of the noise of each of n particles by an observation: N(0, I) becomes N(mean, N N'), N = I - G' B G.

    The matrix N, a square root of the updated covariance ``I - G' G``, is never formed: with k entries observed, products
    with it cost k times the dimension D, not D squared. With T the Cholesky factor of ``I - G G'``, B is
    ``(I + T)^-1`` (after Andrews 1968, "A square root formulation of the Kalman covariance equations"). T is computed as
    ``L^-1 R``, with R R' the part of the observation's covariance that is independent of the noise: nothing is subtracted.

    Attributes
    ----------
    group : ndarray of int, shape (n,)
        Index among the B gains of the one that each particle uses.
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
        Mean observations at sigma points of the noise, less that without noise.
    residuals : ndarray, shape (n, k)
        The observation less the mean observation of each particle without noise.
    noises : ndarray, shape (B or 1, k, k)
        Covariances of the observation noise.
    workspace : ndarray, shape (k + 1, k)
    """

    group: state.Indices
    means: Array
    gains: Array
    roots: Array
    log_dets: Array
    log_densities: Array
    offsets: Array
    residuals: Array
    noises: Array
    workspace: Array

    def share(self, noise: Array, log_weights: Array) -> float:
        """Predict the effective share, from 0 to 1, of points at noise (m, D) of the first particle after the observation.

        The mean observation is interpolated by a quadratic in each entry of the noise, through the sigma points. Log-weights
        (m,) are those before the likelihood.
        """
        noise = noise.view()
        noise.flags.writeable = False  # one kind of array for the compiled function
        return float(_share(self, noise, log_weights.copy()))

    def draw(self, chosen: state.Indices, z: Array) -> tuple[Array, Array]:
        """Noise of the chosen particles (m,) at standard normal z (m, D), and log of N(0, I) over the density there (m,)."""
        drawn: tuple[Array, Array] = _draw(self, chosen, z)
        return drawn

    def draw_mixed(
        self,
        members: state.Indices,
        z: Array,
        unguided: Any,
        share: float,
    ) -> tuple[Array, Array]:
        """As `draw`, but `unguided` (m,) particles keep z; the density is the mixture with `share` of N(0, I)."""
        noise, log_ratio = self.draw(members, z)
        z = z[unguided]
        noise[unguided] = z
        members = members[unguided]
        g = self.group[members]
        # The density of the update at z. The inverse of I - G' G = N N' is I + (T^-1 G)' T^-1 G.
        offsets = z - self.means[members]
        along = np.linalg.solve(self.roots[g], self.gains[g] @ offsets[:, :, None])[:, :, 0]
        squares = (offsets**2).sum(axis=1) + (along**2).sum(axis=1)
        log_ratio[unguided] = 0.5 * (squares - (z**2).sum(axis=1)) + self.log_dets[g]
        return noise, -np.logaddexp(np.log1p(-share) - log_ratio, np.log(share))


@compiled.njit(**compiled.CALLED)
def mixed_weights(before, log_densities, share):
    """Return weights q (M,), a mixture of those after an update and a `share` of those before, and log(before / q)."""
    weights = np.zeros(len(before))
    log_ratio = np.zeros(len(before))
    peak = -np.inf
    total = 0.0
    total_before = 0.0
    # log_ratio first holds the logarithm of the weights before, and `weights` that of the posterior weights.
    for i in range(len(before)):
        log_ratio[i] = np.log(before[i]) if before[i] > 0.0 else -np.inf
        weights[i] = log_ratio[i] + log_densities[i]
        if weights[i] > peak:
            peak = weights[i]
    for i in range(len(before)):
        # out of reach of all: as before
        weights[i] = np.exp(weights[i] - peak) if peak > -np.inf else before[i]
        total += weights[i]
        total_before += before[i]
    for i in range(len(before)):
        weights[i] = (1.0 - share) * weights[i] / total + share * before[i] / total_before
        log_ratio[i] -= np.log(weights[i]) if weights[i] > 0.0 else 0.0
    return weights, log_ratio


LEAST_NOISE = 1e-13
"""Least ratio of the deviations of noise after and before: an exact observation leaves none, and the density needs some."""


@register_jitable
def update_noise(
    offsets: Array,
    weights: Array,
    points: Array,
    residuals: Array,
    noises: Array,
    group: state.Indices,
) -> tuple[NoiseUpdate, bool]:
    """Update the noise of n particles; return a `NoiseUpdate`, and whether all covariances are positive definite.

    Points (p, D) and their weights (p,) are such that the mean is 0 and the covariance I. The other arguments are
    explained in `NoiseUpdate`; the arrays are C-contiguous.
    """
    count, _, k = offsets.shape
    n = len(residuals)
    dim = points.shape[1]
    means = np.zeros((n, dim))
    gains = np.zeros((count, k, dim))
    roots = np.zeros((count, k, k))
    log_dets = np.zeros(count)
    log_densities = np.zeros(n)
    workspace = np.zeros((k + 1, k))
    # Made in Python, if called from there: a tuple that compiled code returns takes longer than the update.
    update = NoiseUpdate(
        group, means, gains, roots, log_dets, log_densities, offsets, residuals, noises, workspace
    )
    return update, _fill_update(update, weights, points)


@compiled.njit(**compiled.CALLED)
def _fill_update(update, weights, points):
    """Fill in the means, gains, roots and densities of an update; return whether all covariances are positive definite."""
    count, p, k = update.offsets.shape
    dim = points.shape[1]
    means = update.means
    gains = update.gains
    roots = update.roots
    noises = update.noises
    # the matrices L of the covariance L L' of the observation
    lowers = np.zeros((count, k, k))
    # of the observation, less that without noise
    mean_offsets = np.zeros((count, k))
    # log-densities of the observation at its mean
    constants = np.zeros(count)
    slopes = np.zeros((k, dim))
    row = update.workspace[k]  # variances, then a residual
    # Gains are first the slopes A of the observation in the noise, lowers the covariance of the rest.
    linear = (mean_offsets, gains, lowers)
    regress(update.offsets, points, weights, weights, np.zeros((2, k, p)), linear)
    for i in range(count):
        # The gains now hold A, and are divided by L in place; slopes are a copy of A, which the rotations use up.
        # R, the factor of the rest and the observation noise; then L with L L' = A A' + R R' by rotations.
        for a in range(k):
            for b in range(a + 1):
                lowers[i, a, b] += noises[i if len(noises) > 1 else 0, a, b]
            row[a] = lowers[i, a, a]
            for j in range(dim):
                slopes[a, j] = gains[i, a, j]
                row[a] += slopes[a, j] ** 2
        if not kalman.factorise_noise(lowers[i], row, roots[i]):
            return False
        for a in range(k):
            for b in range(a + 1):
                lowers[i, a, b] = roots[i, a, b]
        kalman.rotate(lowers[i], slopes, slopes[:0], slopes[:0])
        constants[i] = -0.5 * k * np.log(2 * np.pi)
        for a in range(k):  # forward substitution: G = L^-1 A and T = L^-1 R
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
            update.log_dets[i] += np.log(roots[i, a, a])
    # Each particle has its own residual, with the gain of its group.
    for i in range(len(update.group)):
        g = update.group[i]
        log_density = constants[g]
        # forward substitution with the residual: L^-1 r, and the mean G' L^-1 r
        for a in range(k):
            row[a] = update.residuals[i, a] - mean_offsets[g, a]
            for b in range(a):
                row[a] -= lowers[g, a, b] * row[b]
            row[a] /= lowers[g, a, a]
            log_density -= 0.5 * row[a] ** 2
            for j in range(dim):
                means[i, j] += gains[g, a, j] * row[a]
        update.log_densities[i] = log_density
    return True


@compiled.njit(**compiled.CALLED)
def _draw(update, members, z):
    """Return what `NoiseUpdate.draw` does."""
    gains = update.gains
    roots = update.roots
    m, dim = z.shape
    k = gains.shape[1]
    along = update.workspace[k]
    noise = np.zeros((m, dim))
    log_ratio = np.zeros(m)
    for t in range(m):
        i = members[t]
        g = update.group[i]
        twice = 0.0  # twice the logarithm, without the determinant: |z|^2 - |noise|^2
        for j in range(dim):
            noise[t, j] = update.means[i, j] + z[t, j]
            twice += z[t, j] ** 2
        # (I + T)^-1 G z by forward substitution, and N z = z - G' (I + T)^-1 G z
        for a in range(k):
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
    return noise, log_ratio


@compiled.njit(**compiled.IN_PLACE)
def _share(update, z, log_weights):
    """Return what `NoiseUpdate.share` does; the log-likelihoods are added to the log-weights (m,)."""
    offsets = update.offsets[0]
    residual = update.residuals[0]
    lower = update.workspace
    m, dim = z.shape
    k = len(residual)
    white = lower[k]
    scale = 1.0 / np.sqrt(dim + 1.0)  # sigma points lie at +- sqrt(dim + 1)
    peak = -np.inf
    kalman.factorise(update.noises[0], lower)
    for t in range(m):
        for a in range(k):
            entry = residual[a]
            for j in range(dim):
                along = scale * z[t, j]
                up = offsets[1 + j, a]
                down = offsets[1 + dim + j, a]
                entry -= 0.5 * along * (up - down + along * (up + down))
            for b in range(a):
                entry -= lower[a, b] * white[b]
            white[a] = entry / lower[a, a]
            log_weights[t] -= 0.5 * white[a] ** 2
        if log_weights[t] > peak:
            peak = log_weights[t]
    # Kish: (sum w)^2 / (m sum w^2)
    total = squares = 0.0
    for t in range(m):
        weight = np.exp(log_weights[t] - peak)
        total += weight
        squares += weight**2
    share = total**2 / (m * squares)
    return share
