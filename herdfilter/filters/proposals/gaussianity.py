"""How far weighted particles, and their successors, are from a Gaussian."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numba.extending import register_jitable

from herdfilter._checks import Array
from herdfilter._covariances import SUSPECT_VARIANCE, covariance_factor, plain_and_regular
from herdfilter.angles import unwrap
from herdfilter.filters.kalman.update import factorise
from herdfilter.filters.state import Particles
from herdfilter.samplers.compiled import IN_PLACE, njit

FEW = 500
"""Number of particles whose cumulants are looked at first, where there are more."""

CLEARLY = 6.0
"""Cumulants of a few particles over chance, above which those of all need not be looked at."""

LARGEST_CONDITION = 1e8
"""Of a correlation matrix that is taken as it is: the inverse of the least eigenvalue that `regularised` leaves."""


class Gaussianity:
    """Moments of weighted particles, and how far the particles are from a Gaussian.

    Mardia's skewness (1970) is the sum of the squares of all third cumulants of the standardised particles; of the fourth
    the matrix ``E[|z|^2 z z'] - (d + 2) I`` is used, whose eigenvectors point to directions of two modes or of heavy tails
    (Cardoso 1989). Each is compared with what independent draws of N(0, I) have: the excess, as a share of the whole, is not
    chance (as James and Stein 1961 shrink means).

    Attributes
    ----------
    mean : ndarray, shape (d,)
    root : ndarray, shape (d, d)
        Factor of the covariance.
    """

    def __init__(self, particles: Particles, circular: tuple[int, ...]) -> None:
        self._x, self._weights, self._ess = particles.x, particles.weights, particles.ess
        if circular:
            self._x = unwrap(self._x, self._weights, circular)
        self.mean, self.root, self._z = standardised(self._x, self._weights)

    @classmethod
    def of(cls, particles: Particles, circular: tuple[int, ...]) -> Gaussianity:
        """Return that of particles, made once: several detections may be compared with the same particles."""
        found = _KNOWN.get(particles)
        if found is None:
            found = _KNOWN[particles] = cls(particles, circular)
        return found

    @cached_property
    def gaussian(self) -> bool:
        """True if at most half of their squared third and fourth cumulants is more than chance: of a few, then of all."""
        if (stride := len(self._x) // FEW) > 1:
            x, weights = self._x[::stride], self._weights[::stride]
            weights = weights / (weights.sum() or 1.0)
            if weights.any() and max(over_chance(standardised(x, weights)[2], weights)) > CLEARLY:
                return False
        return max(self._over_chance) <= 2

    @cached_property
    def width(self) -> float:
        """Width of kernels, in the particles' standard deviations; 0 if they would take all of the variance.

        They take the share ``width^2`` of the variance, the -2/3th power of the effective sample size, so that their bias
        falls faster than the error of chance does, and no more than leaves the cumulants what is not chance.
        """
        return float(kernel_width(self._over_chance, self._ess))

    def excess(self, n: int) -> float:
        """Return the larger of the squared third and fourth cumulants, over what chance makes of them in n draws."""
        return float(max(self._over_chance) * n / self._ess)

    @cached_property
    def _over_chance(self) -> tuple[float, float]:
        return over_chance(self._z, self._weights)


_KNOWN: WeakKeyDictionary[Particles, Gaussianity] = WeakKeyDictionary()


def standardised(x: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the mean (d,) of weighted points (n, d), a factor (d, d) of their covariance, and the points in its units."""
    d = x.shape[1]
    mean, root, inverse, z = np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.empty(x.shape)
    if _standardise(np.ascontiguousarray(x), weights, mean, root, inverse, z):
        return mean, root, z
    centred = x - weights @ x
    factor = covariance_factor(plain_and_regular(x, weights, centred)[1])
    return weights @ x, factor, np.linalg.solve(factor, centred.T).T


@njit(**IN_PLACE)
def _standardise(x, weights, mean, root, inverse, z):
    """Fill what `standardised` returns; return False if the covariance is not, or nearly not, of full rank."""
    n, d = x.shape
    for i in range(n):
        for a in range(d):
            mean[a] += weights[i] * x[i, a]
    for i in range(n):
        for a in range(d):
            offset = weights[i] * (x[i, a] - mean[a])
            for b in range(a + 1):
                root[a, b] += offset * (x[i, b] - mean[b])
    scale = z[0]
    for a in range(d):
        if not SUSPECT_VARIANCE * mean[a] ** 2 < root[a, a] < np.inf:
            return False
        scale[a] = np.sqrt(root[a, a])
    for a in range(d):
        for b in range(a + 1):
            root[a, b] /= scale[a] * scale[b]
    if not factorise(root, root):
        return False
    trace = 0.0  # of the inverse of the correlation matrix: it bounds the inverse of its least eigenvalue
    for i in range(d):
        inverse[i, i] = 1.0 / root[i, i]
        for j in range(i):
            entry = 0.0
            for k in range(j, i):
                entry -= root[i, k] * inverse[k, j]
            inverse[i, j] = entry * inverse[i, i]
        for j in range(i + 1):
            trace += inverse[i, j] ** 2
    if trace > LARGEST_CONDITION:
        return False
    for a in range(d):
        for b in range(a + 1):
            root[a, b] *= scale[a]
            inverse[a, b] /= scale[b]
    for i in range(n):
        for a in range(d):
            z[i, a] = 0.0
            for b in range(a + 1):
                z[i, a] += inverse[a, b] * (x[i, b] - mean[b])
    return True


@register_jitable
def kernel_width(over: tuple[float, float], size: float) -> float:
    """Return what `Gaussianity.width` is, by the squared cumulants over chance and the effective sample size."""
    third, fourth = 1.0 - 1.0 / max(1.0, over[0]), 1.0 - 1.0 / max(1.0, over[1])
    # kernels leave (1 - width^2)^3 of the squared third cumulants, and the fourth power of that of the fourth
    kept = max(third ** (1 / 3), fourth**0.25)
    width = min(size ** (-1 / 3), np.sqrt(1.0 - kept))
    return width if width < 1.0 else 0.0


def narrow(noise: Array, whole: Array, share: float) -> bool:
    """Return True if a covariance (d, d) has less than this share of another in some direction."""
    rest = noise - share * whole
    return not factorise(np.ascontiguousarray(rest), np.empty(rest.shape))


def over_chance(z: Array, weights: Array) -> tuple[float, float]:
    """Squared third and fourth cumulants of points (n, d) of mean 0 and covariance I, over what chance makes of them."""
    d = z.shape[1]
    cumulants: tuple[float, float] = _over_chance(np.ascontiguousarray(z), weights, np.zeros((d, d, d)), np.zeros((d, d)))
    return cumulants


def nonlinear_share(x: Array, noise: Array, circular: tuple[int, ...] = ()) -> float:
    """Share of the variance of states (n, d), in the worst dimension, that no linear function of noise (n, D) explains."""
    equal = np.full(len(x), 1.0 / len(x))
    x = unwrap(x, equal, circular) if circular else x
    return float(_nonlinear_share(np.ascontiguousarray(x), standardised(noise, equal)[2]))


@njit(**IN_PLACE)
def _nonlinear_share(x, noise):
    """Return the share of the variance of states (n, d), in the worst dimension, that is not linear in standard noise."""
    (n, d), most = x.shape, 0.0
    for a in range(d):
        mean = variance = linear = 0.0
        for i in range(n):
            mean += x[i, a] / n
        for i in range(n):
            variance += (x[i, a] - mean) ** 2 / n
        for b in range(noise.shape[1]):  # mean 0 and covariance I: the slopes are covariances
            slope = 0.0
            for i in range(n):
                slope += (x[i, a] - mean) * noise[i, b] / n
            linear += slope**2
        if variance > 0.0 and variance - linear > most * variance:
            most = (variance - linear) / variance
    return most


@njit(**IN_PLACE)
def _over_chance(z, weights, third, fourth):
    """Return what `over_chance` does; `third` (d, d, d) and `fourth` (d, d) are zeros, for the sums of products."""
    n, d = z.shape
    squares = 0.0
    for i in range(n):
        squares += weights[i] ** 2
        length = 0.0
        for a in range(d):
            length += z[i, a] ** 2
        for a in range(d):
            first = weights[i] * z[i, a]
            for b in range(a + 1):
                second = first * z[i, b]
                fourth[a, b] += length * second
                for c in range(b + 1):
                    third[a, b, c] += second * z[i, c]
    third_squared = fourth_squared = 0.0
    for a in range(d):
        for b in range(a + 1):  # each entry as often as it stands in the whole
            fourth_squared += (fourth[a, a] - (d + 2)) ** 2 if a == b else 2.0 * fourth[a, b] ** 2
            for c in range(b + 1):
                times = 1.0 if a == c else 3.0 if a == b or b == c else 6.0
                third_squared += times * third[a, b, c] ** 2
    # the variance of the fourth cumulant is 24; of entries of a matrix 4 (d + 4) beside the diagonal and twice that on it
    scale = 24.0 if d == 1 else 4.0 * (d + 4)
    of_chance = squares * 6.0 * (d * (d + 1) * (d + 2) / 6.0), squares * scale * (d * (d + 1) / 2.0)
    return third_squared / of_chance[0], fourth_squared / of_chance[1]
