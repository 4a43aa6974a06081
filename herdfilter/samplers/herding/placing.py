"""Placing points again: each in turn climbs from where it is, given all others, in a kernel of two widths."""

from __future__ import annotations

import numpy as np
import scipy

from herdfilter._checks import Array
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.objective import climbing_room, no_samples, smoothed_target
from herdfilter.samplers.herding.search import search

STEPS = 2  # of a climb: what it leaves to rise, the next pass finds
MOVES = 120  # in all, where the points are fewer: greedy choice costs most there, and moves cost least

TOGETHER = 1e-6  # kernel widths between points that coincide
NUDGE = 0.1  # kernel widths by which they are parted
WIDE = 0.01  # variance, in units of the kernel's, from which on components are wide enough for that


def widths(n: int) -> tuple[float, float]:
    """Return the widths of the two kernels in which n points are placed again, in kernel widths of the frame.

    The energy distance is the squared herding error integrated over all kernel widths. Two, with heights in proportion, come
    close to it: a narrow one keeps neighbours apart, a wide one fills the tails. From 1/2 and 3/2 for few points they grow
    to 1 and 2 for forty and more: narrower ones bring the points closer to the mixture still, but filters of several
    dimensions, which go on from them, lose their target more often.
    """
    narrow = min(max(n / 40, 0.5), 1.0)
    return narrow, narrow + 1.0


def place_again(frame: KernelFrame, z: Array, moves: int | None = None) -> Array:
    """Move the points z (n, d) of a turned frame, one after the other, `moves` times in all; (n, d).

    Each once, and 120 times in all where they are fewer, unless told otherwise. No move lowers the objective, the sum over
    both widths w of ``w (E[k_w(x, X)] - 1 / n sum_r k_w(x, x_r))``. The squared herding errors, weighed alike, are twice
    minus it over n and a constant, and so never rise.
    """
    n, d = z.shape
    moves = max(n, MOVES) if moves is None else moves
    both = widths(n)
    target, samples = smoothed_target(frame, both, both), no_samples(n, d, both)
    samples.point[:, :n] = _parted(frame, z).T
    samples.weight[:, :n] = np.array(both)[:, None]
    room, nothing, table = climbing_room(target, samples), np.empty((d, 0)), np.empty((3, 0))
    search(target, samples, nothing, table, n, n, moves, STEPS, room)
    return np.ascontiguousarray(samples.point[:, :n].T)


def _parted(frame: KernelFrame, z: Array) -> Array:
    """Move points that coincide with an earlier one a little apart: where they are, no slope would part them.

    Along one axis after the other, those first along which components are longest, to within rounding, and none along which
    they are narrow: there the points may well belong together.
    """
    if len(z) < 2 or np.diff(np.sort(z[:, 0])).min() > TOGETHER:
        return z
    variances = np.diagonal(frame.covariances, axis1=1, axis2=2)
    extent = variances[0] if len(variances) == 1 else np.exp(frame.log_weights) @ variances
    axes = np.flatnonzero(extent > WIDE)
    axes = axes[np.argsort(-np.round(extent[axes] / extent.max(), 9), kind="stable")]
    if not len(axes):
        return z
    distances, z = scipy.spatial.distance.cdist(z, z, "chebyshev"), z.copy()
    for k, s in enumerate(np.flatnonzero(np.tril(distances < TOGETHER, -1).any(axis=1))):
        z[s, axes[k % len(axes)]] += NUDGE if k // len(axes) % 2 == 0 else -NUDGE
    return z
