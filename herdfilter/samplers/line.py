"""A mixture on a line, cut into cells with a polynomial each.

Components are sorted by their means, within groups whose widths differ by a factor below two. From left to right, the
density of a group is expanded into its Taylor polynomial on every cell as wide as the least standard deviation of the
group. A component reaches about twenty cells, however many components there are; elsewhere it has all or nothing of its
weight. Beside its weight in the mixture a component has one in a second mixture, the target, whose density is computed at
the same points.

Python calls `take_logs` for small densities only, so that others do not wait for its compilation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import compiled
from herdfilter.samplers.compiled import exp

WINDOW = 10.0  # standard deviations, beyond which a density is below 2e-22 of its peak
DEGREE = 25  # of the polynomial of a density on half a standard deviation to both sides: error below 1e-21 of its peak
COMPONENTS_AT_ONCE = 64  # in loops that vectorise
RESOLUTION = 2.0**-49  # least standard deviation relative to the mean: eight neighbouring numbers
SMALLEST_DEVIATION = 1e-140  # its square still has an inverse
FEW_PAIRS = 20_000  # of components and points, below which sums are cheaper than polynomials

ROOT = np.sqrt(2 * np.pi)
FEW_WIDTHS = 3  # up to so many widths have a group each
# of the largest density there might be: below, polynomials no longer hold 13 digits
ACCURATE_SHARE = 1e-10
NEGLIGIBLE_LOG_TERM = 36.0  # terms smaller than exp(-36) times the nearest are below rounding

# Chebyshev nodes on one standard deviation: as a function of its mean, a Gaussian is their polynomial to 1e-20 of its peak.
NODES = 20
NODE_PLACES = -np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
NODE_SHARES = (2.0 / NODES) * np.cos(np.arange(NODES) * np.arccos(NODE_PLACES)[:, None])
NODE_SHARES[:, 0] *= 0.5
CROWD = 2 * NODES  # more components than this within one standard deviation are replaced by nodes
CROWDED = 400  # components from which on looking for crowds takes less time than it saves

# Rows of components, and of widths
MEAN, DEVIATION, WEIGHT, TARGET = range(4)
NARROWEST, WIDEST = range(2)


class Line(NamedTuple):
    """Components sorted by group, and by their means within each group, and the current cell of each group in a sweep.

    ``components`` (4, M) are means, deviations, weights, and weights in the target; ``starts`` (G + 1,) tells where each
    group starts, and ends with M; ``widths`` (2, G) are the least and largest deviation of each group.

    ``first`` (G,) is the first component that reaches beyond the left end of the cell, ``right`` (G,) its right end
    (between cells, where the next one starts). ``terms`` (3 G, DEGREE + 2) has for each group the coefficients, in powers of
    the distance from the middle in half widths, of the integral of the density, and of the target's density; the third
    row starts with the middle, and the inverse of the half width, which is 0 if no component is near. `rows` is workspace.
    """

    components: Array
    starts: np.ndarray
    widths: Array
    first: np.ndarray
    right: Array
    terms: Array
    rows: Array


def in_order(
    mixture: GaussianMixture, targets: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return means, deviations, weights, and weights in a target, by default the same, (M,) each, by ascending means.

    A deviation below the distance between neighbouring numbers is raised to a few of these.
    """
    order = mixture.means[:, 0].argsort(kind="stable")
    means = mixture.means[order, 0]
    deviations = np.sqrt(mixture.distinct_covariances[:, 0, 0])
    if not mixture.shared:
        deviations = deviations[order]
    deviations = np.maximum(deviations, np.maximum(RESOLUTION * np.abs(means), SMALLEST_DEVIATION))
    targets = mixture.weights if targets is None else targets
    return means, deviations, mixture.weights[order], targets[order]


