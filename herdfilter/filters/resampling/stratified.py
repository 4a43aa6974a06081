"""Stratified resampling: one random number in each of n strata."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling.base import CopyingResampling, Indices, picked


@dataclass(frozen=True)
class StratifiedResampling(CopyingResampling):
    """Particle i is copied ``n weights[i]`` times in the mean, and less than two away from it (Kitagawa 1996).

    The ancestors are the inverse of the cumulative weights at ``(j + u_j) / n``, each j with a uniform u_j of its own.
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        n = len(weights)
        return picked(weights, (np.arange(n) + rng.random(n)) / n)
