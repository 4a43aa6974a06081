"""The herding objective, compiled, in a frame where the kernel is a unit Gaussian.

At x it is a sum over one or more kernel widths w of

    sum_m height[w, m] exp(-(x - c_m)' P[w, m] (x - c_m) / 2)  -  scale sum_s weight[w, s] exp(-|x - x_s|^2 / (2 w^2)),

the expected kernel of the mixture less the kernels at the points so far. Points stand in columns, so that the innermost
loops run over points or components, which the compiler vectorises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.samplers.compiled import PLAIN, QUICK, exp, njit

PAD = (
    8  # loops run over whole vectors of the processor: arrays are filled up with bumps of no height
)
CONVERGED_RISE = 1e-12  # relative rise promised by a step at which the climb ends
VOICELESS_SHARE = 1e-3  # share of a component without a say in the shape of a climb


class SmoothedTarget(NamedTuple):
    """The mixture smoothed by kernels of W widths, and the covariances with which a climb begins.

    If all components share one diagonal covariance, `narrowness` (W, d) is its inverse. Else precisions are
    (W, M, d, d), or (W, d, d, M), whichever leaves longer vectors to the innermost loop. The covariances (M, d, d) or
    (1, d, d) are those smoothed by the last kernel.
    """

    shared: bool
    by_component: bool
    height: Array
    centre: Array
    precision: Array
    narrowness: Array
    covariance: Array


class Samples(NamedTuple):
    """The points so far: weights (W, n), columns (d, n), and the kernels' inverse variances (W, d)."""

    weight: Array
    point: Array
    narrowness: Array


class ClimbWorkspace(NamedTuple):
    """Working memory of a climb."""

    hessian: Array
    vectors: Array
    share: Array
    pull: Array
    kernel: Array


# All functions become part of their caller: a call that hands over so many arrays costs as much as the sums. And compiled
# apart, and then again with its caller, a function would round differently in the process that compiles it and in those that
# find it in the cache.
@njit(**QUICK, forceinline=True)
def _add_kernels(w, height, centre, narrowness, count, scale, x, gradient, share):
    """Add up scale height[w, k] exp(-sum_i narrowness[w, i] (x - centre[:, k])_i^2 / 2) and its gradient; keep the terms."""
    d = len(x)
    place, half = x[0], -0.5 * narrowness[w, 0]
    for k in range(count):
        u = place - centre[0, k]
        share[k] = half * u * u
    for i in range(1, d):
        place, half = x[i], -0.5 * narrowness[w, i]
        for k in range(count):
            u = place - centre[i, k]
            share[k] += half * u * u
    value = 0.0
    for k in range(count):
        share[k] = scale * height[w, k] * exp(share[k])
        value += share[k]
    for i in range(d):
        place, pull = x[i], 0.0
        for k in range(count):
            pull += share[k] * (centre[i, k] - place)
        gradient[i] += narrowness[w, i] * pull
    return value


@njit(**QUICK, forceinline=True)
def _add_components(w, target, x, gradient, room):
    """Add up the components of the target at width w, each with its own precision, and the gradient; keep the terms."""
    share, pull, offset, precision = room.share, room.pull, room.vectors[4], target.precision
    d, components = len(x), len(share)
    for i in range(d):
        for m in range(components):
            pull[d + i, m] = target.centre[i, m] - x[i]
    if target.by_component:
        for m in range(components):
            for i in range(d):
                offset[i] = pull[d + i, m]
            for i in range(d):
                total = 0.0
                for j in range(d):
                    total += precision[w, m, i, j] * offset[j]
                pull[i, m] = total
    else:
        for i in range(d):
            for m in range(components):
                pull[i, m] = 0.0
            for j in range(d):
                for m in range(components):
                    pull[i, m] += precision[w, i, j, m] * pull[d + j, m]
    for m in range(components):
        share[m] = 0.0
    for i in range(d):
        for m in range(components):
            share[m] -= 0.5 * pull[i, m] * pull[d + i, m]
    value = 0.0
    for m in range(components):
        share[m] = target.height[w, m] * exp(share[m])
        value += share[m]
    for i in range(d):
        total = 0.0
        for m in range(components):
            total += share[m] * pull[i, m]
        gradient[i] += total
    return value


