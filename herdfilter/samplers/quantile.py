"""The points that represent a mixture on a line best: its quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import asked, check_dim
from herdfilter.samplers.line.quantiles import quantiles


@dataclass(frozen=True)
class QuantileSampling:
    """In one dimension, the n points of equal weight that are nearest to the mixture in energy distance.

    These are its quantiles at the levels (i - 1/2) / n: the energy distance on a line is twice the integrated squared
    difference of the distribution functions (Szekely and Rizzo 2013), and no step function with n steps of 1/n is nearer.
    They are found to 1e-12 of a standard deviation where there is density, and elsewhere as near as the rounding of the
    distribution function lets. Where the mixture keeps a level across a gap, any point of the gap would do, and the lower
    end is taken.

    Deterministic, and at a price that grows with the number of components plus the number of points: 1000 of each take less
    than a millisecond.

    Examples
    --------
    >>> points = hf.QuantileSampling().sample(hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]]), 5)
    >>> print(points.x[:, 0].round(3) + 0.0)
    [-1.282 -0.524  0.     0.524  1.282]
    """

    largest_dim: ClassVar[int] = 1

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Return the `n` quantiles in ascending order; `rng` is not used.

        Raises
        ------
        ValueError
            If the mixture has more than one dimension.
        """
        n = asked(mixture, n, rng)
        check_dim("mixture", self, mixture.dim, "")
        x = quantiles(mixture, (np.arange(n) + 0.5) / n)
        return Points.unchecked(x[:, None], np.full(n, 1.0 / n))
