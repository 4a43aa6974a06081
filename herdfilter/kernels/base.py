"""Expectations of kernels under a mixture."""

from __future__ import annotations

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.kernels.radial import Gaussian, Kernel
from herdfilter.mixture import GaussianMixture, as_mixture

EXPECTATIONS_AT_ONCE = 2**21  # numbers in memory


def as_kernel(name: str, kernel: Kernel) -> Kernel:
    """Return `kernel` if it follows the contract; raise TypeError if it is a class or lacks a method.

    Examples
    --------
    >>> hf.kernels.as_kernel("kernel", hf.kernels.Matern())
    Matern(nu=1.5)
    >>> try:
    ...     hf.kernels.as_kernel("kernel", "gaussian")
    ... except TypeError as error:
    ...     print(error)
    kernel: expected an object with value and slope and scales, got 'gaussian'
    """
    _checks.check_methods(name, kernel, "value", "slope", "scales")
    return kernel


def log_normaliser(covariance: Array) -> float:
    """Return the log of ``1 / sqrt((2 pi)^d |K|)``, the factor from the unit-peak Gaussian kernel to the Gaussian density.

    Examples
    --------
    >>> print(round(hf.kernels.log_normaliser(4 * np.eye(1)), 4), -0.5 * np.log(2 * np.pi * 4).round(4))
    -1.6121 -1.6121
    """
    covariance = _checks.as_definite("covariance", covariance, None)
    return float(-0.5 * (len(covariance) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1]))


