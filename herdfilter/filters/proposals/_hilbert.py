"""Order of particles along a Hilbert curve of any dimension (Skilling 2004, "Programming the Hilbert curve")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numba import njit
from numpy.typing import NDArray

from herdfilter._checks import Array
from herdfilter.angles import unwrap_angles

BITS = 62  # of an index, in a signed integer of 64


def hilbert_order(x: Array, weights: Array, circular: Sequence[int] = ()) -> NDArray[np.integer[Any]]:
    """Return the indices that sort weighted points (n, d), d up to 62, along the Hilbert curve; by value if d is 1.

    The curve fills the unit cube, into which each coordinate is mapped by the logistic function of its standardised value.
    Angles are unwrapped about their circular mean before: the cut of the circle lies opposite to it.
    """
    x = unwrap_angles(x, weights, circular)
    if x.shape[1] == 1:
        return np.argsort(x[:, 0], kind="stable")
    bits = BITS // x.shape[1]
    centred = x - weights @ x
    spread = np.sqrt(weights @ centred**2)
    spread[spread == 0] = 1.0
    cells = np.minimum((scipy.special.expit(centred / spread) * 2.0**bits).astype(np.int64), 2**bits - 1)
    return np.argsort(hilbert_index(cells, bits), kind="stable")


def hilbert_index(cells: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Places, along the Hilbert curve, of cells (n, d) of a grid with 2^bits cells per side, d * bits at most 62; (n,).

    The curve begins at the origin and goes from each cell to a neighbour.
    """
    index = np.zeros(len(cells), np.int64)
    _index(np.array(cells.T, order="C"), bits, index)
    return index


@njit(cache=True, nogil=True)
def _index(x, bits, index):
    """Add up the places of the columns of x (d, n), which is used up; loops over n inside, several of them at once."""
    d, n = x.shape
    first = x[0]
    # From the largest sub-cube down, undo the reflection or the exchange of axes that the curve undergoes in it.
    for level in range(bits - 1, 0, -1):
        lower = (np.int64(1) << level) - 1
        for i in range(n):
            first[i] ^= lower & -((first[i] >> level) & 1)
        for j in range(1, d):
            other = x[j]
            for i in range(n):
                reflected = -((other[i] >> level) & 1)  # all ones, or zero
                exchanged = (first[i] ^ other[i]) & lower & ~reflected
                first[i] ^= exchanged ^ (lower & reflected)
                other[i] ^= exchanged
    # The corners of a sub-cube are visited in the order of a Gray code.
    for i in range(n):
        for j in range(1, d):
            x[j, i] ^= x[j - 1, i]
        parity = x[d - 1, i] >> 1  # of the bits above each bit
        parity ^= parity >> 1
        parity ^= parity >> 2
        parity ^= parity >> 4
        parity ^= parity >> 8
        parity ^= parity >> 16
        parity ^= parity >> 32
        for j in range(d):
            x[j, i] ^= parity
    for level in range(bits - 1, -1, -1):
        for j in range(d):
            other = x[j]
            for i in range(n):
                index[i] = (index[i] << 1) | ((other[i] >> level) & 1)
