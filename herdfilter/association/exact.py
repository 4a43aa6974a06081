"""Exact association: a dynamic programme over the sets of tracks and measurements in use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, check_count, check_fields
from herdfilter._jit import njit
from herdfilter.association.base import (
    ClusterMethod,
    Integers,
    Method,
    check_method,
    no_assignment_error,
)


@dataclass(frozen=True)
class Exact(Method):
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
    otherwise: ClusterMethod | None = None

    def __post_init__(self) -> None:
        check_fields(self, max_ways=check_count)
        if self.otherwise is not None:
            check_method("otherwise", self.otherwise)

    def cluster(
        self, ratios: Array, rng: np.random.Generator | int | None = None
    ) -> tuple[Array, float]:
        """Return the marginals of one cluster and its log evidence."""
        tracks, n = len(ratios), sum(ratios.shape) - 1
        linked = np.zeros((n, n), dtype=bool)
        linked[:tracks, tracks:] = ratios[:, 1:] > 0
        linked |= linked.T
        # If another method can take over, the search for an order ends sooner
        order, ways = elimination_order(
            linked, np.inf if self.otherwise is None else float(self.max_ways)
        )
        if ways <= self.max_ways:
            with np.errstate(divide="ignore"):
                found, log_sum = _eliminate(np.log(ratios), order)
            if log_sum == -np.inf:
                raise no_assignment_error()
            return found[:-1], log_sum
        if self.otherwise is not None:
            return self.otherwise.cluster(ratios, rng)
        raise ValueError(
            f"ratios: expected clusters with up to max_ways = {self.max_ways:,} ways, got {tracks} tracks with "
            f"{n - tracks} shared measurements, which need {ways:.3g} ways; take "
            "BeliefPropagation() or HerdedGibbs(), gate more narrowly, or give Exact a larger max_ways or one of these as "
            "`otherwise`"
        )


@njit(cache=True, nogil=True)
def elimination_order(linked: NDArray[np.bool_], most: float) -> tuple[Integers, float]:
    """Return an order of the vertices of a graph, and its number of ways: infinite if no order with up to `most` was found.

    The next vertex is the one that leaves the fewest open; of several, the one that has been open for longest. The first
    order starts from a vertex of fewest neighbours, a further one from the last vertex of the one before (as George and Liu
    1979). An order with more ways than the best, or than `most`, is given up, and the next starts from a vertex that it has
    not reached. Two of these end the search, or a best order that has no more ways than there are pairs of vertices.
    """
    n = len(linked)
    best, order = np.zeros(n, np.int64), np.zeros(n, np.int64)
    degree, untouched, opened = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for v in range(n):
        for u in range(n):
            degree[v] += linked[v, u]
    fewest, start, failed = np.inf, -1, 0
    while failed < 2 and fewest > n * n:
        for v in range(n):
            opened[v] = n  # the step in which it is opened; -1 once it is eliminated
            untouched[v] = degree[v]  # neighbours that are not open yet
        ways, n_open = 0.0, 0
        for i in range(n):
            v, lowest = start, n * n
            for u in range(n if i > 0 or start < 0 else 0):
                rank = (untouched[u] - (opened[u] < n)) * n + opened[u]
                if rank < lowest and opened[u] >= 0:
                    v, lowest = u, rank
            alternatives = 1
            for u in range(n):
                alternatives += linked[v, u] and opened[u] >= 0
            if opened[v] < n:  # in one half of the sets it is in use already
                n_open -= 1
                alternatives += 1
            ways += 2.0**n_open * alternatives
            if ways > most or ways >= fewest:
                failed += 1
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
            fewest, start = ways, order[-1]
            best, order = order, best
    return best, fewest


@njit(cache=True, nogil=True)
def _eliminate(logs: Array, order: Integers) -> tuple[Array, float]:
    """Return the marginals, with a row that is not used, and the log evidence, from the logarithms of the ratios.

    A set is a number: each open vertex has a bit, 1 if it is in use. The bits are without gaps, so there are as many numbers
    as sets: if a vertex is eliminated, that of the highest bit takes its bit over.
    """
    tracks, n = len(logs), len(order)
    # Of each step: its first alternative and set, the bit of the vertex and the highest bit, 0 if the vertex has none
    first, offset = np.zeros(n + 1, np.int64), np.zeros(n + 2, np.int64)
    own, highest = np.zeros(n, np.int64), np.zeros(n, np.int64)
    # Of each alternative: the bit that it takes, its weight, and the marginal to which it adds. A vertex is in use already
    # (this alternative stands first), alone, or matched with a neighbour.
    size = 2 * n + logs.size
    bit, row, column = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    log_weight = np.zeros(size)
    slot, holder = (
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )  # slot: 1 + the place of the bit; -1 once it is eliminated
    n_open, k = 0, 0
    for i in range(n):
        v = order[i]
        offset[i + 1] = offset[i] + (1 << n_open)
        row[k] = row[k + 1] = tracks
        if v < tracks:
            row[k + 1], log_weight[k + 1] = v, logs[v, 0]
        k += 2
        for u in range(tracks, n) if v < tracks else range(tracks):
            t, j = min(u, v), max(u, v) - tracks + 1
            if logs[t, j] > -np.inf and slot[u] >= 0:
                if slot[u] == 0:
                    holder[n_open] = u
                    n_open += 1
                    slot[u] = n_open
                bit[k], row[k], column[k], log_weight[k] = 1 << (slot[u] - 1), t, j, logs[t, j]
                k += 1
        first[i + 1] = k
        if slot[v] > 0:
            n_open -= 1
            own[i], highest[i] = 1 << (slot[v] - 1), 1 << n_open
            holder[slot[v] - 1] = holder[n_open]
            slot[holder[n_open]] = slot[v]
        slot[v] = -1
    offset[n + 1] = offset[n] + 1

    # Backwards: the logarithm of the sum of the weights of all that is left, given the set in use
    to_come, terms = np.zeros(offset[n + 1]), np.empty(n + 1)
    for i in range(n - 1, -1, -1):
        for s in range(offset[i + 1] - offset[i]):
            most, count = -np.inf, 0
            for k in (
                range(first[i], first[i] + 1) if s & own[i] else range(first[i] + 1, first[i + 1])
            ):
                if not s & bit[k]:
                    after = (s | bit[k]) & ~own[i]
                    after ^= (highest[i] | own[i]) if after & highest[i] else 0
                    terms[count] = log_weight[k] + to_come[offset[i + 1] + after]
                    if terms[count] > most:
                        most = terms[count]
                    count += 1
            total = 0.0
            for k in range(count if most > -np.inf else 0):
                total += np.exp(terms[k] - most)
            to_come[offset[i] + s] = most + np.log(total) if total > 0 else -np.inf

    # Forwards: the probability of each set, and of each alternative given the set
    found, probability = np.zeros((tracks + 1, logs.shape[1])), np.zeros(offset[n + 1])
    probability[0] = 1.0 if to_come[0] > -np.inf else 0.0
    for i in range(n):
        for s in range(offset[i + 1] - offset[i]):
            p, here = probability[offset[i] + s], to_come[offset[i] + s]
            if p == 0.0:
                continue
            for k in (
                range(first[i], first[i] + 1) if s & own[i] else range(first[i] + 1, first[i + 1])
            ):
                if not s & bit[k]:
                    after = (s | bit[k]) & ~own[i]
                    after ^= (highest[i] | own[i]) if after & highest[i] else 0
                    q = p * np.exp(log_weight[k] + to_come[offset[i + 1] + after] - here)
                    found[row[k], column[k]] += q
                    probability[offset[i + 1] + after] += q
    return found, to_come[0]
