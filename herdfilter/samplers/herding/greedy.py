"""Greedy kernel herding, compiled: one search for all dimensions, from candidates that are the same at every step."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.mixture import covariance_factor
from herdfilter.samplers._compiled import CALLED, FAST, exp
from herdfilter.samplers.herding.climb import climb
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.objective import (
    climbing_room,
    no_samples,
    objective,
    smoothed_target,
)
from herdfilter.samplers.mapped import largest_remainders

STEPS = 30  # of a climb, at most; few take ten


def herd(frame: KernelFrame, n: int, steps: int = STEPS) -> Array:
    """Herd n points of equal weight in a frame that is turned, each by one climb from the best candidate; (n, d)."""
    target, candidate = smoothed_target(frame, (1.0,), (1.0,)), candidates(frame, n)
    d, count = candidate.shape
    samples = no_samples(n, d, (1.0,))
    room, tables, places = climbing_room(target, samples), np.zeros((3, count)), np.empty((2, d))
    _herd(target, samples, candidate, n, steps, tables, places, room)
    return np.ascontiguousarray(samples.point[:, :n].T)


def candidates(frame: KernelFrame, n: int) -> Array:
    """Return starting points (d, C): the component means, and draws from the smoothed mixture, the same at every call."""
    d = len(frame.origin)
    total = np.exp(frame.log_weights) @ (frame.means**2 + np.diagonal(frame.covariances, axis1=1, axis2=2))
    kernels = np.sqrt(np.prod(1.0 + total))  # volume of the mixture in kernels
    draws = int(np.clip(kernels, max(200, 4 * n), max(1000 if d < 8 else 400, 4 * n)))
    labels = np.repeat(np.arange(len(frame.means)), largest_remainders(np.exp(frame.log_weights), draws))
    factor = covariance_factor(frame.covariances + np.eye(d))
    standard = _standard_normals(draws, d)
    if len(factor) == 1:
        noise = standard @ factor[0].T
    else:
        noise = np.empty_like(standard)
        ends = np.searchsorted(labels, np.arange(len(factor) + 1))
        for m, (start, end) in enumerate(pairwise(ends)):
            noise[start:end] = standard[start:end] @ factor[m].T
    return np.ascontiguousarray(np.concatenate([frame.means, frame.means[labels] + noise]).T)


@lru_cache(maxsize=8)
def _standard_normals(n: int, dim: int) -> Array:
    """Draws from N(0, I), (n, dim), always the same; a filter asks for them at every step."""
    noise = np.random.default_rng(0).standard_normal((n, dim))
    noise.flags.writeable = False
    return noise


@njit(**CALLED)
def _herd(target, samples, candidate, n, steps, tables, places, room):
    """Fill in n samples, each where a climb from the candidate at which the objective is highest ends.

    The objective is kept up to date at all candidates (d, C), O(C d) a point, in `tables` (3, C): the expected kernel, the
    sum of the kernels, and their difference.
    """
    d, count = candidate.shape
    expected, kernels, value = tables[0], tables[1], tables[2]
    x, gradient = places[0], places[1]
    # Not a literal, for which callees would be compiled apart.
    none = 0 * n
    for m in range(target.centre.shape[1] if target.shared else 0):
        for i in range(d):
            x[i] = target.centre[i, m]
        _add_kernel(expected, candidate, x, target.narrowness, target.height[0, m], value)
    for c in range(0 if target.shared else count):
        for i in range(d):
            x[i] = candidate[i, c]
        expected[c] = objective(target, samples, none, 1.0, x, gradient, room)[0]
    for t in range(n):
        scale = 1.0 / (t + 1)
        largest = 0
        for c in range(count):
            value[c] = expected[c] - scale * kernels[c]
            if value[c] > value[largest]:
                largest = c
        for i in range(d):
            x[i] = candidate[i, largest]
        climb(target, samples, t, scale, x, steps, room)
        samples.weight[0, t] = 1.0
        for i in range(d):
            samples.point[i, t] = x[i]
        _add_kernel(kernels, candidate, x, samples.narrowness, 1.0, value)


@njit(**FAST)
def _add_kernel(sums, candidate, x, narrowness, weight, scratch):
    """Add weight exp(-sum_i narrowness[0, i] (c - x)_i^2 / 2) to the sum of every candidate c."""
    count = len(sums)
    for c in range(count):
        scratch[c] = 0.0
    for i in range(len(x)):
        place, half = x[i], -0.5 * narrowness[0, i]
        for c in range(count):
            u = candidate[i, c] - place
            scratch[c] += half * u * u
    for c in range(count):
        sums[c] += weight * exp(scratch[c])
