"""The quasi-Newton climb of the herding objective, compiled: the only one of the package."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers.compiled import FAST, INSIDE
from herdfilter.samplers.herding.objective import PAD, objective

CONVERGED = 1e-12  # relative rise promised by a step at which the climb ends
NEGLIGIBLE = 1e-3  # share of a component without a say in the shape of a climb


# Inlined by force: compiled apart from its caller, and then again with it, it would round differently in the process that
# compiles it and in those that find it in the cache.
@njit(**INSIDE, forceinline=True)
def climb(target, samples, count, scale, x, steps, room):
    """Climb from x by BFGS with backtracking; x becomes the place reached, whose height is returned.

    The objective may rise by many orders of magnitude on the way. The quasi-Newton model is therefore one of its gradient
    over its curvature, the sum of all bumps: for a lone component this is linear in x, however far away the mean is.
    """
    d, h = len(x), room.hessian
    gradient, step, trial, change = room.vectors[0], room.vectors[1], room.vectors[2], room.vectors[3]
    longest = max(1.0, np.sqrt(d) / 2.0)
    count = (count + PAD - 1) // PAD * PAD
    value, curvature = objective(target, samples, count, scale, x, gradient, room)
    _start_model(target, h, room.share)
    for i in range(d):
        gradient[i] /= max(curvature, 1e-300)
    for _ in range(steps):
        slope, length = _multiply(h, gradient, step)
        if not slope > CONVERGED:
            break
        rate = min(1.0, longest / np.sqrt(length))
        climbed, steepness = value, curvature
        for _ in range(30):
            for i in range(d):
                trial[i] = x[i] + rate * step[i]
            climbed, steepness = objective(target, samples, count, scale, trial, change, room)
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
        _update(h, step, change, trial)
    return value


@njit(**INSIDE)
def _start_model(target, h, share):
    """Set the inverse Hessian to the components' covariances, averaged by their shares: exact for a lone component."""
    d, shared = len(h), len(target.covariance) == 1
    most = total = 0.0
    for m in range(len(share)):
        most = max(most, share[m])
    alone = shared or not most > 0.0
    for i in range(d):
        for j in range(d):
            h[i, j] = 0.0
        if alone:
            h[i, i] = target.covariance[0, i, i]
    for m in range(0 if alone else len(target.covariance)):
        if share[m] > NEGLIGIBLE * most:
            total += share[m]
    for m in range(0 if alone else len(target.covariance)):
        if share[m] > NEGLIGIBLE * most:
            for i in range(d):
                for j in range(d):
                    h[i, j] += share[m] / total * target.covariance[m, i, j]


@njit(**FAST)
def _multiply(h, gradient, step):
    """Set step to h @ gradient; return its product with the gradient and its squared length."""
    slope = length = 0.0
    for i in range(len(step)):
        total = 0.0
        for j in range(len(step)):
            total += h[i, j] * gradient[j]
        step[i] = total
        slope += total * gradient[i]
        length += total * total
    return slope, length


@njit(**FAST)
def _update(h, s, y, hy):
    """Update the inverse Hessian of minus the objective, by BFGS: s is the step, y the fall of the gradient along it."""
    d, sy = len(s), 0.0
    for i in range(d):
        sy += s[i] * y[i]
    if not sy > 0.0:
        return
    yhy, _ = _multiply(h, y, hy)
    a, b = (1.0 + yhy / sy) / sy, 1.0 / sy
    for i in range(d):
        p, q = a * s[i] - b * hy[i], b * s[i]
        for j in range(d):
            h[i, j] += p * s[j] - q * hy[j]
