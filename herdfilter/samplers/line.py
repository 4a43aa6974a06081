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
from herdfilter.samplers.compiled import CALLED, FAST, INSIDE, exp

WINDOW = 9.5  # standard deviations, beyond which a density is below 1e-20 of its peak
DEGREE = 24  # of the polynomial of a density on half a standard deviation to both sides: error below 1e-20 of its peak
COMPONENTS_AT_ONCE = 64  # components at a time, in loops that vectorise
RESOLUTION = 2.0**-49  # least standard deviation relative to the place: eight neighbouring numbers
SMALLEST_DEVIATION = 1e-140  # least standard deviation

ROOT = np.sqrt(2 * np.pi)
NODES = 20  # Chebyshev's, on one standard deviation: they give densities to 1e-20 of their peak
CROWD = 2 * NODES  # more components than this, within one standard deviation, are replaced by nodes
_NODE_ANGLES = np.pi * (np.arange(NODES) + 0.5) / NODES
_NODE_PLACES = -np.cos(_NODE_ANGLES)
_NODE_SHARES = (2.0 / NODES) * np.cos(np.arange(NODES) * np.arccos(_NODE_PLACES)[:, None])
_NODE_SHARES[:, 0] *= 0.5
ACCURATE_SHARE = 1e-7  # of the largest density there might be: below, the polynomials no longer hold 13 digits
NEGLIGIBLE_LOG_TERM = 36.0  # logarithm of what is left out of a sum of terms, below rounding


class Line(NamedTuple):
    """Components in order: group by group, and by their means in each.

    Means, deviations and weights have shape (M,); ``starts`` (G + 1,) tells where each group starts, and ends with M;
    ``narrowest`` and ``widest`` (G,) are the least and largest deviation of each group.
    """

    means: Array
    deviations: Array
    weights: Array
    starts: np.ndarray
    narrowest: Array
    widest: Array


