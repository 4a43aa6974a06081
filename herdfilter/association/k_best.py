"""Association by the k best assignments."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, check_count, check_fields
from herdfilter.association import base


@dataclass(frozen=True)
class KBest(base.Method):
    """Marginals over the k assignments of largest weight in each cluster, found by `k_best_assignments`.

    The result is exact if there are at most k assignments, and far off if many more are about equally likely. The log
    evidence is a lower bound.

    Parameters
    ----------
    k : int
        Assignments to keep in each cluster.

    Examples
    --------
    >>> ratios = [[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]]
    >>> print(hf.association.marginals(ratios, hf.association.KBest(k=2)).round(3))
    [[0.  0.8 0.2]
     [0.  0.2 0.8]]
    """

    k: int = 100

    def __post_init__(self) -> None:
        check_fields(self, k=check_count)

    def cluster(
        self, ratios: Array, rng: np.random.Generator | int | None = None
    ) -> tuple[Array, float]:
        """Return the marginals of one cluster and its log evidence."""
        assignments, log_weights = k_best_assignments(ratios, self.k)
        return weighted_marginals(assignments, log_weights, ratios.shape)


def weighted_marginals(
    assignments: base.Integers, log_weights: Array, shape: tuple[int, ...]
) -> tuple[Array, float]:
    """Return the marginals of distinct assignments, shape (k, T), and the log of their total weight."""
    weights = np.exp(log_weights - log_weights.max())
    total = weights.sum()
    marginals = np.array(
        [np.bincount(columns, weights, shape[1]) / total for columns in assignments.T]
    )
    return marginals, float(np.log(total) + log_weights.max())


def k_best_assignments(ratios: ArrayLike, k: int) -> tuple[base.Integers, Array]:
    """Return the assignments of largest weight, best first.

    Murty (1968), "An algorithm for ranking all the assignments in order of increasing cost": the assignments other than the
    best are split into T sets, and the best of each set solves an assignment problem of its own. About k times T problems
    are solved.

    Parameters
    ----------
    ratios : array_like, shape (T, 1 + M)
        As for `marginals`; a ratio of 0 forbids the assignment.
    k : int
        Number of assignments; fewer are returned if there are no more, and there has to be one.

    Returns
    -------
    assignments : ndarray of int, shape (k, T)
        For each track the column it has: 0 for no measurement, 1 + j for measurement j.
    log_weights : ndarray, shape (k,)
        Logarithms of the products of the ratios, not increasing.

    Examples
    --------
    >>> ratios = [[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]]
    >>> assignments, log_weights = hf.association.k_best_assignments(ratios, k=3)
    >>> assignments.tolist()
    [[1, 2], [2, 1], [1, 0]]
    >>> print(np.exp(log_weights).round(3))
    [4.  1.  0.2]
    """
    matrix = base.as_ratios(ratios)
    k = check_count("k", k)
    tracks = len(matrix)
    n = matrix.shape[1] - 1
    # Every track has a column of its own for no measurement.
    costs = np.full((tracks, n + tracks), np.inf)
    with np.errstate(divide="ignore"):
        costs[:, :n] = -np.log(matrix[:, 1:])
        costs[np.arange(tracks), n + np.arange(tracks)] = -np.log(matrix[:, 0])

    rows = np.arange(tracks)
    best = _cheapest_columns(costs)
    if best is None:
        raise base.no_assignment_error()
    # Sets of assignments by the cost of their best one: tracks before `fixed` keep their columns, the track `fixed` has none
    # of the forbidden columns, later tracks are free. The number, larger each time, keeps the heap from comparing arrays.
    heap: list[tuple[float, int, base.Integers, int, list[int]]] = [
        (costs[rows, best].sum(), 0, best, 0, [])
    ]
    ranked: list[base.Integers] = []
    log_weights: list[float] = []
    while heap and len(ranked) < k:
        cost, _, columns, fixed, forbidden = heapq.heappop(heap)
        ranked.append(columns)
        log_weights.append(-cost)
        for t in range(fixed, tracks):
            excluded = [*(forbidden if t == fixed else []), int(columns[t])]
            free = np.delete(np.arange(n + tracks), columns[:t])
            part = costs[t:, free]
            part[0, np.isin(free, excluded)] = np.inf
            best = _cheapest_columns(part)
            if best is not None:
                assigned = np.concatenate([columns[:t], free[best]])
                cost = costs[rows, assigned].sum()
                number = len(ranked) * tracks + t
                heapq.heappush(heap, (cost, number, assigned, t, excluded))
    assignments = np.array(ranked, dtype=np.int64).reshape(len(ranked), tracks) + 1
    assignments[assignments > n] = 0
    return assignments, np.array(log_weights)


def _cheapest_columns(costs: Array) -> base.Integers | None:
    """Return the columns of least total cost; None if the cost of every assignment is infinite."""
    from scipy.optimize import linear_sum_assignment

    try:
        return linear_sum_assignment(costs)[1]
    except ValueError:
        return None
