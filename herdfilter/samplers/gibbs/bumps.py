"""Sums of signed one-dimensional Gaussian bumps, compiled: values, derivatives, tables, local maxima.

``f(x) = sum_j height_j exp(-narrowness_j (x - centre_j)^2 / 2)``, in an array with a row for each and one for widths.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.samplers.compiled import FAST, INSIDE, exp

REACH = 8.5  # widths; beyond, a positive bump is under 2.1e-16 of its height and left out
STEP = 1.0 / 3.0  # of a table, in widths of the narrowest bump

# Rows of an array of bumps; the last three are worked in
HEIGHT, CENTRE, NARROWNESS, WIDTH, POWER, RATIO, SHRINK = range(7)
# Rows of a table: values on a grid, and of its leading maxima the places and what f is at most there
VALUE, PLACE, BOUND = range(3)


def empty_bumps(count: int) -> Array:
    """Return room for so many bumps."""
    return np.zeros((7, count + 8))


@njit(**INSIDE)
def gather(bumps, positive, count, below, low, high, near):
    """Copy the bumps in reach of [low, high], filled up to whole vectors.

    Return how many are positive, how many there are, and the step of a table that resolves the narrowest of them.
    """
    margin = max(1.0, 0.1 * (high - low))
    found, width = 0, 1e300
    for j in range(count):
        near[HEIGHT, found] = bumps[HEIGHT, j]
        near[CENTRE, found] = bumps[CENTRE, j]
        near[NARROWNESS, found] = bumps[NARROWNESS, j]
        near[WIDTH, found] = bumps[WIDTH, j]
        reach = (REACH * bumps[WIDTH, j] if j < positive else below) + margin
        if low - reach < bumps[CENTRE, j] < high + reach:
            width = min(width, bumps[WIDTH, j])
            found += 1
        if j == positive - 1:
            above = found
    while found % 4 != 0:
        near[HEIGHT, found] = 0.0
        near[CENTRE, found] = low
        near[NARROWNESS, found] = 0.0
        found += 1
    return above, found, STEP * width


@njit(**FAST)
def tabulate(near, count, start, step, cells, table):
    """Fill in f at `cells` places, or up to three more, from `start` on.

    A Gaussian on a uniform grid takes two multiplications a place: the ratio of neighbours shrinks by a constant factor.
    """
    for j in range(count):
        u = start - near[CENTRE, j]
        q = near[NARROWNESS, j] * step
        near[POWER, j] = near[HEIGHT, j] * exp(-0.5 * near[NARROWNESS, j] * u * u)
        near[RATIO, j] = exp(min(-q * (u + 0.5 * step), 700.0))
        near[SHRINK, j] = exp(-q * step)
    for k in range(0, cells, 4):
        t0 = t1 = t2 = t3 = 0.0
        for j in range(count):
            p, r, q = near[POWER, j], near[RATIO, j], near[SHRINK, j]
            t0 += p
            p, r = p * r, r * q
            t1 += p
            p, r = p * r, r * q
            t2 += p
            p, r = p * r, r * q
            t3 += p
            near[POWER, j], near[RATIO, j] = p * r, r * q
        table[VALUE, k], table[VALUE, k + 1], table[VALUE, k + 2], table[VALUE, k + 3] = t0, t1, t2, t3


@njit(**INSIDE)
def refine(near, count, x, step):
    """Local maximum around x and its value: Newton's method, bisecting where a step leaves the bracket."""
    low, high = x - 1.5 * step, x + 1.5 * step
    value = 0.0
    for _ in range(60):
        value, slope, curvature = slopes(near, count, x)
        if slope > 0.0:
            low = x
        else:
            high = x
        moved = x - slope / curvature if curvature < 0.0 else low - 1.0
        if not low <= moved <= high:
            moved = 0.5 * (low + high)
        change = moved - x
        x = moved
        # Newton's method converges quadratically: the step just taken leaves an error near its square
        if abs(change) < 1e-7 * step:
            value += 0.5 * slope * change
            break
    return x, value


@njit(**FAST)
def slopes(bumps, count, x):
    """f, f' and f'' at x."""
    value = slope = curvature = 0.0
    for j in range(count):
        u = x - bumps[CENTRE, j]
        a = bumps[NARROWNESS, j] * u
        g = bumps[HEIGHT, j] * exp(-0.5 * a * u)
        value += g
        slope -= a * g
        curvature += (a * a - bumps[NARROWNESS, j]) * g
    return value, slope, curvature
