"""How far weighted particles, and their successors, are from a Gaussian."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor, plain_and_regular
from herdfilter.angles import unwrap
from herdfilter.filters.particles import Particles
from herdfilter.filters.transition import Transition

TINY_VARIANCE = 1e-10
"""Added to variances relative to themselves, where successors leave a direction without any."""


class Gaussianity(NamedTuple):
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
    gaussian : bool
        True if at most half of their squared third and fourth cumulants is more than chance.
    width : float
        Of kernels, in the particles' standard deviations: they take the share ``width^2`` of the variance, the -1/2th power
        of the effective sample size as its chance error is, and no more than leaves the cumulants what is not chance.
    """

    mean: Array
    root: Array
    gaussian: bool
    width: float

    @classmethod
    def of(cls, particles: Particles, circular: tuple[int, ...]) -> Gaussianity:
        """Return that of particles, computed once: several detections may be compared with the same particles."""
        found = _KNOWN.get(particles)
        if found is None:
            x, weights = particles.x, particles.weights
            if circular:
                x = unwrap(x, weights, circular)
            mean = weights @ x
            root = covariance_factor(plain_and_regular(x, weights, x - mean)[1])
            third, fourth = over_chance(np.linalg.solve(root, (x - mean).T).T, weights)
            third, fourth = 1.0 - 1.0 / max(1.0, third), 1.0 - 1.0 / max(1.0, fourth)
            # kernels leave (1 - width^2)^3 of the squared third cumulants, and the fourth power of that of the fourth
            kept = max(third ** (1 / 3), fourth**0.25)
            width = min(particles.ess**-0.25, np.sqrt(1 - kept))
            found = cls(mean, root, max(third, fourth) <= 0.5, float(width) if width < 1 else 0.0)
            _KNOWN[particles] = found
        return found


_KNOWN: WeakKeyDictionary[Particles, Gaussianity] = WeakKeyDictionary()


def noise_share(x: Array, weights: Array, transition: Transition) -> float:
    """Share of the noise in the variance of successors, in the direction where it is least.

    `x` are successors (2 (d + q) + 1, d) of one Gaussian at the points of the unscented rule: at no noise, at one noise
    after the other raised, at one after the other lowered; the last q of the noises are those of the transition.
    """
    d = transition.model.dim
    half = (len(x) - 1) // 2
    x = unwrap(x, weights, transition.circular)
    slopes = (x[1 : half + 1] - x[half + 1 :]) * np.sqrt(0.5 * weights[1])
    spread = np.sqrt((slopes**2).sum(axis=0))
    slopes = slopes / np.where(spread > 0, spread, 1.0)
    whole = slopes.T @ slopes + TINY_VARIANCE * np.eye(d)
    inverse = np.linalg.inv(np.linalg.cholesky(whole))
    noise = slopes[d:] @ inverse.T
    return float(np.linalg.eigvalsh(noise.T @ noise)[0])


def nonlinear_share(x: Array, noise: Array, circular: tuple[int, ...] = ()) -> float:
    """Share of the variance of states (n, d), in the worst dimension, that no linear function of noise (n, D) explains."""
    x = unwrap(x, np.full(len(x), 1.0 / len(x)), circular)
    x, noise = x - x.mean(axis=0), noise - noise.mean(axis=0)
    slopes = np.linalg.lstsq(noise, x, rcond=None)[0]
    variance = (x**2).sum(axis=0)
    rest = ((x - noise @ slopes) ** 2).sum(axis=0)
    return float((rest / np.where(variance > 0, variance, 1.0)).max())


def over_chance(z: Array, weights: Array) -> tuple[float, float]:
    """Squared third and fourth cumulants of points (n, d) of mean 0 and covariance I, over what chance makes of them."""
    d = z.shape[1]
    third, fourth = np.zeros((d, d, d)), np.zeros((d, d))
    _higher_moments(np.ascontiguousarray(z), weights, third, fourth)
    fourth[np.diag_indices(d)] -= d + 2
    observations = 1.0 / (weights @ weights)
    # the variance of the fourth cumulant is 24; of entries of a matrix 4 (d + 4) beside the diagonal and twice that on it
    scale = 24.0 if d == 1 else 4.0 * (d + 4)
    with np.errstate(over="ignore"):  # of a point so far away, and so light, that its fourth power alone is left
        third_squared = observations * float((third**2).sum()) / 6.0
        fourth_squared = observations * float((fourth**2).sum()) / scale
    return third_squared / (d * (d + 1) * (d + 2) / 6), fourth_squared / (d * (d + 1) / 2)


@njit(cache=True, nogil=True)
def _higher_moments(z: Array, weights: Array, third: Array, fourth: Array) -> None:
    """Fill the weighted means of z_a z_b z_c (d, d, d) and of |z|^2 z_a z_b (d, d)."""
    n, d = z.shape
    for i in range(n):
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
    for a in range(d):
        for b in range(a + 1):
            fourth[b, a] = fourth[a, b]
            for c in range(b + 1):
                entry = third[a, b, c]
                third[a, c, b] = third[b, a, c] = third[b, c, a] = third[c, a, b] = third[c, b, a] = entry
