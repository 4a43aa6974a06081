"""Compiled passes over herded points, in a frame where the kernel is a unit Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import fill
from herdfilter.samplers._kernel_herding import CONVERGED, add_bumps, add_components, multiply, update
from herdfilter.samplers._shared_climb import whole

# The energy distance is the squared herding error integrated over all kernel widths. Two of them, in kernel widths of the
# frame and with heights in proportion, come close to it: a narrow one keeps neighbours apart, a wide one fills the tails.
WIDTHS = np.array([0.5, 1.5])
STEPS = 2  # of a climb: what it leaves to rise the next pass finds
NEGLIGIBLE = 1e-3  # share of a component, relative to the largest, without a say in the shape of a climb


@njit(cache=True, nogil=True)
def place(target, z, passes):
    """Move every column of z (d, n) in turn up the objective, given all others, and all of them `passes` times.

    Heights (2, M) and precisions (2, d, d, M), or (2, d, d, 1) shared and diagonal, are those of the target smoothed by
    either kernel, with means (d, M) and, smoothed by the wide one, covariances (M, d, d). Components are filled up to whole
    vectors with some of no height.
    """
    d, n = z.shape
    points, weights = np.zeros((d, whole(n))), np.zeros((2, whole(n)))
    for s in range(n):
        for i in range(d):
            points[i, s] = z[i, s]
        for k in range(2):
            weights[k, s] = WIDTHS[k]
    samples = (weights, points)
    room = (
        np.empty((d, d)),
        np.empty((4, d)),
        np.empty(d),
        np.empty(target[0].shape[1]),
        np.empty((2 * d, target[0].shape[1])),
        np.empty(len(weights[0])),
    )
    x = np.empty(d)
    for step in range(passes * n):
        s = step % n
        for i in range(d):
            x[i] = points[i, s]
        for k in range(2):
            weights[k, s] = 0.0
        _climb(target, samples, 1.0 / n, x, room)
        for i in range(d):
            points[i, s] = x[i]
        for k in range(2):
            weights[k, s] = WIDTHS[k]
    return np.ascontiguousarray(points[:, :n])


@njit(cache=True, nogil=True)
def _climb(target, samples, scale, x, room):
    """Take a few steps up from x by BFGS with backtracking, with the same model as kernel herding from candidates."""
    h, work, narrowness, shares, pulls, scratch = room
    gradient, step, trial, change = work[0], work[1], work[2], work[3]
    d = len(x)
    longest = max(1.0, np.sqrt(d) / 2.0)
    value, curvature = _objective(target, samples, scale, x, gradient, narrowness, shares, pulls, scratch)
    _precondition(target, h, narrowness, shares)
    for i in range(d):
        gradient[i] /= max(curvature, 1e-300)
    for _ in range(STEPS):
        slope, length = multiply(h, gradient, step)
        if not slope > CONVERGED:
            break
        rate = min(1.0, longest / np.sqrt(length))
        climbed, steepness = value, curvature
        for _ in range(30):
            for i in range(d):
                trial[i] = x[i] + rate * step[i]
            climbed, steepness = _objective(
                target, samples, scale, trial, change, narrowness, shares, pulls, scratch
            )
            if climbed >= value + 1e-4 * rate * slope * curvature:
                break
            rate *= 0.5
        if climbed <= value:
            break
        value, curvature = climbed, steepness
        for i in range(d):
            step[i] *= rate
            new = change[i] / curvature
            change[i], gradient[i] = gradient[i] - new, new
            x[i] = trial[i]
        update(h, step, change, trial)


@njit(cache=True, nogil=True)
def _objective(target, samples, scale, x, gradient, narrowness, shares, pulls, scratch):
    """Objective at x, its gradient, and a bound on its curvature; the components' shares, as the wide kernel sees them."""
    heights, means, precision, _ = target
    weights, points = samples
    d = len(x)
    fill(gradient, 0.0)
    mu = kernels = 0.0
    for k in range(2):
        fill(narrowness, WIDTHS[k] ** -2.0)
        kernels += add_bumps(weights[k], points, narrowness, points.shape[1], -scale, x, gradient, scratch)
        if precision.shape[3] == 1:
            for i in range(d):
                narrowness[i] = precision[k, i, i, 0]
            mu += add_bumps(heights[k], means, narrowness, means.shape[1], 1.0, x, gradient, shares)
        else:
            mu += add_components(heights[k], means, precision[k], x, gradient, shares, pulls)
    return mu + kernels, mu - kernels


@njit(cache=True, nogil=True)
def _precondition(target, h, narrowness, shares):
    """Set the inverse Hessian that the climb begins with: the components' covariances, averaged by their shares."""
    smoothed, d = target[3], len(h)
    shared = len(smoothed) == 1
    most = total = 0.0
    for m in range(len(shares)):
        most = max(most, shares[m])
    for i in range(d):
        fill(h[i], 0.0)
        if shared or most == 0.0:
            h[i, i] = 1.0 / narrowness[i]
    for m in range(0 if shared else len(smoothed)):
        if shares[m] > NEGLIGIBLE * most:
            total += shares[m]
            for i in range(d):
                for j in range(d):
                    h[i, j] += shares[m] * smoothed[m, i, j]
    for i in range(d if total > 0.0 else 0):
        for j in range(d):
            h[i, j] /= total
