"""Independent random draws: the baseline of every comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import check_request


@dataclass(frozen=True)
class RandomSampling:
    """Independent draws from the mixture, with equal weights.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> points, same = (hf.RandomSampling().sample(mixture, 100, rng=0) for _ in range(2))
    >>> len(points), np.array_equal(points.x, same.x)
    (100, True)
    """

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | int | None = None) -> Points:
        """Draw `n` points; `rng` is a Generator, a seed, or None for fresh entropy."""
        n = check_request(mixture, n, rng)
        return Points(mixture.sample(n, rng))
