"""The recursion of continuous herded Gibbs sampling: the target's conditionals, and the compiled sweeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array
from herdfilter.samplers.compiled import IN_PLACE, PLAIN, QUICK, exp, njit
from herdfilter.samplers.gibbs.maximum import (
    CENTRE,
    HEIGHT,
    NARROWNESS,
    WIDTH,
    Search,
    empty_bumps,
    empty_search,
    maximise_bumps,
)
from herdfilter.samplers.herding.frame import KernelFrame

LONG = 1e7  # squared distances above which their differences lose digits that matter

# Rows of what is known beforehand of the conditional bump of every coordinate and component; two more are those of bumps
LOG_WEIGHT, INVERSE, FACTOR = 0, 1, 4
NEGLIGIBLE_LOG_BUMP = (
    27.6  # log of 1e12: bumps so far below the highest are left out of an objective
)
SETTLED_MOVE = 1e-12  # kernel widths: a sweep that moves no coordinate further is the last


class ConditionalTarget(NamedTuple):
    """The density that is conditioned on: M components in d dimensions.

    The rows of ``bumps`` (5, d, M) are the log weight where the other coordinates are at their means, the factor from weight
    to height, one over the squared width, the width, and one over the diagonal entry of the precision. ``means`` has shape
    (M, d), ``precision`` (M, d, d), or (1, d, d) where it is shared.
    """

    bumps: Array
    means: Array
    precision: Array


class GibbsWorkspace(NamedTuple):
    """Working memory of the recursion."""

    x: Array
    residual: Array
    score: Array
    closeness: Array
    kept: NDArray[np.int64]
    weight: Array
    bumps: Array
    search: Search


def target_of(frame: KernelFrame, before: float, after: float) -> ConditionalTarget:
    """Tabulate the conditionals of a mixture, with a variance added before conditioning and one after it."""
    precision, log_det = frame.precisions(before)
    inverse = 1.0 / np.diagonal(precision, axis1=1, axis2=2)
    width = np.sqrt(inverse + after)
    bumps = np.empty((5, *frame.means.T.shape))
    bumps[LOG_WEIGHT] = (frame.log_weights[:, None] + 0.5 * (log_det[:, None] + np.log(inverse))).T
    for row, values in (
        (FACTOR, 1.0 / width),
        (NARROWNESS, width**-2.0),
        (WIDTH, width),
        (INVERSE, inverse),
    ):
        bumps[row] = values.T
    return ConditionalTarget(
        bumps, np.ascontiguousarray(frame.means), np.ascontiguousarray(precision)
    )


def gibbs_workspace(target: ConditionalTarget, n: int) -> GibbsWorkspace:
    """Allocate the working memory of the recursion of n points."""
    components, d = target.means.shape
    most = components + n
    vectors = np.zeros(d), np.zeros((components, d)), np.zeros(components), np.zeros(n)
    kept, weight = np.zeros(most + 1, np.int64), np.zeros(most + 1)
    return GibbsWorkspace(*vectors, kept, weight, empty_bumps(most), empty_search(most))


def is_wide(target: ConditionalTarget, first: Array) -> bool:
    """Return True if distances are so long that updated squares lose digits and must be computed afresh."""
    extent = np.ptp(np.vstack((target.means, first)), axis=0)
    sharpest = np.maximum(np.diagonal(target.precision, axis1=1, axis2=2).max(axis=0), 1.0)
    return bool(extent**2 @ sharpest > LONG)


def origins(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the start of every point's sweeps: the latest point of its component, or at first the component's mean."""
    origin = -1 - labels
    for label in np.unique(labels):
        of_label = np.flatnonzero(labels == label)
        origin[of_label[1:]] = of_label[:-1]
    return origin


def mode(density: ConditionalTarget, component: int, room: GibbsWorkspace) -> Array:
    """Return the maximum of a mixture density, (d,), reached from the mean of a component, coordinate by coordinate."""
    x = np.empty((len(room.x), 1))
    herd_coordinates(density, np.array([-1 - component]), 0, 200, False, False, x, room)
    return x[:, 0]


@njit(**IN_PLACE)
def herd_coordinates(target, origin, first, sweeps, effective_count, careful, points, room):
    """Fill in the columns of points (d, n) from `first` on, given those before.

    The sweeps of point t start where column ``origin[t]`` of `points` says, or, counted from -1 downwards, the mean of a
    component. `effective_count` replaces the count t by the slice's; `careful` computes all squared distances afresh.
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
            e = maximise_bumps(bumps, positive, positive + found, x[i], near, table, stack) - x[i]
            update_residuals(precision, i, e, residual)
            x[i] += e
            longest = max(longest, abs(e))
            if i == d - 1 and longest < SETTLED_MOVE:
                break
        for i in range(d):
            points[i, t] = x[i]


@njit(**QUICK)
def measure(means, precision, x, residual):
    """Fill in the residuals L (x - m) of all components, L their precision."""
    components, d = means.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        for i in range(d):
            r = 0.0
            for j in range(d):
                r += precision[k, i, j] * (x[j] - means[m, j])
            residual[m, i] = r


@njit(**PLAIN)
def update_residuals(precision, i, e, residual):
    """Update the residuals after coordinate i has moved by e."""
    components, d = residual.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        for j in range(d):
            residual[m, j] += e * precision[k, i, j]


@njit(**QUICK)
def judge(constants, means, precision, residual, x, i, score):
    """Fill in the log weights of the components in the conditional of coordinate i.

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


@njit(**QUICK)
def weigh(log_weight, count, kept, weight):
    """Fill in the weights, relative to the highest, that are not negligible; return their number, sum and sum of squares."""
    peak = -np.inf
    for k in range(count):
        peak = max(peak, log_weight[k])
    found = 0
    for k in range(count):
        kept[found] = k
        weight[found] = log_weight[k] - peak
        found += log_weight[k] >= peak - NEGLIGIBLE_LOG_BUMP
    for k in range(found):
        weight[k] = exp(weight[k])
    # apart from the loop that stores: the order of a sum must not depend on where the arrays lie
    total = squares = 0.0
    for k in range(found):
        total += weight[k]
        squares += weight[k] * weight[k]
    return found, total, squares


@njit(**PLAIN)
def add_components(constants, residual, x, i, count, scale, kept, weight, bumps):
    """Fill in the bumps of E[k(x_i, X_i) | x_rest]."""
    for k in range(count):
        m = kept[k]
        bumps[HEIGHT, k] = scale * weight[k] * constants[FACTOR, i, m]
        bumps[CENTRE, k] = x[i] - residual[m, i] * constants[INVERSE, i, m]
        bumps[NARROWNESS, k] = constants[NARROWNESS, i, m]
        bumps[WIDTH, k] = constants[WIDTH, i, m]


@njit(**PLAIN)
def add_samples(points, i, first, count, scale, kept, weight, bumps):
    """Fill in the bumps -w_s / c k(x_i, x_i^s), w_s = k(x_rest, x_rest^s) and c their sum."""
    for k in range(count):
        bumps[HEIGHT, first + k] = scale * weight[k]
        bumps[CENTRE, first + k] = points[i, kept[k]]
        bumps[NARROWNESS, first + k] = 1.0
        bumps[WIDTH, first + k] = 1.0


@njit(**QUICK)
def approach(points, t, x, before, i, closeness):
    """Fill in minus half the squared distances of the first t points to x over the coordinates other than i.

    They are known over those other than `before`, or unknown if that is -1.
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
