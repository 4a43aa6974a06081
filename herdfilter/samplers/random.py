"""Independent random draws: the baseline of every comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture, equal_weights
from herdfilter.samplers.base import MixtureSampler


@dataclass(frozen=True)
class RandomSampling(MixtureSampler):
    """Independent draws from the mixture, with equal weights.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> points, same = (hf.RandomSampling().sample(mixture, 100, rng=0) for _ in range(2))
    >>> len(points), np.array_equal(points.x, same.x)
    (100, True)
    """

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Draw with `rng`, or with fresh entropy if it is None."""
        return mixture.sample(n, rng), equal_weights(n)
