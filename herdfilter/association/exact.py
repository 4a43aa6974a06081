"""Exact association: a dynamic programme over the sets of measurements in use."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, check_count
from herdfilter.association.base import ClusterMethod, Integers, Method, check_method, no_assignment_error

Gates = NDArray[np.bool_]

WORD_BITS = 62  # of a word that are used
CHEAP_LOG_COST = float(np.log(1e6))  # below the log of so many ways a better order would cost more than it gains
FIRST_ROWS = 10  # from which greedy orders start


@dataclass(frozen=True)
class Exact(Method):
    """Exact marginals, by a dynamic programme over the sets of measurements in use.

    Tracks are added one after the other. The choices of later tracks depend only on the set of measurements in use that
    they can have, too: one sum for each such set, forwards and backwards, gives all marginals. The order of the tracks
    keeps the sets small, and tracks and measurements are exchanged if that is cheaper. The number of sets doubles with
    every measurement or track that stays open: 20 tracks in a row, each sharing measurements with its neighbours, take
    milliseconds; 20 tracks that all share 20 measurements take minutes.

    Parameters
    ----------
    max_ways : int
        Largest number of transitions from set to set, over all tracks. A million take about half a second and 30 MB.
    otherwise : object, optional
        Method for clusters that need more; by default they raise an error.

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

    max_ways: int = 10_000_000
    otherwise: ClusterMethod | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_ways", check_count("max_ways", self.max_ways))
        if self.otherwise is not None:
            check_method("otherwise", self.otherwise)

    def cluster(self, ratios: Array, rng: np.random.Generator | int | None = None) -> tuple[Array, float]:
        """Return the marginals of one cluster and its log evidence."""
        with np.errstate(divide="ignore"):
            logs = np.log(ratios)
        alone, pairs, clutter = logs[:, 0], logs[:, 1:], np.zeros(ratios.shape[1] - 1)
        by_track, by_measurement = plan(ratios[:, 1:] > 0), plan(ratios[:, 1:].T > 0)
        found = np.empty_like(ratios)
        try:
            if by_track.log_cost <= by_measurement.log_cost:
                found[:, 1:], found[:, 0], _, log_sum = self._sums(pairs, alone, clutter, by_track)
            else:
                transposed, _, found[:, 0], log_sum = self._sums(pairs.T, clutter, alone, by_measurement)
                found[:, 1:] = transposed.T
        except _TooLargeError as error:
            if self.otherwise is not None:
                return self.otherwise.cluster(ratios, rng)
            raise ValueError(
                f"ratios: expected clusters with up to max_ways = {self.max_ways:,} ways, got {len(ratios)} tracks with "
                f"{len(clutter)} shared measurements, {error}; take BeliefPropagation() or HerdedGibbs(), gate more "
                "narrowly, or give Exact a larger max_ways or one of these as `otherwise`"
            ) from None
        return found, log_sum

    def _sums(self, pairs: Array, row_alone: Array, column_alone: Array, plan: Plan) -> tuple[Array, Array, Array, float]:
        """Return marginals over all matchings, from log weights of pairs, and of rows and columns left alone."""
        log_weights: Array = np.zeros(1)
        steps = []
        sets = np.zeros((1, plan.words), np.int64)
        ways = 0
        for i, row in enumerate(plan.order):
            ways += len(sets) * (1 + len(plan.columns[i]))
            if ways > self.max_ways:
                raise _TooLargeError(f"which need {ways:,} ways up to step {i + 1} of {len(plan.order)}")
            step = _step(sets, plan, i, pairs[row], row_alone[row], column_alone)
            steps.append((log_weights, step))
            sets = step.sets
            onwards, target = (log_weights[:, None] + step.log_weights).ravel(), step.target.ravel()
            highest = np.full(len(sets), -np.inf)
            np.maximum.at(highest, target, onwards)
            highest[highest == -np.inf] = 0.0
            with np.errstate(divide="ignore"):
                log_weights = highest + np.log(np.bincount(target, np.exp(onwards - highest[target]), len(sets)))
        log_total = float(log_weights[0])

        pair, row_left, column_left = np.zeros(pairs.shape), np.zeros(len(pairs)), np.zeros(pairs.shape[1])
        to_come = np.zeros(1)
        for row, (before, step) in zip(plan.order[::-1], steps[::-1], strict=True):
            onwards = step.log_weights + to_come[step.target]
            posterior = np.exp(before[:, None] + onwards - log_total)
            row_left[row] = posterior[:, 0].sum()
            pair[row, step.columns] = posterior[:, 1:].sum(axis=0)
            for column, unused in step.closed:
                column_left[column] = posterior[unused].sum()
            highest = onwards.max(axis=1)
            highest[highest == -np.inf] = 0.0
            with np.errstate(divide="ignore"):
                to_come = highest + np.log(np.exp(onwards - highest[:, None]).sum(axis=1))
        return pair, row_left, column_left, log_total


