"""Herding error and normalised L2 error: how well points represent a mixture as a kernel sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import bandwidths, kernels
from herdfilter._checks import Array, short_repr
from herdfilter._covariances import covariance_factor
from herdfilter.discrepancy.energy import pair_sum
from herdfilter.kernels import base
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points, check_pair


def herding_error(
    points: Points,
    mixture: GaussianMixture,
    sigma_k: float | ArrayLike,
    kernel: kernels.Kernel | None = None,
) -> float:
    r"""Return the herding error E_t, the maximum mean discrepancy between points and mixture under a kernel.

    It is the square root of

    .. math:: \mathrm E[k(X, X')] - 2 \sum_s w_s \mathrm E[k(x_s, X)] + \sum_{s, t} w_s w_t k(x_s, x_t)

    (Wolf and Baum, "Continuous Herded Gibbs Sampling"; the closed forms have the square root of the determinant that the
    paper omits). It has the unit of the square root of a density, and no unit for a kernel of unit peak.

    Parameters
    ----------
    points : Points
        n points in d dimensions.
    mixture : GaussianMixture
        The target.
    sigma_k : float or array_like of shape (d,) or (d, d)
        Kernel width in state units, for all dimensions or each, or kernel covariance.
    kernel : Kernel, optional
        By default the Gaussian kernel of the paper, a normalised density. A kernel given here, `kernels.Gaussian`
        included, has unit peak.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> for n in (5, 20):
    ...     points = hf.KernelHerding(bandwidth=0.5).sample(mixture, n)
    ...     print(n, round(hf.herding_error(points, mixture, sigma_k=0.5), 3))
    5 0.143
    20 0.041
    """
    check_pair(points, mixture)
    covariance = _kernel(sigma_k, mixture)
    constant = np.exp(base.log_normaliser(covariance)) if kernel is None else 1.0
    kernel = kernels.Gaussian() if kernel is None else base.as_kernel("kernel", kernel)
    pair = base.expected_kernel_pair(mixture, covariance, kernel)
    cross = float(points.weights @ base.expected_kernel(mixture, points.x, covariance, kernel))
    squared = pair - 2 * cross + _kernel_pairs(points, covariance, kernel)
    return float(np.sqrt(constant * max(squared, 0.0)))


def normalised_l2(points: Points, mixture: GaussianMixture, sigma_k: float | ArrayLike) -> float:
    """Return the normalised L2 error ``2 (1 - <p, q> / (|p| |q|))``, q the kernel density estimate of the points.

    Jensen, Ellis, Christensen and Jensen (2007). Zero for proportional densities, 2 for disjoint ones.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> round(hf.normalised_l2(hf.Points([[-1.0], [0.0], [1.0]]), mixture, sigma_k=0.5), 3)
    0.028
    """
    check_pair(points, mixture)
    kernel = _kernel(sigma_k, mixture)
    inner = float(points.weights @ np.exp(mixture.convolve(kernel).log_density(points.x)))
    # |q|^2: two kernels of covariance K at x_s and x_t overlap as one of 2 K.
    q_norm = np.exp(base.log_normaliser(2 * kernel)) * _kernel_pairs(
        points, 2 * kernel, kernels.Gaussian()
    )
    return float(2 * (1 - inner / np.sqrt(base.density_product(mixture) * q_norm)))


def _kernel(sigma_k: float | ArrayLike, mixture: GaussianMixture) -> Array:
    """Return the kernel covariance (d, d); a rule has no place here, since the error depends on the kernel."""
    if isinstance(sigma_k, str | bandwidths.BandwidthRule):
        raise ValueError(f"sigma_k: expected a positive finite number, got {short_repr(sigma_k)}")
    try:
        return bandwidths.kernel_covariance(sigma_k, mixture, 1)
    except ValueError as error:
        raise ValueError(str(error).replace("bandwidth", "sigma_k", 1)) from None


def _kernel_pairs(points: Points, covariance: Array, kernel: kernels.Kernel) -> float:
    """Return ``sum_st w_s w_t k(x_s, x_t)`` with the unit-peak kernel."""
    z = np.linalg.solve(covariance_factor(covariance), points.x.T).T
    whitened = Points.unchecked(z, points.weights)
    return pair_sum(kernel.value, whitened, whitened)
