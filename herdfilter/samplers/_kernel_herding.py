"""Compiled kernel herding from candidates, for any number of dimensions, in a frame where the kernel is a unit Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import VECTORISE, exp_clipped, fill, largest
from herdfilter.samplers._frank_wolfe import EQUAL, first_weights, next_weights

STARTS = 3  # candidates refined for each point, at least one kernel width apart
MAX_ITERATIONS = 50  # of the quasi-Newton ascent


@njit(cache=True, nogil=True)
def kernel_herding(log_height, means, precision, candidates, n, rule):
    """Return n points as columns (d, n) and their weights, each point the maximum found of the herding objective.

    ``mu(x) = sum_m exp(log_height[m] - (x - means[:, m])' precision[m] (x - means[:, m]) / 2)`` is the expected kernel;
    `means` are columns (d, M), precisions (M, d, d), or one shared diagonal one (1, d, d). `candidates` (d, C) are possible
    starts: the objective is kept up to date at all of them, O(C d) a point, and the best few that are mutually distant are
    refined. `rule` is one of `_frank_wolfe.RULES`.
    """
    d, components = means.shape
    count = candidates.shape[1]
    points, v = np.empty((d, n)), np.zeros(n)
    narrowness, ones = np.empty(d), np.ones(d)
    for i in range(d):
        narrowness[i] = precision[0, i, i]
    target = (np.exp(log_height), means, precision, narrowness)
    samples = (v, points, ones)
    gradient, best_gradient = np.empty(d), np.empty(d)
    scratch = np.empty(max(components, n, d, count))
    work, inverse_hessian = np.empty((5, d)), np.empty((d, d))
    expected, kernels, value = np.empty(count), np.zeros(count), np.empty(count)
    x, best = np.empty(d), np.empty(d)
    for c in range(count):
        for i in range(d):
            x[i] = candidates[i, c]
        expected[c] = _target(target, x, gradient, scratch)
    weighting = first_weights(n, rule)
    scale = 1.0
    for t in range(n):
        for c in range(count):
            value[c] = expected[c] - scale * kernels[c]
        best_value = -np.inf
        for _ in range(STARTS):
            c = largest(value)
            if value[c] == -np.inf:
                break
            for i in range(d):
                x[i] = candidates[i, c]
            _exclude(value, candidates, x, scratch)
            height = _ascend(target, samples, t, scale, x, best_value, inverse_hessian, work, scratch)
            if height > best_value:
                best_value = height
                for i in range(d):
                    best[i] = x[i]
        for i in range(d):
            points[i, t] = best[i]
        mu, at_best = 0.0, 0.0
        if rule != EQUAL:
            mu = _target(target, best, gradient, scratch)
            at_best = _add_bumps(v, points, ones, t, 1.0, best, best_gradient, scratch)
        scale, afresh = next_weights(rule, t, points, v, scale, mu, at_best, weighting)
        if afresh:
            fill(kernels, 0.0)
        for s in range(0 if afresh else t, t + 1):
            if v[s] > 0.0:
                for i in range(d):
                    x[i] = points[i, s]
                _add_kernel(kernels, candidates, x, v[s], scratch)
    return points, v


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _squared_distances(candidates, x, squared):
    count = candidates.shape[1]
    for c in range(count):
        squared[c] = 0.0
    for i in range(len(x)):
        place = x[i]
        for c in range(count):
            squared[c] += (candidates[i, c] - place) ** 2


@njit(cache=True, nogil=True)
def _exclude(value, candidates, x, scratch):
    """Strike the candidates within one kernel width of x off the list of starts."""
    _squared_distances(candidates, x, scratch)
    for c in range(len(value)):
        if scratch[c] <= 1.0:
            value[c] = -np.inf


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _add_kernel(kernels, candidates, x, weight, scratch):
    """Add weight k(c, x) to the running kernel sum at every candidate c."""
    _squared_distances(candidates, x, scratch)
    for c in range(len(kernels)):
        kernels[c] += weight * exp_clipped(-0.5 * scratch[c])


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _add_bumps(height, centres, narrowness, count, scale, x, gradient, scratch):
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
def _target(target, x, gradient, scratch):
    """mu(x); its gradient is written to `gradient`."""
    height, means, precision, narrowness = target
    fill(gradient, 0.0)
    if len(precision) == 1:
        return _add_bumps(height, means, narrowness, len(height), 1.0, x, gradient, scratch)
    d = len(x)
    value = 0.0
    for m in range(len(height)):
        for i in range(d):
            scratch[i] = 0.0
        squared = 0.0
        for j in range(d):
            u = means[j, m] - x[j]
            pull = 0.0
            for i in range(d):
                pull += precision[m, j, i] * (means[i, m] - x[i])
            scratch[j] = pull
            squared += pull * u
        g = height[m] * exp_clipped(-0.5 * squared)
        if g > 1e-17 * value:
            value += g
            for i in range(d):
                gradient[i] += g * scratch[i]
    return value


@njit(cache=True, nogil=True)
def _objective(target, samples, t, scale, x, gradient, scratch):
    """Objective at x, its gradient in `gradient`, and a bound on its curvature."""
    v, points, ones = samples
    mu = _target(target, x, gradient, scratch)
    kernels = _add_bumps(v, points, ones, t, -scale, x, gradient, scratch)
    return mu + kernels, mu - kernels


@njit(cache=True, nogil=True)
def _ascend(target, samples, t, scale, x, best, h, work, scratch):
    """Climb from x by BFGS with backtracking, steps of at most a kernel width; x becomes the maximum, its value returned.

    The climb is given up once ten times the rise that its quadratic model promises does not reach `best`.
    """
    d = len(x)
    gradient, step, trial, change = work[0], work[1], work[2], work[3]
    value, curvature = _objective(target, samples, t, scale, x, gradient, scratch)
    for i in range(d):
        fill(h[i], 0.0)
        h[i, i] = 1.0 / max(curvature, 1e-300)
    for iteration in range(MAX_ITERATIONS):
        slope, length = _multiply(h, gradient, step)
        if not slope > 1e-13 * curvature or (iteration > 4 and value + 5.0 * slope < best):
            break
        rate = min(1.0, 1.0 / np.sqrt(length))
        climbed = value
        for _ in range(30):
            for i in range(d):
                trial[i] = x[i] + rate * step[i]
            climbed, _ = _objective(target, samples, t, scale, trial, change, scratch)
            if climbed >= value + 1e-4 * rate * slope:
                break
            rate *= 0.5
        if climbed <= value:
            break
        for i in range(d):
            step[i] *= rate
            change[i], gradient[i] = gradient[i] - change[i], change[i]
            x[i] = trial[i]
        value = climbed
        _update(h, step, change, trial, iteration == 0)
    return value


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _multiply(h, gradient, step):
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
def _update(h, s, y, hy, first):
    """BFGS update of the inverse Hessian of -f, with the step s and the fall y of the gradient along it."""
    d = len(s)
    sy = 0.0
    yy = 0.0
    for i in range(d):
        sy += s[i] * y[i]
        yy += y[i] * y[i]
    if not sy > 0.0:
        return
    if first:  # the usual scale of the first inverse Hessian (Nocedal and Wright 2006, eq. 6.20)
        for i in range(d):
            h[i, i] = sy / yy
    yhy, _ = _multiply(h, y, hy)
    a = (1.0 + yhy / sy) / sy
    b = 1.0 / sy
    for i in range(d):
        p, q = a * s[i] - b * hy[i], b * s[i]
        for j in range(d):
            h[i, j] += p * s[j] - q * hy[j]