@compiled.njit(**compiled.CALLED)
def condense(means, deviations, weights, targets):
    """Return fewer components, by ascending means, of the same densities; their weights need not be positive.

    Seen as a function of its mean, a Gaussian is a polynomial to rounding, as far as one standard deviation reaches. So the
    weights of a crowd of one width are dealt to a few nodes, each component's by the values there of Lagrange's polynomials.
    """
    count = len(means)
    condensed = np.empty((4, count))
    sums = np.empty((2, NODES))
    rows = np.empty((5, COMPONENTS_AT_ONCE))
    size = 0
    first = 0
    while first < count:
        width = deviations[first]
        last = first + 1
        while last < count and means[last] <= means[first] + width and deviations[last] == width:
            last += 1
        if last - first > CROWD:
            middle = means[first] + 0.5 * width
            _sum_chebyshev(
                means[first:last],
                weights[first:last],
                targets[first:last],
                (middle, 0.5 * width),
                rows,
                sums,
            )
            for q in range(NODES):
                condensed[MEAN, size] = middle + 0.5 * width * NODE_PLACES[q]
                condensed[DEVIATION, size] = width
                condensed[WEIGHT, size] = 0.0
                condensed[TARGET, size] = 0.0
                for k in range(NODES):
                    condensed[WEIGHT, size] += NODE_SHARES[q, k] * sums[0, k]
                    condensed[TARGET, size] += NODE_SHARES[q, k] * sums[1, k]
                size += 1
        else:
            for m in range(first, last):
                condensed[MEAN, size] = means[m]
                condensed[DEVIATION, size] = width
                condensed[WEIGHT, size] = weights[m]
                condensed[TARGET, size] = targets[m]
                size += 1
        first = last
    return condensed[:, :size]


@compiled.njit(**compiled.QUICK)
def _sum_chebyshev(means, weights, targets, interval, rows, sums):
    """Fill in, for each k, the sums over components of both weights times Chebyshev polynomial k on an interval."""
    middle, half = interval
    for k in range(NODES):
        sums[0, k] = 0.0
        sums[1, k] = 0.0
    for start in range(0, len(means), COMPONENTS_AT_ONCE):
        size = min(COMPONENTS_AT_ONCE, len(means) - start)
        # Rows: both weights, the place in the interval, and polynomials k - 1 (that of -1 is that of 1) and k.
        for i in range(size):
            rows[0, i] = weights[start + i]
            rows[1, i] = targets[start + i]
            rows[2, i] = (means[start + i] - middle) / half
            rows[3, i] = rows[2, i]
            rows[4, i] = 1.0
        for k in range(NODES):
            weight = 0.0
            target = 0.0
            for i in range(size):
                weight += rows[0, i] * rows[4, i]
                target += rows[1, i] * rows[4, i]
                polynomial = 2 * rows[2, i] * rows[4, i] - rows[3, i]
                rows[3, i] = rows[4, i]
                rows[4, i] = polynomial
            sums[0, k] += weight
            sums[1, k] += target


@compiled.njit(**compiled.INSIDE)
def start_line(means, deviations, weights, targets):
    """Group components whose means ascend, except those without any weight; return the line, before its first cells.

    Each width has its own group if there are at most three widths, else each octave of widths.
    """
    count = len(means)
    keys = np.empty(count)
    order = np.empty(count, np.int64)
    starts = np.zeros(count + 1, np.int64)
    for i in range(count):
        keys[i] = deviations[i] if weights[i] != 0 or targets[i] != 0 else np.inf
    most_groups = FEW_WIDTHS
    groups = 0
    size = 0
    key = -np.inf
    # One pass for each group: it takes the components of one key, and finds the next larger key.
    while key < np.inf:
        next_key = np.inf
        for i in range(count):
            if keys[i] == key:
                order[size] = i
                size += 1
            elif key < keys[i] < next_key:
                next_key = keys[i]
        groups += size > starts[groups]
        starts[groups] = size
        key = next_key
        if groups == most_groups and key < np.inf:
            # There are too many widths: group again, by octaves.
            for i in range(count):
                keys[i] = np.floor(np.log2(keys[i]))
            most_groups = count
            groups = 0
            size = 0
            key = -np.inf
    components = np.empty((4, size))
    widths = np.empty((2, groups))
    right = np.empty(groups)
    for g in range(groups):
        widths[NARROWEST, g] = np.inf
        widths[WIDEST, g] = 0.0
        for k in range(starts[g], starts[g + 1]):
            i = order[k]
            components[MEAN, k] = means[i]
            components[DEVIATION, k] = deviations[i]
            components[WEIGHT, k] = weights[i]
            components[TARGET, k] = targets[i]
            widths[NARROWEST, g] = min(widths[NARROWEST, g], deviations[i])
            widths[WIDEST, g] = max(widths[WIDEST, g], deviations[i])
        right[g] = components[MEAN, starts[g]] - WINDOW * widths[WIDEST, g]
    terms = np.zeros((3 * groups, DEGREE + 2))
    rows = np.empty((6, COMPONENTS_AT_ONCE))
    first = starts[:groups].copy()
    return Line(components, starts[: groups + 1], widths, first, right, terms, rows)


