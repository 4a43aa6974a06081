"""The sampler contract."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points


@runtime_checkable
class Sampler(Protocol):
    """Anything that turns a mixture into n points.

    A deterministic sampler ignores `rng` and returns bit-identical points for the same input.
    """

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Return `n` weighted points that represent `mixture`."""
        ...
