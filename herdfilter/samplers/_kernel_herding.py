"""Compiled kernel herding from candidates, for any number of dimensions, in a frame where the kernel is a unit Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import VECTORISE, exceeds, exp_clipped, fill, largest
from herdfilter.samplers._frank_wolfe import EQUAL, first_weights, next_weights
from herdfilter.samplers._shared_climb import climb, climbing_room, whole

STARTS = 3  # candidates refined for each point, at least one kernel width apart; where all components share
# one covariance and d <= 4 further ones gain nothing (in the mean of 74 mixtures from filter runs): there the best alone is
MAX_ITERATIONS = 15  # of the quasi-Newton ascent; the herding error hardly gains from more
CONVERGED = 1e-9  # relative rise promised by a step at which the ascent ends


@njit(cache=True, nogil=True)
def kernel_herding(log_height, means, precision, covariance, candidates, n, rule, tries=STARTS):
    """Return n points as columns (d, n) and their weights, each point the maximum found of the herding objective.

    ``mu(x) = sum_m exp(log_height[m] - (x - means[:, m])' precision[m] (x - means[:, m]) / 2)`` is the expected kernel;
    `means` are columns (d, M), precisions and their inverses, the covariances, (M, d, d), or one shared diagonal one
    (1, d, d). `candidates` (d, C) are possible starts: the objective is kept up to date at all of them,
    O(C d) a point, and the best `tries` that are mutually distant are refined. `rule` is one of `_frank_wolfe.RULES`.
    Points and weights are followed by zeros, up to whole vectors.
    """
    d, components = means.shape
    count = candidates.shape[1]
    shared = len(precision) == 1
    compact = shared and d <= 4
    rows = max(d, 4)
    points, v = np.zeros((rows, whole(n))), np.zeros(whole(n))
    narrowness, ones = np.ones(rows), np.ones(rows)
    for i in range(d):
        narrowness[i] = precision[0, i, i]
    target = _padded(log_height, means, precision, narrowness, covariance)
    samples = (v, points, ones)
    workspace = climbing_room(d)
    gradient, best_gradient = np.empty(d), np.empty(d)
    scratch = np.empty(max((2 * d + 1) * len(target[0]), len(v), count))
    work, inverse_hessian = np.empty((5, d)), np.empty((d, d))
    expected, kernels, value = np.empty(count), np.zeros(count), np.empty(count)
    x, best = np.empty(d), np.empty(d)
    starts = np.empty(STARTS, np.int64)
    fill(expected, 0.0)
    for m in range(components if shared else 0):
        for i in range(d):
            x[i] = means[i, m]
        _add_kernel(expected, candidates, x, narrowness, target[0][m], scratch)
    for c in range(0 if shared else count):
        for i in range(d):
            x[i] = candidates[i, c]
        expected[c] = _target(target, x, gradient, scratch)
    weighting = first_weights(n, rule)
    scale = 1.0
    for t in range(n):
        if rule == EQUAL:
            scale = 1.0 / (t + 1)
        for c in range(count):
            value[c] = expected[c] - scale * kernels[c]
        best_value = -np.inf
        for k in range(1 if compact else tries):
            c = _next_start(value, candidates, starts, k)
            if c < 0:
                break
            for i in range(d):
                x[i] = candidates[i, c]
            if compact:
                height = climb(
                    (target[0], target[1], narrowness), samples, t, scale, x, best_value, workspace
                )
            else:
                height = _ascend(target, samples, t, scale, x, best_value, inverse_hessian, work, scratch)
            if exceeds(height, best_value):
                best_value = height
                for i in range(d):
                    best[i] = x[i]
        for i in range(d):
            points[i, t] = best[i]
        mu, at_best = 0.0, 0.0
        if rule != EQUAL:
            mu = _target(target, best, gradient, scratch)
            at_best = add_bumps(v, points, ones, t, 1.0, best, best_gradient, scratch)
        scale, afresh = next_weights(rule, t, points, v, scale, mu, at_best, weighting)
        if afresh:
            fill(kernels, 0.0)
        for s in range(0 if afresh else t, t + 1):
            if v[s] > 0.0:
                for i in range(d):
                    x[i] = points[i, s]
                _add_kernel(kernels, candidates, x, ones, v[s], scratch)
    return points, v


@njit(cache=True, nogil=True)
def _padded(log_height, means, precision, narrowness, covariance):
    """Return the target, filled up to whole vectors with bumps of no height; precisions of their own become (d, d, M)."""
    d, components = means.shape
    height, centres = np.zeros(whole(components)), np.zeros((len(narrowness), whole(components)))
    columns = precision if len(covariance) == 1 else np.zeros((d, d, whole(components)))
    for m in range(components):
        height[m] = np.exp(log_height[m])
        for i in range(d):
            centres[i, m] = means[i, m]
            for j in range(d if len(covariance) > 1 else 0):
                columns[i, j, m] = precision[m, i, j]
    return height, centres, columns, narrowness, covariance


@njit(cache=True, nogil=True)
def _next_start(value, candidates, starts, k):
    """Best candidate more than one kernel width from the first k starts, -1 if there is none; it becomes start k."""
    while True:
        c = largest(value)
        if value[c] == -np.inf:
            return -1
        value[c] = -np.inf
        far = True
        for j in range(k):
            squared = 0.0
            for i in range(len(candidates)):
                squared += (candidates[i, c] - candidates[i, starts[j]]) ** 2
            far = far and squared > 1.0
        if far:
            starts[k] = c
            return c


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _add_kernel(sums, candidates, x, narrowness, weight, scratch):
    """Add weight exp(-sum_i narrowness[i] (c - x)_i^2 / 2) to the sum of every candidate c."""
    count = len(sums)
    for c in range(count):
        scratch[c] = 0.0
    for i in range(len(x)):
        place, half = x[i], -0.5 * narrowness[i]
        for c in range(count):
            u = candidates[i, c] - place
            scratch[c] += half * u * u
    for c in range(count):
        sums[c] += weight * exp_clipped(scratch[c])


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def add_bumps(height, centres, narrowness, count, scale, x, gradient, scratch):
    """Sum of scale * height[k] * exp(-sum_i narrowness[i] (x - centres[:, k])_i^2 / 2); adds to the gradient."""
    for k in range(count):
        scratch[k] = 0.0
    for i in range(len(x)):
        place, half = x[i], -0.5 * narrowness[i]
        for k in range(count):
            u = place - centres[i, k]
            scratch[k] += half * u * u
    value = 0.0
    for k in range(count):
        scratch[k] = scale * height[k] * exp_clipped(scratch[k])
        value += scratch[k]
    for i in range(len(x)):
        place = x[i]
        pull = 0.0
        for k in range(count):
            pull += scratch[k] * (centres[i, k] - place)
        gradient[i] += narrowness[i] * pull
    return value


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def add_components(heights, means, precision, x, gradient, shares, pulls):
    """Sum of heights[m] * exp(-(x - means[:, m])' precision[:, :, m] (x - means[:, m]) / 2); adds to the gradient.

    Each bump goes to `shares`; `pulls` (2 d, M) is room. Loops over components are innermost, for the compiler to vectorise.
    """
    d, components = len(x), len(heights)
    for m in range(components):
        shares[m] = 0.0
    for i in range(d):
        place = x[i]
        for m in range(components):
            pulls[d + i, m] = means[i, m] - place
    for i in range(d):
        for m in range(components):
            pulls[i, m] = 0.0
        for j in range(d):
            for m in range(components):
                pulls[i, m] += precision[i, j, m] * pulls[d + j, m]
        for m in range(components):
            shares[m] -= 0.5 * pulls[i, m] * pulls[d + i, m]
    value = 0.0
    for m in range(components):
        shares[m] = heights[m] * exp_clipped(shares[m])
        value += shares[m]
    for i in range(d):
        pull = 0.0
        for m in range(components):
            pull += shares[m] * pulls[i, m]
        gradient[i] += pull
    return value


@njit(cache=True, nogil=True)
def _target(target, x, gradient, scratch):
    """mu(x); its gradient is written to `gradient`, the components' shares to the head of `scratch`."""
    height, means, precision, narrowness, covariance = target
    fill(gradient, 0.0)
    components = len(height)
    if len(covariance) == 1:
        return add_bumps(height, means, narrowness, components, 1.0, x, gradient, scratch)
    pulls = scratch[components : (2 * len(x) + 1) * components].reshape(2 * len(x), components)
    return add_components(height, means, precision, x, gradient, scratch, pulls)


@njit(cache=True, nogil=True)
def _objective(target, samples, t, scale, x, gradient, scratch):
    """Objective at x, its gradient in `gradient`, and a bound on its curvature."""
    v, points, ones = samples
    mu = _target(target, x, gradient, scratch)
    kernels = add_bumps(v, points, ones, whole(t), -scale, x, gradient, scratch)
    return mu + kernels, mu - kernels


@njit(cache=True, nogil=True)
def _ascend(target, samples, t, scale, x, best, h, work, scratch):
    """Climb from x by BFGS with backtracking; x becomes the maximum, its value returned.

    The objective may rise by many orders of magnitude on the way. The quasi-Newton model is therefore one of its gradient
    over its curvature ``mu(x) + kernel sum``: for a lone component this is linear in x, however far away the mean is. The
    climb is given up once ten times the rise that the model promises does not reach `best`.
    """
    d = len(x)
    gradient, step, trial, change = work[0], work[1], work[2], work[3]
    longest = max(1.0, np.sqrt(d) / 2.0)
    value, curvature = _objective(target, samples, t, scale, x, gradient, scratch)
    _precondition(target, x, h, change, scratch)
    for i in range(d):
        gradient[i] /= max(curvature, 1e-300)
    for iteration in range(MAX_ITERATIONS):
        slope, length = multiply(h, gradient, step)
        if not slope > CONVERGED or (iteration > 2 and value + 5.0 * slope * curvature < best):
            break
        rate = min(1.0, longest / np.sqrt(length))
        climbed, steepness = value, curvature
        for _ in range(30):
            for i in range(d):
                trial[i] = x[i] + rate * step[i]
            climbed, steepness = _objective(target, samples, t, scale, trial, change, scratch)
            if climbed >= value + 1e-4 * rate * slope * curvature:
                break
            rate *= 0.5
        if climbed <= value:
            break
        curvature = steepness
        for i in range(d):
            step[i] *= rate
            new = change[i] / curvature
            change[i], gradient[i] = gradient[i] - new, new
            x[i] = trial[i]
        value = climbed
        update(h, step, change, trial)
    return value


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _precondition(target, x, h, unused, scratch):
    """Set the inverse Hessian that the climb begins with: the components' covariances, averaged by their shares of mu(x).

    For a lone component it makes the first step that to its mean.
    """
    _, _, _, narrowness, covariance = target
    d = len(x)
    for i in range(d):
        fill(h[i], 0.0)
        h[i, i] = 1.0 / narrowness[i] if len(covariance) == 1 else 1e-6
    if len(covariance) == 1:
        return
    total = max(_target(target, x, unused, scratch), 1e-300)
    for m in range(len(covariance)):
        share = scratch[m] / total
        if share > 1e-3:
            for i in range(d):
                for j in range(d):
                    h[i, j] += share * covariance[m, i, j]


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def multiply(h, gradient, step):
    """Step h @ gradient; its product with the gradient and its squared length are returned."""
    slope = 0.0
    length = 0.0
    for i in range(len(step)):
        total = 0.0
        for j in range(len(step)):
            total += h[i, j] * gradient[j]
        step[i] = total
        slope += total * gradient[i]
        length += total * total
    return slope, length


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def update(h, s, y, hy):
    """BFGS update of the inverse Hessian of -f, with the step s and the fall y of the gradient along it."""
    d = len(s)
    sy = 0.0
    for i in range(d):
        sy += s[i] * y[i]
    if not sy > 0.0:
        return
    yhy, _ = multiply(h, y, hy)
    a = (1.0 + yhy / sy) / sy
    b = 1.0 / sy
    for i in range(d):
        p, q = a * s[i] - b * hy[i], b * s[i]
        for j in range(d):
            h[i, j] += p * s[j] - q * hy[j]
