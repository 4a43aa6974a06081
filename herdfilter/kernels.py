"""The Gaussian kernel, its expectations under a mixture, and rules for its bandwidth.

The kernel is kept at its unit-peak scale, ``k(x, y) = exp(-(x - y)' K^-1 (x - y) / 2)``, because the normalised density
overflows optimisers in high dimension; `log_normaliser` restores the constant for reported figures.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_covariance, as_positive
from herdfilter.mixture import GaussianMixture

Bandwidth = Literal["auto"] | float | ArrayLike


def log_normaliser(covariance: Array) -> float:
    """Log of ``1 / sqrt((2 pi)^d |K|)``, the constant between the unit-peak kernel and the Gaussian density."""
    return float(-0.5 * (len(covariance) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1]))


def check_bandwidth(bandwidth: Bandwidth) -> Bandwidth:
    """Return `bandwidth` as ``"auto"``, a positive float or nested tuples of a positive definite matrix.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(bandwidth, str):
        if bandwidth != "auto":
            raise ValueError(
                f'bandwidth: expected "auto", a positive number or a (d, d) matrix, got {bandwidth!r}'
            )
        return bandwidth
    if isinstance(bandwidth, np.ndarray) and bandwidth.ndim == 0:
        bandwidth = bandwidth.item()
    if not isinstance(bandwidth, list | tuple | np.ndarray):
        return as_positive("bandwidth", bandwidth)
    matrix = as_covariance("bandwidth", bandwidth)
    if matrix.ndim != 2 or np.linalg.eigvalsh(matrix)[0] <= 0:
        raise ValueError(
            f"bandwidth: expected a positive definite (d, d) matrix, got {np.asarray(bandwidth).tolist()}"
        )
    return tuple(map(tuple, matrix.tolist()))


def scale_rule(n: int, dim: int) -> float:
    """Kernel width in whitened coordinates, ``c n^(-1/(d+1))``, for `n` points in `dim` dimensions.

    It shrinks nearly with the distance between neighbouring points, faster than the width of a kernel density estimate.
    Chosen by experiment, on the energy distance of points (benchmarks/bench_bandwidth.py scans it) and the error of
    herded filters on UNGM and linear Gaussian models: c = 1.4, 2.2, 2.6, 2.4, 2.1 for d = 1, 2, 4, 8, 16 lies at the upper
    end of the widths that give herded points a small energy distance to the target. Smaller widths leave the tails out, and
    a filter that herds with them becomes overconfident.
    """
    constant = float(np.interp(np.log2(dim), [0, 1, 2, 3, 4], [1.4, 2.2, 2.6, 2.4, 2.1]))
    return constant * n ** (-1.0 / (dim + 1))


def kernel_covariance(bandwidth: Bandwidth, mixture: GaussianMixture, n: int) -> Array:
    """Kernel covariance K, shape (d, d), that a bandwidth means for `n` points from `mixture`.

    ``"auto"`` gives ``scale_rule(n, d)^2`` times the mixture covariance (floored where it is rank-deficient), a number
    sigma_k gives ``sigma_k^2 I``, a matrix is taken as it is.
    """
    d = mixture.dim
    bandwidth = check_bandwidth(bandwidth)
    if isinstance(bandwidth, str):
        return scale_rule(n, d) ** 2 * floored(mixture.covariance)
    if isinstance(bandwidth, float):
        return bandwidth**2 * np.eye(d)
    matrix = np.asarray(bandwidth)
    if matrix.shape != (d, d):
        raise ValueError(f"bandwidth: expected shape ({d}, {d}) for this mixture, got {matrix.shape}")
    return matrix


def floored(covariance: Array, relative: float = 1e-8) -> Array:
    """Return `covariance` with the eigenvalues of its correlation matrix raised to at least `relative`.

    Working on the correlation matrix keeps dimensions of very different units apart; a dimension with no spread at all
    gets the smallest positive variance present (1 if there is none).
    """
    variance = np.diagonal(covariance)
    least = variance[variance > 0].min(initial=np.inf)
    scale = np.sqrt(np.where(variance > 0, variance, least if np.isfinite(least) else 1.0))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    if values[0] >= relative:
        return covariance
    fixed = (vectors * np.maximum(values, relative)) @ vectors.T
    return fixed * np.outer(scale, scale)


def expected_kernel(mixture: GaussianMixture, x: Array, covariance: Array) -> Array:
    """``E_p[k(x, X)]`` for X from the mixture, unit-peak kernel of the given covariance; (n, d) -> (n,).

    The closed form is ``sum_i w_i sqrt(|K| / |S_i + K|) exp(-(x - m_i)' (S_i + K)^-1 (x - m_i) / 2)``; the published one
    (Wolf and Baum) lacks the square root.
    """
    return np.exp(mixture.convolve(covariance).log_density(x) - log_normaliser(covariance))


def expected_kernel_pair(mixture: GaussianMixture, covariance: Array) -> float:
    """``E_p[k(X, X')]`` for two independent draws from the mixture, unit-peak kernel."""
    return float(np.exp(-log_normaliser(covariance)) * density_product(mixture, covariance))


def density_product(mixture: GaussianMixture, covariance: Array | None = None) -> float:
    """Integral of p(x) p(y) N(x - y; 0, covariance), or of p(x)^2 without a covariance."""
    extra = 0.0 if covariance is None else covariance
    total = 0.0
    for weight, mean, cov in zip(mixture.weights, mixture.means, mixture.covariances, strict=True):
        pair = GaussianMixture.trusted(
            mixture.weights, mixture.means, mixture.distinct_covariances + cov + extra
        )
        total += weight * float(np.exp(pair.log_density(mean[None, :])[0]))
    return total
