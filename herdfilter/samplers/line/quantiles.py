"""Quantiles of a mixture on a line, in one sweep over its cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.compiled import CALLED, INSIDE
from herdfilter.samplers.line.cells import as_line, before_the_first, enter, integral_and_density
from herdfilter.samplers.line.crowds import condensed

ROUNDING = 4e-15  # of a distribution function
STEPS = 100  # of Newton's method, at most; halving alone needs 53
CLOSE = 1e-7  # of a cell: after so short a step the next one is below 1e-13
SMALLEST = 1e-300  # density that is divided by


def quantiles(mixture: GaussianMixture, levels: Array) -> Array:
    """Points where the distribution function reaches the levels, which ascend: (n,) -> (n,).

    A level kept across a gap is reached at the gap's lower end, where rounding lets it.
    """
    line, points = condensed(as_line(mixture)), np.empty(len(levels))
    _sweep(line, before_the_first(line), levels, points)
    return points


@njit(**CALLED)
def _sweep(line, cells, levels, points):
    """Fill in the points. The polynomials of a cell hold in it; its ends are the bracket of every level reached in it."""
    x, below, lost, i = _next(cells), 0.0, 0.0, 0
    while i < len(levels):
        for g in range(len(cells.right)):
            if cells.right[g] <= x:
                enter(line, cells, g, x)
        end = _next(cells)
        if end == np.inf:  # weights that rounding keeps from a sum of 1
            points[i] = x
            i += 1
            continue
        base, density = _passed(cells, x)
        mass = _passed(cells, end)[0] - base
        low, reached = x, 0.0
        while i < len(levels) and levels[i] - below <= mass + ROUNDING:
            level = min(levels[i] - below, mass)
            low, density = _root(cells, base + level, low, end, (level - reached) / max(density, SMALLEST))
            points[i], reached = low, level
            i += 1
        # Thousands of cells add up without rounding (Kahan).
        mass -= lost
        above = below + mass
        lost = (above - below) - mass
        x, below = end, above


@njit(**INSIDE)
def _next(cells):
    """Return the next place where a cell ends or starts."""
    nearest = np.inf
    for g in range(len(cells.right)):
        nearest = min(nearest, cells.right[g])
    return nearest


@njit(**INSIDE)
def _passed(cells, x):
    """Sum over the groups of `integral_and_density`."""
    value = density = 0.0
    for g in range(len(cells.right)):
        if cells.active[g]:
            more, slope = integral_and_density(cells, g, x)
            value += more
            density += slope
    return value, density


@njit(**INSIDE)
def _root(cells, level, low, high, step):
    """Where the integral reaches the level, between low and high, and the density near there; `step` is a first guess.

    Newton's method, and halving of the bracket where a step leaves it or is not half as long as the last.
    """
    x, last, enough = low, high - low, CLOSE * (high - low)
    density = 0.0
    for _ in range(STEPS):
        newton = low <= x + step <= high and abs(step) <= last
        if not newton:
            step = 0.5 * (low + high) - x
        x, last = x + step, 0.5 * abs(step)
        if newton and abs(step) <= enough:
            break
        value, density = _passed(cells, x)
        if value < level:
            low = x
        else:
            high = x
        step = (level - value) / max(density, SMALLEST)
    return x, density
