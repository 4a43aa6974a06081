"""A mixture on a line, cut into cells with a polynomial each.

Components are put in order by their means, in groups whose widths differ by a factor below two. From left to right, the
density of a group is written anew, as its Taylor polynomial, on every cell as wide as the least standard deviation of the
group. A component is in about twenty cells, however many there are; elsewhere it has all or nothing of its weight. Beside
its weight in the mixture it has one in a second mixture, the target, whose density is wanted at the same places.

Python calls `condensed` for large mixtures only, and `take_logs` for small densities, so that others do not wait for their
compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.compiled import (
    CALLED,
    IN_PLACE,
    INSIDE,
    PLAIN,
    QUICK,
    VECTORISE,
    exp,
    njit,
)

WINDOW = 10.0  # standard deviations, beyond which a density is below 2e-22 of its peak
DEGREE = 25  # of the polynomial of a density on half a standard deviation to both sides: error below 1e-21 of its peak
COMPONENTS_AT_ONCE = 64  # components at a time, in loops that vectorise
RESOLUTION = 2.0**-49  # least standard deviation relative to the place: eight neighbouring numbers
SMALLEST_DEVIATION = 1e-140  # least standard deviation
FEW_PAIRS = 20_000  # pairs of components and points whose terms are summed one by one

ROOT = np.sqrt(2 * np.pi)
NODES = 20  # Chebyshev's, on one standard deviation: they give densities to 1e-20 of their peak
CROWD = 2 * NODES  # more components than this, within one standard deviation, are replaced by nodes
CROWDED = 400  # components of a mixture from which on crowds are looked for: with fewer that takes longer than it saves
NODE_PLACES = -np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
NODE_SHARES = (2.0 / NODES) * np.cos(np.arange(NODES) * np.arccos(NODE_PLACES)[:, None])
NODE_SHARES[:, 0] *= 0.5
FEW_WIDTHS = 3  # that have a group each
ACCURATE_SHARE = (
    1e-10  # of the largest density there might be: below, the polynomials no longer hold 13 digits
)
CONDENSED_SHARE = 1e-16  # likewise of sums over what a line is condensed to
NEGLIGIBLE_LOG_TERM = 36.0  # logarithm of what is left out of a sum of terms, below rounding

MEAN, DEVIATION, WEIGHT, TARGET = range(4)
NARROWEST, WIDEST = range(2)


class Line(NamedTuple):
    """Components in order: group by group, and by their means in each.

    ``components`` (4, M) are means, deviations, weights, and weights in the target; ``starts`` (G + 1,) tells where each
    group starts, and ends with M; ``widths`` (2, G) are the least and largest deviation of each group.
    """

    components: Array
    starts: np.ndarray
    widths: Array


class Cells(NamedTuple):
    """The cell of each group where a sweep from left to right has arrived.

    ``first`` (G,) is the first component that reaches further than the left end of the cell, ``right`` (G,) its right end
    (between cells, where the next one starts). ``terms`` (3 G, DEGREE + 2) has for each group the coefficients, in powers of
    the distance from the middle in half widths, of the integral of the density, and of the target's density; in the third
    row stand the middle, and the inverse of the half width, which is 0 if no component is near. `room` is working memory.
    """

    first: np.ndarray
    right: Array
    terms: Array
    room: Array


def in_order(
    mixture: GaussianMixture, targets: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return means, deviations, weights, and weights in a target, by default the same, (M,) each, by ascending means.

    A deviation below the distance between neighbouring numbers is raised to a few of these.
    """
    order = mixture.means[:, 0].argsort(kind="stable")
    means, deviations = mixture.means[order, 0], np.sqrt(mixture.distinct_covariances[:, 0, 0])
    deviations = deviations if len(deviations) == 1 else deviations[order]
    deviations = np.maximum(deviations, np.maximum(RESOLUTION * np.abs(means), SMALLEST_DEVIATION))
    return (
        means,
        deviations,
        mixture.weights[order],
        (mixture.weights if targets is None else targets)[order],
    )


