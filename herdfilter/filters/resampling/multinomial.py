"""Multinomial resampling: independent draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling.base import CopyingResampling, Indices, picked


@dataclass(frozen=True)
class MultinomialResampling(CopyingResampling):
    """Every new particle is an independent draw from the weighted ones (Gordon, Salmond and Smith 1993).

    The most variable of the schemes that copy, and the yardstick for them: the number of copies of particle i has the
    variance ``n weights[i] (1 - weights[i])``.
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        return picked(weights, np.sort(rng.random(len(weights))))  # sorted: look-ups then run through memory
