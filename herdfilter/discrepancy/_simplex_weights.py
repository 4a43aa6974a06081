"""Compiled quadratic programme on the simplex: the weights of given points that minimise the herding error.

With Gram matrix K and expectations z, minimise ``w' K w / 2 - z' w`` over ``w >= 0, sum w = 1`` by an active-set method
(Lawson and Hanson 1974, ch. 23, with the sum as an equality constraint). The points of positive weight are the free ones;
K restricted to them is kept as a Cholesky factor, to which a point is added or from which one is removed in O(k^2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

DEPENDENT = 1e-11  # squared distance, of a unit, from the span of the free points under which a point is not added

# Options of functions that only compiled code calls
SOLVER: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@njit(cache=True, nogil=True, error_model="numpy")
def correct_weights(gram, z, w, count, free, size, factor):
    """Make the first `count` weights optimal, starting from those there are; the number of free points is returned.

    `free[:size]` lists the free points in the order of the rows of `factor`. Start with ``size = 0`` and add points one at
    a time, or all at once: the point that gains most enters first.
    """
    work = np.empty((2, count))
    blocked = np.zeros(count, np.bool_)
    entering = -1
    for _ in range(20 * count):
        multiplier = 0.0
        if size > 0:
            size, multiplier = _minimise(z, w, free, size, factor, work)
        if entering >= 0:
            if w[entering] > 0.0:
                blocked[:] = False
            else:
                blocked[entering] = True  # it gains less than rounding: not to be tried again before another enters
        entering = -1
        most = 0.0
        for i in range(count):
            if w[i] > 0.0 or blocked[i]:
                continue
            if size == 0:
                gain = z[i] - 0.5 * gram[i, i]
            else:
                gain = z[i] - multiplier
                for k in range(size):
                    gain -= gram[i, free[k]] * w[free[k]]
            if entering < 0 or gain > most:
                entering, most = i, gain
        if entering < 0 or (size > 0 and most <= 1e-14):
            break
        size = _add(gram, free, size, factor, entering)
        if size == 1:
            w[free[0]] = 1.0
    return size


@njit(inline="always", **SOLVER)
def _add(gram, free, size, factor, point):
    """Append a point to the free ones, unless it depends on them; returns their number."""
    row = factor[size]
    pivot = gram[point, point]
    for i in range(size):
        entry = gram[point, free[i]]
        for k in range(i):
            entry -= factor[i, k] * row[k]
        row[i] = entry / factor[i, i]
        pivot -= row[i] * row[i]
    if pivot <= DEPENDENT * gram[point, point]:
        return size
    row[size] = np.sqrt(pivot)
    free[size] = point
    return size + 1


@njit(inline="always", **SOLVER)
def _remove(free, size, factor, place):
    """Take the free point at `place` out of the factor by plane rotations; returns the number left."""
    for i in range(place, size - 1):
        free[i] = free[i + 1]
        for k in range(i + 2):
            factor[i, k] = factor[i + 1, k]
    for k in range(place, size - 1):
        a, b = factor[k, k], factor[k, k + 1]
        r = np.sqrt(a * a + b * b)
        c, s = a / r, b / r
        factor[k, k] = r
        for i in range(k + 1, size - 1):
            a, b = factor[i, k], factor[i, k + 1]
            factor[i, k] = c * a + s * b
            factor[i, k + 1] = c * b - s * a
    return size - 1


@njit(inline="always", **SOLVER)
def _minimise(z, w, free, size, factor, work):
    """Minimise over the free points, dropping those whose weight reaches zero; their number, and z_i - (K w)_i on them."""
    goal, ones = work[0], work[1]
    while True:
        for i in range(size):
            goal[i], ones[i] = z[free[i]], 1.0
        _solve(factor, size, goal)
        _solve(factor, size, ones)
        total = 0.0
        unit = 0.0
        for i in range(size):
            total += goal[i]
            unit += ones[i]
        shift = (1.0 - total) / unit
        rate = 1.0
        leaving = -1
        for i in range(size):
            goal[i] += shift * ones[i]
            now = w[free[i]]
            if goal[i] <= 0.0 and now <= rate * (now - goal[i]):
                rate, leaving = now / (now - goal[i]) if now > goal[i] else 0.0, i
        for i in range(size):
            w[free[i]] += rate * (goal[i] - w[free[i]])
        if leaving < 0:
            return size, -shift
        w[free[leaving]] = 0.0
        size = _remove(free, size, factor, leaving)


@njit(**SOLVER)
def _solve(factor, size, vector):
    """Solve (F F') y = vector in place."""
    for i in range(size):
        for k in range(i):
            vector[i] -= factor[i, k] * vector[k]
        vector[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        vector[i] /= factor[i, i]
        for k in range(i):
            vector[k] -= factor[i, k] * vector[i]
