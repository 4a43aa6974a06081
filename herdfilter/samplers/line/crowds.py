"""Many components of one width, stood for by few."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter.samplers.compiled import CALLED, FAST
from herdfilter.samplers.line.cells import BLOCK, Line

NODES = 20  # Chebyshev's, on one standard deviation: they give densities to 1e-20 of their peak
CROWD = 2 * NODES  # more components than this, within one standard deviation, are replaced by nodes

_ANGLES = np.pi * (np.arange(NODES) + 0.5) / NODES
_PLACES = -np.cos(_ANGLES)
_SHARES = (2.0 / NODES) * np.cos(np.arange(NODES) * np.arccos(_PLACES)[:, None])
_SHARES[:, 0] *= 0.5


def condensed(line: Line) -> Line:
    """Return a line of the same density, whose components need not have positive weights.

    Seen as a function of its mean, a Gaussian is a polynomial to rounding, as far as one standard deviation reaches. So the
    weights of a crowd can be dealt to a few nodes, each component's by the values there of Lagrange's polynomials.
    """
    if len(line.means) <= CROWD:
        return line
    means, deviations, weights = (np.empty(len(line.means)) for _ in range(3))
    starts = np.zeros_like(line.starts)
    _condense(line, _PLACES, _SHARES, np.empty(NODES), means, deviations, weights, starts)
    size = starts[-1]
    return Line(means[:size], deviations[:size], weights[:size], starts, line.narrowest, line.widest)


@njit(**CALLED)
def _condense(line, places, shares, sums, means, deviations, weights, starts):
    """Fill in the new components and where their groups start."""
    size = 0
    for g in range(len(line.narrowest)):
        i, end, width = line.starts[g], line.starts[g + 1], line.narrowest[g]
        while i < end:
            last = i + 1
            while width == line.widest[g] and last < end and line.means[last] <= line.means[i] + width:
                last += 1
            if last - i > CROWD:
                middle = line.means[i] + 0.5 * width
                _chebyshev(line, i, last, middle, 0.5 * width, sums)
                for q in range(len(places)):
                    total = 0.0
                    for k in range(len(places)):
                        total += shares[q, k] * sums[k]
                    means[size], deviations[size] = middle + 0.5 * width * places[q], width
                    weights[size], size = total, size + 1
            else:
                for m in range(i, last):
                    means[size], deviations[size] = line.means[m], line.deviations[m]
                    weights[size], size = line.weights[m], size + 1
            i = last
        starts[g + 1] = size


@njit(**FAST)
def _chebyshev(line, first, last, middle, half, sums):
    """Fill in the sums over the components of weight times Chebyshev polynomial k, for each k."""
    place, previous, current = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for k in range(len(sums)):
        sums[k] = 0.0
    for start in range(first, last, BLOCK):
        size = min(BLOCK, last - start)
        for i in range(size):
            place[i] = (line.means[start + i] - middle) / half
            current[i] = line.weights[start + i]
            previous[i] = current[i] * place[i]
        for k in range(len(sums)):
            total = 0.0
            for i in range(size):
                total += current[i]
                following = 2 * place[i] * current[i] - previous[i]
                previous[i] = current[i]
                current[i] = following
            sums[k] += total
