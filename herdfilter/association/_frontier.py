"""In which order to take the rows of a bipartite graph, so that few columns are open at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

WORD = 62
"""Bits used of a word."""


class Plan(NamedTuple):
    """Rows in order, and what opens and closes on the way. A column is open while rows on both sides can have it."""

    order: Integers  # (rows,)
    columns: list[Integers]  # at each step: that the row can have
    closing: list[Integers]  # at each step: of them those that no later row can have
    slot: Integers  # (columns,): the bit of a column in the sets; another may have it once it is closed
    words: int  # of a set
    log_cost: float  # of the largest number of sets there may be


def plan(gated: NDArray[np.bool_]) -> Plan:
    """Order rows greedily: the next is the one that leaves the fewest columns open."""
    rows, n_columns = gated.shape
    left = np.count_nonzero(gated, axis=0)  # rows to come that can have the column
    begun = np.zeros(n_columns, dtype=bool)
    waiting = np.ones(rows, dtype=bool)
    order, columns, closing = [], [], []
    slot = np.zeros(n_columns, np.int64)
    free: list[int] = []
    n_slots, log_cost = 0, 0.0
    for i in range(rows):
        candidates = np.flatnonzero(waiting)
        after = left - gated[candidates]
        still_open = np.count_nonzero((begun | gated[candidates]) & (after > 0), axis=1)
        row = candidates[still_open.argmin()]
        order.append(row)
        waiting[row] = False
        own = np.flatnonzero(gated[row])
        for column in own[~begun[own]]:
            if not free:
                free.append(n_slots)
                n_slots += 1
            slot[column] = free.pop()
        begun[own] = True
        left[own] -= 1
        closed = own[left[own] == 0]
        free.extend(slot[closed].tolist())
        columns.append(own)
        closing.append(closed)
        # Sets of at most i + 1 of the open columns
        log_cost = max(log_cost, _log_subsets(int(still_open.min()), i + 1))
    return Plan(np.array(order), columns, closing, slot, max(1, -(-n_slots // WORD)), log_cost)


def _log_subsets(n: int, most: int) -> float:
    """Logarithm of the number of subsets of at most so many of n elements."""
    terms = np.log((n - np.arange(min(n, most))) / np.arange(1, min(n, most) + 1)).cumsum()
    return float(np.logaddexp.reduce(np.concatenate([[0.0], terms])))
