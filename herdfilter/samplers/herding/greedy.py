"""The loop of kernel herding, compiled: points placed one after the other, and placed again."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from herdfilter._checks import Array, read_only
from herdfilter._covariances import covariance_factor
from herdfilter.samplers.compiled import IN_PLACE, QUICK, exp, njit
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.objective import climb, climb_workspace, no_samples, smoothed_target
from herdfilter.samplers.mapped import largest_remainders

TIED_HEIGHTS = 1e-9  # share of the expected kernel by which heights count as equal
CLIMB_STEPS = 30  # of a climb, at most; few take ten


@njit(**IN_PLACE)
def place_points(target, samples, candidate, tables, first, n, moves, steps, room):
    """Fill in the samples from the `first` to the n-th, then move all n in turn, `moves` times in all.

    A new sample climbs from the candidate at which the objective is highest; one that moves climbs from its place, and has
    no weight meanwhile. Climbs take at most so many steps. The objective is kept up to date at all candidates (d, C),
    O(C d) per point, in `tables` (3, C): the expected kernel, the sum of the kernels, and their difference. Returns the
    height that the last climb reached.
    """
    d, size = candidate.shape
    expected, kernels, value = tables[0], tables[1], tables[2]
    x, height = room.vectors[5], 0.0
    start = -size if first < n else 0  # below zero a candidate is looked at
    for step in range(start, n - first + moves):
        s, count, most = first + step, 0, 0
        if step < 0:
            for i in range(d):
                x[i] = candidate[i, step]
        elif s < n:
            count, most, best, bar = s, steps, 0, -np.inf
            for c in range(size):
                value[c] = expected[c] - kernels[c] / (s + 1)
            for c in range(size):  # the first where the objective is highest to within rounding
                if value[c] > bar:
                    best, bar = c, value[c] + TIED_HEIGHTS * expected[c]
            for i in range(d):
                x[i] = candidate[i, best]
        else:
            s, count, most = (s - n) % n, n, steps
            for i in range(d):
                x[i] = samples.point[i, s]
            for w in range(len(samples.weight)):
                samples.weight[w, s] = 0.0
        height = climb(target, samples, count, 1.0 / (count if count == n else count + 1), x, most, room)
        if step < 0:
            expected[step] = height
            continue
        for i in range(d):
            samples.point[i, s] = x[i]
        # The widths count in proportion, as in the target.
        for w in range(len(samples.weight)):
            samples.weight[w, s] = samples.narrowness[w, 0] ** -0.5
        if count == s:
            _add_kernel(kernels, candidate, x, samples.narrowness, value)
    return height


@njit(**QUICK)
def _add_kernel(sums, candidate, x, narrowness, scratch):
    """Add exp(-sum_i narrowness[0, i] (c - x)_i^2 / 2) to the sum of every candidate c."""
    count = len(sums)
    for c in range(count):
        scratch[c] = 0.0
    for i in range(len(x)):
        place, half = x[i], -0.5 * narrowness[0, i]
        for c in range(count):
            u = candidate[i, c] - place
            scratch[c] += half * u * u
    for c in range(count):
        sums[c] += exp(scratch[c])


def herd_greedily(frame: KernelFrame, n: int, steps: int = CLIMB_STEPS) -> Array:
    """Herd n points of equal weight in a frame that is turned, each by one climb from the best candidate; (n, d)."""
    target, candidate = smoothed_target(frame, (1.0,), (1.0,)), candidates(frame, n)
    d, count = candidate.shape
    samples = no_samples(n, d, (1.0,))
    place_points(target, samples, candidate, np.zeros((3, count)), 0, n, 0, steps, climb_workspace(target, samples))
    return np.ascontiguousarray(samples.point[:, :n].T)


def candidates(frame: KernelFrame, n: int) -> Array:
    """Return starting points (d, C): the component means, and draws from the smoothed mixture, the same at every call."""
    d, weights = len(frame.origin), np.exp(frame.log_weights)
    total = weights @ (frame.means**2 + np.diagonal(frame.covariances, axis1=1, axis2=2))
    kernels = np.sqrt(np.prod(1.0 + total))  # volume of the mixture in kernels
    draws = int(np.clip(kernels, max(200, 4 * n), max(1000 if d < 8 else 400, 4 * n)))
    labels = np.repeat(np.arange(len(weights)), largest_remainders(weights, draws))
    standard = _standard_normals(draws, d)
    if len(frame.covariances) == 1:  # and diagonal
        noise = standard * np.sqrt(frame.covariances[0].diagonal() + 1.0)
    else:
        factor, noise = covariance_factor(frame.covariances + np.eye(d)), np.empty_like(standard)
        ends = np.searchsorted(labels, np.arange(len(factor) + 1))
        for m, (start, end) in enumerate(pairwise(ends)):
            noise[start:end] = standard[start:end] @ factor[m].T
    return np.ascontiguousarray(np.concatenate([frame.means, frame.means[labels] + noise]).T)


@lru_cache(maxsize=8)
def _standard_normals(n: int, dim: int) -> Array:
    """Return draws from N(0, I), (n, dim), always the same; a filter asks for them at every step."""
    return read_only(np.random.default_rng(0).standard_normal((n, dim)))
