"""Compiled recursion of continuous herded Gibbs sampling, in a frame where the kernel is a unit Gaussian.

Coordinate i of x sees the distance of every earlier point over the other coordinates, and of every component the density of
the other coordinates; both are kept up to date as x moves. Where all components share one diagonal precision, they are
points too, in coordinates scaled by its root.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._bumps import climb, maximise, workspace
from herdfilter.samplers._fastmath import VECTORISE, exp, exp_of_negative, fill, largest, solve_in_place
from herdfilter.samplers._nodes import SPARSE, grid_size, lay, lay_grid, line_through, slice_through

NEGLIGIBLE = 27.6  # log of 1e12: bumps so far below the highest are left out of a conditional objective
NEGLIGIBLE_JOINTLY = 41.4  # log of 1e18: the same for the joint objective, whose maximum may be low
STRAYS = 64  # samples outside the grid of nodes at which it is laid anew
LONG = 1e7  # squared distances above which their differences lose digits that matter


@njit(cache=True, nogil=True)
def herded_gibbs(
    log_weights,
    means,
    precision,
    log_det,
    extra,
    labels,
    orders,
    sweeps,
    effective_count,
    joint,
    launch,
    first,
    n,
    crowd,
):
    """Return n points as columns (d, n).

    The density conditioned on has component log-weights (M,), means (M, d) and precisions (M, d, d), or one shared
    (1, d, d), with log-determinants `log_det`; `extra` is the variance added after conditioning (1 for the published
    target, 0 for the smoothed one). ``labels[t]`` is the component from which the sweeps of point t start, -1 for the point
    before it. The rows of `orders` are the orders of the coordinates in one sweep after the other, over and over.
    `effective_count` replaces the count t by that of the slice; `joint` maximises the joint herding objective in place of
    the conditional one. `launch` (d, k, 2) are uniform and normal numbers from which k local searches a coordinate start;
    the search is exact where k = 0. The first point is `first` (d,). In one and two dimensions the samples are seen through
    nodes (`_nodes`) as soon as these are at most `crowd` times as many as the samples.
    """
    components, d = means.shape
    points = np.empty((d, n))
    latest = np.empty(components, np.int64)
    fill(latest, -1)
    table = _constants(log_weights, precision, log_det, extra, joint)
    careful = _is_wide(means, precision, first)
    diagonal = _is_diagonal(precision)
    scale = np.ones(d)
    rows = np.empty((d, components if diagonal else 0))
    for i in range(d):
        if diagonal:
            scale[i] = np.sqrt(precision[0, i, i])
        for m in range(rows.shape[1]):
            rows[i, m] = means[m, i] * scale[i]
    rest = np.empty(n)  # squared distances of the earlier points to x without one coordinate
    quadratic = np.empty(components)  # q = (x - m)' L (x - m); without one coordinate where L is diagonal
    residual = np.empty((0 if diagonal else components, d))  # r = L (x - m)
    target = (np.empty(components), np.empty(components), np.empty(components))  # the positive bumps
    negative, sample = np.empty(n), np.empty(n)  # heights and centres of the subtracted ones
    work, link = workspace(components + n)
    grid, gridded, check = lay_grid(points[:1], 0, np.zeros(2), np.ones(2)), False, 1.0
    strays, outside = np.empty(n, np.int64), 0  # samples that lie outside of the grid
    slice_weight = np.empty(1)
    uniform = len(precision) == 1
    exact = launch.shape[1] == 0
    x = np.empty(d)
    scaled = np.empty(d)
    for i in range(d):
        x[i] = first[i]
        points[i, 0] = first[i]
    if labels[0] >= 0:
        latest[labels[0]] = 0
    for t in range(1, n):
        if d <= 2 and t >= check and crowd > 0.0:
            corner, size = grid_size(points, t)
            check = 1.25 * t
            gridded = size[0] * size[1] <= crowd * t and size.max() <= 0.005 * crowd * t
            if gridded:
                grid, outside, check = lay_grid(points, t, corner, size), 0, np.inf
                bumps = int(size.max()) + n
                slice_weight = np.empty(int(size.max()))
                negative, sample = np.empty(bumps), np.empty(bumps)
                work, link = workspace(components + bumps)
        label = labels[t]
        if label >= 0:
            for i in range(d):
                x[i] = points[i, latest[label]] if latest[label] >= 0 else means[label, i]
            latest[label] = t
        for i in range(d):
            scaled[i] = x[i] * scale[i]
        if not diagonal:
            _measure(means, precision, x, residual, quadratic)
        last = -1
        for sweep in range(sweeps):
            order = (t * sweeps + sweep) % len(orders)
            for k in range(d):
                i = orders[order, k]
                if diagonal:
                    _leave_out(rows, components, quadratic, scaled, last, i, careful)
                    positive, peak = _add_shared(table, quadratic, means, i, joint, target)
                else:
                    positive, peak = _add_components(
                        table, precision, means, residual, quadratic, x, i, joint, careful, target
                    )
                count, effective = -1, 1.0
                if gridded:
                    count, effective = _subtract_nodes(
                        grid, points, strays, outside, i, t, x, joint, peak, slice_weight, negative, sample
                    )
                if count < 0:
                    nearest = _leave_out(points, t, rest, x, last, i, careful or gridded)
                    if joint:
                        count = _subtract_kernels(points, i, t, rest, peak, negative, sample)
                    else:
                        count, effective = _subtract_slice(points, i, t, rest, nearest, negative, sample)
                if not joint:
                    if not effective_count:
                        effective = float(t)
                    for m in range(positive):
                        target[0][m] *= (effective + 1.0) / effective
                if exact:
                    moved = maximise(target, positive, negative, sample, count, uniform, x[i], work, link)
                else:
                    moved = climb(target, positive, negative, sample, count, launch[i], work)
                if not diagonal:
                    _move(precision, i, moved - x[i], residual, quadratic)
                x[i] = moved
                scaled[i] = moved * scale[i]
                last = i
        for i in range(d):
            points[i, t] = x[i]
        if gridded and not lay(grid, points, t):
            strays[outside] = t
            outside += 1
            if outside > STRAYS:
                check = 0.0
    return points


@njit(cache=True, nogil=True)
def _constants(log_weights, precision, log_det, extra, joint):
    """Tabulate what the bumps of every coordinate and component have of their own, (4, d, M).

    Log weight where the other coordinates are at their means, factor from weight to height, narrowness, and 1 / L_ii.
    """
    components, d = len(log_weights), precision.shape[1]
    table = np.empty((4, d, components))
    for m in range(components):
        k = m if len(precision) > 1 else 0
        for i in range(d):
            inverse = 1.0 / precision[k, i, i]
            variance = inverse + extra
            log_factor = log_det[k] if joint else log_det[k] + np.log(inverse)
            table[0, i, m] = log_weights[m] + 0.5 * log_factor
            table[1, i, m] = 1.0 if joint else 1.0 / np.sqrt(variance)
            table[2, i, m] = 1.0 / variance
            table[3, i, m] = inverse
    return table


@njit(cache=True, nogil=True)
def _is_diagonal(precision):
    """Whether all components share one diagonal precision."""
    if len(precision) > 1:
        return False
    for i in range(precision.shape[1]):
        for j in range(i):
            if precision[0, i, j] != 0.0 or precision[0, j, i] != 0.0:
                return False
    return True


@njit(cache=True, nogil=True)
def _is_wide(means, precision, first):
    """Whether squared distances get so long that their differences must not be taken."""
    total = 0.0
    for i in range(len(first)):
        low = high = first[i]
        for m in range(len(means)):
            low = min(low, means[m, i])
            high = max(high, means[m, i])
        sharpest = 1.0
        for k in range(len(precision)):
            sharpest = max(sharpest, precision[k, i, i])
        total += (high - low) ** 2 * sharpest
    return total > LONG


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _leave_out(rows, count, rest, x, last, i, careful):
    """Squared distances of the first `count` columns to x without coordinate i, given those without `last`.

    Computed afresh where there are none yet (`last` < 0) or they are long. Return the smallest.
    """
    if last < 0 or careful:
        for s in range(count):
            rest[s] = 0.0
        for j in range(len(rows)):
            if j != i:
                xj = x[j]
                for s in range(count):
                    u = rows[j, s] - xj
                    rest[s] += u * u
    elif last != i:
        old, new = x[last], x[i]
        for s in range(count):
            u = rows[last, s] - old
            v = rows[i, s] - new
            rest[s] += u * u - v * v
    nearest = np.inf
    for s in range(count):
        nearest = min(nearest, rest[s])
    return nearest


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _measure(means, precision, x, residual, quadratic):
    """Residuals of all components at x."""
    components, d = means.shape
    for m in range(components):
        k = m if len(precision) > 1 else 0
        quadratic[m] = 0.0
        for i in range(d):
            r = 0.0
            for j in range(d):
                r += precision[k, i, j] * (x[j] - means[m, j])
            residual[m, i] = r
            quadratic[m] += r * (x[i] - means[m, i])


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _move(precision, i, e, residual, quadratic):
    """Update the residuals after coordinate i has moved by e."""
    for m in range(len(quadratic)):
        k = m if len(precision) > 1 else 0
        quadratic[m] += e * (2.0 * residual[m, i] + e * precision[k, i, i])
        for j in range(residual.shape[1]):
            residual[m, j] += e * precision[k, i, j]


@njit(cache=True, nogil=True)
def _add_shared(table, quadratic, means, i, joint, target):
    """`_add_components` where all components share one diagonal precision."""
    height, centre, narrowness = target
    components = len(quadratic)
    for m in range(components):
        height[m] = table[0, i, m] - 0.5 * quadratic[m]
    peak = _peak(height, components)
    cut = peak - (NEGLIGIBLE_JOINTLY if joint else NEGLIGIBLE)
    count = 0
    for m in range(components):
        value = height[m]
        height[count] = value
        centre[count] = means[m, i]
        count += value >= cut
    for k in range(count):
        narrowness[k] = table[2, i, 0]
    total = _weigh(height, count, peak)
    if not joint:
        factor = table[1, i, 0] / total
        for k in range(count):
            height[k] *= factor
    return count, peak


@njit(cache=True, nogil=True)
def _add_components(table, precision, means, residual, quadratic, x, i, joint, careful, target):
    """Fill in the bumps of E[k(x_i, X_i)], conditional or joint; return how many, and the log of the joint heights' unit."""
    height, centre, narrowness = target
    components = len(quadratic)
    for m in range(components):
        r = residual[m, i]
        if careful:
            height[m] = table[0, i, m] - 0.5 * _quadratic_of_rest(precision, means, residual, x, i, m)
        else:
            height[m] = table[0, i, m] + 0.5 * (r * r * table[3, i, m] - quadratic[m])
    peak = _peak(height, components)
    cut = peak - (NEGLIGIBLE_JOINTLY if joint else NEGLIGIBLE)
    xi = x[i]
    count = 0
    total = 0.0
    for m in range(components):
        if height[m] >= cut:
            w = exp_of_negative(height[m] - peak)
            total += w
            height[count] = w * table[1, i, m]
            centre[count] = xi - residual[m, i] * table[3, i, m]
            narrowness[count] = table[2, i, m]
            count += 1
    if not joint:
        for k in range(count):
            height[k] /= total
    return count, peak