@njit(**INSIDE)
def in_groups(means, deviations, weights, targets):
    """Return the line of components whose means ascend; those without any weight are left out.

    Each width has its group if there are few, else each octave.
    """
    count, most, groups, size = len(means), FEW_WIDTHS, 0, 0
    keys, order, starts = np.empty(count), np.empty(count, np.int64), np.empty(count + 1, np.int64)
    starts[0] = 0
    for i in range(count):
        keys[i] = deviations[i] if weights[i] > 0 or targets[i] > 0 else np.inf
    key = -np.inf
    while key < np.inf:
        following = np.inf
        for i in range(count):
            if keys[i] == key:
                order[size] = i
                size += 1
            elif key < keys[i] < following:
                following = keys[i]
        groups += size > starts[groups]
        starts[groups], key = size, following
        if groups == most and key < np.inf:  # anew, by octaves
            most, groups, size, key = count, 0, 0, -np.inf
            for i in range(count):
                keys[i] = np.floor(np.log2(keys[i]))
    components, bounds = np.empty((4, size)), np.empty((2, groups))
    for g in range(groups):
        bounds[NARROWEST, g], bounds[WIDEST, g] = np.inf, 0.0
        for k in range(starts[g], starts[g + 1]):
            i = order[k]
            components[MEAN, k], components[DEVIATION, k] = means[i], deviations[i]
            components[WEIGHT, k], components[TARGET, k] = weights[i], targets[i]
            bounds[NARROWEST, g] = min(bounds[NARROWEST, g], deviations[i])
            bounds[WIDEST, g] = max(bounds[WIDEST, g], deviations[i])
    return Line(components, starts[: groups + 1], bounds)


@njit(**INSIDE)
def condensed(line):
    """Return a line of the same densities, whose components need not have positive weights.

    Seen as a function of its mean, a Gaussian is a polynomial to rounding, as far as one standard deviation reaches. So the
    weights of a crowd can be dealt to a few nodes, each component's by the values there of Lagrange's polynomials.
    """
    given, starts, groups, size = line.components, line.starts, line.widths.shape[1], 0
    near, ends, sums = np.empty(given.shape), np.empty(groups + 1, np.int64), np.empty((2, NODES))
    rows = np.empty((5, COMPONENTS_AT_ONCE))
    ends[0] = 0
    for g in range(groups):
        i, width = starts[g], line.widths[NARROWEST, g]
        while i < starts[g + 1]:
            last = i + 1
            if width == line.widths[WIDEST, g]:
                while last < starts[g + 1] and given[MEAN, last] <= given[MEAN, i] + width:
                    last += 1
            if last - i > CROWD:
                middle = given[MEAN, i] + 0.5 * width
                _chebyshev(given, i, last, middle, 0.5 * width, rows, sums)
                for q in range(NODES):
                    near[MEAN, size], near[DEVIATION, size] = (
                        middle + 0.5 * width * NODE_PLACES[q],
                        width,
                    )
                    near[WEIGHT, size] = near[TARGET, size] = 0.0
                    for k in range(NODES):
                        near[WEIGHT, size] += NODE_SHARES[q, k] * sums[0, k]
                        near[TARGET, size] += NODE_SHARES[q, k] * sums[1, k]
                    size += 1
            else:
                for m in range(i, last):
                    for row in range(4):
                        near[row, size] = given[row, m]
                    size += 1
            i = last
        ends[g + 1] = size
    return Line(near, ends, line.widths)


@njit(**QUICK)
def _chebyshev(components, first, last, middle, half, rows, sums):
    """Fill in, for each k, the sums over the components of both weights times Chebyshev polynomial k."""
    for k in range(NODES):
        sums[0, k] = sums[1, k] = 0.0
    for start in range(first, last, COMPONENTS_AT_ONCE):
        size = min(COMPONENTS_AT_ONCE, last - start)
        for i in range(size):
            rows[0, i], rows[3, i] = components[WEIGHT, start + i], components[MEAN, start + i]
            rows[1, i], rows[4, i] = components[TARGET, start + i], 1.0
        for i in range(size):
            rows[2, i] = rows[3, i] = (rows[3, i] - middle) / half
        for k in range(NODES):
            total = target = 0.0
            for i in range(size):
                total += rows[0, i] * rows[4, i]
                target += rows[1, i] * rows[4, i]
                following = 2 * rows[2, i] * rows[4, i] - rows[3, i]
                rows[3, i] = rows[4, i]
                rows[4, i] = following
            sums[0, k] += total
            sums[1, k] += target


@njit(**INSIDE)
def before_the_first(line):
    """Return the cells of a sweep that has not begun."""
    groups = len(line.starts) - 1
    terms, room = np.zeros((3 * groups, DEGREE + 2)), np.empty((6, COMPONENTS_AT_ONCE))
    cells = Cells(line.starts[:-1].copy(), np.empty(groups), terms, room)
    for g in range(groups):
        cells.right[g] = line.components[MEAN, line.starts[g]] - WINDOW * line.widths[WIDEST, g]
    return cells


