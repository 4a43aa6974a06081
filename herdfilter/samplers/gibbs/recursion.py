"""Compiled recursion of continuous herded Gibbs sampling, in a frame where the kernel is a unit Gaussian.

Coordinate i of x sees of every component the density of the other coordinates, and of every earlier point the distance over
them. What both need is kept up to date as x moves.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.samplers.compiled import CALLED, FAST, INSIDE, exp
from herdfilter.samplers.gibbs.bumps import CENTRE, HEIGHT, NARROWNESS, WIDTH
from herdfilter.samplers.gibbs.maximum import maximise
from herdfilter.samplers.gibbs.target import FACTOR, INVERSE, LOG_WEIGHT, Room, Target

NEGLIGIBLE = 27.6  # log of 1e12: bumps so far below the highest are left out of an objective
SETTLED = 1e-12  # kernel widths: a sweep that moves no coordinate further is the last


def mode(density: Target, component: int, room: Room) -> Array:
    """Maximum of a mixture density, (d,): from the mean of a component up along one coordinate after the other."""
    x = np.empty((len(room.x), 1))
    herd(density, np.array([-1 - component]), 0, 200, False, False, x, room)
    return x[:, 0]


@njit(**CALLED)
def herd(target, origin, first, sweeps, effective_count, careful, points, room):
    """Fill in the columns of points (d, n) from `first` on, given those before.

    The sweeps of point t start where column ``origin[t]`` of `points` says, or, counted from -1 downwards, the mean of a
    component. `effective_count` replaces the count t by that of the slice; `careful` takes all squared distances afresh.
    """
    constants, means, precision = target
    x, residual, score, closeness, kept, weight, bumps, search = room
    near, table, stack = search
    d, n = points.shape
    for t in range(first, n):
        k = origin[t]
        for i in range(d):
            x[i] = points[i, k] if k >= 0 else means[-1 - k, i]
        measure(means, precision, x, residual)
        for k in range(sweeps * d):
            i = k % d
            if i == 0:
                longest = 0.0
            judge(constants, means, precision, residual, x, i, score)
            positive, total, _ = weigh(score, len(means), kept, weight)
            add_components(constants, residual, x, i, positive, 1.0 / total, kept, weight, bumps)
            approach(points, t, x, -1 if k == 0 or careful else (k - 1) % d, i, closeness)
            found, total, squares = weigh(closeness, t, kept, weight)
            add_samples(points, i, positive, found, -1.0 / total, kept, weight, bumps)
            size = total * total / squares if effective_count else float(t)
            for j in range(positive if t > 0 else 0):
                bumps[HEIGHT, j] *= (size + 1.0) / size
            e = maximise(bumps, positive, positive + found, x[i], near, table, stack) - x[i]
            transition(precision, i, e, residual)
            x[i] += e
            longest = max(longest, abs(e))
            if i == d - 1 and longest < SETTLED:
                break
        for i in range(d):
            points[i, t] = x[i]


@njit(**FAST)
def measure(means, precision, x, residual):
    """Residuals L (x - m) of all components, L their precision."""
    components, d = means.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        for i in range(d):
            r = 0.0
            for j in range(d):
                r += precision[k, i, j] * (x[j] - means[m, j])
            residual[m, i] = r


@njit(**INSIDE)
def transition(precision, i, e, residual):
    """Update the residuals after coordinate i has moved by e."""
    components, d = residual.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        for j in range(d):
            residual[m, j] += e * precision[k, i, j]


@njit(**FAST)
def judge(constants, means, precision, residual, x, i, score):
    """Log weights of the components in the conditional of coordinate i.

    They hold the quadratic form (x - m)' L (x - m) where x_i is at its conditional mean, in a form free of cancellation.
    """
    components, d = residual.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        ratio = residual[m, i] * constants[INVERSE, i, m]
        total = 0.0
        for j in range(d):
            term = (residual[m, j] - ratio * precision[k, i, j]) * (x[j] - means[m, j])
            total += term if j != i else 0.0
        score[m] = constants[LOG_WEIGHT, i, m] - 0.5 * total


@njit(**FAST)
def weigh(log_weight, count, kept, weight):
    """Weights relative to the highest, of those that are not negligible; return how many, their sum and that of squares."""
    peak = -np.inf
    for k in range(count):
        peak = max(peak, log_weight[k])
    found = 0
    for k in range(count):
        kept[found] = k
        weight[found] = log_weight[k] - peak
        found += log_weight[k] >= peak - NEGLIGIBLE
    for k in range(found):
        weight[k] = exp(weight[k])
    # apart from the loop that stores: the order of a sum must not depend on where the arrays lie
    total = squares = 0.0
    for k in range(found):
        total += weight[k]
        squares += weight[k] * weight[k]
    return found, total, squares


@njit(**INSIDE)
def add_components(constants, residual, x, i, count, scale, kept, weight, bumps):
    """Fill in the bumps of E[k(x_i, X_i) | x_rest]."""
    for k in range(count):
        m = kept[k]
        bumps[HEIGHT, k] = scale * weight[k] * constants[FACTOR, i, m]
        bumps[CENTRE, k] = x[i] - residual[m, i] * constants[INVERSE, i, m]
        bumps[NARROWNESS, k] = constants[NARROWNESS, i, m]
        bumps[WIDTH, k] = constants[WIDTH, i, m]


@njit(**INSIDE)
def add_samples(points, i, first, count, scale, kept, weight, bumps):
    """Fill in the bumps -w_s / c k(x_i, x_i^s), w_s = k(x_rest, x_rest^s) and c their sum."""
    for k in range(count):
        bumps[HEIGHT, first + k] = scale * weight[k]
        bumps[CENTRE, first + k] = points[i, kept[k]]
        bumps[NARROWNESS, first + k] = 1.0
        bumps[WIDTH, first + k] = 1.0


@njit(**FAST)
def approach(points, t, x, before, i, closeness):
    """Minus half the squared distances of the first t points to x over the coordinates other than i.

    They are known over those other than `before`, or not at all where that is -1.
    """
    if before < 0:
        for s in range(t):
            closeness[s] = 0.0
        for j in range(len(x)):
            if j != i:
                for s in range(t):
                    closeness[s] -= 0.5 * (points[j, s] - x[j]) ** 2
    elif before != i:
        for s in range(t):
            u = points[before, s] - x[before]
            v = points[i, s] - x[i]
            closeness[s] += 0.5 * (v * v - u * u)
