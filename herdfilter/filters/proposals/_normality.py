"""Whether weighted points can be told from a Gaussian."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array

CHANCE = 2.0
"""How many times what chance makes of cumulants they may be."""


def beyond_chance(z: Array, weights: Array) -> bool:
    """Whether points (n, d) of mean 0 and covariance I have third or fourth cumulants that chance would not give.

    Mardia's skewness (1970) adds up the squares of all third cumulants; of the fourth those are taken that make the matrix
    ``E[|z|^2 z z'] - (d + 2) I``, whose eigenvectors point to directions of two modes or of heavy tails (Cardoso 1989).
    Multiplied by the effective sample size, over 6 and over 4 (d + 4), each is asymptotically a sum of as many squares of
    standard normals as there are free entries if the points are independent ones of N(0, I), and less if they are spread
    more evenly; more than `CHANCE` times that number is told from it.
    """
    d = z.shape[1]
    observations = 1.0 / (weights @ weights)
    squares = z * z
    weighted = z * weights[:, None]
    matrix = weighted.T @ (z * squares.sum(axis=1)[:, None]) - (d + 2) * np.eye(d)
    # for d = 1 the variance of the fourth cumulant is 24; of an entry of the matrix on the diagonal 8 (d + 4), beside it half
    scale = 24.0 if d == 1 else 4.0 * (d + 4)
    free = d * (d + 1) / 2
    if observations * (matrix**2).sum() / scale > CHANCE * free:
        return True
    rows, columns = np.triu_indices(d)
    third = (weighted[:, rows] * z[:, columns]).T @ z  # of each pair once
    twice = np.where(rows == columns, 1.0, 2.0)
    free = d * (d + 1) * (d + 2) / 6
    return bool(observations * (twice @ (third**2).sum(axis=1)) / 6.0 > CHANCE * free)