@njit(**PLAIN)
def advance(line, cells, x):
    """Move groups whose cells end before, or at, x on to cells that start there; return the next place where one ends.

    A group that has no component near waits where its next cell will start.
    """
    nearest, means = np.inf, line.components[MEAN]
    for g in range(len(cells.right)):
        if cells.right[g] <= x:
            reach, half = WINDOW * line.widths[WIDEST, g], 0.5 * line.widths[NARROWEST, g]
            first, end = cells.first[g], line.starts[g + 1]
            while first < end and means[first] + reach <= x:
                first += 1
            cells.first[g], cells.terms[3 * g + 2, 1] = first, 0.0
            if first == end:
                cells.right[g] = np.inf
            elif means[first] - reach > x:
                cells.right[g] = means[first] - reach
            else:
                cells.right[g], cells.terms[3 * g + 2, 0], cells.terms[3 * g + 2, 1] = (
                    x + 2 * half,
                    x + half,
                    1.0 / half,
                )
                last = first
                while last < end and means[last] - reach < cells.right[g]:
                    last += 1
                _expand(
                    line.components, first, last, x + half, half, cells.room, cells.terms, 3 * g
                )
        nearest = min(nearest, cells.right[g])
    return nearest


@njit(**QUICK)
def _expand(components, first, last, middle, half, rows, terms, g):
    """Write the terms of a cell, from row g on, by the Hermite polynomials' recursion, for many components at a time."""
    # Rows of one array: a loop over several arrays vectorises only where these cannot meet in memory, and rounds otherwise
    # where they might.
    for k in range(DEGREE + 2):
        terms[g, k] = terms[g + 1, k] = 0.0
    for start in range(first, last, COMPONENTS_AT_ONCE):
        size = min(COMPONENTS_AT_ONCE, last - start)
        for i in range(size):
            rows[0, i], rows[2, i] = components[WEIGHT, start + i], components[MEAN, start + i]
            rows[1, i], rows[3, i] = components[TARGET, start + i], components[DEVIATION, start + i]
        for i in range(size):  # slope, step, the polynomial before, and the current one
            scale, u = half / rows[3, i], (rows[2, i] - middle) / rows[3, i]
            rows[2, i] = u * scale
            rows[3, i] = scale * scale
            rows[4, i] = 0.0
            rows[5, i] = scale / ROOT * exp(-0.5 * u * u)
        for k in range(DEGREE + 1):
            total = target = 0.0
            for i in range(size):
                total += rows[0, i] * rows[5, i]
                target += rows[1, i] * rows[5, i]
                following = (rows[2, i] * rows[5, i] - rows[3, i] * rows[4, i]) * (1.0 / (k + 1))
                rows[4, i] = rows[5, i]
                rows[5, i] = following
            terms[g, k + 1] += total / (k + 1)
            terms[g + 1, k] += target


@njit(**QUICK)
def evaluate(terms, x):
    """Return, at x, the integral from some place in the cell on, the density, its slope, the target's density and slope."""
    value = density = slope = target = target_slope = 0.0
    for g in range(0, len(terms), 3):
        scale = terms[g + 2, 1]
        if scale > 0.0:
            t = (x - terms[g + 2, 0]) * scale
            a, b, c, p, q = terms[g, DEGREE + 1], 0.0, 0.0, 0.0, 0.0
            for k in range(DEGREE, -1, -1):
                c = c * t + b
                b = b * t + a
                a = a * t + terms[g, k]
                q = q * t + p
                p = p * t + terms[g + 1, k]
            value += a
            density += b * scale
            slope += 2.0 * c * scale * scale
            target += p * scale
            target_slope += q * scale * scale
    return value, density, slope, target, target_slope


def log_densities(mixture: GaussianMixture, x: Array) -> Array:
    """Return log-densities (n,) of a mixture on a line at points (n, 1), to 1e-12, in a time that grows with M + n."""
    order, result, rows = np.argsort(x[:, 0], kind="stable"), np.empty(len(x)), in_order(mixture)
    if len(mixture) * len(x) <= FEW_PAIRS:
        _sum_densities(
            *rows[:3], x[order, 0], np.empty((2, len(mixture))), values := np.empty(len(x))
        )
    else:
        values = _sweep_densities(*rows, x[order, 0])
        take_logs(*rows[:3], ACCURATE_SHARE, x[order, 0], values)
    result[order] = values
    return result


