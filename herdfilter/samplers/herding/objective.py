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
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.joint import fill_residuals

CONVERGED_RISE = 1e-12  # relative rise promised by a step at which the climb ends
MOST_HALVINGS = 29  # of a step; then any rise will do
SUFFICIENT_RISE = 1e-4  # share of the rise promised that a step must reach (Armijo)


class Bumps(NamedTuple):
    """Bumps of W widths: heights (W, n), centres (d, n) and precisions (W, d, d, n), or (W, d, 1, 1): a diagonal for all.

    Their terms (n,) and the slopes of their exponents (d, n) are workspace.
    """

    height: Array
    centre: Array
    precision: Array
    term: Array
    pull: Array


class Objective(NamedTuple):
    """The smoothed mixture, the samples, and covariances (M, d, d) or (1, d, d) with which a climb begins."""

    target: Bumps
    samples: Bumps
    covariance: Array


def herding_objective(frame: KernelFrame, n: int, widths: tuple[float, ...]) -> Objective:
    """Return the mixture of a turned frame, smoothed by a kernel of each width, and n samples that have no weight yet.

    A kernel counts in proportion to its width.
    """
    d = len(frame.origin)
    width = np.array(widths)[:, None]
    covariances = frame.covariances + width[..., None, None] ** 2 * np.eye(d)
    inverses = np.linalg.inv(covariances)
    precision = np.moveaxis(inverses, 1, -1)
    if len(frame.covariances) == 1:  # and diagonal
        precision = np.diagonal(precision[..., 0], axis1=1, axis2=2)[..., None, None]
    # The normalising constants of the smoothed components over that of the kernel
    height = width ** (d + 1) * np.exp(0.5 * np.linalg.slogdet(inverses)[1]) * frame.weights
    centre = frame.means.T.copy()
    target = Bumps(
        height,
        centre,
        precision.copy(),
        np.empty(len(frame.weights)),
        np.empty(centre.shape),
    )
    samples = Bumps(
        np.zeros((len(widths), n)),
        np.zeros((d, n)),
        np.repeat(width**-2.0, d, axis=1)[..., None, None],
        np.empty(n),
        np.empty((d, n)),
    )
    return Objective(target, samples, covariances[-1])


# All functions become part of their caller: a call that hands over so many arrays costs as much as the sums. And compiled
# apart, and then again with its caller, a function would round differently in the process that compiles it and in those that
# find it in the cache.
@njit(**QUICK, forceinline=True)
def _add_bumps(bumps, w, count, scale, x, gradient):
    """Add up ``scale height exp(-(x - c)' P (x - c) / 2)`` over the first bumps, and its gradient; keep the terms."""
    term = bumps.term[:count]
    fill_residuals(bumps.centre, bumps.precision[w], x, bumps.pull, term)
    value = 0.0
    for k in range(count):
        term[k] = scale * bumps.height[w, k] * exp(term[k])
        value += term[k]
    for i in range(len(x)):
        pull = 0.0
        for k in range(count):
            pull += term[k] * bumps.pull[i, k]
        gradient[i] -= pull
    return value


@njit(**NO_ARRAYS, inline="always")
def evaluate_objective(objective, count, scale, x, gradient):
    """Return the objective at x and a bound on its curvature; write its gradient, and the terms of the components."""
    mu = 0.0
    kernels = 0.0
    for i in range(len(x)):
        gradient[i] = 0.0
    for w in range(len(objective.samples.height)):
        mu += _add_bumps(objective.target, w, len(objective.target.term), 1.0, x, gradient)
        kernels += _add_bumps(objective.samples, w, count, -scale, x, gradient)
    return mu + kernels, mu - kernels


@njit(**NO_ARRAYS, inline="always")
def climb(objective, count, scale, x, steps, h, vectors):
    """Climb from x by BFGS with backtracking; x becomes the point reached, whose height is returned.

    The objective may rise by many orders of magnitude on the way. The quasi-Newton model is therefore one of its gradient
    over its curvature, the sum of all bumps: for a lone component this is linear in x, however far away the mean is. The
    inverse Hessian `h` (d, d) and four `vectors` (4, d) are workspace.
    """
    d = len(x)
    gradient = vectors[0]
    step = vectors[1]
    trial = vectors[2]
    change = vectors[3]
    longest = max(1.0, np.sqrt(d) / 2.0)  # step, in kernel widths
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
        trial_value, trial_curvature = evaluate_objective(objective, count, scale, trial, change)
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
                # The first model is exact for a lone component.
                nearest = 0
                for m in range(len(objective.covariance)):
                    if objective.target.term[m] > objective.target.term[nearest]:
                        nearest = m
                for i in range(d):
                    gradient[i] = change[i] / max(curvature, 1e-300)
                    for j in range(d):
                        h[i, j] = objective.covariance[nearest, i, j]
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
