"""The contract of a resampling scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import Array


@runtime_checkable
class Resampling(Protocol):
    """Anything that replaces weighted particles by as many less unevenly weighted ones."""

    def resample(
        self, particles: Array, weights: Array, rng: np.random.Generator, circular: Sequence[int] = ()
    ) -> tuple[Array, Array]:
        """Return particles (n, d) and log-weights (n,) for particles (n, d) with weights (n,) that sum to 1."""
        ...


def equal_log_weights(n: int) -> Array:
    """Log-weights of n equally weighted particles."""
    return np.full(n, -np.log(n))
