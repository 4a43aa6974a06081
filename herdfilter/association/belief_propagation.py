"""Association by loopy belief propagation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_positive, check_count
from herdfilter.association.base import Method, no_assignment_error


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", as_positive("tolerance", self.tolerance))
        object.__setattr__(self, "max_iterations", check_count("max_iterations", self.max_iterations))

    def cluster(self, ratios: Array, rng: np.random.Generator | int | None = None) -> tuple[Array, float]:
        """Return the marginals of one cluster and its log evidence."""
        scale = ratios.max(axis=1, keepdims=True)
        missed, pairs = np.split(ratios / scale, [1], axis=1)
        free = np.ones_like(pairs)  # messages to tracks: the measurement is free
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(self.max_iterations):
                # messages to measurements: the track's ratio for it over the sum of its alternatives
                wish = np.where(pairs > 0, pairs / (missed + _sum_of_others(pairs * free, 1)), 0.0)
                before, free = free, 1.0 / (1.0 + _sum_of_others(wish, 0))
                change = np.abs(free - before).max()
                if change <= self.tolerance:
                    break
            else:
                warnings.warn(
                    f"BeliefPropagation: messages still change by {change:.2g} after {self.max_iterations:,} iterations, "
                    f"more than the tolerance, {self.tolerance:g}; take Exact() or a larger max_iterations",
                    AssociationWarning,
                    stacklevel=4,
                )
            belief = np.concatenate([missed, pairs * free], axis=1)
            sums = belief.sum(axis=1, keepdims=True)
            if (sums == 0).any():
                raise no_assignment_error()
            log_evidence = float(np.log(sums * scale).sum() + np.log1p(wish.sum(axis=0)).sum() - np.log1p(wish * free).sum())
        return belief / sums, log_evidence if np.isfinite(log_evidence) else np.nan


def _sum_of_others(values: Array, axis: int) -> Array:
    """Return for each entry the sum of the others along an axis, without a difference, which would cancel."""
    values = np.moveaxis(values, axis, 0)
    sums = np.zeros_like(values)
    np.cumsum(values[:-1], axis=0, out=sums[1:])
    sums[:-1] += np.cumsum(values[:0:-1], axis=0)[::-1]
    return np.moveaxis(sums, 0, axis)
