"""Association by loopy belief propagation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_positive, check_count, check_fields
from herdfilter._jit import njit
from herdfilter.association.base import Method


class AssociationWarning(RuntimeWarning):
    """An association method stopped before it converged.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="error", category=hf.association.AssociationWarning):
    ...     p = hf.association.marginals([[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]], "belief-propagation")
    """


@dataclass(frozen=True)
class BeliefPropagation(Method):
    """Approximate marginals by loopy belief propagation.

    Tracks and measurements exchange messages until they converge (Williams and Lau 2014, "Approximate evaluation of marginal
    association probabilities with belief propagation"). The result is exact if the graph of tracks and measurements has no
    cycle. One iteration costs T times M. The log evidence is that of the Bethe free energy.

    Parameters
    ----------
    tolerance : float
        Largest change of a message at convergence; messages lie between 0 and 1.
    max_iterations : int
        Most iterations; an `AssociationWarning` follows. Messages converge slowly if tracks are hardly ever missed.

    Examples
    --------
    >>> ratios = [[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]]
    >>> print(hf.association.marginals(ratios, hf.association.BeliefPropagation()).round(3))
    [[0.079 0.855 0.067]
     [0.079 0.067 0.855]]
    """

    tolerance: float = 1e-10
    max_iterations: int = 2_000
    warns = True  # a class attribute, no field

    def __post_init__(self) -> None:
        check_fields(self, tolerance=as_positive, max_iterations=check_count)

    def cluster(self, ratios: Array, rng: Any = None) -> tuple[Array, float]:
        """Return the marginals of one cluster and its log evidence."""
        scale = ratios.max(axis=1, keepdims=True)
        rows = ratios / scale
        wish, free, change = _exchange(rows, self.tolerance, self.max_iterations)
        if self.warns and change > self.tolerance:
            # The text is the same for all scans, so that Python shows it once.
            warnings.warn(
                f"BeliefPropagation: messages still change by more than the tolerance, {self.tolerance:g}, after "
                f"{self.max_iterations:,} iterations; take Exact() or a larger max_iterations",
                AssociationWarning,
                stacklevel=4,
            )
        belief = rows * np.insert(free, 0, 1.0, axis=1)
        sums = belief.sum(axis=1, keepdims=True)
        # The Bethe free energy (Williams and Lau 2014); messages of infinite size, from tracks that cannot be missed, leave
        # it undefined.
        with np.errstate(invalid="ignore"):
            log_evidence = float(
                np.log(sums * scale).sum()
                + np.log1p(wish.sum(axis=0)).sum()
                - np.log1p(wish * free).sum()
            )
        return belief / sums, log_evidence if np.isfinite(log_evidence) else np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def _exchange(rows: Array, tolerance: float, max_iterations: int) -> tuple[Array, Array, float]:
    """Return the messages to measurements and to tracks, (T, M), and the last change of those to tracks.

    A message has the sum of all others: of those before it and those behind it, as a difference from the sum would cancel.
    """
    tracks, columns = rows.shape
    wish = np.zeros((tracks, columns - 1))
    free = np.ones((tracks, columns - 1))
    before = np.zeros((tracks, columns - 1))
    change = np.inf
    for _ in range(max_iterations):
        # To measurements: the track's ratio for it over the sum of the track's alternatives.
        for t in range(tracks):
            total = rows[t, 0]
            for j in range(columns - 1):
                before[t, j] = total
                total += rows[t, j + 1] * free[t, j]
            total = 0.0
            for j in range(columns - 2, -1, -1):
                if rows[t, j + 1] > 0.0:
                    wish[t, j] = rows[t, j + 1] / (before[t, j] + total)
                    total += rows[t, j + 1] * free[t, j]
        # To tracks: the probability that no other track takes the measurement.
        change = 0.0
        for j in range(columns - 1):
            total = 1.0
            for t in range(tracks):
                before[t, j] = total
                total += wish[t, j]
            total = 0.0
            for t in range(tracks - 1, -1, -1):
                if rows[t, j + 1] > 0.0:
                    message = 1.0 / (before[t, j] + total)
                    change = max(change, abs(message - free[t, j]))
                    free[t, j] = message
                    total += wish[t, j]
        if change <= tolerance:
            break
    return wish, free, change
