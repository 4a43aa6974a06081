"""Systematic resampling: one random number for all particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling.base import equal_log_weights


@dataclass(frozen=True)
class SystematicResampling:
    """Particle i is copied floor or ceil of ``n weights[i]`` times, that many in the mean (Kitagawa 1996)."""

    def resample(
        self, particles: Array, weights: Array, rng: np.random.Generator, circular: Sequence[int] = ()
    ) -> tuple[Array, Array]:
        """Return equally weighted copies; see `Resampling`."""
        n = len(weights)
        comb = (np.arange(n) + rng.random()) / n
        total = np.cumsum(weights)
        ancestors = np.searchsorted(total, comb * total[-1], side="right")
        last = np.searchsorted(
            total, total[-1]
        )  # the last particle of positive weight: rounding may step past it
        return particles[np.minimum(ancestors, last)], equal_log_weights(n)
