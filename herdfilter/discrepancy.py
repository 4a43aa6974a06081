"""How well points represent a mixture: herding error, normalised L2 error, energy distance, sliced Wasserstein."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from herdfilter._checks import Array, as_count
from herdfilter._norms import expected_norms
from herdfilter._sliced import sliced_wasserstein
from herdfilter.bandwidths import BandwidthRule, check_bandwidth, kernel_covariance
from herdfilter.kernels import (
    Gaussian,
    Kernel,
    as_kernel,
    density_product,
    expected_kernel,
    expected_kernel_pair,
    log_normaliser,
)
from herdfilter.mixture import GaussianMixture, covariance_factor
from herdfilter.points import Points

__all__ = [
    "energy_distance",
    "expected_energy_distance",
    "herding_error",
    "normalised_l2",
    "sliced_wasserstein",
]

_BLOCK = 2**22  # numbers held at once when pairs of points are summed in blocks


def herding_error(
    points: Points, mixture: GaussianMixture, sigma_k: float | ArrayLike, kernel: Kernel | None = None
) -> float:
    """Herding error E_t, the maximum mean discrepancy between points and mixture under a kernel.

    The square root of ``E[k(X, X')] - 2 sum_s w_s E[k(x_s, X)] + sum_st w_s w_t k(x_s, x_t)`` (Wolf and Baum, "Continuous
    Herded Gibbs Sampling"; closed forms with the square root of the determinant that the paper omits).

    Parameters
    ----------
    points : Points
        n points in d dimensions.
    mixture : GaussianMixture
        The target.
    sigma_k : float or array_like of shape (d,) or (d, d)
        Kernel width in state units, for all dimensions or each, or kernel covariance.
    kernel : Kernel, optional
        By default the Gaussian kernel as the paper has it, a normalised density. A kernel given here, `kernels.Gaussian`
        included, is taken at unit peak.

    Returns
    -------
    float
        In units of the square root of a density; without unit for a kernel of unit peak.
    """
    _check_dims(points, mixture)
    covariance = _kernel(sigma_k, mixture)
    constant = np.exp(log_normaliser(covariance)) if kernel is None else 1.0
    kernel = Gaussian() if kernel is None else as_kernel("kernel", kernel)
    pair = expected_kernel_pair(mixture, covariance, kernel)
    cross = float(points.weights @ expected_kernel(mixture, points.x, covariance, kernel))
    own = _kernel_pairs(points, covariance, kernel)
    squared = pair - 2 * cross + own
    return float(np.sqrt(constant * max(squared, 0.0)))


def normalised_l2(points: Points, mixture: GaussianMixture, sigma_k: float | ArrayLike) -> float:
    """Normalised L2 error ``2 (1 - <p, q> / (|p| |q|))``, q the kernel density estimate of the points.

    Jensen, Ellis, Christensen and Jensen (2007). Zero for proportional densities, 2 for disjoint ones.
    """
    _check_dims(points, mixture)
    kernel = _kernel(sigma_k, mixture)
    inner = float(points.weights @ np.exp(mixture.convolve(kernel).log_density(points.x)))
    q_norm = np.exp(log_normaliser(2 * kernel)) * _kernel_pairs(points, 2 * kernel, Gaussian())
    return float(2 * (1 - inner / np.sqrt(density_product(mixture) * q_norm)))


def energy_distance(points: Points, mixture: GaussianMixture) -> float:
    """Energy distance ``2 E|x - X| - E|X - X'| - E|x - x'|``, free of any bandwidth (Szekely and Rizzo 2013).

    The expectations over the mixture are exact in one dimension (folded normal), else exact up to quadrature error (relative
    1e-9): for Gaussian Z, ``E|Z| = (1 / 2 sqrt(pi)) int_0^inf (1 - E exp(-s |Z|^2)) s^(-3/2) ds``. In state units; scale the
    state first where its dimensions differ in unit. Memory stays bounded: pairs are summed in blocks.
    """
    _check_dims(points, mixture)
    x, means, cov = points.x, mixture.means, mixture.distinct_covariances
    if mixture.shared:  # in the principal axes of the one covariance
        values, axes = np.linalg.eigh(cov[0])
        x, means = (x - mixture.mean) @ axes, (means - mixture.mean) @ axes
        cov = np.diag(np.maximum(values, 0.0))[None]
    cross = 0.0
    for m in range(len(mixture)):
        norms = expected_norms(x - means[m], cov if mixture.shared else cov[m : m + 1])
        cross += mixture.weights[m] * float(points.weights @ norms)
    return max(2 * cross - _component_distance(mixture.weights, means, cov) - _mean_distance(points), 0.0)


def expected_energy_distance(mixture: GaussianMixture, n: int) -> float:
    """Mean of the `energy_distance` of `n` independent draws, ``E|X - X'| / n``: what other points are measured against.

    Raises
    ------
    ValueError
        If `n` is not a positive integer.
    """
    n = as_count("n", n)
    cov = mixture.distinct_covariances
    return _component_distance(mixture.weights, mixture.means, cov) / n


def _component_distance(weights: Array, means: Array, covariances: Array) -> float:
    """``E|X - X'|`` of two independent draws from a mixture."""
    count, dim = means.shape
    rows = max(1, _BLOCK // 8 // (count * dim * dim))
    total = 0.0
    for start in range(0, count, rows):
        first, second = np.triu_indices(min(rows, count - start), start, count)
        first += start
        cov = 2 * covariances if len(covariances) == 1 else covariances[first] + covariances[second]
        twice = np.where(first == second, 1.0, 2.0)  # pairs of different components count in either order
        norms = expected_norms(means[first] - means[second], cov)
        total += float((twice * weights[first] * weights[second]) @ norms)
    return total


def _mean_distance(points: Points) -> float:
    """Weighted sum of the distances of all ordered pairs of points."""
    x, w = points.x, points.weights
    rows = max(1, _BLOCK // 8 // len(x))
    total = 0.0
    for start in range(0, len(x), rows):
        stop = start + rows
        total += (
            2 * float(w[start:stop] @ cdist(x[start:stop], x[stop:]) @ w[stop:]) if stop < len(x) else 0.0
        )
        total += float(w[start:stop] @ cdist(x[start:stop], x[start:stop]) @ w[start:stop])
    return total


def _kernel(sigma_k: float | ArrayLike, mixture: GaussianMixture) -> Array:
    try:
        width = check_bandwidth(sigma_k)
        if not isinstance(width, str | BandwidthRule):
            return kernel_covariance(width, mixture, 1)
    except ValueError as error:
        raise ValueError(str(error).replace("bandwidth", "sigma_k", 1)) from None
    raise ValueError(f"sigma_k: expected a positive finite number, got {sigma_k!r}")


def _kernel_pairs(points: Points, covariance: Array, kernel: Kernel) -> float:
    """``sum_st w_s w_t k(x_s, x_t)`` with the unit-peak kernel."""
    factor = covariance_factor(covariance)
    whitened = np.linalg.solve(factor, points.x.T).T
    return _pair_sum(Points.trusted(whitened, points.weights), kernel.value)


def _pair_sum(points: Points, function: Callable[[Array], Array]) -> float:
    """Weighted sum of a function of the squared distance over all ordered pairs, in blocks of bounded memory."""
    x, w = points.x, points.weights
    rows = max(1, _BLOCK // (len(x) * x.shape[1]))
    total = 0.0
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        squared = ((x[part, None, :] - x[None, :, :]) ** 2).sum(-1)
        total += float(w[part] @ function(squared) @ w)
    return total


def _check_dims(points: Points, mixture: GaussianMixture) -> None:
    if points.dim != mixture.dim:
        raise ValueError(f"points: expected dimension {mixture.dim} as the mixture, got {points.dim}")
