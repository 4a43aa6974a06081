"""Many samples in one or two dimensions, seen as few: kernel sums from weights at the nodes of a fixed grid, compiled.

As a function of its centre a unit Gaussian is so smooth that interpolation between nodes a quarter of its width apart is
exact to 3e-13 of its peak. A sum of kernels over samples is therefore one over nodes: every sample is laid once, by the
weights of Lagrange's formula, on the 28 nodes around it in each dimension; some weights are negative. What a line across the
plane costs then depends on the area that the samples cover, and no longer on their number.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers._fastmath import VECTORISE, exp_of_negative

SPACING = 0.25  # of the nodes, in kernel widths
ORDER = 28  # nodes along each dimension that share a sample
REACH = 7.5  # kernel widths; a node farther from a line than that adds under 1e-12 of what a sample on the line does
ROOM = 2.0  # kernel widths between the outermost samples and the margin of the grid, when it is laid
SPARSE = (
    0.01  # samples in a slice, counted by weight, under which interpolation errors are no longer negligible
)

_DENOMINATOR = np.array(
    [np.prod([float(j - k) for k in range(ORDER) if k != j]) for j in range(ORDER)]  # of Lagrange's formula
)


@njit(cache=True, nogil=True)
def grid_size(points, t):
    """Corner (2,) and number of nodes (2,) of a grid that holds the first t columns of points (d, n), d at most 2."""
    corner, size = np.zeros(2), np.ones(2)
    for i in range(len(points)):
        low = high = points[i, 0]
        for s in range(1, t):
            low = min(low, points[i, s])
            high = max(high, points[i, s])
        corner[i] = low - ROOM - SPACING * (ORDER // 2)
        size[i] = np.ceil((high - low + 2.0 * ROOM) / SPACING) + ORDER + 1
    return corner, size


@njit(cache=True, nogil=True)
def lay_grid(points, t, corner, size):
    """Weights of the nodes, (L_0, L_1), and their sums over either dimension, for the first t samples."""
    nodes = np.zeros((int(size[0]), int(size[1])))
    sums = np.zeros((2, max(nodes.shape)))
    grid = (nodes, sums, corner)
    for s in range(t):
        lay(grid, points, s)
    return grid


@njit(cache=True, nogil=True)
def lay(grid, points, s):
    """Spread sample s over the nodes around it; return whether it is inside the grid."""
    nodes, sums, corner = grid
    d = len(points)
    share = np.ones((2, ORDER))
    first = np.zeros(2, np.int64)
    for i in range(d):
        place = (points[i, s] - corner[i]) / SPACING
        low = np.floor(place) - (ORDER // 2 - 1)
        if not 0.0 <= low <= nodes.shape[i] - ORDER:
            return False
        first[i] = int(low)
        _lagrange(place - low, share[i])
    width = ORDER if d > 1 else 1
    for a in range(ORDER):
        sums[0, first[0] + a] += share[0, a]
        for b in range(width):
            nodes[first[0] + a, first[1] + b] += share[0, a] * share[1, b]
    for b in range(width):
        sums[1, first[1] + b] += share[1, b]
    return True


@njit(cache=True, nogil=True)
def _lagrange(u, share):
    """Weights of the nodes 0, 1, ... for a sample at u."""
    before = 1.0
    for j in range(ORDER):
        share[j] = before / _DENOMINATOR[j]
        before *= u - j
    after = 1.0
    for j in range(ORDER - 1, -1, -1):
        share[j] *= after
        after *= u - j


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def slice_through(grid, i, x, weight):
    """Weights of the nodes of the other dimension for the line through x along dimension i.

    Return the range of those that count, the sum of the sample weights w_s and the sum of their squares.
    """
    nodes, sums, corner = grid
    if nodes.shape[1] == 1:
        weight[0] = 1.0
        return 0, 1, sums[1, 0], sums[1, 0]
    other = 1 - i
    place = (x[other] - corner[other]) / SPACING
    size = nodes.shape[other]
    low = int(min(max(place - REACH / SPACING, 0.0), size - 1.0))
    high = int(min(max(place + REACH / SPACING, 0.0), size - 1.0)) + 1
    for k in range(high - low):
        u = (place - low - k) * SPACING
        weight[k] = exp_of_negative(-0.5 * u * u)
    total, squares = _weigh(sums[other, low:high], weight)
    return low, high, total, squares


# Reductions are kept apart from loops that store: where both meet, the compiled code asks whether arrays overlap, and the
# order of a sum may depend on where the arrays happen to lie.


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _weigh(sums, weight):
    total = 0.0
    squares = 0.0
    for k in range(len(sums)):
        v = weight[k] * sums[k]
        total += v
        squares += weight[k] * v
    return total, squares


@njit(cache=True, nogil=True, fastmath=VECTORISE)
def _dot(row, weight):
    total = 0.0
    for k in range(len(row)):
        total += row[k] * weight[k]
    return total


@njit(cache=True, nogil=True)
def line_through(grid, i, low, high, weight, factor, height, centre):
    """Bumps along dimension i, of heights `factor` times the nodes' weights in the slice; return how many."""
    nodes, _, corner = grid
    count = nodes.shape[i]
    if i == 0:
        for a in range(count):
            height[a] = factor * _dot(nodes[a, low:high], weight)
    else:
        for b in range(count):
            height[b] = 0.0
        for a in range(low, high):
            w = factor * weight[a - low]
            for b in range(count):
                height[b] += w * nodes[a, b]
    for k in range(count):
        centre[k] = corner[i] + k * SPACING
    return count