@compiled.njit(**compiled.NO_ARRAYS)
def advance_cells(line, x):
    """Move groups whose cells end before, or at, x on to cells that start there; return the nearest right end.

    A group that has no component near waits where its next cell will start.
    """
    nearest = np.inf
    means = line.components[MEAN]
    for g in range(len(line.right)):
        if line.right[g] <= x:
            reach = WINDOW * line.widths[WIDEST, g]
            half = 0.5 * line.widths[NARROWEST, g]
            # Components that end before x are done with.
            first = line.first[g]
            end = line.starts[g + 1]
            while first < end and means[first] + reach <= x:
                first += 1
            line.first[g] = first
            line.terms[3 * g + 2, 1] = 0.0
            if first == end:
                line.right[g] = np.inf
            elif means[first] - reach > x:  # a gap
                line.right[g] = means[first] - reach
            else:
                line.right[g] = x + 2 * half
                line.terms[3 * g + 2, 0] = x + half
                line.terms[3 * g + 2, 1] = 1.0 / half
                last = first
                while last < end and means[last] - reach < line.right[g]:
                    last += 1
                _expand(line.components, first, last, half, line.rows, line.terms, 3 * g)
        nearest = min(nearest, line.right[g])
    return nearest


@compiled.njit(**compiled.QUICK)
def _expand(components, first, last, half, rows, terms, g):
    """Write the terms of a cell, from row g on, by the recursion of Hermite polynomials, many components at a time."""
    # Rows of one array: a loop over several arrays vectorises only where these cannot meet in memory, and rounds otherwise
    # where they might.
    middle = terms[g + 2, 0]
    for k in range(DEGREE + 2):
        terms[g, k] = 0.0
        terms[g + 1, k] = 0.0
    for start in range(first, last, COMPONENTS_AT_ONCE):
        size = min(COMPONENTS_AT_ONCE, last - start)
        for i in range(size):
            rows[0, i] = components[WEIGHT, start + i]
            rows[1, i] = components[TARGET, start + i]
            rows[2, i] = components[MEAN, start + i]
            rows[3, i] = components[DEVIATION, start + i]
        # Row 2 becomes the slope u h / s, row 3 the step (h / s)^2, rows 4 and 5 the last two coefficients.
        for i in range(size):
            scale = half / rows[3, i]
            u = (rows[2, i] - middle) / rows[3, i]
            rows[2, i] = u * scale
            rows[3, i] = scale * scale
            rows[4, i] = 0.0
            rows[5, i] = scale / ROOT * exp(-0.5 * u * u)
        # (k + 1) c_{k+1} = slope c_k - step c_{k-1}, the recursion of Hermite polynomials divided by k!
        for k in range(DEGREE + 1):
            density = 0.0
            target = 0.0
            for i in range(size):
                density += rows[0, i] * rows[5, i]
                target += rows[1, i] * rows[5, i]
                coefficient = (rows[2, i] * rows[5, i] - rows[3, i] * rows[4, i]) * (1.0 / (k + 1))
                rows[4, i] = rows[5, i]
                rows[5, i] = coefficient
            terms[g, k + 1] += density / (k + 1)
            terms[g + 1, k] += target


@compiled.njit(**compiled.QUICK)
def evaluate_cells(terms, x):
    """Return the integral up to x from some point in the cell, and at x densities and slopes of mixture and target."""
    integral = 0.0
    density = 0.0
    slope = 0.0
    target = 0.0
    target_slope = 0.0
    for g in range(0, len(terms), 3):
        scale = terms[g + 2, 1]
        if scale > 0.0:
            t = (x - terms[g + 2, 0]) * scale
            # Horner's scheme: a polynomial, its derivative, and half of its second one
            a = terms[g, DEGREE + 1]
            b = 0.0
            c = 0.0
            p = 0.0
            q = 0.0
            for k in range(DEGREE, -1, -1):
                c = c * t + b
                b = b * t + a
                a = a * t + terms[g, k]
                q = q * t + p
                p = p * t + terms[g + 1, k]
            integral += a
            density += b * scale
            slope += 2.0 * c * scale * scale
            target += p * scale
            target_slope += q * scale * scale
    return integral, density, slope, target, target_slope