@njit(cache=True, nogil=True)
def _quadratic_of_rest(precision, means, residual, x, i, m):
    """Quadratic form without coordinate i, free of cancellation: with the residual where x_i is at its conditional mean."""
    k = m if len(precision) > 1 else 0
    ratio = residual[m, i] / precision[k, i, i]
    total = 0.0
    for j in range(len(x)):
        if j != i:
            total += (residual[m, j] - ratio * precision[k, i, j]) * (x[j] - means[m, j])
    return total


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _peak(values, count):
    peak = -np.inf
    for k in range(count):
        peak = max(peak, values[k])
    return peak


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _weigh(values, count, peak):
    """Replace the first `count` logs by exp(log - peak); return their sum."""
    total = 0.0
    for k in range(count):
        w = exp_of_negative(values[k] - peak)
        values[k] = w
        total += w
    return total


@njit(cache=True, nogil=True)
def _subtract_slice(points, i, t, rest, nearest, height, centre):
    """Fill in the bumps -w_s / c k(x_i, x_i^s), w_s = k(x_rest, x_rest^s); return their count and c^2 / sum_s w_s^2."""
    cut = nearest + 2.0 * NEGLIGIBLE
    count = 0
    for s in range(t):
        v = rest[s]
        height[count] = -0.5 * v
        centre[count] = points[i, s]
        count += v <= cut
    total = _weigh(height, count, -0.5 * nearest)
    return count, total * total / _share_out(height, count, total)


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _share_out(height, count, total):
    """Turn weights w into heights -w / total; return the sum of squared weights."""
    squares = 0.0
    factor = -1.0 / total
    for k in range(count):
        squares += height[k] * height[k]
        height[k] *= factor
    return squares


