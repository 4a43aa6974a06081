"""In which order to take the rows of a bipartite graph, so that few columns are open at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array
from herdfilter.association._clusters import Integers

Gate = NDArray[np.bool_]

WORD = 62
"""Bits used of a word."""
CHEAP = float(np.log(1e6))
"""Below the log of so many ways no better order is looked for: that would cost more than it gains."""
STARTS = 10


class Plan(NamedTuple):
    """Rows in order, and what opens and closes on the way. A column is open while rows on both sides can have it."""

    order: Integers  # (rows,)
    columns: list[Integers]  # at each step: that the row can have
    closing: list[Integers]  # at each step: of them those that no later row can have
    slot: Integers  # (columns,): the bit of a column in the sets; another may have it once it is closed
    words: int  # of a set
    log_cost: float  # of the number of ways from set to set, at most


def plan(gated: Gate) -> Plan:
    """Return the cheapest of some orders: greedy ones from several rows, and one along the graph's longest extent."""
    best = _followed(gated, _greedy(gated))
    if best.log_cost > CHEAP:
        rows = len(gated)
        orders = [_greedy(gated, first) for first in range(0, rows, -(-rows // STARTS))]
        best = min([best, *(_followed(gated, order) for order in [*orders, _along(gated)])], key=_cost)
    return best


def _cost(plan: Plan) -> float:
    return plan.log_cost


def _greedy(gated: Gate, first: int | None = None) -> Integers:
    """Order in which the next row is the one that leaves the fewest columns open."""
    left = np.count_nonzero(gated, axis=0)  # rows to come that can have the column
    begun = np.zeros(gated.shape[1], dtype=bool)
    waiting = np.ones(len(gated), dtype=bool)
    order = np.empty(len(gated), np.int64)
    for i in range(len(gated)):
        candidates = np.flatnonzero(waiting)
        still_open = np.count_nonzero((begun | gated[candidates]) & (left > gated[candidates]), axis=1)
        row = first if i == 0 and first is not None else candidates[still_open.argmin()]
        order[i] = row
        waiting[row] = False
        begun |= gated[row]
        left -= gated[row]
    return order


def _along(gated: Gate) -> Integers:
    """Order by the second eigenvector of the Laplacian (Fiedler): rows that share columns stand together."""
    shared: Array = gated.astype(np.float64) @ gated.T
    return np.linalg.eigh(np.diag(shared.sum(axis=1)) - shared)[1][:, 1].argsort()


def _followed(gated: Gate, order: Integers) -> Plan:
    left = np.count_nonzero(gated, axis=0)
    slot = np.full(gated.shape[1], -1)
    columns, closing = [], []
    free: list[int] = []
    n_slots, log_cost = 0, -np.inf
    for i, row in enumerate(order):
        own = np.flatnonzero(gated[row])
        # Sets of at most i of the open columns, and from each the alternatives of the row
        log_cost = np.logaddexp(log_cost, _log_subsets(n_slots - len(free), i) + np.log(1.0 + len(own)))
        for column in own[slot[own] < 0]:
            if not free:
                free.append(n_slots)
                n_slots += 1
            slot[column] = free.pop()
        left[own] -= 1
        closed = own[left[own] == 0]
        free.extend(slot[closed].tolist())
        columns.append(own)
        closing.append(closed)
    return Plan(order, columns, closing, slot, max(1, -(-n_slots // WORD)), float(log_cost))


def _log_subsets(n: int, most: int) -> float:
    """Logarithm of the number of subsets of at most so many of n elements."""
    chosen = np.arange(min(n, most))
    return float(np.logaddexp.reduce(np.append(0.0, np.log((n - chosen) / (chosen + 1)).cumsum())))
