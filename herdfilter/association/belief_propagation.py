"""Association by loopy belief propagation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_positive, check_count, check_fields
from herdfilter._jit import njit
from herdfilter.association.base import Integers, Method, no_assignment_error


class AssociationWarning(RuntimeWarning):
    """An association method stopped before it converged.

    Attributes
    ----------
    change : float
        Largest change of a message in the last iteration.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="error", category=hf.association.AssociationWarning):
    ...     p = hf.association.marginals([[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]], "belief-propagation")
    """

    change: float


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
    warns = True  # no field

    def __post_init__(self) -> None:
        check_fields(self, tolerance=as_positive, max_iterations=check_count)

    def cluster(
        self, ratios: Array, rng: np.random.Generator | int | None = None
    ) -> tuple[Array, float]:
        """Return the marginals of one cluster and its log evidence."""
        scale = ratios.max(axis=1, keepdims=True)
        missed, pairs = np.split(ratios / scale, [1], axis=1)
        free = np.ones_like(pairs)  # messages to tracks: the measurement is free
        track, measurement = gated = np.nonzero(pairs)
        wish, free, messages = np.zeros_like(pairs), np.ones_like(pairs), np.ones(len(track))
        wish[gated], change = _exchange(
            track,
            measurement,
            pairs[gated],
            missed[:, 0],
            messages,
            self.tolerance,
            self.max_iterations,
        )
        free[gated] = messages
        if self.warns and change > self.tolerance:
            warning = AssociationWarning(
                f"BeliefPropagation: messages still change by more than the tolerance, {self.tolerance:g}, after "
                f"{self.max_iterations:,} iterations; take Exact() or a larger max_iterations"
            )
            warning.change = change
            warnings.warn(warning, stacklevel=4)
        with np.errstate(divide="ignore", invalid="ignore"):
            belief = np.concatenate([missed, pairs * free], axis=1)
            sums = belief.sum(axis=1, keepdims=True)
            if (sums == 0).any():
                raise no_assignment_error()
            log_evidence = float(
                np.log(sums * scale).sum()
                + np.log1p(wish.sum(axis=0)).sum()
                - np.log1p(wish * free).sum()
            )
        return belief / sums, log_evidence if np.isfinite(log_evidence) else np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def _exchange(
    track: Integers,
    measurement: Integers,
    ratio: Array,
    missed: Array,
    free: Array,
    tolerance: float,
    max_iterations: int,
) -> tuple[Array, float]:
    """Return the messages to measurements, one for each pair, and the last change of those to tracks, which are in `free`.

    A message has the sum of all others: of those before it and those behind it, as a difference from the sum would cancel.
    """
    pairs = len(ratio)
    wish, others = np.zeros(pairs), np.zeros(pairs)
    by_track, by_measurement = np.zeros(len(missed)), np.zeros(measurement.max() + 1)
    change = np.inf
    for _ in range(max_iterations):
        # messages to measurements: the track's ratio for it over the sum of its alternatives
        for t in range(len(by_track)):
            by_track[t] = missed[t]
        for k in range(pairs):
            others[k] = by_track[track[k]]
            by_track[track[k]] += ratio[k] * free[k]
        for t in range(len(by_track)):
            by_track[t] = 0.0
        for k in range(pairs - 1, -1, -1):
            wish[k] = ratio[k] / (others[k] + by_track[track[k]])
            by_track[track[k]] += ratio[k] * free[k]
        # messages to tracks: the measurement is free
        for j in range(len(by_measurement)):
            by_measurement[j] = 1.0
        for k in range(pairs):
            others[k] = by_measurement[measurement[k]]
            by_measurement[measurement[k]] += wish[k]
        for j in range(len(by_measurement)):
            by_measurement[j] = 0.0
        change = 0.0
        for k in range(pairs - 1, -1, -1):
            before = free[k]
            free[k] = 1.0 / (others[k] + by_measurement[measurement[k]])
            by_measurement[measurement[k]] += wish[k]
            change = max(change, abs(free[k] - before))
        if change <= tolerance:
            break
    return wish, change
