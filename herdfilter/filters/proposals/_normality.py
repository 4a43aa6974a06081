"""How far weighted points are from a Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array


def beyond_chance(z: Array, weights: Array) -> tuple[float, float]:
    """Shares of the squared third and fourth cumulants of points (n, d) of mean 0 and covariance I that are not chance.

    Mardia's skewness (1970) adds up the squares of all third cumulants; of the fourth those are taken that make the matrix
    ``E[|z|^2 z z'] - (d + 2) I``, whose eigenvectors point to directions of two modes or of heavy tails (Cardoso 1989).
    Multiplied by the effective sample size, over 6 and over 4 (d + 4), each is asymptotically a sum of as many squares of
    standard normals as there are free entries if the points are independent ones of N(0, I), and less if they are spread
    more evenly. What exceeds that number, as a share of the whole, is not chance (as James and Stein 1961 shrink means).
    """
    third, fourth = over_chance(z, weights)
    return max(0.0, 1.0 - 1.0 / third) if third > 0 else 0.0, max(0.0, 1.0 - 1.0 / fourth) if fourth > 0 else 0.0


def over_chance(z: Array, weights: Array) -> tuple[float, float]:
    """Squared third and fourth cumulants of points (n, d) of mean 0 and covariance I, over what chance makes of them."""
    d = z.shape[1]
    third, fourth = np.zeros((d, d, d)), np.zeros((d, d))
    _moments(np.ascontiguousarray(z), weights, third, fourth)
    fourth[np.diag_indices(d)] -= d + 2
    observations = 1.0 / (weights @ weights)
    # the variance of the fourth cumulant is 24; of entries of a matrix 4 (d + 4) beside the diagonal and twice that on it
    scale = 24.0 if d == 1 else 4.0 * (d + 4)
    with np.errstate(over="ignore"):  # of a point so far away, and so light, that its fourth power alone is left
        third_squared = observations * float((third**2).sum()) / 6.0
        fourth_squared = observations * float((fourth**2).sum()) / scale
    return third_squared / (d * (d + 1) * (d + 2) / 6), fourth_squared / (d * (d + 1) / 2)


@njit(cache=True, nogil=True)
def _moments(z: Array, weights: Array, third: Array, fourth: Array) -> None:
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
