"""Compiled expectation-maximisation of two Gaussians, from points of mean 0."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.fitting._em import SUMS, _factorise

FLOOR = 1e-6  # least variance in any direction, that of all points being 1
CHANCE = 0.5  # rise of the log-likelihood of all points, that ends the iteration: less than another sample would change


@njit(cache=True, nogil=True, fastmath=SUMS)
def whole_moments(y, p, m, g, second):
    """Fill `second` (d, d) with the sums of the products of two coordinates, over m points of weight p; g is overwritten."""
    for a in range(len(y)):
        for i in range(m):
            g[i] = p[i] * y[a, i]
        for b in range(a + 1):
            moment = 0.0
            for i in range(m):
                moment += g[i] * y[b, i]
            second[a, b] = moment
            second[b, a] = moment


@njit(cache=True, nogil=True)
def regular(covariance, floor, factor):
    """Fill `factor`, its diagonal inverted; where an eigenvalue is below `floor`, add that to all, and return True."""
    low = not _factorise(covariance, floor, factor)
    if low:
        for a in range(len(covariance)):
            covariance[a, a] += floor
    _factorise(covariance, 0.0, factor)
    return low


@njit(cache=True, nogil=True, fastmath=SUMS)
def pair(y, p, m, parts, row, second):
    """M-step: two Gaussians from the points' parts in ``parts[row]`` and the rest; `second` holds the moments of all.

    Returns minus half the sum of the components' ``weight log |covariance|``; the weight of the first; and, of the
    difference of the two log-densities and of the second one alone, a constant, a vector and a matrix each.
    """
    d = len(y)
    g, rest = parts[2], parts[3]
    first = 0.0
    for i in range(m):
        g[i] = p[i] * parts[row, i]
        first += g[i]
    moments, covariance, factor = np.zeros(d), np.empty((d, d)), np.zeros((d, d))
    constant, linear, square = np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d))
    score, expected = 0.0, 0.0
    if not FLOOR < first < 1.0 - FLOOR:
        return -np.inf, first, expected, constant, linear, square
    for a in range(d):
        for i in range(m):
            moments[a] += g[i] * y[a, i]
    inner, inverse = np.empty((d, d)), np.zeros((d, d))
    whole_moments(y, g, m, rest, inner)
    for side in range(2):
        part, sign = (first, 1.0) if side == 0 else (1.0 - first, -1.0)
        for a in range(d):
            for b in range(d):
                inside = inner[a, b] if side == 0 else second[a, b] - inner[a, b]
                covariance[a, b] = inside / part - moments[a] * moments[b] / (part * part)
        regular(covariance, FLOOR, factor)
        root = 0.0
        for a in range(d):  # the inverse of the factor, row by row
            root += np.log(factor[a, a])
            for b in range(a + 1):
                entry = 1.0 if a == b else 0.0
                for c in range(b, a):
                    entry -= factor[a, c] * inverse[c, b]
                inverse[a, b] = entry * factor[a, a]
        constant[side] = np.log(part) + root
        score += part * root
        for a in range(d):
            for b in range(d):
                for c in range(max(a, b), d):
                    square[side, a, b] += inverse[c, a] * inverse[c, b]
                linear[side, a] += square[side, a, b] * sign * moments[b] / part
        for a in range(d):
            constant[side] -= 0.5 * linear[side, a] * sign * moments[a] / part
    for a in range(d):
        for b in range(d):
            expected -= 0.5 * square[1, a, b] * second[a, b]
            square[0, a, b] -= square[1, a, b]
        linear[0, a] -= linear[1, a]
        expected += 0.5 * second[a, a]  # the same of N(0, I)
    expected += constant[1]
    constant[0] -= constant[1]
    return score, first, expected, constant, linear, square


@njit(cache=True, nogil=True, fastmath=SUMS)
def maximise_two(y, p, m, parts, row, second, effective, rounds):
    """Turn the parts of the points in ``parts[row]`` into those of greater likelihood, in place.

    Returns the rise of the mean log-likelihood over that of N(0, I).
    """
    d = len(y)
    gain = -np.inf
    contrast = parts[2]
    for _ in range(rounds):
        _score, _first, expected, constant, linear, square = pair(y, p, m, parts, row, second)
        if _score == -np.inf:
            return -np.inf
        for i in range(m):
            contrast[i] = constant[0]
        for a in range(d):
            for i in range(m):
                term = linear[0, a] - 0.5 * square[0, a, a] * y[a, i]
                contrast[i] += term * y[a, i]
            for b in range(a):
                for i in range(m):
                    contrast[i] -= square[0, a, b] * y[a, i] * y[b, i]
        last, gain = gain, expected
        for i in range(m):
            # exp(-|x|) and log(1 + exp(-|x|)) by powers, which run over several points at once.
            t = -min(abs(contrast[i]), 32.0) / 32.0
            e = 1.0 + t * (
                1.0 + t / 2 * (1.0 + t / 3 * (1.0 + t / 4 * (1.0 + t / 5 * (1.0 + t / 6 * (1.0 + t / 7)))))
            )
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            u = e / (2.0 + e)
            v = u * u
            log = 2 * u * (1.0 + v * (1 / 3 + v * (1 / 5 + v * (1 / 7 + v * (1 / 9 + v / 11)))))
            gain += p[i] * (max(contrast[i], 0.0) + log)
            parts[row, i] = (1.0 if contrast[i] > 0.0 else e) / (1.0 + e)
        if effective * (gain - last) < CHANCE:
            return gain
    return gain
