"""The herding objective, compiled, in a frame where the kernel is a unit Gaussian.

At x it is a sum over one or more kernel widths w of

    sum_m height[w, m] exp(-(x - c_m)' P[w, m] (x - c_m) / 2)  -  scale sum_s weight[w, s] exp(-|x - x_s|^2 / (2 w^2)),

the expected kernel of the mixture less the kernels at the points so far. Points are columns, so that the innermost loops
run over points or components, which the compiler vectorises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.samplers.compiled import NO_ARRAYS, QUICK, exp, njit

# loops run over whole vectors of the processor: arrays are filled up with bumps of no height
PAD = 8
CONVERGED_RISE = 1e-12  # relative rise promised by a step at which the climb ends
# of the largest: a component with less has no say in the first model of a climb
NEGLIGIBLE_TERM = 1e-3
MOST_HALVINGS = 29  # of a step; then any rise will do
SUFFICIENT_RISE = 1e-4  # share of the rise promised that a step must reach (Armijo)


class Bumps(NamedTuple):
    """Bumps of W widths: heights (W, n), centres (d, n), inverse variances (W, d), and workspace for their terms (n,)."""

    height: Array
    centre: Array
    narrowness: Array
    term: Array


class SmoothedTarget(NamedTuple):
    """The mixture smoothed by kernels of W widths, and the covariances with which a climb begins.

    If all components share one diagonal covariance, the bumps' `narrowness` is its inverse. Otherwise precisions are
    (W, M, d, d), or (W, d, d, M), whichever leaves longer vectors to the innermost loop. The covariances (M, d, d) or
    (1, d, d) are those smoothed by the last kernel.
    """

    shared: bool
    by_component: bool
    bumps: Bumps
    precision: Array
    covariance: Array


class ClimbWorkspace(NamedTuple):
    """Workspace of a climb."""

    hessian: Array
    vectors: Array
    pull: Array


# All functions become part of their caller: a call that hands over so many arrays costs as much as the sums. And compiled
# apart, and then again with its caller, a function would round differently in the process that compiles it and in those that
# find it in the cache.
@njit(**QUICK, forceinline=True)
def fill_exponents(centre, narrowness, x, count, term):
    """Fill in -sum_i narrowness[i] (x - centre[:, k])_i^2 / 2, which falls with the distance from x to each centre."""
    coordinate = x[0]
    half = -0.5 * narrowness[0]
    for k in range(count):
        u = coordinate - centre[0, k]
        term[k] = half * u * u
    for i in range(1, len(x)):
        coordinate = x[i]
        half = -0.5 * narrowness[i]
        for k in range(count):
            u = coordinate - centre[i, k]
            term[k] += half * u * u


@njit(**QUICK, forceinline=True)
def _add_kernels(w, bumps, count, scale, x, gradient):
    """Add up scale height[w, k] exp(-sum_i narrowness[w, i] (x - centre[:, k])_i^2 / 2) and its gradient; keep the terms."""
    term = bumps.term
    fill_exponents(bumps.centre, bumps.narrowness[w], x, count, term)
    value = 0.0
    for k in range(count):
        term[k] = scale * bumps.height[w, k] * exp(term[k])
        value += term[k]
    for i in range(len(x)):
        coordinate = x[i]
        pull = 0.0
        for k in range(count):
            pull += term[k] * (bumps.centre[i, k] - coordinate)
        gradient[i] += bumps.narrowness[w, i] * pull
    return value


@njit(**QUICK, forceinline=True)
def _add_components(w, target, x, gradient, workspace):
    """Add up the components of the target at width w, each with its own precision, and the gradient; keep the terms."""
    term = target.bumps.term
    pull = workspace.pull
    offset = workspace.vectors[4]
    precision = target.precision
    d = len(x)
    components = len(term)
    # The lower half of `pull` holds the offsets c_m - x, the upper half becomes P_m (c_m - x).
    for i in range(d):
        for m in range(components):
            pull[d + i, m] = target.bumps.centre[i, m] - x[i]
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
        term[m] = 0.0
    for i in range(d):
        for m in range(components):
            term[m] -= 0.5 * pull[i, m] * pull[d + i, m]
    value = 0.0
    for m in range(components):
        term[m] = target.bumps.height[w, m] * exp(term[m])
        value += term[m]
    for i in range(d):
        total = 0.0
        for m in range(components):
            total += term[m] * pull[i, m]
        gradient[i] += total
    return value


@njit(**NO_ARRAYS, inline="always")
def objective(target, samples, count, scale, x, gradient, workspace):
    """Return the objective at x and a bound on its curvature; write its gradient, and the terms of the components."""
    mu = 0.0
    kernels = 0.0
    for i in range(len(x)):
        gradient[i] = 0.0
    for w in range(len(samples.height)):
        if target.shared:
            mu += _add_kernels(w, target.bumps, len(target.bumps.term), 1.0, x, gradient)
        else:
            mu += _add_components(w, target, x, gradient, workspace)
        kernels += _add_kernels(w, samples, count, -scale, x, gradient)
    return mu + kernels, mu - kernels


@njit(**NO_ARRAYS, inline="always")
def climb(target, samples, count, scale, x, steps, workspace):
    """Climb from x by BFGS with backtracking; x becomes the point reached, whose height is returned.

    The objective may rise by many orders of magnitude on the way. The quasi-Newton model is therefore one of its gradient
    over its curvature, the sum of all bumps: for a lone component this is linear in x, however far away the mean is.
    """
    d = len(x)
    h = workspace.hessian
    gradient = workspace.vectors[0]
    step = workspace.vectors[1]
    trial = workspace.vectors[2]
    change = workspace.vectors[3]
    longest = max(1.0, np.sqrt(d) / 2.0)  # step, in kernel widths
    # Whole vectors of the processor: samples beyond the count have height 0 and add nothing.
    count = (count + PAD - 1) // PAD * PAD
    value = -np.inf
    curvature = 0.0
    slope = 0.0
    rate = 0.0
    for i in range(d):
        trial[i] = x[i]
    step_count = -1
    halvings = 0
    # Each pass tries a point. It is too low, and the step is halved; or nothing is gained, and the climb ends; or it is
    # accepted, and the model tells the next step.
    while True:
        trial_value, trial_curvature = objective(
            target, samples, count, scale, trial, change, workspace
        )
        sufficient = value + SUFFICIENT_RISE * rate * slope * curvature
        if halvings < MOST_HALVINGS and not trial_value >= sufficient:
            halvings += 1
            rate *= 0.5
        elif trial_value <= value:
            break
        else:
            value = trial_value
            curvature = trial_curvature
            for i in range(d):
                x[i] = trial[i]
            step_count += 1
            if step_count == steps:
                break
            # The model's gradient is that of the objective over its curvature.
            if step_count == 0:
                _start_model(target, h)
                for i in range(d):
                    gradient[i] = change[i] / max(curvature, 1e-300)
            else:
                for i in range(d):
                    step[i] *= rate
                    scaled = change[i] / curvature  # the gradient at the new point
                    change[i] = gradient[i] - scaled
                    gradient[i] = scaled
                _update_model(h, step, change, trial)
            slope, length = _multiply(h, gradient, step)
            if not slope > CONVERGED_RISE:
                break
            rate = min(1.0, longest / np.sqrt(length))
            halvings = 0
        for i in range(d):
            trial[i] = x[i] + rate * step[i]
    return value


@njit(**NO_ARRAYS, inline="always")
def _start_model(target, h):
    """Set the inverse Hessian to the components' covariances, averaged by their terms: exact for a lone component."""
    d = len(h)
    term = target.bumps.term
    components = 0 if len(target.covariance) == 1 else len(target.covariance)
    highest = 0.0  # stays 0 far away, where all terms underflow
    for m in range(components):
        highest = max(highest, term[m])
    for i in range(d):
        for j in range(d):
            h[i, j] = 0.0
    if not highest > 0.0:
        for i in range(d):
            h[i, i] = target.covariance[0, i, i]
        components = 0
    total = 0.0
    for m in range(components):
        if term[m] > NEGLIGIBLE_TERM * highest:
            total += term[m]
    for m in range(components):
        if term[m] > NEGLIGIBLE_TERM * highest:
            for i in range(d):
                for j in range(d):
                    h[i, j] += term[m] / total * target.covariance[m, i, j]


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
    d = len(s)
    sy = 0.0
    for i in range(d):
        sy += s[i] * y[i]
    if not sy > 0.0:
        return
    # H += ((1 + y'Hy / s'y) s s' - s y'H - H y s') / s'y (Nocedal and Wright 2006, eq. 6.17, multiplied out)
    yhy, _ = _multiply(h, y, hy)
    b = 1.0 / sy
    a = (1.0 + yhy / sy) / sy
    for i in range(d):
        p = a * s[i] - b * hy[i]
        q = b * s[i]
        for j in range(d):
            h[i, j] += p * s[j] - q * hy[j]