def log_densities(mixture: GaussianMixture, x: Array) -> Array:
    """Return log-densities (n,) of a mixture on a line at points (n, 1), to 1e-12, in a time that grows with M + n."""
    order = np.argsort(x[:, 0], kind="stable")
    rows = in_order(mixture)
    values = np.empty(len(x))
    if len(mixture) * len(x) <= FEW_PAIRS:
        _sum_densities(*rows[:3], x[order, 0], np.empty((2, len(mixture))), values)
    else:
        _sweep_densities(*rows, x[order, 0], values)
        take_logs(*rows[:3], x[order, 0], values)
    result = np.empty(len(x))
    result[order] = values
    return result


@compiled.njit(**compiled.IN_PLACE, fastmath=compiled.VECTORISE)
def _sum_densities(means, deviations, weights, x, terms, values):
    """Fill in log-densities at points, sums over all components; `terms` (2, M) is workspace."""
    count = len(means)
    for m in range(count):
        terms[0, m] = np.log(weights[m]) - np.log(deviations[m] * ROOT)
    for i in range(len(x)):
        for m in range(count):
            u = (x[i] - means[m]) / deviations[m]
            terms[1, m] = terms[0, m] - 0.5 * u * u
        peak = -np.inf
        for m in range(count):
            peak = max(peak, terms[1, m])
        total = 0.0
        for m in range(count):
            total += exp(terms[1, m] - peak)
        values[i] = peak + np.log(total) if peak > -np.inf else -np.inf


@compiled.njit(**compiled.CALLED)
def _sweep_densities(means, deviations, weights, targets, x, values):
    """Fill in the densities at points that ascend; the other arguments are those of `start_line`."""
    line = start_line(means, deviations, weights, targets)
    for i in range(len(x)):
        advance_cells(line, x[i])
        values[i] = evaluate_cells(line.terms, x[i])[1]


@compiled.njit(**compiled.CALLED)
def take_logs(means, deviations, weights, x, values):
    """Replace densities at points by their logarithms; means and points ascend.

    Those too small to have digits are computed anew, as sums over the components that matter beside the nearest ones.
    """
    count = 0
    largest = 0.0
    widest = 0.0
    means = means.copy()
    deviations = deviations.copy()
    log_peaks = np.empty(len(means))
    for m in range(len(means)):
        if weights[m] > 0:
            means[count] = means[m]
            deviations[count] = deviations[m]
            log_peaks[count] = np.log(weights[m]) - np.log(deviations[m] * ROOT)
            largest += weights[m] / (deviations[m] * ROOT)
            widest = max(widest, deviations[m])
            count += 1
    log_largest = np.log(largest)
    nearest = 0  # the first mean that is not left of x
    for i in range(len(x)):
        while nearest < count and means[nearest] < x[i]:
            nearest += 1
        if values[i] > ACCURATE_SHARE * largest:
            values[i] = np.log(values[i])
            continue
        # The higher of the two neighbours is a first bound on the highest term.
        peak = -np.inf
        for m in range(max(nearest - 1, 0), min(nearest + 1, count)):
            peak = max(peak, log_peaks[m] - 0.5 * ((means[m] - x[i]) / deviations[m]) ** 2)
        # No component further away can add to a sum that has a term as high as this peak.
        reach = widest * np.sqrt(2 * (log_largest - peak + NEGLIGIBLE_LOG_TERM))
        first = nearest
        while first > 0 and x[i] - means[first - 1] <= reach:
            first -= 1
        last = nearest
        while last < count and means[last] - x[i] <= reach:
            last += 1
        total = 0.0
        for m in range(first, last):
            term = log_peaks[m] - 0.5 * ((means[m] - x[i]) / deviations[m]) ** 2
            if term > peak:
                total *= exp(peak - term)
                peak = term
            if term > -np.inf:
                total += exp(term - peak)
        values[i] = peak + np.log(total)
