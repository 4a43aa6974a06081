"""Tests of how far weighted particles, and their successors, are from a Gaussian."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numba.extending import register_jitable

from herdfilter import _covariances
from herdfilter._checks import Array
from herdfilter._covariances import SUSPECT_VARIANCE
from herdfilter.angles import unwrap
from herdfilter.filters.kalman.update import factorise
from herdfilter.filters.state import Particles
from herdfilter.samplers import compiled
from herdfilter.samplers.balanced import over_chance

FEW = 500
"""Number of particles above which about so many of them are tested first."""

CLEARLY = 6.0
"""If the cumulants of these few exceed chance by this factor, the particles are not Gaussian: the others are not tested."""

RANKED_SHARE = 6.0
"""Factor of `ranked_chance`: so large that particles pass which a linear model draws from a Gaussian at the fixed points."""

GOLDEN = 0.5 * (5**0.5 - 1)
"""The golden ratio: its multiples modulo 1 are spread evenly, and do not fall in with the bits of a Sobol sequence."""

LARGEST_CONDITION = 1e8
"""Correlation matrices up to this condition are used as they are: the inverse of the least eigenvalue of `regularised`."""


class Gaussianity:
    """Moments of weighted particles, and how far the particles are from a Gaussian.

    Mardia's skewness (1970) is the sum of the squares of all third cumulants of the standardised particles; of the fourth
    the matrix ``E[|z|^2 z z'] - (d + 2) I`` is used, whose eigenvectors point to directions of two modes or of heavy tails
    (Cardoso 1989). Each is divided by its expectation for independent draws of N(0, I). What exceeds that is not chance: a
    ratio r leaves the share 1 - 1/r of the squared cumulants (as James and Stein 1961 shrink means). Of `ranked` particles
    with fixed points as noise, chance makes less: see `ranked_chance`.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    root : ndarray, shape (d, d)
        Factor of the covariance.
    """

    def __init__(
        self, particles: Particles, circular: tuple[int, ...], ranked: bool = False
    ) -> None:
        self._weights = particles.weights
        self._ess = particles.ess
        self._chance = ranked_chance(self._ess, particles.x.shape[1]) if ranked else 1.0
        self._x = unwrap(particles.x, self._weights, circular) if circular else particles.x
        self.mean, self.root, self._z = standardised(self._x, self._weights)

    @classmethod
    def of(cls, particles: Particles, circular: tuple[int, ...], ranked: bool) -> Gaussianity:
        """Return the (cached) shape of these particles: a track asks for it with each detection in its gate."""
        shape: Gaussianity | None = particles.gaussianity
        if shape is None:
            shape = particles.gaussianity = cls(particles, circular, ranked)
            if particles.feasible_share not in (None, 1):
                shape.gaussian = False  # but cut off at a limit
        return shape

    @cached_property
    def gaussian(self) -> bool:
        """True if the squared third and fourth cumulants are at most twice what chance makes of them."""
        if (stride := len(self._x) // FEW) > 1:
            size = len(self._x)
            few = (np.arange(-(-size // stride)) * GOLDEN % 1.0 * size).astype(np.int64)
            x = self._x[few]
            weights = self._weights[few]
            weights = weights / (weights.sum() or 1.0)
            if weights.any() and max(over_chance(standardised(x, weights)[2], weights)) > CLEARLY:
                return False
        return max(self._over_chance) <= 2

    @cached_property
    def width(self) -> float:
        """Width of kernels about the particles, in standard deviations of all; 0 if it would be 1.

        Kernels take the share ``width^2`` of the variance. It is the effective sample size to the power -2/3, so that their
        bias falls faster than the Monte Carlo error; but no more than leaves the part of the cumulants that is not chance.
        """
        return float(relative_width(self._over_chance, self._ess))

    @property
    def density_width(self) -> float:
        """Width by Silverman's rule (1986), as of a kernel density; at most that of all."""
        d = len(self.mean)
        return float(min(1.0, (4 / ((d + 2) * self._ess)) ** (1 / (d + 4))))

    def excess(self, n: int) -> float:
        """Return the larger of the squared third and fourth cumulants, over their expectations in n Gaussian draws."""
        return float(max(self._over_chance) * n / self._ess)

    @cached_property
    def _over_chance(self) -> tuple[float, float]:
        third, fourth = over_chance(self._z, self._weights)
        return third / self._chance, fourth / self._chance


def standardised(x: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the mean (d,) of weighted points, a factor (d, d) of their covariance, and the whitened points (n, d)."""
    d = x.shape[1]
    mean = np.zeros(d)
    root = np.zeros((d, d))
    z = np.empty(x.shape)
    if _standardise(np.ascontiguousarray(x), weights, mean, root, np.zeros((d, d)), z):
        return mean, root, z
    # A singular covariance, or nearly so, is regularised: slower, and rarely needed.
    centred = x - weights @ x
    factor = _covariances.covariance_factor(_covariances.plain_and_regular(x, weights, centred)[1])
    return weights @ x, factor, np.ascontiguousarray(np.linalg.solve(factor, centred.T).T)


@compiled.njit(**compiled.IN_PLACE)
def _standardise(x, weights, mean, root, inverse, z):
    """Fill in what `standardised` returns; return False if the covariance is singular, or nearly so."""
    n, d = x.shape
    for i in range(n):
        for a in range(d):
            mean[a] += weights[i] * x[i, a]
    # The covariance, in the lower triangle of `root`.
    for i in range(n):
        for a in range(d):
            offset = weights[i] * (x[i, a] - mean[a])
            for b in range(a + 1):
                root[a, b] += offset * (x[i, b] - mean[b])
    # As a correlation matrix, whose factor has digits left whatever the units. A variance that is small compared with the
    # squared mean has lost digits by cancellation.
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
    # trace of the inverse correlation matrix: an upper bound of the inverse of the least eigenvalue
    trace = 0.0
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
    # Back to the units of the state, then the whitened points.
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
def ranked_chance(size: float, d: int) -> float:
    """Return the squared cumulants of `size` ranked particles by chance, over those of as many random draws; at most 1.

    Ancestors along a curve and noise along the ranks are strata of 1 + d dimensions. Of a function that is not smooth they
    leave ``size^(-1/(1 + d))`` of the variance of random draws (He and Owen 2016, for functions with jumps).
    """
    return float(min(1.0, RANKED_SHARE * size ** (-1.0 / (1.0 + d))))


@register_jitable
def relative_width(over: tuple[float, float], size: float) -> float:
    """Return `Gaussianity.width` from the squared cumulants over chance and the effective sample size."""
    # shares of the squared cumulants that are not chance
    third = 1.0 - 1.0 / max(1.0, over[0])
    fourth = 1.0 - 1.0 / max(1.0, over[1])
    # Particles drawn together by the factor sqrt(1 - width^2) keep the shares (1 - width^2)^3 and (1 - width^2)^4.
    shrinkage = max(third ** (1 / 3), fourth**0.25)
    width = min(size ** (-1 / 3), np.sqrt(1.0 - shrinkage))
    return width if width < 1.0 else 0.0


def narrow(noise: Array, total: Array, share: float) -> bool:
    """Return True if a covariance (d, d) has less than this share of another in some direction."""
    # positive definite unless there is such a direction
    difference = noise - share * total
    return not factorise(np.ascontiguousarray(difference), np.empty(difference.shape))


def nonlinear_share(x: Array, noise: Array, circular: tuple[int, ...] = ()) -> float:
    """Share of the variance of states (n, d), in the worst dimension, that no linear function of noise (n, D) explains."""
    equal = np.full(len(x), 1.0 / len(x))
    x = np.ascontiguousarray(unwrap(x, equal, circular))
    return float(_nonlinear_share(x, standardised(noise, equal)[2]))


@compiled.njit(**compiled.IN_PLACE)
def _nonlinear_share(x, noise):
    """Return the share of the variance of states (n, d), in the worst dimension, that is not linear in standard noise."""
    n, d = x.shape
    worst = 0.0
    for a in range(d):
        mean = variance = linear = 0.0
        for i in range(n):
            mean += x[i, a] / n
        for i in range(n):
            variance += (x[i, a] - mean) ** 2 / n
        # mean 0 and covariance I: the slopes are covariances
        for b in range(noise.shape[1]):
            slope = 0.0
            for i in range(n):
                slope += (x[i, a] - mean) * noise[i, b] / n
            linear += slope**2
        if variance > 0.0 and variance - linear > worst * variance:
            worst = (variance - linear) / variance
    return worst
