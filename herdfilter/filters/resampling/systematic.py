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

    Examples
    --------
    Of three particles 1.5, 0.9 and 0.6 copies are expected. Each gets the whole number below or above, in one of three ways,
    and over many draws as many as expected.

    >>> weights, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    >>> copies = [np.bincount(hf.SystematicResampling().ancestors(weights, rng), minlength=3) for _ in range(400)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1], [2, 0, 1], [2, 1, 0]]
    >>> np.allclose(np.mean(copies, axis=0), 3 * weights, atol=0.1)
    True
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        n = len(weights)
        return picked(weights, (np.arange(n) + rng.random()) / n)