@njit(**IN_PLACE, fastmath=VECTORISE)
def _sum_densities(means, deviations, weights, x, terms, values):
    """Fill in log-densities at points, sums over all components; `terms` (2, M) is room."""
    count = len(means)
    for m in range(count):
        terms[0, m] = np.log(weights[m]) - np.log(deviations[m] * ROOT)
    for i in range(len(x)):
        for m in range(count):
            u = (x[i] - means[m]) / deviations[m]
            terms[1, m] = terms[0, m] - 0.5 * u * u
        peak, total = -np.inf, 0.0
        for m in range(count):
            peak = max(peak, terms[1, m])
        for m in range(count):
            total += exp(terms[1, m] - peak)
        values[i] = peak + np.log(total) if peak > -np.inf else -np.inf


@njit(**CALLED)
def _sweep_densities(means, deviations, weights, targets, x):
    """Return the densities at points that ascend; the arguments before are those of `in_groups`."""
    line, values = condensed(in_groups(means, deviations, weights, targets)), np.empty(len(x))
    cells = before_the_first(line)
    for i in range(len(x)):
        advance(line, cells, x[i])
        values[i] = evaluate(cells.terms, x[i])[1]
    return values


@njit(**PLAIN)
def share_without_digits(deviations, weights, share, values):
    """Return a share of the largest density there might be, or 0 if no density is below it."""
    largest, least = 0.0, np.inf
    for m in range(len(weights)):
        largest += weights[m] / (deviations[m] * ROOT)
    for i in range(len(values)):
        least = min(least, values[i])
    return 0.0 if least > share * largest else share


@njit(**QUICK)
def sum_condensed(line, row, share, x, values):
    """Replace densities below a share of the largest by sums over a condensed line, whose row of weights is given."""
    components, largest = line.components, 0.0
    for m in range(line.starts[-1]):
        largest += components[row, m] / (components[DEVIATION, m] * ROOT)
    for i in range(len(x)):
        if values[i] <= share * largest:
            total = 0.0
            for m in range(line.starts[-1]):
                u = (components[MEAN, m] - x[i]) / components[DEVIATION, m]
                total += components[row, m] / components[DEVIATION, m] * exp(-0.5 * u * u)
            values[i] = total / ROOT


def take_logs(
    means: Array, deviations: Array, weights: Array, share: float, x: Array, values: Array
) -> None:
    """Replace densities at points by their logarithms; means and points ascend.

    Those below a share of the largest are made anew, as sums over the components that matter beside the nearest ones.
    """
    kept = weights > 0
    weights, scales = weights[kept], deviations[kept] * ROOT
    sum_largest(
        means[kept],
        deviations[kept],
        np.log(weights) - np.log(scales),
        (weights / scales).sum(),
        share,
        x,
        values,
    )


@njit(**INSIDE)
def take_logs_compiled(means, deviations, weights, share, x, values):
    """Do as `take_logs` in a compiled loop."""
    count, largest, near, log_peaks = 0, 0.0, np.empty((2, len(means))), np.empty(len(means))
    for m in range(len(means)):
        if weights[m] > 0:
            near[0, count], near[1, count] = means[m], deviations[m]
            log_peaks[count] = np.log(weights[m]) - np.log(deviations[m] * ROOT)
            largest += weights[m] / (deviations[m] * ROOT)
            count += 1
    sum_largest(near[0, :count], near[1, :count], log_peaks[:count], largest, share, x, values)


@njit(**IN_PLACE)
def sum_largest(means, deviations, log_peaks, largest, share, x, values):
    """Do as `take_logs`, given the logarithms of the components' peaks and the sum of the peaks."""
    widest, least, largest = 0.0, share * largest, np.log(largest)
    for m in range(len(means)):
        widest = max(widest, deviations[m])
    nearest = 0  # the first mean that is not left of x
    for i in range(len(x)):
        while nearest < len(means) and means[nearest] < x[i]:
            nearest += 1
        if values[i] > least:
            values[i] = np.log(values[i])
            continue
        peak, total = -np.inf, 0.0
        for m in range(max(nearest - 1, 0), min(nearest + 1, len(means))):
            peak = max(peak, log_peaks[m] - 0.5 * ((means[m] - x[i]) / deviations[m]) ** 2)
        reach, first, last = (
            widest * np.sqrt(2 * (largest - peak + NEGLIGIBLE_LOG_TERM)),
            nearest,
            nearest,
        )
        while first > 0 and x[i] - means[first - 1] <= reach:
            first -= 1
        while last < len(means) and means[last] - x[i] <= reach:
            last += 1
        for m in range(first, last):
            term = log_peaks[m] - 0.5 * ((means[m] - x[i]) / deviations[m]) ** 2
            if term > peak:
                total, peak = total * exp(peak - term), term
            if term > -np.inf:
                total += exp(term - peak)
        values[i] = peak + np.log(total)
