"""Exact association: a dynamic programme over the sets of tracks and measurements in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, check_count, check_fields
from herdfilter._jit import njit
from herdfilter.association import base


@dataclass(frozen=True)
class Exact(base.Method):
    """Exact marginals, by a dynamic programme over the sets of tracks and measurements in use.

    Tracks and measurements are the vertices of a graph. They are eliminated one after the other: a vertex stays alone or is
    matched with a neighbour that is left. What comes later depends only on which open vertices (neighbours of eliminated
    ones) are in use: one sum for each such set, backwards and forwards, gives all marginals. The order keeps the sets small.
    Their number doubles with every vertex that stays open: 20 tracks in a row, each sharing measurements with its
    neighbours, take less than a millisecond; 20 tracks that all share 20 measurements take half a minute.

    Parameters
    ----------
    max_ways : int
        Largest number of transitions from set to set, over all vertices. A million take about 40 ms; sets take 8 bytes each.
    otherwise : object, optional
        Method for clusters that need more; by default they raise an error. The number is known before any set is counted.

    Raises
    ------
    ValueError
        From `marginals`: if a cluster needs more than `max_ways` and there is no other method.

    Examples
    --------
    >>> ratios = [[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]]
    >>> print(hf.association.marginals(ratios, hf.association.Exact()).round(3))
    [[0.055 0.749 0.196]
     [0.055 0.196 0.749]]
    """

    max_ways: int = 100_000_000
    otherwise: base.ClusterMethod | None = None

    def __post_init__(self) -> None:
        check_fields(self, max_ways=check_count)
        if self.otherwise is not None:
            base.check_method("otherwise", self.otherwise)

    def cluster(self, ratios: Array, rng: Any = None) -> tuple[Array, float]:
        """Return the marginals of one cluster and its log evidence."""
        tracks = len(ratios)
        n = sum(ratios.shape) - 1
        linked = np.zeros((n, n), dtype=bool)
        linked[:tracks, tracks:] = ratios[:, 1:] > 0
        linked |= linked.T
        # If another method can take over, the search for an order ends sooner.
        limit = np.inf if self.otherwise is None else float(self.max_ways)
        order, n_ways = elimination_order(linked, limit)
        if n_ways <= self.max_ways:
            with np.errstate(divide="ignore"):
                marginals, log_evidence = _eliminate(np.log(ratios), order)
            return marginals[:-1], log_evidence
        if self.otherwise is not None:
            return self.otherwise.cluster(ratios, rng)
        raise ValueError(
            f"ratios: expected clusters with up to max_ways = {self.max_ways:,} ways, got {tracks} tracks with "
            f"{n - tracks} shared measurements, which need {n_ways:.3g} ways; take "
            "BeliefPropagation() or HerdedGibbs(), gate more narrowly, or give Exact a larger max_ways or one of these as "
            "`otherwise`"
        )


@njit(cache=True, nogil=True)
def elimination_order(linked: NDArray[np.bool_], limit: float) -> tuple[base.Integers, float]:
    """Return an order of the vertices of a graph, and its number of ways: infinite if none up to `limit` was found.

    The next vertex is the one that leaves the fewest open; of several, the one that has been open for longest. The first
    order starts from a vertex of fewest neighbours, a further one from the last vertex of the one before (as George and Liu
    1979). An order with more ways than the best, or than `limit`, is given up, and the next starts from a vertex that it has
    not reached. Two of these end the search, or a best order that has no more ways than there are pairs of vertices.
    """
    n = len(linked)
    best_order = np.zeros(n, np.int64)
    order = np.zeros(n, np.int64)
    degree = np.zeros(n, np.int64)
    untouched = np.zeros(n, np.int64)  # neighbours that are not open yet
    opened = np.zeros(n, np.int64)  # the step in which a vertex is opened; -1 once eliminated
    for v in range(n):
        for u in range(n):
            degree[v] += linked[v, u]
    fewest = np.inf
    start = -1
    failures = 0
    while failures < 2 and fewest > n * n:
        for v in range(n):
            opened[v] = n
            untouched[v] = degree[v]
        n_ways = 0.0
        n_open = 0
        for i in range(n):
            v = start
            lowest = n * n
            for u in range(n if i > 0 or start < 0 else 0):
                # First by the number of vertices that eliminating u opens, then by age.
                rank = (untouched[u] - (opened[u] < n)) * n + opened[u]
                if rank < lowest and opened[u] >= 0:
                    v = u
                    lowest = rank
            alternatives = 1
            for u in range(n):
                alternatives += linked[v, u] and opened[u] >= 0
            if opened[v] < n:  # in one half of the sets it is in use already
                n_open -= 1
                alternatives += 1
            n_ways += 2.0**n_open * alternatives
            if n_ways > limit or n_ways >= fewest:
                failures += 1
                start = n - 1
                while start > 0 and opened[start] < n:
                    start -= 1
                break
            for u in range(n):
                if opened[u] == n and (linked[v, u] or u == v):
                    opened[u] = i
                    n_open += u != v
                    for w in range(n):
                        untouched[w] -= linked[u, w]
            order[i] = v
            opened[v] = -1
        else:
            fewest = n_ways
            start = order[-1]
            best_order[:] = order
    return best_order, fewest


@njit(cache=True, nogil=True)
def _alternatives(first: base.Integers, i: int, in_use: int) -> range:
    """Return the alternatives of the vertex of step i: the first if it is in use, else all others."""
    return range(first[i], first[i] + 1) if in_use else range(first[i] + 1, first[i + 1])


@njit(cache=True, nogil=True)
def _set_after(s: int, vertex_bit: int, highest: int) -> int:
    """Return the set without the eliminated vertex, whose bit is taken over by the vertex of the highest bit."""
    after = s & ~vertex_bit
    return after ^ (highest | vertex_bit) if after & highest else after


@njit(cache=True, nogil=True)
def _eliminate(logs: Array, order: base.Integers) -> tuple[Array, float]:
    """Return the marginals, with an extra last row, and the log evidence, from the logarithms of the ratios.

    A set is a number: each open vertex has a bit, 1 if it is in use. The bits are without gaps, so there are as many numbers
    as sets: if a vertex is eliminated, that of the highest bit takes its bit over.
    """
    tracks = len(logs)
    n = len(order)
    # Of each step: its first alternative, its first set, the bit of its vertex and the highest bit, 0 without a bit.
    first = np.zeros(n + 1, np.int64)
    offset = np.zeros(n + 2, np.int64)
    vertex_bit = np.zeros(n, np.int64)
    highest = np.zeros(n, np.int64)
    # Of each alternative: the bit that it takes, its weight, and the marginal to which it adds. A vertex is in use already
    # (this alternative stands first), alone, or matched with a neighbour.
    size = 2 * n + logs.size
    bit = np.zeros(size, np.int64)
    row = np.zeros(size, np.int64)
    column = np.zeros(size, np.int64)
    log_weight = np.zeros(size)
    # 1 + the position of an open vertex's bit; 0 before it is opened, -1 once it is eliminated
    slot = np.zeros(n, np.int64)
    holder = np.zeros(n, np.int64)  # the vertex of each bit
    n_open = 0
    k = 0
    for i in range(n):
        v = order[i]
        offset[i + 1] = offset[i] + (1 << n_open)
        row[k] = row[k + 1] = tracks  # the extra row: no marginal of a track
        if v < tracks:
            row[k + 1] = v
            log_weight[k + 1] = logs[v, 0]
        k += 2
        for u in range(tracks, n) if v < tracks else range(tracks):
            t = min(u, v)
            j = max(u, v) - tracks + 1
            if logs[t, j] > -np.inf and slot[u] >= 0:
                if slot[u] == 0:
                    holder[n_open] = u
                    n_open += 1
                    slot[u] = n_open
                bit[k] = 1 << (slot[u] - 1)
                row[k] = t
                column[k] = j
                log_weight[k] = logs[t, j]
                k += 1
        first[i + 1] = k
        if slot[v] > 0:
            n_open -= 1
            vertex_bit[i] = 1 << (slot[v] - 1)
            highest[i] = 1 << n_open
            holder[slot[v] - 1] = holder[n_open]
            slot[holder[n_open]] = slot[v]
        slot[v] = -1
    offset[n + 1] = offset[n] + 1

    # Backwards: the logarithm of the sum of the weights of all later alternatives, given the set in use.
    log_later = np.zeros(offset[n + 1])
    terms = np.empty(n + 1)
    for i in range(n - 1, -1, -1):
        for s in range(offset[i + 1] - offset[i]):
            largest = -np.inf
            count = 0
            for k in _alternatives(first, i, s & vertex_bit[i]):
                if not s & bit[k]:
                    after = _set_after(s | bit[k], vertex_bit[i], highest[i])
                    terms[count] = log_weight[k] + log_later[offset[i + 1] + after]
                    if terms[count] > largest:
                        largest = terms[count]
                    count += 1
            total = 0.0
            for k in range(count if largest > -np.inf else 0):
                total += np.exp(terms[k] - largest)
            log_later[offset[i] + s] = largest + np.log(total) if total > 0 else -np.inf

    # Forwards: the probability of each set, and of each alternative given the set.
    marginals = np.zeros((tracks + 1, logs.shape[1]))
    probability = np.zeros(offset[n + 1])
    probability[0] = 1.0
    for i in range(n):
        for s in range(offset[i + 1] - offset[i]):
            p = probability[offset[i] + s]
            if p == 0.0:
                continue
            for k in _alternatives(first, i, s & vertex_bit[i]):
                if not s & bit[k]:
                    after = offset[i + 1] + _set_after(s | bit[k], vertex_bit[i], highest[i])
                    joint = p * np.exp(log_weight[k] + log_later[after] - log_later[offset[i] + s])
                    marginals[row[k], column[k]] += joint
                    probability[after] += joint
    return marginals, log_later[0]
