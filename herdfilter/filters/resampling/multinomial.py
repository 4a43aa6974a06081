"""Multinomial resampling: independent draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling.base import equal_log_weights, picked


@dataclass(frozen=True)
class MultinomialResampling:
    """Every new particle is an independent draw from the weighted ones (Gordon, Salmond and Smith 1993).

    The most variable of the schemes that copy, and the yardstick for them: the number of copies of particle i has the
    variance ``n weights[i] (1 - weights[i])``.
    """

    def resample(
        self, particles: Array, weights: Array, rng: np.random.Generator, circular: Sequence[int] = ()
    ) -> tuple[Array, Array]:
        """Return equally weighted copies; see `Resampling`."""
        n = len(weights)
        ancestors = picked(weights, np.sort(rng.random(n)))  # sorted: the look-ups then run through memory
        return particles[ancestors], equal_log_weights(n)
