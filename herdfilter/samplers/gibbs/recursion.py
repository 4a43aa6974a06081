"""The recursion of continuous herded Gibbs sampling: the target's conditionals, and the compiled sweeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array
from herdfilter.samplers import compiled
from herdfilter.samplers.compiled import exp
from herdfilter.samplers.gibbs import maximum
from herdfilter.samplers.gibbs.maximum import CENTRE, HEIGHT, NARROWNESS, maximise_bumps
from herdfilter.samplers.herding.frame import KernelFrame

# variance, in units of the kernel's, under which a component counts as degenerate
FLAT_VARIANCE = 1e-8
NEGLIGIBLE_LOG_BUMP = 27.6  # log of 1e12: bumps so far below the highest are left out
SETTLED_MOVE = 1e-12  # kernel widths: a sweep that moves no coordinate further is the last


class ConditionalTarget(NamedTuple):
    """The density that is conditioned on: M components in d dimensions.

    Of every coordinate and component (d, M): the log weight where the other coordinates are at their means, one over the
    diagonal entry of the precision, and the narrowness of the conditional bump. ``means`` has shape (M, d), ``precision``
    (M, d, d), or (1, d, d) where it is shared.
    """

    log_weight: Array
    inverse: Array
    narrowness: Array
    means: Array
    precision: Array


def target_of(frame: KernelFrame, before: float, after: float) -> ConditionalTarget:
    """Tabulate the conditionals of a mixture, with a variance added before conditioning and one after it.

    If none is added before, variances below 1e-8 of the kernel's, as rounding leaves them, are raised to that.
    """
    covariances = frame.covariances + before * np.eye(len(frame.origin))
    if before == 0:
        # The inverse of a variance that only rounding leaves would be arbitrary.
        values, vectors = np.linalg.eigh(covariances)
        flat = values[:, 0] < FLAT_VARIANCE
        raised = vectors[flat] * np.maximum(values[flat], FLAT_VARIANCE)[:, None]
        covariances[flat] = raised @ vectors[flat].swapaxes(1, 2)
    precision = np.linalg.inv(covariances)
    inverse = 1.0 / np.diagonal(precision, axis1=1, axis2=2)
    log_dets = np.linalg.slogdet(precision)[1][:, None]
    log_weight = np.log(frame.weights)[:, None] + 0.5 * (log_dets + np.log(inverse))
    inverses = np.broadcast_to(inverse, frame.means.shape)
    arrays = (log_weight.T, inverses.T, 1.0 / (inverses.T + after), frame.means, precision)
    return ConditionalTarget(*[array.copy() for array in arrays])


def origins_of(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the start of every point's sweeps: the latest point of its component, or at first the component's mean."""
    origins = -1 - labels
    for label in np.unique(labels):
        of_label = np.flatnonzero(labels == label)
        origins[of_label[1:]] = of_label[:-1]
    return origins