class KernelMean:
    r"""The function :math:`x \mapsto \mathrm E\, k(x, X)` for X from a mixture, in coordinates of bandwidth 1.

    With the eigenvalues l of a component's covariance and y the offset from its mean along the eigenvectors, a Gaussian of
    rate s has the expectation

    .. math:: \prod_i (1 + s l_i)^{-1/2} \exp \Bigl( -\frac 1 2 \sum_i \frac{s y_i^2}{1 + s l_i} \Bigr)

    No inverse is taken, so covariances may be singular.

    Parameters
    ----------
    kernel : Kernel
    weights, means, covariances : ndarray, shapes (M,), (M, d) and (M, d, d) or (1, d, d)
        The mixture.

    Examples
    --------
    >>> from herdfilter.kernels import Gaussian, KernelMean
    >>> mean = KernelMean(Gaussian(), np.ones(1), np.zeros((1, 1)), np.eye(1)[None])  # X from N(0, 1)
    >>> print(mean(np.array([[0.0], [1.0]])).round(4))  # at 0 it is 1 / sqrt(2)
    [0.7071 0.5507]
    """

    def __init__(self, kernel: Kernel, weights: Array, means: Array, covariances: Array) -> None:
        rates, scale_weights = kernel.scales()
        values, vectors = np.linalg.eigh(covariances)
        spread = 1 + rates[:, None] * np.maximum(values, 0.0)[:, None, :]  # (M or 1, J, d)
        self._weights = weights
        self._means = means
        self._vectors = vectors
        self._rates = rates[:, None] / spread
        self._log_heights = -0.5 * np.log(spread).sum(-1)
        self._scale_weights = scale_weights

    def __call__(self, x: Array) -> Array:
        """Return the value at points, (n, d) -> (n,)."""
        return self.with_gradient(x)[0]

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """Return value and gradient at points, (n, d) -> (n,) and (n, d)."""
        value = np.zeros(len(x))
        slope = np.zeros(x.shape)
        rows = max(1, EXPECTATIONS_AT_ONCE // len(self._scale_weights))
        # Large weights of both signs sum to 0 in the energy kernel: see below.
        cancelling = self._scale_weights.min() < 0
        for m, (weight, mean) in enumerate(zip(self._weights, self._means, strict=True)):
            k = m if len(self._rates) > 1 else 0
            rates = self._rates[k]
            vectors = self._vectors[k]
            for start in range(0, len(x), rows):
                part = slice(start, start + rows)
                y = (x[part] - mean) @ vectors
                exponents = self._log_heights[k] - 0.5 * (y * y) @ rates.T
                terms = np.exp(exponents) * (weight * self._scale_weights)
                if cancelling:  # sum w exp(a) = sum w (exp(a) - 1), without the loss of digits
                    value[part] += weight * np.expm1(exponents) @ self._scale_weights
                else:
                    value[part] += terms.sum(axis=1)
                slope[part] -= ((terms @ rates) * y) @ vectors.T
        return value, slope


def in_kernel_frame(mixture: GaussianMixture, covariance: Array) -> tuple[Array, GaussianMixture]:
    """Return the inverse factor W, and the mixture of ``W x``, in which a kernel of this covariance has bandwidth 1."""
    inverse = np.linalg.inv(
        np.linalg.cholesky(_checks.as_definite("covariance", covariance, mixture.dim))
    )
    cov = inverse @ mixture.distinct_covariances @ inverse.T
    return inverse, GaussianMixture.unchecked(mixture.weights, mixture.means @ inverse.T, cov)


def expected_kernel(
    mixture: GaussianMixture, x: Array, covariance: Array, kernel: Kernel | None = None
) -> Array:
    r"""Return ``E_p[k(x, X)]`` for X from the mixture and a unit-peak kernel of the given covariance; (n, d) -> (n,).

    For the Gaussian kernel the closed form, of which the published one (Wolf and Baum) lacks the square root, is

    .. math:: \sum_i w_i \sqrt{|K| / |S_i + K|}\, e^{-(x - m_i)^\top (S_i + K)^{-1} (x - m_i) / 2}

    For other kernels see `KernelMean`.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> print(hf.kernels.expected_kernel(mixture, np.array([[0.0], [2.0]]), np.eye(1)).round(4))
    [0.7071 0.2601]
    """
    kernel = Gaussian() if kernel is None else as_kernel("kernel", kernel)
    x = _checks.as_points("x", x, as_mixture("mixture", mixture).dim)
    if kernel == Gaussian():
        # The convolution with a Gaussian density, whose constant is taken out again
        log_values: Array = mixture.convolve(covariance).log_density(x) - log_normaliser(covariance)
        return np.exp(log_values)
    inverse, frame = in_kernel_frame(mixture, covariance)
    return KernelMean(kernel, frame.weights, frame.means, frame.distinct_covariances)(x @ inverse.T)


def expected_kernel_pair(
    mixture: GaussianMixture, covariance: Array, kernel: Kernel | None = None
) -> float:
    """Return ``E_p[k(X, X')]`` for two independent draws from the mixture and a unit-peak kernel.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> round(hf.kernels.expected_kernel_pair(mixture, np.eye(1)), 4)  # 1 / sqrt(3)
    0.5774
    """
    as_mixture("mixture", mixture)
    kernel = Gaussian() if kernel is None else as_kernel("kernel", kernel)
    if kernel == Gaussian():
        return float(np.exp(-log_normaliser(covariance)) * density_product(mixture, covariance))
    _, frame = in_kernel_frame(mixture, covariance)
    # X - X' of components i and j has mean m_i - m_j and covariance S_i + S_j.
    total = 0.0
    for weight, mean, cov in zip(frame.weights, frame.means, frame.covariances, strict=True):
        pair = KernelMean(kernel, frame.weights, frame.means, frame.distinct_covariances + cov)
        total += weight * float(pair(mean[None, :])[0])
    return total


def density_product(mixture: GaussianMixture, covariance: Array | None = None) -> float:
    """Return the integral of p(x) p(y) N(x - y; 0, covariance), or of p(x)^2 without a covariance.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> print(round(hf.kernels.density_product(mixture), 4), round(0.5 / np.sqrt(np.pi), 4))
    0.2821 0.2821
    """
    as_mixture("mixture", mixture)
    extra = (
        0.0 if covariance is None else _checks.as_covariance("covariance", covariance, mixture.dim)
    )
    total = 0.0
    for weight, mean, cov in zip(mixture.weights, mixture.means, mixture.covariances, strict=True):
        pair = GaussianMixture.unchecked(
            mixture.weights, mixture.means, mixture.distinct_covariances + cov + extra
        )
        total += weight * float(np.exp(pair.log_density(mean[None, :])[0]))
    return total
