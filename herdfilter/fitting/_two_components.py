"""Compiled expectation-maximisation of two Gaussians, from points of mean 0."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.fitting._em import _factorise
from herdfilter.samplers.compiled import FAST, INSIDE, ONCE

FLOOR = 1e-6  # least variance in any direction, that of all points being 1
CHANCE = 0.5  # rise of the log-likelihood of all points, that ends the iteration: less than another sample would change


@njit(**FAST)
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


@njit(**INSIDE)
def regular(covariance, floor, factor):
    """Fill `factor`, its diagonal inverted; where an eigenvalue is below `floor`, add that to all, and return True."""
    low = not _factorise(covariance, floor, factor)
    if low:
        for a in range(len(covariance)):
            covariance[a, a] += floor
    _factorise(covariance, 0.0, factor)
    return low


@njit(**ONCE)
def _estimate(y, p, m, parts, row, second, contrast):
    """M-step: the two Gaussians of the points' parts in ``parts[row]``, and of the rest; `second` holds the moments of all.

    Fills `contrast` (d + 1, d + 1) so that ``contrast[d, d] + contrast[d, :d] y + y' contrast[:d, :d] y`` is the log-density
    of the first, times its weight, less that of the second. Returns the mean of the latter less that of N(0, I).
    """
    d = len(y)
    g, first = parts[2], 0.0
    for i in range(m):
        g[i] = p[i] * parts[row, i]
        first += g[i]
    contrast[:] = 0.0
    if not FLOOR < first < 1.0 - FLOOR:
        return -np.inf
    inner, moments = np.empty((d, d)), np.empty(d)
    for a in range(d):
        moments[a] = 0.0
        for i in range(m):
            moments[a] += g[i] * y[a, i]
    whole_moments(y, g, m, parts[3], inner)
    covariance, factor, inverse = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    mean, base = np.empty(d), 0.0
    for side in range(2):
        part, sign = (first, 1.0) if side == 0 else (1.0 - first, -1.0)
        for a in range(d):
            mean[a] = sign * moments[a] / part
            for b in range(d):
                inside = inner[a, b] if side == 0 else second[a, b] - inner[a, b]
                covariance[a, b] = inside / part - moments[a] * moments[b] / (part * part)
        regular(covariance, FLOOR, factor)
        peak = np.log(part)
        for a in range(d):  # the inverse of the factor, row by row
            peak += np.log(factor[a, a])
            for b in range(a + 1):
                entry = 1.0 if a == b else 0.0
                for c in range(b, a):
                    entry -= factor[a, c] * inverse[c, b]
                inverse[a, b] = entry * factor[a, a]
        for a in range(d):
            for b in range(d):
                precision = 0.0
                for c in range(max(a, b), d):
                    precision += inverse[c, a] * inverse[c, b]
                contrast[a, b] -= 0.5 * sign * precision
                contrast[d, a] += sign * precision * mean[b]
                peak -= 0.5 * precision * mean[a] * mean[b]
                if side == 1:
                    base -= 0.5 * precision * second[a, b]
        contrast[d, d] += sign * peak
        base += peak if side == 1 else 0.0
    for a in range(d):
        base += 0.5 * second[a, a]
    return base


@njit(**ONCE)
def maximise_two(y, p, m, parts, row, second, effective, rounds):
    """Turn the parts of the points in ``parts[row]`` into those of greater likelihood, in place.

    Returns the rise of the mean log-likelihood over that of N(0, I).
    """
    d = len(y)
    gain, contrast, excess = -np.inf, np.empty((d + 1, d + 1)), parts[2]
    for _ in range(rounds):
        last, gain = gain, _estimate(y, p, m, parts, row, second, contrast)
        if gain == -np.inf:
            break
        for i in range(m):
            excess[i] = contrast[d, d]
        for a in range(d):
            for i in range(m):
                excess[i] += (contrast[d, a] + contrast[a, a] * y[a, i]) * y[a, i]
            for b in range(a):
                for i in range(m):
                    excess[i] += 2 * contrast[a, b] * y[a, i] * y[b, i]
        for i in range(m):
            # exp(-|x|) and log(1 + exp(-|x|)) by powers, which run over several points at once.
            t = -min(abs(excess[i]), 32.0) / 32.0
            e = 1.0 + t * (1.0 + t / 2 * (1.0 + t / 3 * (1.0 + t / 4 * (1.0 + t / 5 * (1.0 + t / 6 * (1.0 + t / 7))))))
            e *= e
            e *= e
            e *= e
            e *= e
            e *= e
            u = e / (2.0 + e)
            v = u * u
            log = 2 * u * (1.0 + v * (1 / 3 + v * (1 / 5 + v * (1 / 7 + v * (1 / 9 + v / 11)))))
            gain += p[i] * (max(excess[i], 0.0) + log)
            parts[row, i] = (1.0 if excess[i] > 0.0 else e) / (1.0 + e)
        if effective * (gain - last) < CHANCE:
            break
    return gain
