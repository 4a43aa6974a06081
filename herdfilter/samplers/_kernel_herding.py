"""Compiled kernel herding, in a frame where the kernel is a unit Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import VECTORISE, exp, fill, largest

STARTS = 3  # candidates refined for each point, at least one kernel width apart
MAX_ITERATIONS = 50  # of the quasi-Newton ascent


@njit(cache=True, nogil=True)
def kernel_herding(log_height, means, precision, candidates, n):
    """Return n points as columns (d, n), each the maximum found of ``mu(x) - 1 / (t + 1) sum_s k(x, x_s)``.

    ``mu(x) = sum_m exp(log_height[m] - (x - means[:, m])' precision[m] (x - means[:, m]) / 2)`` is the expected kernel;
    `means` are columns (d, M), precisions (M, d, d), or one shared diagonal one (1, d, d). `candidates` (C, d) are possible
    starts: the objective is kept up to date at all of them, O(C d) a point, and the best few that are mutually distant are
    refined.
    """
    d, components = means.shape
    count = len(candidates)
    points = np.empty((d, n))
    diagonal, ones, zeros = np.empty(d), np.empty(d), np.empty(n)
    fill(ones, 1.0)
    fill(zeros, 0.0)
    for i in range(d):
        diagonal[i] = precision[0, i, i]
    target_bumps = (log_height, means, precision, diagonal)
    problem = (target_bumps, (zeros, points, ones))
    gradient = np.empty(d)
    scratch = np.empty(max(components, n, d))
    work = np.empty((4, d))
    inverse_hessian = np.empty((d, d))
    target = np.empty(count)
    for c in range(count):
        target[c] = _target(target_bumps, candidates[c], gradient, scratch)
    samples = np.empty(count)
    fill(samples, 0.0)
    objective = np.empty(count)
    x, best = np.empty(d), np.empty(d)
    for t in range(n):
        for c in range(count):
            objective[c] = target[c] - samples[c] / (t + 1)
        best_value = -np.inf
        for _ in range(STARTS):
            c = largest(objective)
            if objective[c] == -np.inf:
                break
            for i in range(d):
                x[i] = candidates[c, i]
            _exclude(objective, candidates, x)
            value = _ascend(problem, t, x, inverse_hessian, work, scratch)
            if value > best_value:
                best_value = value
                for i in range(d):
                    best[i] = x[i]
        for i in range(d):
            points[i, t] = best[i]
        _add_kernel(samples, candidates, best)
    return points


@njit(cache=True, nogil=True)
def _exclude(objective, candidates, x):
    """Strike the candidates within one kernel width of x off the list of starts."""
    for c in range(len(objective)):
        squared = 0.0
        for i in range(len(x)):
            u = candidates[c, i] - x[i]
            squared += u * u
        if squared <= 1.0:
            objective[c] = -np.inf


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _add_kernel(samples, candidates, x):
    """Add k(c, x) to the running kernel sum at every candidate c."""
    for c in range(len(samples)):
        squared = 0.0
        for i in range(len(x)):
            u = candidates[c, i] - x[i]
            squared += u * u
        samples[c] += exp(max(-0.5 * squared, -700.0))


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _add_bumps(log_height, centres, narrowness, count, scale, x, gradient, scratch):
    """Sum of scale * exp(log_height[k] - sum_i narrowness[i] (x - centres[:, k])_i^2 / 2); adds to the gradient."""
    for k in range(count):
        scratch[k] = log_height[k]
    for i in range(len(x)):
        for k in range(count):
            u = x[i] - centres[i, k]
            scratch[k] -= 0.5 * narrowness[i] * u * u
    value = 0.0
    for k in range(count):
        scratch[k] = scale * exp(max(scratch[k], -700.0))
        value += scratch[k]
    for i in range(len(x)):
        pull = 0.0
        for k in range(count):
            pull += scratch[k] * (centres[i, k] - x[i])
        gradient[i] += narrowness[i] * pull
    return value


@njit(cache=True, nogil=True)
def _target(bumps, x, gradient, scratch):
    """mu(x); its gradient is written to `gradient`."""
    log_height, means, precision, narrowness = bumps
    fill(gradient, 0.0)
    if len(precision) == 1:
        return _add_bumps(log_height, means, narrowness, len(log_height), 1.0, x, gradient, scratch)
    d = len(x)
    value = 0.0
    for m in range(len(log_height)):
        exponent = log_height[m]
        for i in range(d):
            pull = 0.0
            for j in range(d):
                pull += precision[m, i, j] * (means[j, m] - x[j])
            scratch[i] = pull
            exponent -= 0.5 * pull * (means[i, m] - x[i])
        if exponent > -50.0:
            g = exp(exponent)
            value += g
            for i in range(d):
                gradient[i] += g * scratch[i]
    return value


@njit(cache=True, nogil=True)
def _objective(problem, t, x, gradient, scratch):
    """Objective at x, its gradient in `gradient`, and a bound on its curvature."""
    target_bumps, (zeros, points, ones) = problem
    mu = _target(target_bumps, x, gradient, scratch)
    samples = _add_bumps(zeros, points, ones, t, -1.0 / (t + 1), x, gradient, scratch)
    return mu + samples, mu - samples


@njit(cache=True, nogil=True)
def _ascend(problem, t, x, h, work, scratch):
    """Climb from x by BFGS with backtracking, steps of at most a kernel width; x becomes the maximum, its value returned."""
    d = len(x)
    gradient, step, trial, change = work[0], work[1], work[2], work[3]
    value, curvature = _objective(problem, t, x, gradient, scratch)
    for i in range(d):
        fill(h[i], 0.0)
        h[i, i] = 1.0 / max(curvature, 1e-300)
    for _ in range(MAX_ITERATIONS):
        slope = 0.0
        length = 0.0
        for i in range(d):
            step[i] = 0.0
            for j in range(d):
                step[i] += h[i, j] * gradient[j]
            slope += step[i] * gradient[i]
            length += step[i] * step[i]
        if not slope > 1e-13 * curvature:
            break
        rate = min(1.0, 1.0 / np.sqrt(length))
        climbed = value
        for _ in range(30):
            for i in range(d):
                trial[i] = x[i] + rate * step[i]
            climbed, _ = _objective(problem, t, trial, change, scratch)
            if climbed >= value + 1e-4 * rate * slope:
                break
            rate *= 0.5
        if climbed <= value:
            break
        # BFGS update of the inverse Hessian of -f, with s = rate * step and y = gradient - change.
        sy = 0.0
        for i in range(d):
            step[i] *= rate
            change[i], gradient[i] = gradient[i] - change[i], change[i]
            sy += step[i] * change[i]
            x[i] = trial[i]
        value = climbed
        if sy > 0.0:
            yhy = 0.0
            for i in range(d):
                trial[i] = 0.0
                for j in range(d):
                    trial[i] += h[i, j] * change[j]
                yhy += trial[i] * change[i]
            for i in range(d):
                for j in range(d):
                    h[i, j] += (1.0 + yhy / sy) * step[i] * step[j] / sy - (
                        trial[i] * step[j] + step[i] * trial[j]
                    ) / sy
    return value
