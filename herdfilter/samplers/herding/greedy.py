"""The loop of kernel herding, compiled: points placed one after the other, and placed again."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy

from herdfilter._checks import Array, read_only
from herdfilter._covariances import covariance_factor
from herdfilter.mixture import largest_remainders
from herdfilter.samplers import compiled
from herdfilter.samplers.compiled import exp
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.objective import (
    PAD,
    Bumps,
    ClimbWorkspace,
    SmoothedTarget,
    climb,
    fill_exponents,
)

TIED_HEIGHTS = 1e-9  # share of the expected kernel by which heights count as equal
CLIMB_STEPS = 30  # of a climb, at most; few take ten
PLACING_STEPS = 2  # of a climb: the next pass rises the rest
LEAST_MOVES = 120  # in all: for few points greedy choice costs most, and moves cost least
COINCIDENCE = 1e-6  # kernel widths between points that coincide
NUDGE = 0.1  # kernel widths by which they are parted
# in units of the kernel's: components are wide enough for a nudge from here on
WIDE_VARIANCE = 0.01


class Schedule(NamedTuple):
    """Samples from the `first` to the n-th are placed, then all n moved in turn, by climbs of at most so many `steps`."""

    first: int
    n: int
    moves: int
    steps: int


def climbing_workspace(
    frame: KernelFrame, n: int, widths: tuple[float, ...]
) -> tuple[SmoothedTarget, Bumps, ClimbWorkspace]:
    """Return the mixture of a turned frame, smoothed by a kernel of each width, n samples to fill in, and a workspace.

    A kernel counts in proportion to its width. The samples have no weight yet.
    """
    components, d = frame.means.shape
    # Rounded up to whole vectors of the processor; the components added have height 0.
    padded = -(-components // PAD) * PAD
    W = len(widths)
    width = np.array(widths)
    squares = width**2
    shared = len(frame.covariances) == 1
    by_component = shared or padded < d
    if shared:  # and diagonal
        variance = frame.covariances[0].diagonal() + squares[:, None]
        narrowness = 1.0 / variance
        precision = np.empty((W, 1, 0, 0))
        covariance = np.diag(variance[-1])[None]
        log_dets = np.log(narrowness).cumsum(axis=1)[:, -1:]
    else:
        narrowness = np.empty((W, 0))
        precision = np.zeros((W, padded, d, d) if by_component else (W, d, d, padded))
        covariance = frame.covariances + squares[-1] * np.eye(d)
        log_dets = np.empty((W, components))
        for k in range(W):
            inverse, log_dets[k] = frame.precisions(squares[k])
            if by_component:
                precision[k, :components] = inverse
            else:
                precision[k, :, :, :components] = np.moveaxis(inverse, 0, -1)
    # The normalising constants of the smoothed components over that of the kernel
    log_heights = frame.log_weights + 0.5 * log_dets + d * np.log(width)[:, None]
    height = np.zeros((W, padded))
    np.multiply(width[:, None], np.exp(log_heights), out=height[:, :components])
    centre = np.zeros((d, padded))
    centre[:, :components] = frame.means.T
    bumps = Bumps(height, centre, narrowness, np.empty(padded))
    target = SmoothedTarget(shared, by_component, bumps, precision, covariance)
    size = -(-n // PAD) * PAD
    narrowness = width[:, None] ** -2.0 * np.ones(d)
    samples = Bumps(np.zeros((W, size)), np.zeros((d, size)), narrowness, np.empty(size))
    workspace = ClimbWorkspace(np.empty((d, d)), np.empty((6, d)), np.empty((2 * d, padded)))
    return target, samples, workspace


@compiled.njit(**compiled.IN_PLACE)
def place_points(target, samples, candidate, tables, schedule, workspace):
    """Fill in samples, then move them, as the schedule tells; return the height that the last climb reached.

    A new sample climbs from the candidate at which the objective is highest; one that moves climbs from where it is, and has
    no weight meanwhile. The objective is kept up to date at all candidates (d, C), O(C d) per point, in `tables` (3, C):
    the expected kernel, the sum of the kernels, and their difference.
    """
    d, size = candidate.shape
    n = schedule.n
    expected = tables[0]
    kernels = tables[1]
    value = tables[2]
    x = workspace.vectors[5]
    height = 0.0
    # Negative steps come first: a climb of no steps from each candidate gives the expected kernel there.
    start = -size if schedule.first < n else 0
    for step in range(start, n - schedule.first + schedule.moves):
        s = schedule.first + step
        count = 0
        steps = schedule.steps
        if step < 0:
            steps = 0
            for i in range(d):
                x[i] = candidate[i, step]
        elif s < n:
            count = s
            best = 0
            bar = -np.inf
            for c in range(size):
                value[c] = expected[c] - kernels[c] / (s + 1)
            for c in range(size):  # the first where the objective is highest to within rounding
                if value[c] > bar:
                    best = c
                    bar = value[c] + TIED_HEIGHTS * expected[c]
            for i in range(d):
                x[i] = candidate[i, best]
        else:
            # One of the n samples moves: the objective counts all others.
            s = (s - n) % n
            count = n
            for i in range(d):
                x[i] = samples.centre[i, s]
            for w in range(len(samples.height)):
                samples.height[w, s] = 0.0
        scale = 1.0 / (count if count == n else count + 1)
        height = climb(target, samples, count, scale, x, steps, workspace)
        if step < 0:
            expected[step] = height
            continue
        for i in range(d):
            samples.centre[i, s] = x[i]
        # The widths count in proportion, as in the target.
        for w in range(len(samples.height)):
            samples.height[w, s] = samples.narrowness[w, 0] ** -0.5
        if count == s:
            # The new sample's kernel at all candidates; `value` is workspace until the next sample.
            _add_kernel(kernels, candidate, samples.narrowness[0], x, value)
    return height


@compiled.njit(**compiled.QUICK, forceinline=True)
def _add_kernel(sums, candidate, narrowness, x, terms):
    """Add exp(-sum_i narrowness[i] (c - x)_i^2 / 2) to the sum of every candidate c; `terms` (C,) is workspace."""
    fill_exponents(candidate, narrowness, x, len(sums), terms)
    for c in range(len(sums)):
        sums[c] += exp(terms[c])


def herd_greedily(frame: KernelFrame, n: int, steps: int = CLIMB_STEPS) -> Array:
    """Herd n points of equal weight in a frame that is turned, each by one climb from the best candidate; (n, d)."""
    target, samples, workspace = climbing_workspace(frame, n, (1.0,))
    candidate = candidates(frame, n)
    tables = np.zeros((3, candidate.shape[1]))
    place_points(target, samples, candidate, tables, Schedule(0, n, 0, steps), workspace)
    return np.ascontiguousarray(samples.centre[:, :n].T)


def place_again(frame: KernelFrame, z: Array) -> Array:
    """Move the points z (n, d) of a turned frame, one after the other, each once, and 120 times in all if they are fewer.

    A point climbs from its place to where all others leave most to represent: two steps of a quasi-Newton method on

        sum over two widths w of  w (E[k_w(x, X)]  -  1 / n  sum_{r != s} k_w(x, x_r)),

    k_w being w times as wide as the kernel: 1/2 and 3/2 for up to twenty points, growing to 1 and 2 for forty and more. No
    move raises the squared herding errors at the two widths, weighted by these: the energy distance is the squared herding
    error integrated over all kernel widths, which two, with heights in proportion, approximate. A narrow one keeps
    neighbours apart, a wide one fills the tails. Narrower ones bring the points closer to the mixture, but filters of
    several dimensions then lose their target more often.
    """
    n = len(z)
    narrow = min(max(n / 40, 0.5), 1.0)
    target, samples, workspace = climbing_workspace(frame, n, (narrow, narrow + 1.0))
    samples.centre[:, :n] = _part_coincident(frame, z).T
    samples.height[:, :n] = np.array([[narrow], [narrow + 1.0]])
    no_candidates = np.empty((z.shape[1], 0))
    schedule = Schedule(n, n, max(n, LEAST_MOVES), PLACING_STEPS)
    place_points(target, samples, no_candidates, np.empty((3, 0)), schedule, workspace)
    return np.ascontiguousarray(samples.centre[:, :n].T)


def _part_coincident(frame: KernelFrame, z: Array) -> Array:
    """Move points that coincide with an earlier one a little apart, since no slope would part them.

    They move along one axis after the other, the longest first, and along none in which the components are narrow.
    """
    if len(z) < 2 or np.diff(np.sort(z[:, 0])).min() > COINCIDENCE:
        return z
    variances = np.diagonal(frame.covariances, axis1=1, axis2=2)
    extent = variances[0] if len(variances) == 1 else np.exp(frame.log_weights) @ variances
    axes = np.flatnonzero(extent > WIDE_VARIANCE)
    axes = axes[np.argsort(-np.round(extent[axes] / extent.max(), 9), kind="stable")]
    if not len(axes):
        return z
    distances = scipy.spatial.distance.cdist(z, z, "chebyshev")
    z = z.copy()
    for k, s in enumerate(np.flatnonzero(np.tril(distances < COINCIDENCE, -1).any(axis=1))):
        z[s, axes[k % len(axes)]] += NUDGE if k // len(axes) % 2 == 0 else -NUDGE
    return z


def candidates(frame: KernelFrame, n: int) -> Array:
    """Return starting points (d, C): the component means, and draws from the smoothed mixture, the same at every call."""
    d = len(frame.origin)
    weights = np.exp(frame.log_weights)
    total = weights @ (frame.means**2 + np.diagonal(frame.covariances, axis1=1, axis2=2))
    kernels = np.sqrt(np.prod(1.0 + total))  # volume of the mixture in kernels
    draws = int(min(max(kernels, 200, 4 * n), max(1000 if d < 8 else 400, 4 * n)))
    labels = np.repeat(np.arange(len(weights)), largest_remainders(weights, draws))
    standard = _standard_normals(draws, d)
    if len(frame.covariances) == 1:  # and diagonal
        noise = standard * np.sqrt(frame.covariances[0].diagonal() + 1.0)
    else:
        factor = covariance_factor(frame.covariances + np.eye(d))
        noise = np.empty_like(standard)
        ends = np.searchsorted(labels, np.arange(len(factor) + 1))
        for m, (start, end) in enumerate(pairwise(ends)):
            noise[start:end] = standard[start:end] @ factor[m].T
    return np.ascontiguousarray(np.concatenate([frame.means, frame.means[labels] + noise]).T)


@lru_cache(maxsize=8)
def _standard_normals(n: int, dim: int) -> Array:
    """Return draws from N(0, I), (n, dim), always the same; a filter asks for them at every step."""
    return read_only(np.random.default_rng(0).standard_normal((n, dim)))
