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

    Examples
    --------
    A particle of weight 0.5 may be copied three times, or lost, which no other scheme here allows.

    >>> weights, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    >>> copies = [np.bincount(hf.MultinomialResampling().ancestors(weights, rng), minlength=3) for _ in range(400)]
    >>> sorted({int(row[0]) for row in copies})
    [0, 1, 2, 3]
    >>> np.allclose(np.var(copies, axis=0), 3 * weights * (1 - weights), atol=0.2)
    True
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        return picked(weights, np.sort(rng.random(len(weights))))  # sorted: look-ups then run through memory
