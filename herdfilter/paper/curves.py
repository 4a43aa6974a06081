"""Errors of every prefix of one sequence of points, in one pass."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.kernels import density_product, expected_kernel, log_normaliser
from herdfilter.mixture import GaussianMixture


class PrefixErrors:
    """Errors of the first t points of a sequence for t = 1, ..., n, at a fixed kernel.

    They are those of `herdfilter.herding_error` and `herdfilter.normalised_l2` with equal weights, but O(n^2) for all t
    together: sums over points are cumulative, and sums over pairs are taken over the leading block of one matrix.

    Parameters
    ----------
    mixture : GaussianMixture
        The target.
    kernel : ndarray, shape (d, d)
        Kernel covariance.

    Attributes
    ----------
    floor : float
        What the normalised L2 error tends to as points converge in the herding error: the kernel density estimate becomes
        the smoothed density p * k, whose distance to p is this number, whatever the sampler.
    """

    def __init__(self, mixture: GaussianMixture, kernel: Array) -> None:
        self._mixture, self._kernel = mixture, kernel
        self._factor = np.linalg.cholesky(kernel)
        self._height, self._height_twice = np.exp(log_normaliser(kernel)), np.exp(log_normaliser(2 * kernel))
        self._norm, self._smooth = density_product(mixture), density_product(mixture, kernel)
        self.floor = float(2 * (1 - self._smooth / np.sqrt(self._norm * density_product(mixture, 2 * kernel))))

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Return herding errors and normalised L2 errors, both (n,), of the prefixes of `x`, (n, d)."""
        z = np.linalg.solve(self._factor, x.T).T
        length = (z**2).sum(1)
        squared = np.maximum(length[:, None] + length - 2 * z @ z.T, 0.0)
        np.fill_diagonal(squared, 0.0)
        kernel_twice = np.exp(-0.25 * squared)  # of covariance 2 K; its square is the kernel of covariance K
        t = np.arange(1, len(x) + 1)
        inner = self._height * np.cumsum(expected_kernel(self._mixture, x, self._kernel)) / t
        own = self._height * _leading_blocks(kernel_twice**2) / t**2
        estimate = self._height_twice * _leading_blocks(kernel_twice) / t**2
        herding = np.sqrt(np.maximum(self._smooth - 2 * inner + own, 0.0))
        return herding, 2 * (1 - inner / np.sqrt(self._norm * estimate))


def _leading_blocks(symmetric: Array) -> Array:
    """Sum of every leading square block of a symmetric matrix."""
    new = 2 * np.tril(symmetric, -1).sum(1) + np.diagonal(symmetric)
    return np.cumsum(new)
