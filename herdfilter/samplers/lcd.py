"""Optimal points for a Gaussian by localized cumulative distributions, as in the S2KF."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from herdfilter import _checks, kernels
from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture, equal_weights
from herdfilter.samplers import base, improved
from herdfilter.samplers.mapped import MappedSampling

# few points have many local minima, and cost little: they get many starts
POINTS_OF_ALL_STARTS = 200


@dataclass(frozen=True)
class LCDSampling(base.MixtureSampler):
    """Points of least modified Cramer-von Mises distance to N(0, I), mapped into the mixture's components.

    The point-symmetric points of equal weight of the smart sampling Kalman filter, S2KF (Steinbring and Hanebeck 2013),
    computed once for each number and dimension, by descent from scrambled Sobol points, and mapped into the components as by
    `MappedSampling`.

    Parameters
    ----------
    largest : float
        Largest width of the localized cumulative distribution, in standard deviations.
    iterations : int
        The most steps of the descent.

    Examples
    --------
    >>> gaussian = hf.GaussianMixture([1.0], [[2.0]], [[[4.0]]])
    >>> points = hf.LCDSampling(iterations=50).sample(gaussian, 5)
    >>> print(np.sort(points.x[:, 0]).round(2))
    [-0.96  0.88  2.    3.12  4.96]
    """

    largest: float = 10.0
    iterations: int = 500

    def __post_init__(self) -> None:
        _checks.check_fields(self, largest=_checks.as_positive, iterations=_checks.check_count)

    @cached_property
    def _mapped(self) -> MappedSampling:
        return MappedSampling(_Standard(self.largest, self.iterations))

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Map the points into `mixture`."""
        return self._mapped.draw(mixture, n, rng)


@dataclass(frozen=True)
class _Standard(base.MixtureSampler):
    """Points for N(0, I), whatever mixture is given."""

    largest: float
    iterations: int

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        from scipy.stats import qmc  # slow to import

        d = mixture.dim
        if n == 1:
            return np.zeros((1, d)), equal_weights(1)
        kernel = kernels.LocalizedCumulative(self.largest)
        mean = kernels.KernelMean(kernel, np.ones(1), np.zeros((1, d)), np.eye(d)[None])
        weights = equal_weights(n)
        best = np.zeros((n, d))
        best_error = np.inf
        for start in range(max(1, POINTS_OF_ALL_STARTS // n)):
            sobol = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(start))
            z = scipy.special.ndtri(sobol.random(2 ** int(np.ceil(np.log2(n // 2))))[: n // 2])
            # One half of the points, on one side of the origin; the other is its mirror image.
            half = np.where(z[:, :1] < 0, -z, z)
            half = improved.descend(half, weights, kernel, mean, self.iterations, symmetric=True)
            x = np.concatenate([half, -half, np.zeros((n % 2, d))])
            error, _ = improved.herding_loss(x, weights, kernel, mean)
            if error < best_error:
                best = x
                best_error = error
        return best, weights
