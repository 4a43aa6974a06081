"""Systematic resampling: one random number for all particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling.base import equal_log_weights, picked


@dataclass(frozen=True)
class SystematicResampling:
    """Particle i is copied floor or ceil of ``n weights[i]`` times, that many in the mean (Kitagawa 1996).

    The ancestors are the inverse of the cumulative weights at the comb ``(j + u) / n``, with one uniform u for all j.
    """

    def resample(
        self, particles: Array, weights: Array, rng: np.random.Generator, circular: Sequence[int] = ()
    ) -> tuple[Array, Array]:
        """Return equally weighted copies; see `Resampling`."""
        n = len(weights)
        ancestors = picked(weights, (np.arange(n) + rng.random()) / n)
        return particles[ancestors], equal_log_weights(n)
