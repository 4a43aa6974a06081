"""Systematic resampling: one random number for all particles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling.base import CopyingResampling, Indices, picked


@dataclass(frozen=True)
class SystematicResampling(CopyingResampling):
    """Particle i is copied floor or ceil of ``n weights[i]`` times, that many in the mean (Kitagawa 1996).

    The ancestors are the inverse of the cumulative weights at the comb ``(j + u) / n``, with one uniform u for all j.
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        n = len(weights)
        return picked(weights, (np.arange(n) + rng.random()) / n)
