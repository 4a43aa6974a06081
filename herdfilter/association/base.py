"""The contract of association methods, and the split of a scan into clusters of tracks that compete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_array, as_generator, short_repr
from herdfilter._jit import njit

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Association:
    """Marginals of the association of measurements to tracks, and the log evidence of the scan.

    Attributes
    ----------
    marginals : ndarray, shape (T, 1 + M)
        Column 0: the probability that the track has no measurement; column 1 + j: that it has measurement j. Rows sum to 1.
    log_evidence : float
        Logarithm of the sum of the weights of all assignments. `Exact` gives it exactly, `BeliefPropagation` approximately,
        methods that collect assignments give a lower bound, the others give NaN.

    Examples
    --------
    >>> found = hf.association.associate([[0.1, 2.0], [0.5, 1.0]])  # two tracks, one detection
    >>> print(found.marginals.round(3))
    [[0.13  0.87 ]
     [0.913 0.087]]
    """

    marginals: Array
    log_evidence: float


class ClusterMethod(Protocol):
    """An association method: it solves one cluster of tracks that compete for measurements.

    Examples
    --------
    >>> class NearestNeighbour:
    ...     # The heaviest assignment alone
    ...     def cluster(self, ratios, rng):
    ...         best = hf.association.k_best_assignments(ratios, 1)[0][0]
    ...         return np.eye(ratios.shape[1])[best], float("nan")
    >>> print(hf.association.marginals([[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]], NearestNeighbour()))
    [[0. 1. 0.]
     [0. 0. 1.]]
    """

    def cluster(self, ratios: Array, rng: Any) -> tuple[Array, float]:
        """Return marginals of the same shape, and the log evidence or NaN.

        The matrix has two rows or more, each with a positive entry; every column but the first has at least two of them.
        Some assignment has a positive weight.
        """


class Method:
    """Base class of the association methods: subclasses solve one cluster."""

    def marginals(self, ratios: ArrayLike, rng: np.random.Generator | int | None = None) -> Array:
        """Return the marginals of a matrix of ratios, shape (T, 1 + M): see `herdfilter.association.marginals`."""
        as_generator(rng)
        return solve_clusters(self, as_ratios(ratios), rng).marginals  # type: ignore[arg-type]


def check_method(name: str, value: Any) -> None:
    """Raise ValueError unless a value can solve clusters."""
    if isinstance(value, type) or not hasattr(value, "cluster"):
        raise ValueError(
            f"{name}: expected an association method such as Exact(), got {short_repr(value)}"
        )


def solve_clusters(method: ClusterMethod, ratios: Array, rng: Any) -> Association:
    """Split a matrix of ratios, which is not checked, into clusters, and assemble their solutions."""
    # The weight of a joint assignment is the product over the clusters: marginals multiply, log evidences add up.
    shared = np.count_nonzero(ratios, axis=0) > 1
    shared[0] = False
    # A measurement in the gate of a single track competes with nothing: within the track's cluster it counts as column 0,
    # and afterwards takes its share of that column's marginal.
    unshared = np.where(shared, 0.0, ratios)
    uncontested = unshared.sum(axis=1)
    pairs = ratios[:, shared]
    unmatched = np.ones(len(ratios))  # probability that a track has none of the shared measurements
    matched = np.zeros_like(pairs)
    first = first_competitors(pairs > 0)
    sizes = np.bincount(first, minlength=len(ratios))
    # A track that competes with no other contributes the sum of its row.
    log_evidence = float(np.log(uncontested[sizes[first] == 1]).sum())
    for cluster in np.flatnonzero(sizes > 1):
        tracks = np.flatnonzero(first == cluster)
        block = np.ix_(tracks, pairs[tracks].any(axis=0))
        competing = np.column_stack([uncontested[tracks], pairs[block]])
        # Tracks that cannot be missed need a matching that gives each of them a measurement.
        in_need = competing[competing[:, 0] == 0, 1:] > 0
        if len(in_need):
            from scipy.optimize import linear_sum_assignment

            if in_need[linear_sum_assignment(in_need, maximize=True)].sum() < len(in_need):
                raise no_assignment_error()
        probabilities, log_sum = method.cluster(competing, rng)
        unmatched[tracks] = probabilities[:, 0]
        matched[block] = probabilities[:, 1:]
        log_evidence += log_sum
    marginals = unmatched[:, None] * (
        unshared / np.where(uncontested > 0, uncontested, 1.0)[:, None]
    )
    marginals[:, shared] = matched
    return Association(marginals, log_evidence)


def as_ratios(ratios: ArrayLike) -> Array:
    """Return the matrix as floats (T, 1 + M): no entry is negative, every row has a positive finite sum."""
    matrix = as_array("ratios", ratios, (None, None))
    if matrix.shape[1] == 0:
        raise ValueError(
            f"ratios: expected a first column for no measurement, got {matrix.shape}; see hf.association.ratios"
        )
    if (matrix < 0).any():
        t, column = np.argwhere(matrix < 0)[0]
        raise ValueError(
            f"ratios: expected no negative entry, got {matrix[t, column]:g} in row {t}, column {column}"
        )
    with np.errstate(over="ignore"):
        sums = matrix.sum(axis=1)
    valid = (sums > 0) & np.isfinite(sums)
    if not valid.all():
        t = int(valid.argmin())
        raise ValueError(
            f"ratios: expected rows with a positive finite sum, got {sums[t]:g} in row {t}; give its first "
            "column, the weight of the track without a measurement, a positive number"
        )
    return matrix


@njit(cache=True, nogil=True)
def first_competitors(gated: NDArray[np.bool_]) -> Integers:
    """Return for each track the first one with which it competes, even indirectly, for measurements: itself if with none."""
    # Union-find: `first` points to an earlier member of the same cluster, the root to itself.
    first = np.arange(len(gated))
    for j in range(gated.shape[1]):
        lowest = -1
        for t in range(len(gated)):
            if gated[t, j]:
                root = t
                while first[root] < root:
                    root = first[root]
                lowest = root if lowest < 0 else lowest
                first[max(root, lowest)] = lowest = min(root, lowest)
    for t in range(len(gated)):
        first[t] = first[first[t]]
    return first


def no_assignment_error() -> ValueError:
    """Return the error for a cluster in which no assignment has a positive weight."""
    return ValueError(
        "ratios: expected an assignment of positive weight, got none: more tracks need a measurement than there are; "
        "give tracks a positive first column, the weight without a measurement"
    )