@njit(cache=True, nogil=True)
def _subtract_kernels(points, i, t, rest, peak, height, centre):
    """Fill in the bumps -k(x, x^s) / (t + 1), in the unit of the positive ones; return their count."""
    cut = 2.0 * (NEGLIGIBLE - peak)
    count = 0
    for s in range(t):
        if rest[s] <= cut:
            height[count] = -np.exp(min(-0.5 * rest[s] - peak, 600.0)) / (t + 1.0)
            centre[count] = points[i, s]
            count += 1
    return count


@njit(cache=True, nogil=True)
def _subtract_nodes(grid, points, strays, outside, i, t, x, joint, peak, weight, height, centre):
    """Do as `_subtract_slice`, or as `_subtract_kernels` if `joint`, for samples on a grid of nodes and a few outside of it.

    Return -1 for the count where interpolation is not good enough for so thin a slice.
    """
    low, high, total, squares = slice_through(grid, i, x, weight)
    for k in range(outside):
        w = _weight_of_stray(points, strays[k], i, x)
        total += w
        squares += w * w
    if total < SPARSE or (joint and (peak < -600.0 or np.exp(peak) * (t + 1.0) < SPARSE * total)):
        return -1, 1.0
    factor = -np.exp(-peak) / (t + 1.0) if joint else -1.0 / total
    count = line_through(grid, i, low, high, weight, factor, height, centre)
    for k in range(outside):
        height[count] = factor * _weight_of_stray(points, strays[k], i, x)
        centre[count] = points[i, strays[k]]
        count += 1
    return count, total * total / squares


@njit(cache=True, nogil=True)
def _weight_of_stray(points, s, i, x):
    """Weight of sample s in the slice through x along coordinate i."""
    total = 0.0
    for j in range(len(x)):
        if j != i:
            total += (points[j, s] - x[j]) ** 2
    return exp_of_negative(-0.5 * total)


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
