"""Compiled recursion of continuous herded Gibbs sampling, in a frame where the kernel is a unit Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._bumps import argmax, workspace
from herdfilter.samplers._fastmath import VECTORISE, exp, fill, largest, solve_in_place

NEGLIGIBLE = 1e-12  # relative height under which a bump is left out of a conditional objective


@njit(cache=True, nogil=True)
def herded_gibbs(log_weights, means, precision, log_det, extra, labels, sweeps, effective_count, first, n):
    """Return n points as columns (d, n).

    The density conditioned on has component log-weights (M,), means (M, d) and precisions (M, d, d), or one shared
    (1, d, d), with log-determinants `log_det`; `extra` is the variance added after conditioning (1 for the published
    target, 0 for the smoothed one). ``labels[t]`` is the component from which the sweeps of point t start, -1 for the point
    before it. `effective_count` replaces the count t by that of the slice. The first point is `first` (d,).
    """
    components, d = means.shape
    points = np.empty((d, n))
    latest = np.empty(components, np.int64)
    fill(latest, -1)
    squared = np.empty(n)  # distance of every earlier point to x
    residual = np.empty((d, components))  # r = L (x - m) and q = (x - m)' L (x - m) of every component
    quadratic = np.empty(components)
    height = np.empty(components + n)
    centre = np.empty(components + n)
    narrowness = np.empty(components + n)
    work, link = workspace(components + n)

    x = np.empty(d)
    for i in range(d):
        x[i] = first[i]
        points[i, 0] = first[i]
    if labels[0] >= 0:
        latest[labels[0]] = 0
    for t in range(1, n):
        label = labels[t]
        if label >= 0:
            for i in range(d):
                x[i] = points[i, latest[label]] if latest[label] >= 0 else means[label, i]
            latest[label] = t
        _measure(points, t, means, precision, x, squared, residual, quadratic)
        for _ in range(sweeps):
            for i in range(d):
                positive = _add_conditional(
                    log_weights,
                    precision,
                    log_det,
                    extra,
                    residual,
                    quadratic,
                    x[i],
                    i,
                    height,
                    centre,
                    narrowness,
                )
                count, factor = _subtract_samples(
                    points[i], t, squared, x[i], effective_count, height, centre, narrowness, positive
                )
                for m in range(positive):
                    height[m] *= factor
                moved = argmax(
                    height, centre, narrowness, positive, count, len(precision) == 1, x[i], work, link
                )
                _move(points[i], t, precision, i, x[i], moved, squared, residual, quadratic)
                x[i] = moved
        for i in range(d):
            points[i, t] = x[i]
    return points


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _measure(points, t, means, precision, x, squared, residual, quadratic):
    """Distances of the first t points, and residuals of all components, at x."""
    components, d = means.shape
    fill(squared[:t], 0.0)
    for i in range(d):
        for s in range(t):
            u = points[i, s] - x[i]
            squared[s] += u * u
    for m in range(components):
        matrix = precision[m if len(precision) > 1 else 0]
        quadratic[m] = 0.0
        for i in range(d):
            r = 0.0
            for j in range(d):
                r += matrix[i, j] * (x[j] - means[m, j])
            residual[i, m] = r
            quadratic[m] += r * (x[i] - means[m, i])


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _move(row, t, precision, i, old, new, squared, residual, quadratic):
    """Update distances and residuals after coordinate i has moved from `old` to `new`."""
    e = new - old
    for s in range(t):
        squared[s] += e * (new + old - 2.0 * row[s])
    if len(precision) == 1:
        for m in range(len(quadratic)):
            quadratic[m] += e * (2.0 * residual[i, m] + e * precision[0, i, i])
        for j in range(len(residual)):
            shift = e * precision[0, j, i]
            for m in range(len(quadratic)):
                residual[j, m] += shift
    else:
        for m in range(len(quadratic)):
            quadratic[m] += e * (2.0 * residual[i, m] + e * precision[m, i, i])
            for j in range(len(residual)):
                residual[j, m] += e * precision[m, j, i]


@njit(cache=True, nogil=True)
def _add_conditional(
    log_weights, precision, log_det, extra, residual, quadratic, xi, i, height, centre, narrowness
):
    """Fill in the bumps of E[k(x_i, X_i)] under the conditional density of coordinate i; return how many."""
    components = len(log_weights)
    total = _conditional_weights(log_weights, precision[:, i, i], log_det, residual[i], quadratic, height)
    count = 0
    for m in range(components):
        w = height[m] / total
        if w > NEGLIGIBLE:
            lii = precision[0 if len(precision) == 1 else m, i, i]
            variance = 1.0 / lii + extra
            height[count] = w / np.sqrt(variance)
            centre[count] = xi - residual[i, m] / lii
            narrowness[count] = 1.0 / variance
            count += 1
    return count


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _conditional_weights(log_weights, diagonal, log_det, residual, quadratic, weight):
    """Component weights of the conditional density of one coordinate, relative to the largest; return their sum."""
    peak = -np.inf
    if len(diagonal) == 1:
        for m in range(len(log_weights)):
            weight[m] = log_weights[m] + 0.5 * (residual[m] * residual[m] / diagonal[0] - quadratic[m])
            peak = max(peak, weight[m])
    else:
        for m in range(len(log_weights)):
            r = residual[m]
            weight[m] = log_weights[m] + 0.5 * (
                log_det[m] - np.log(diagonal[m]) - quadratic[m] + r * r / diagonal[m]
            )
            peak = max(peak, weight[m])
    total = 0.0
    for m in range(len(log_weights)):
        weight[m] = exp(max(weight[m] - peak, -700.0))
        total += weight[m]
    return total


@njit(cache=True, nogil=True)
def _subtract_samples(row, t, squared, xi, effective_count, height, centre, narrowness, start):
    """Append the bumps -w_s / c k(x_i, x_i^s); return the count and the factor (t + 1) / t of the conditional."""
    weight = height[start : start + t]
    total, total_squares = _slice_weights(row, squared, xi, weight)
    count = start
    for s in range(t):
        w = weight[s] / total
        if w > NEGLIGIBLE:
            height[count] = -w
            centre[count] = row[s]
            narrowness[count] = 1.0
            count += 1
    size = total * total / total_squares if effective_count else float(t)
    return count, (size + 1.0) / size


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _slice_weights(row, squared, xi, weight):
    """w_s = k(x_rest, x_rest^s), relative to that of the nearest sample; return their sum and sum of squares."""
    nearest = np.inf
    for s in range(len(weight)):
        u = row[s] - xi
        weight[s] = squared[s] - u * u
        nearest = min(nearest, weight[s])
    total = 0.0
    total_squares = 0.0
    for s in range(len(weight)):
        weight[s] = exp(max(0.5 * (nearest - weight[s]), -700.0))
        total += weight[s]
        total_squares += weight[s] * weight[s]
    return total, total_squares


@njit(cache=True, nogil=True)
def mode(log_weights, means, precision, log_det):
    """Local maximum of a mixture density, from the mean of the heaviest component by fixed-point iteration.

    The iteration is that of mixture mode finding (Carreira-Perpinan 2000): monotone, with no step size.
    """
    components, d = means.shape
    heaviest = largest(log_weights)
    x = np.empty(d)
    for i in range(d):
        x[i] = means[heaviest, i]
    log_share = np.empty(components)
    pull = np.empty((components, d))
    matrix = np.empty((d, d))
    vector = np.empty(d)
    for _ in range(1000):
        for m in range(components):
            k = m if len(precision) > 1 else 0
            log_share[m] = log_weights[m] + 0.5 * log_det[k]
            for i in range(d):
                pull[m, i] = 0.0
                for j in range(d):
                    pull[m, i] += precision[k, i, j] * (means[m, j] - x[j])
                log_share[m] -= 0.5 * pull[m, i] * (means[m, i] - x[i])
        peak = log_share[largest(log_share)]
        for i in range(d):
            vector[i] = 0.0
            for j in range(d):
                matrix[i, j] = 0.0
        for m in range(components):
            share = exp(max(log_share[m] - peak, -700.0))
            k = m if len(precision) > 1 else 0
            for i in range(d):
                vector[i] += share * pull[m, i]
                for j in range(d):
                    matrix[i, j] += share * precision[k, i, j]
        solve_in_place(matrix, vector)
        change = 0.0
        for i in range(d):
            x[i] += vector[i]
            change = max(change, abs(vector[i]))
        if change < 1e-9:
            break
    return x