@compiled.njit(**compiled.CALLED)
def herd_coordinates(target, origins, sweep_count, effective_count, first, points):
    """Fill in the columns of points (d, n) from `first` on, given those before, by so many sweeps a point.

    The sweeps of point t start from column ``origins[t]`` of the points, or, counted from -1 downwards, from the mean of a
    component. `effective_count` replaces the number of points by that of the slice.
    """
    _, inverse, narrowness, means, precision = target
    components = len(means)
    d, n = points.shape
    x = np.zeros(d)
    residual = np.zeros((components, d))
    score = np.zeros(components)
    closeness = np.zeros(n)
    index = np.zeros(components + n + 1, np.int64)
    weight = np.zeros(components + n + 1)
    bumps = np.zeros((6, components + n))
    table = np.zeros(maximum.PIECE + 4)
    stack = np.zeros((100, 2))  # halvings, of the longest line
    for t in range(first, n):
        origin = origins[t]
        for i in range(d):
            x[i] = points[i, origin] if origin >= 0 else means[-1 - origin, i]
        compute_residuals(means, precision, x, residual)
        for k in range(sweep_count * d):
            i = k % d
            if i == 0:
                longest = 0.0
            # The bumps of E[k(x_i, X_i) | x_rest], from the components in the conditional
            score_components(target, residual, x, i, score)
            positive, total, _ = relative_weights(score, components, index, weight)
            for j in range(positive):
                m = index[j]
                bumps[HEIGHT, j] = 1.0 / total * weight[j] * np.sqrt(narrowness[i, m])
                bumps[CENTRE, j] = x[i] - residual[m, i] * inverse[i, m]
                bumps[NARROWNESS, j] = narrowness[i, m]
            # The bumps -w_s / c k(x_i, x_i^s), with w_s = k(x_rest, x_rest^s) and c their sum
            closeness[:t] = 0.0
            for j in range(d):
                centre = x[j]
                for s in range(t if j != i else 0):
                    closeness[s] -= 0.5 * (points[j, s] - centre) ** 2
            negative, total, squares = relative_weights(closeness, t, index, weight)
            for j in range(negative):
                bumps[HEIGHT, positive + j] = -1.0 / total * weight[j]
                bumps[CENTRE, positive + j] = points[i, index[j]]
                bumps[NARROWNESS, positive + j] = 1.0
            # (t + 1) / t, or as many as the slice holds (Kish 1965)
            size = total * total / squares if effective_count else float(t)
            for j in range(positive if t > 0 else 0):
                bumps[HEIGHT, j] *= (size + 1.0) / size
            move = maximise_bumps(bumps, positive, positive + negative, x[i], table, stack) - x[i]
            # r += e L[:, i]
            for m in range(components):
                q = m if len(precision) > 1 else 0
                for j in range(d):
                    residual[m, j] += move * precision[q, i, j]
            x[i] += move
            longest = max(longest, abs(move))
            if i == d - 1 and longest < SETTLED_MOVE:  # further sweeps would repeat this one
                break
        for i in range(d):
            points[i, t] = x[i]


@compiled.njit(**compiled.QUICK)
def compute_residuals(means, precision, x, residual):
    """Fill in the residuals r = L (x - m) of all components, L their precision."""
    components, d = means.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        for i in range(d):
            r = 0.0
            for j in range(d):
                r += precision[k, i, j] * (x[j] - means[m, j])
            residual[m, i] = r


@compiled.njit(**compiled.QUICK)
def score_components(target, residual, x, i, score):
    """Fill in the log weights of the components in the conditional of coordinate i.

    They hold the quadratic form (x - m)' L (x - m) where x_i is at its conditional mean, in a form free of cancellation.
    """
    log_weight, inverse, _, means, precision = target
    components, d = residual.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        ratio = residual[m, i] * inverse[i, m]
        total = 0.0
        for j in range(d):
            term = (residual[m, j] - ratio * precision[k, i, j]) * (x[j] - means[m, j])
            total += term if j != i else 0.0
        score[m] = log_weight[i, m] - 0.5 * total


@compiled.njit(**compiled.QUICK)
def relative_weights(log_weight, count, index, weight):
    """Fill in indices and weights, relative to the highest, of those not negligible; return number, sum, sum of squares."""
    peak = -np.inf
    for k in range(count):
        peak = max(peak, log_weight[k])
    size = 0
    for k in range(count):
        # Written in any case: the next one that counts overwrites it.
        index[size] = k
        weight[size] = log_weight[k] - peak
        size += log_weight[k] >= peak - NEGLIGIBLE_LOG_BUMP
    for k in range(size):
        weight[k] = exp(weight[k])
    # Apart from the loop that stores: the order of a sum must not depend on where the arrays lie.
    total = squares = 0.0
    for k in range(size):
        total += weight[k]
        squares += weight[k] * weight[k]
    return size, total, squares
