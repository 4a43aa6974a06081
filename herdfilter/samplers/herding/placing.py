"""Placing points again, compiled: each in turn climbs from where it is, given all others, in a kernel of two widths."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.samplers._compiled import CALLED
from herdfilter.samplers.herding.climb import climb
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.objective import climbing_room, no_samples, smoothed_target

# The energy distance is the squared herding error integrated over all kernel widths. Two of them, in kernel widths of the
# frame and with heights in proportion, come close to it: a narrow one keeps neighbours apart, a wide one fills the tails.
WIDTHS = (0.5, 1.5)
STEPS = 2  # of a climb: what it leaves to rise, the next pass finds
MOVES = 120  # in all, where the points are fewer: greedy choice costs most there, and moves cost least


def place_again(frame: KernelFrame, z: Array, moves: int | None = None) -> Array:
    """Move the points z (n, d) of a turned frame, one after the other, `moves` times in all; (n, d).

    Each once, and 120 times in all where they are fewer, unless told otherwise. No move lowers the objective, the sum over
    both widths w of ``w (E[k_w(x, X)] - 1 / n sum_r k_w(x, x_r))``. The squared herding errors, weighed alike, are twice
    minus it over n and a constant, and so never rise.
    """
    n, d = z.shape
    moves = max(n, MOVES) if moves is None else moves
    target, samples = smoothed_target(frame, WIDTHS, WIDTHS), no_samples(n, d, WIDTHS)
    samples.point[:, :n] = z.T
    samples.weight[:, :n] = np.array(WIDTHS)[:, None]
    _place(target, samples, n, moves, STEPS, np.empty(d), climbing_room(target, samples))
    return np.ascontiguousarray(samples.point[:, :n].T)


@njit(**CALLED)
def _place(target, samples, n, moves, steps, x, room):
    """Let the samples climb, one after the other, each with a weight of zero for the while."""
    for move in range(moves):
        s = move % n
        for i in range(len(x)):
            x[i] = samples.point[i, s]
        for w in range(len(samples.weight)):
            samples.weight[w, s] = 0.0
        climb(target, samples, n, 1.0 / n, x, steps, room)
        for i in range(len(x)):
            samples.point[i, s] = x[i]
        # Both widths count in proportion, as in the target.
        for w in range(len(samples.weight)):
            samples.weight[w, s] = samples.narrowness[w, 0] ** -0.5
