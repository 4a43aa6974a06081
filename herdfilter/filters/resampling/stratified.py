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

    Examples
    --------
    Of three particles 1.5, 0.9 and 0.6 copies are expected. The second may get two, where the systematic scheme gives one at
    most; the first gets one for certain, as its weight covers the first third of the cumulative weights.

    >>> weights, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    >>> copies = [np.bincount(hf.StratifiedResampling().ancestors(weights, rng), minlength=3) for _ in range(400)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        n = len(weights)
        return picked(weights, (np.arange(n) + rng.random(n)) / n)