@njit(**PLAIN, inline="always")
def objective(target, samples, count, scale, x, gradient, room):
    """Return the objective at x and a bound on its curvature; write its gradient, and the shares of the components."""
    mu = kernels = 0.0
    for i in range(len(x)):
        gradient[i] = 0.0
    components = len(room.share)
    for w in range(len(target.height)):
        if target.shared:
            mu += _add_kernels(
                w,
                target.height,
                target.centre,
                target.narrowness,
                components,
                1.0,
                x,
                gradient,
                room.share,
            )
        else:
            mu += _add_components(w, target, x, gradient, room)
        kernels += _add_kernels(
            w,
            samples.weight,
            samples.point,
            samples.narrowness,
            count,
            -scale,
            x,
            gradient,
            room.kernel,
        )
    return mu + kernels, mu - kernels


@njit(**PLAIN, inline="always")
def climb(target, samples, count, scale, x, steps, room):
    """Climb from x by BFGS with backtracking; x becomes the place reached, whose height is returned.

    The objective may rise by many orders of magnitude on the way. The quasi-Newton model is therefore one of its gradient
    over its curvature, the sum of all bumps: for a lone component this is linear in x, however far away the mean is.
    """
    d, h = len(x), room.hessian
    gradient, step, trial, change = (
        room.vectors[0],
        room.vectors[1],
        room.vectors[2],
        room.vectors[3],
    )
    longest = max(1.0, np.sqrt(d) / 2.0)
    count = (count + PAD - 1) // PAD * PAD
    value, curvature, slope, rate = -np.inf, 0.0, 0.0, 0.0
    for i in range(d):
        trial[i] = x[i]
    taken, halvings = -1, 0
    while True:
        climbed, steepness = objective(target, samples, count, scale, trial, change, room)
        if halvings < 29 and not climbed >= value + 1e-4 * rate * slope * curvature:
            halvings += 1
            rate *= 0.5
        elif climbed <= value:
            break
        else:
            value, curvature = climbed, steepness
            for i in range(d):
                x[i] = trial[i]
            taken += 1
            if taken == steps:
                break
            if taken == 0:
                _start_model(target, h, room.share)
                for i in range(d):
                    gradient[i] = change[i] / max(curvature, 1e-300)
            else:
                for i in range(d):
                    step[i] *= rate
                    new = change[i] / curvature
                    change[i], gradient[i] = gradient[i] - new, new
                _update_model(h, step, change, trial)
            slope, length = _multiply(h, gradient, step)
            if not slope > CONVERGED_RISE:
                break
            rate, halvings = min(1.0, longest / np.sqrt(length)), 0
        for i in range(d):
            trial[i] = x[i] + rate * step[i]
    return value


@njit(**PLAIN, inline="always")
def _start_model(target, h, share):
    """Set the inverse Hessian to the components' covariances, averaged by their shares: exact for a lone component."""
    d, shared = len(h), len(target.covariance) == 1
    most = total = 0.0
    for m in range(0 if shared else len(share)):
        most = max(most, share[m])
    alone = shared or not most > 0.0
    for i in range(d):
        for j in range(d):
            h[i, j] = 0.0
        if alone:
            h[i, i] = target.covariance[0, i, i]
    for m in range(0 if alone else len(target.covariance)):
        if share[m] > VOICELESS_SHARE * most:
            total += share[m]
    for m in range(0 if alone else len(target.covariance)):
        if share[m] > VOICELESS_SHARE * most:
            for i in range(d):
                for j in range(d):
                    h[i, j] += share[m] / total * target.covariance[m, i, j]


@njit(**QUICK, forceinline=True)
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


@njit(**QUICK, forceinline=True)
def _update_model(h, s, y, hy):
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
