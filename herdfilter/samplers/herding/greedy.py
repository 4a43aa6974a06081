"""Greedy kernel herding: one search for all dimensions, from candidates that are the same at every step."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.objective import climbing_room, no_samples, smoothed_target
from herdfilter.samplers.herding.search import search
from herdfilter.samplers.mapped import largest_remainders

STEPS = 30  # of a climb, at most; few take ten


def herd(frame: KernelFrame, n: int, steps: int = STEPS) -> Array:
    """Herd n points of equal weight in a frame that is turned, each by one climb from the best candidate; (n, d)."""
    target, candidate = smoothed_target(frame, (1.0,), (1.0,)), candidates(frame, n)
    d, count = candidate.shape
    samples = no_samples(n, d, (1.0,))
    search(target, samples, candidate, np.zeros((3, count)), 0, n, 0, steps, climbing_room(target, samples))
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