class Cells(NamedTuple):
    """The cell of each group where a sweep from left to right has arrived; shapes (G,).

    ``first`` is the first component that reaches further than the left end of the cell; ``middle``, ``half`` and ``right``
    are its middle, half width and right end (between cells, where the next one starts); ``active`` is False if no component
    is near. ``terms`` (G, DEGREE + 2) are the coefficients of the integral of the density, in powers of the distance from
    the middle in half widths.
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
    deviations = np.maximum(deviations, np.maximum(RESOLUTION * np.abs(means), SMALLEST_DEVIATION))
    octaves = np.frexp(deviations)[1]
    if octaves.min() == octaves.max():
        order = np.argsort(means, kind="stable")
        starts = np.array([0, len(means)])
    else:
        order = np.lexsort((means, octaves))
        changes = np.flatnonzero(np.diff(octaves[order])) + 1
        starts = np.concatenate([[0], changes, [len(means)]])
    deviations = deviations[order]
    narrowest, widest = (bound.reduceat(deviations, starts[:-1]) for bound in (np.minimum, np.maximum))
    return Line(means[order], deviations, weights[order], starts, narrowest, widest)


def before_the_first(line: Line) -> Cells:
    """Return the cells of a sweep that has not begun."""
    groups, first = len(line.narrowest), line.starts[:-1].copy()
    middle, half, right = np.zeros(groups), 0.5 * line.narrowest, line.means[first] - WINDOW * line.widest
    return Cells(first, middle, half, right, np.zeros(groups, bool), np.zeros((groups, DEGREE + 2)))


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
    slope, step = np.empty(COMPONENTS_AT_ONCE), np.empty(COMPONENTS_AT_ONCE)
    previous, current = np.empty(COMPONENTS_AT_ONCE), np.empty(COMPONENTS_AT_ONCE)
    for k in range(DEGREE + 2):
        terms[k] = 0.0
    for start in range(first, last, COMPONENTS_AT_ONCE):
        size = min(COMPONENTS_AT_ONCE, last - start)
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
    """Return the integral of the density of group g from the middle of its cell to x, and the density at x."""
    t = (x - cells.middle[g]) / cells.half[g]
    terms = cells.terms[g]
    value, slope = terms[DEGREE + 1], 0.0
    for k in range(DEGREE, -1, -1):
        slope = slope * t + value
        value = value * t + terms[k]
    return value, slope / cells.half[g]


def condensed(line: Line) -> Line:
    """Return a line of the same density, whose components need not have positive weights.

    Seen as a function of its mean, a Gaussian is a polynomial to rounding, as far as one standard deviation reaches. So the
    weights of a crowd can be dealt to a few nodes, each component's by the values there of Lagrange's polynomials.
    """
    if len(line.means) <= CROWD:
        return line
    means, deviations, weights = (np.empty(len(line.means)) for _ in range(3))
    starts = np.zeros_like(line.starts)
    _condense(line, _NODE_PLACES, _NODE_SHARES, np.empty(NODES), means, deviations, weights, starts)
    size = starts[-1]
    return Line(means[:size], deviations[:size], weights[:size], starts, line.narrowest, line.widest)


@njit(**CALLED)
def _condense(line, places, shares, sums, means, deviations, weights, starts):
    """Fill in the new components and where their groups start."""
    size = 0
    for g in range(len(line.narrowest)):
        i, end, width = line.starts[g], line.starts[g + 1], line.narrowest[g]
        while i < end:
            last = i + 1
            while width == line.widest[g] and last < end and line.means[last] <= line.means[i] + width:
                last += 1
            if last - i > CROWD:
                middle = line.means[i] + 0.5 * width
                _chebyshev(line, i, last, middle, 0.5 * width, sums)
                for q in range(len(places)):
                    total = 0.0
                    for k in range(len(places)):
                        total += shares[q, k] * sums[k]
                    means[size], deviations[size] = middle + 0.5 * width * places[q], width
                    weights[size], size = total, size + 1
            else:
                for m in range(i, last):
                    means[size], deviations[size] = line.means[m], line.deviations[m]
                    weights[size], size = line.weights[m], size + 1
            i = last
        starts[g + 1] = size


@njit(**FAST)
def _chebyshev(line, first, last, middle, half, sums):
    """Fill in, for each k, the sum over the components of weight times Chebyshev polynomial k."""
    place, previous, current = np.empty(COMPONENTS_AT_ONCE), np.empty(COMPONENTS_AT_ONCE), np.empty(COMPONENTS_AT_ONCE)
    for k in range(len(sums)):
        sums[k] = 0.0
    for start in range(first, last, COMPONENTS_AT_ONCE):
        size = min(COMPONENTS_AT_ONCE, last - start)
        for i in range(size):
            place[i] = (line.means[start + i] - middle) / half
            current[i] = line.weights[start + i]
            previous[i] = current[i] * place[i]
        for k in range(len(sums)):
            total = 0.0
            for i in range(size):
                total += current[i]
                following = 2 * place[i] * current[i] - previous[i]
                previous[i] = current[i]
                current[i] = following
            sums[k] += total


def log_densities(mixture: GaussianMixture, x: Array) -> Array:
    """Return log-densities (n,) of a mixture on a line at points (n, 1), to 1e-12, in a time that grows with M + n."""
    line = as_line(mixture)
    near = condensed(line)
    peaks = np.log(line.weights) - np.log(line.deviations * ROOT)
    largest = np.log((line.weights / (line.deviations * ROOT)).sum())
    order = np.argsort(x[:, 0], kind="stable")
    values, room = np.empty(len(x)), np.empty(len(peaks))
    _sweep_densities(near, before_the_first(near), line, peaks, largest, line.starts[:-1].copy(), x[order, 0], values, room)
    result = np.empty(len(x))
    result[order] = values
    return result


@njit(**CALLED)
def _sweep_densities(near, cells, line, peaks, largest, places, x, values, terms):
    """Fill in the log-densities at points that ascend.

    `near` is the line condensed; `peaks` are those of the components, with their weights, and `largest` their sum, as
    logarithms; `places` are the groups' starts, and `terms` is room to work in.
    """
    trusted = np.exp(largest) * ACCURATE_SHARE
    for i in range(len(x)):
        density = 0.0
        for g in range(len(cells.right)):
            if cells.right[g] <= x[i]:
                enter(near, cells, g, x[i])
            if cells.active[g]:
                density += integral_and_density(cells, g, x[i])[1]
        if density > trusted:
            values[i] = np.log(density)
        else:
            values[i] = _in_the_tails(line, peaks, largest, places, x[i], terms)


@njit(**INSIDE)
def _in_the_tails(line, peaks, largest, places, x, terms):
    """Return the log-sum-exp over the components near enough to matter beside the nearest ones."""
    nearest = -np.inf
    for g in range(len(places)):
        start, end, i = line.starts[g], line.starts[g + 1], places[g]
        while i < end and line.means[i] < x:
            i += 1
        places[g] = i
        if i > start:
            nearest = max(nearest, _term(line, peaks, x, i - 1))
        if i < end:
            nearest = max(nearest, _term(line, peaks, x, i))
    reach = np.sqrt(2 * (largest - nearest + NEGLIGIBLE_LOG_TERM))
    size, peak = 0, -np.inf
    for g in range(len(places)):
        i = places[g]
        while i < line.starts[g + 1] and line.means[i] - x <= reach * line.widest[g]:
            terms[size] = _term(line, peaks, x, i)
            peak = max(peak, terms[size])
            i, size = i + 1, size + 1
        i = places[g] - 1
        while i >= line.starts[g] and x - line.means[i] <= reach * line.widest[g]:
            terms[size] = _term(line, peaks, x, i)
            peak = max(peak, terms[size])
            i, size = i - 1, size + 1
    return peak + np.log(_sum_exp(terms, size, peak)) if peak > -np.inf else peak


@njit(**INSIDE)
def _term(line, peaks, x, i):
    """Return the log-density of component i at x, with its weight."""
    u = (line.means[i] - x) / line.deviations[i]
    return peaks[i] - 0.5 * u * u


@njit(**FAST)
def _sum_exp(terms, size, peak):
    """Return the sum of exp(terms - peak)."""
    total = 0.0
    for i in range(size):
        total += exp(terms[i] - peak)
    return total
