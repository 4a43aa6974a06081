"""Kalman's update of the standard normal noise of many particles at once, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.filters.kalman._update import factorised
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.resampling.base import Indices


class Guidance(NamedTuple):
    """What an observation tells about the noise of each of n particles: from N(0, I) to N(mean, N N'), N = I - G' B G.

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

    def drawn(self, chosen: Indices, z: Array) -> tuple[Array, Array]:
        """Noise of the chosen particles (m,) at standard normal z (m, D), and log of N(0, I) over the density there (m,)."""
        noise, log_ratio = np.empty_like(z), np.empty(len(z))
        z = z.view()
        z.flags.writeable = False  # as some are: `_draw` is not compiled for both
        _draw(self.means, self.gains, self.roots, self.log_dets, chosen, z, noise, log_ratio)
        return noise, log_ratio


def guided(seen: Array, weights: Array, points: Array, residuals: Array, noise: Array, step: int) -> Guidance:
    """Update the noise of n particles by what they would see at p points of it.

    Parameters
    ----------
    seen : ndarray, shape (n, p, k)
        Mean observation at each point of each particle's noise, less some value of the particle's, angles unwrapped.
    weights : ndarray, shape (p,)
    points : ndarray, shape (p, D)
        Of N(0, I): their weighted mean is 0 and their covariance I.
    residuals : ndarray, shape (n, k)
        The observation less that value.
    noise : ndarray, shape (n or 1, k, k)
        Covariance of the observation's own noise.
    """
    (n, _, k), dim = seen.shape, points.shape[1]
    means, gains, roots = np.zeros((n, dim)), np.zeros((n, k, dim)), np.zeros((n, k, k))
    log_dets, log_densities = np.zeros(n), np.zeros(n)
    scratch = np.empty((1, k, k)), np.empty((2, k))
    arrays = np.ascontiguousarray(seen), np.ascontiguousarray(residuals), np.ascontiguousarray(noise)
    if not _guide(*arrays, weights, points, means, gains, roots, log_dets, log_densities, *scratch):
        raise IndefiniteCovarianceError(step, "observation's")
    return Guidance(means, gains, roots, log_dets, log_densities)


LEAST = 1e-12
"""Least share that is left of the variance of noise: a sharp observation would leave none, by rounding less than none."""


@njit(cache=True, nogil=True)
def _guide(
    seen: Array,
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
    """Fill the five arrays of a `Guidance`; return whether all covariances are positive definite."""
    (n, p, k), dim = seen.shape, points.shape[1]
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
                mean[a] += weights[t] * seen[i, t, a]
        for t in range(p):
            for a in range(k):
                offset = weights[t] * (seen[i, t, a] - mean[a])
                for b in range(a + 1):
                    lower[a, b] += offset * (seen[i, t, b] - mean[b])
                if offset != 0.0:
                    for j in range(dim):
                        gain[a, j] += offset * points[t, j]
        if not factorised(square, 0, k, lower):  # in place
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
                rest[a, b] = 1.0 + LEAST if a == b else 0.0
                for j in range(dim):
                    rest[a, b] -= gain[a, j] * gain[b, j]
        if not factorised(roots, i, k, rest):
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
