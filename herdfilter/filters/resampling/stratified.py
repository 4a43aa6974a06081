"""Stratified resampling: one random number in each of n strata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling.base import equal_log_weights, picked


@dataclass(frozen=True)
class StratifiedResampling:
    """Particle i is copied ``n weights[i]`` times in the mean, and less than two away from it (Kitagawa 1996).

    The ancestors are the inverse of the cumulative weights at ``(j + u_j) / n``, each j with a uniform u_j of its own.
    """

    def resample(
        self, particles: Array, weights: Array, rng: np.random.Generator, circular: Sequence[int] = ()
    ) -> tuple[Array, Array]:
        """Return equally weighted copies; see `Resampling`."""
        n = len(weights)
        ancestors = picked(weights, (np.arange(n) + rng.random(n)) / n)
        return particles[ancestors], equal_log_weights(n)
