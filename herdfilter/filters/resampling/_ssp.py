"""Compiled Srinivasan sampling process."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from herdfilter._checks import Array


def rounded_up(rest: Array, places: int, u: Array) -> NDArray[np.int64]:
    """Round rests (n,) in [0, 1) up to 1 or down to 0, keeping their whole sum `places` and each in the mean.

    `u` are n uniform numbers. One rest is open at a time; it is paired with the next until one of the two is whole.
    """
    up = np.zeros(len(rest), np.int64)
    _round(rest, places, u, up)
    return up


@njit(cache=True, nogil=True)
def _round(rest, places, u, up):
    """Set the entries of `up` that are rounded up to 1."""
    n = len(rest)
    left = places  # beside what has been given
    i = -1
    p = 0.0
    for j in range(n):
        q = rest[j]
        if q <= 0.0:
            continue
        if i < 0:
            i, p = j, q
            continue
        gain = min(q, 1.0 - p)  # of the open rest from the new one
        loss = min(p, 1.0 - q)
        if u[j] * (gain + loss) < loss:
            if q <= 1.0 - p:
                p += q  # the new one is 0
            else:
                up[i] = 1
                left -= 1
                i, p = j, q - gain
        elif p <= 1.0 - q:
            i, p = j, q + p  # the open one is 0
        else:
            up[j] = 1
            left -= 1
            p -= loss
        if p >= 1.0:
            up[i] = 1
            left -= 1
            i = -1
    if i >= 0 and left > 0:  # the last is whole up to rounding: its sum with the others says which
        up[i] = 1