class _TooLargeError(Exception):
    pass


class _Step(NamedTuple):
    columns: Integers  # (c,), that the row can have
    target: Integers  # (S, 1 + c): the set reached from each set by leaving the row alone, and by each column
    log_weights: Array  # (S, 1 + c)
    sets: Integers  # the sets reached
    closed: list[tuple[int, Gates]]  # columns that no later row can have, and the ways that leave them alone


def _step(sets: Integers, plan: Plan, i: int, pairs: Array, row_alone: float, column_alone: Array) -> _Step:
    columns = plan.columns[i]
    word, bit = np.divmod(plan.slot[columns], WORD_BITS)
    bits = np.int64(1) << bit
    used = (sets[:, word] & bits) != 0  # (S, c)
    log_weights = np.empty((len(sets), 1 + len(columns)))
    log_weights[:, 0] = row_alone
    log_weights[:, 1:] = np.where(used, -np.inf, pairs[columns])

    after = np.repeat(sets[:, None, :], 1 + len(columns), axis=1)  # (S, 1 + c, words)
    choice = np.arange(len(columns))
    after[:, 1 + choice, word] |= bits
    closed = []
    for column in plan.closing[i]:
        place, shift = divmod(int(plan.slot[column]), WORD_BITS)
        mask = np.int64(1) << np.int64(shift)
        unused = (after[:, :, place] & mask) == 0
        log_weights += np.where(unused, column_alone[column], 0.0)
        after[:, :, place] &= ~mask
        closed.append((int(column), unused))
    possible = log_weights > -np.inf
    if not possible.any():
        raise no_assignment_error()
    target, found = np.zeros(log_weights.shape, np.int64), after[possible]
    if plan.words == 1:  # faster than along an axis
        reached, target[possible] = np.unique(found[:, 0], return_inverse=True)
        return _Step(columns, target, log_weights, reached[:, None], closed)
    reached, inverse = np.unique(found, axis=0, return_inverse=True)
    target[possible] = inverse.ravel()
    return _Step(columns, target, log_weights, reached, closed)


class Plan(NamedTuple):
    """An order of the rows, and the columns that open and close: an open column fits earlier and later rows."""

    order: Integers  # (rows,)
    columns: list[Integers]  # at each step: that the row can have
    closing: list[Integers]  # at each step: of them those that no later row can have
    slot: Integers  # (columns,): the bit of a column in the sets; another may have it once it is closed
    words: int  # of a set
    log_cost: float  # of the number of ways from set to set, at most


def plan(gated: Gates) -> Plan:
    """Return the cheapest of several plans: greedy orders, and the order of the Fiedler vector."""
    best = _plan_of(gated, _greedy_order(gated))
    if best.log_cost > CHEAP_LOG_COST:
        rows = len(gated)
        orders = [_greedy_order(gated, first) for first in range(0, rows, -(-rows // FIRST_ROWS))]
        shared: Array = gated.astype(np.float64) @ gated.T
        # By the second eigenvector of the Laplacian (Fiedler): rows that share columns stand together.
        orders.append(np.linalg.eigh(np.diag(shared.sum(axis=1)) - shared)[1][:, 1].argsort())
        best = min([best, *(_plan_of(gated, order) for order in orders)], key=attrgetter("log_cost"))
    return best


def _greedy_order(gated: Gates, first: int | None = None) -> Integers:
    """Return the order in which each next row leaves the fewest columns open."""
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


def _plan_of(gated: Gates, order: Integers) -> Plan:
    """Return the plan of an order of the rows."""
    left = np.count_nonzero(gated, axis=0)
    slot = np.full(gated.shape[1], -1)
    columns, closing = [], []
    free: list[int] = []
    n_slots, log_cost = 0, -np.inf
    for i, row in enumerate(order):
        own = np.flatnonzero(gated[row])
        # Sets of at most i of the open columns, and from each the alternatives of the row
        n_open = n_slots - len(free)
        chosen = np.arange(min(n_open, i))
        log_sets = np.logaddexp.reduce(np.append(0.0, np.log((n_open - chosen) / (chosen + 1)).cumsum()))
        log_cost = np.logaddexp(log_cost, log_sets + np.log(1.0 + len(own)))
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
    return Plan(order, columns, closing, slot, max(1, -(-n_slots // WORD_BITS)), float(log_cost))
