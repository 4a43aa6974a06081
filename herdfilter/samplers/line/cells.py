"""A mixture on a line, cut into cells with a polynomial each.

Components are put in order by their means, in groups whose widths differ by a factor below two. From left to right, the
density of a group is written anew, as its Taylor polynomial, on every cell as wide as the least standard deviation of the
group. A component is in about twenty cells, however many there are; elsewhere it has all or nothing of its weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.compiled import FAST, INSIDE, exp

WINDOW = 9.5  # standard deviations, beyond which a density is below 1e-20 of its peak
DEGREE = 24  # of the polynomial of a density on half a standard deviation to both sides: error below 1e-20 of its peak
BLOCK = 64  # components at a time, in loops that vectorise
RESOLUTION = 2.0**-49  # least standard deviation relative to the place: eight neighbouring numbers
LEAST = 1e-140  # least standard deviation

ROOT = np.sqrt(2 * np.pi)


class Line(NamedTuple):
    """Components in order: group by group, and by their means in each.

    Attributes
    ----------
    means, deviations, weights : ndarray, shape (M,)
    starts : ndarray, shape (G + 1,)
        Where each group starts, and M.
    narrowest, widest : ndarray, shape (G,)
        Least and largest standard deviation of each group.
    """

    means: Array
    deviations: Array
    weights: Array
    starts: np.ndarray
    narrowest: Array
    widest: Array


class Cells(NamedTuple):
    """The cell of each group where a sweep from left to right has arrived.

    Attributes
    ----------
    first : ndarray, shape (G,)
        The first component that reaches further than the left end of the cell.
    middle, half, right : ndarray, shape (G,)
        Middle, half width and right end. Between cells `right` is where the next one starts.
    active : ndarray, shape (G,)
        Whether there is a cell, or no component near.
    terms : ndarray, shape (G, DEGREE + 2)
        Coefficients of the integral of the density, in powers of the distance from the middle in half widths.
    """

    first: np.ndarray
    middle: Array
    half: Array
    right: Array
    active: np.ndarray
    terms: Array


def as_line(mixture: GaussianMixture) -> Line:
    """Put the components of a one-dimensional mixture in order; those of weight zero are left out.

    A width below the distance between neighbouring numbers is raised to a few of these.
    """
    means, weights = mixture.means[:, 0], mixture.weights
    deviations = np.sqrt(mixture.distinct_covariances[:, 0, 0])
    if len(deviations) != len(means):
        deviations = np.full(len(means), deviations[0])
    if not weights.all():
        kept = weights > 0
        means, weights, deviations = means[kept], weights[kept], deviations[kept]
    deviations = np.maximum(deviations, np.maximum(RESOLUTION * np.abs(means), LEAST))
    octaves = np.frexp(deviations)[1]
    if octaves.min() == octaves.max():
        order = np.argsort(means, kind="stable")
        starts = np.array([0, len(means)])
    else:
        order = np.lexsort((means, octaves))
        changes = np.flatnonzero(np.diff(octaves[order])) + 1
        starts = np.concatenate([[0], changes, [len(means)]])
    deviations = deviations[order]
    return Line(
        means[order],
        deviations,
        weights[order],
        starts,
        np.minimum.reduceat(deviations, starts[:-1]),
        np.maximum.reduceat(deviations, starts[:-1]),
    )


def before_the_first(line: Line) -> Cells:
    """Cells of a sweep that has not begun."""
    groups = len(line.narrowest)
    return Cells(
        line.starts[:-1].copy(),
        np.zeros(groups),
        0.5 * line.narrowest,
        line.means[line.starts[:-1]] - WINDOW * line.widest,
        np.zeros(groups, bool),
        np.zeros((groups, DEGREE + 2)),
    )


@njit(**INSIDE)
def enter(line, cells, g, x):
    """Move group g on to the cell that starts at x, or to the place where its next one will start."""
    reach = WINDOW * line.widest[g]
    first, end = cells.first[g], line.starts[g + 1]
    while first < end and line.means[first] + reach <= x:
        first += 1
    cells.first[g] = first
    cells.active[g] = first < end and line.means[first] - reach <= x
    if first == end:
        cells.right[g] = np.inf
    elif not cells.active[g]:
        cells.right[g] = line.means[first] - reach
    else:
        cells.middle[g] = x + cells.half[g]
        cells.right[g] = x + line.narrowest[g]
        last = first
        while last < end and line.means[last] - reach < cells.right[g]:
            last += 1
        _expand(line, first, last, cells.middle[g], cells.half[g], cells.terms[g])


@njit(**FAST)
def _expand(line, first, last, middle, half, terms):
    """Write the terms of the integral, by the recursion of the Hermite polynomials, for many components at a time."""
    slope, step = np.empty(BLOCK), np.empty(BLOCK)
    previous, current = np.empty(BLOCK), np.empty(BLOCK)
    for k in range(DEGREE + 2):
        terms[k] = 0.0
    for start in range(first, last, BLOCK):
        size = min(BLOCK, last - start)
        for i in range(size):
            scale = half / line.deviations[start + i]
            u = (line.means[start + i] - middle) / line.deviations[start + i]
            slope[i] = u * scale
            step[i] = scale * scale
            previous[i] = 0.0
            current[i] = line.weights[start + i] * scale / ROOT * exp(-0.5 * u * u)
        for k in range(DEGREE + 1):
            total = 0.0
            for i in range(size):
                total += current[i]
                following = (slope[i] * current[i] - step[i] * previous[i]) * (1.0 / (k + 1))
                previous[i] = current[i]
                current[i] = following
            terms[k + 1] += total / (k + 1)


@njit(**FAST)
def integral_and_density(cells, g, x):
    """Integral of the density of group g from the middle of its cell to x, and the density at x."""
    t = (x - cells.middle[g]) / cells.half[g]
    terms = cells.terms[g]
    value, slope = terms[DEGREE + 1], 0.0
    for k in range(DEGREE, -1, -1):
        slope = slope * t + value
        value = value * t + terms[k]
    return value, slope / cells.half[g]
