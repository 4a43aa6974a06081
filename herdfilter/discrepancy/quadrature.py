"""Weights of given points under which they represent a mixture best."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import ROUNDING, Array, as_array, as_definite, as_particles, as_points, one_of
from herdfilter.discrepancy._simplex_weights import correct_weights
from herdfilter.kernels import Gaussian, Kernel, as_kernel, expected_kernel
from herdfilter.mixture import GaussianMixture, as_mixture

JITTER = 1e-10  # added to the diagonal of the Gram matrix, whose diagonal is 1, for signed weights


def optimal_weights(
    points_x: ArrayLike,
    mixture: GaussianMixture,
    kernel_covariance: ArrayLike,
    constraint: Literal["simplex", "sum", "none"] = "simplex",
    kernel: Kernel | None = None,
) -> Array:
    """Weights of given points that minimise their herding error ``w' K w - 2 z' w + E[k(X, X')]``.

    K is the Gram matrix of the points under the kernel, Gaussian unless another is given, and z holds the kernel's
    expectations at them. Without a constraint these are the weights ``K^-1 z`` of Bayesian quadrature (O'Hagan 1991;
    Huszar and Duvenaud 2012).

    Parameters
    ----------
    points_x : array_like, shape (n, d)
        Locations, in state units.
    mixture : GaussianMixture
        The target.
    kernel_covariance : array_like, shape (d, d)
        Covariance of the kernel.
    constraint : {"simplex", "sum", "none"}
        ``"simplex"``: non-negative weights that sum to 1. ``"sum"``: signed weights that sum to 1. ``"none"``: signed
        weights, whatever their sum.
    kernel : Kernel, optional
        See `herdfilter.kernels`.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If shapes do not fit, the kernel covariance is singular or the constraint is unknown.

    Notes
    -----
    K is singular to rounding where points lie close together next to the kernel. Signed weights are therefore computed with
    1e-10 added to its diagonal, which limits them in size (`JITTER`). On the simplex no jitter is needed: a point that
    depends on others, to 1e-11 in squared distance, keeps the weight 0.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> x = np.array([[-2.0], [0.0], [2.0]])
    >>> weights = hf.optimal_weights(x, mixture, kernel_covariance=np.eye(1))
    >>> print(weights.round(3))
    [0.17 0.66 0.17]
    >>> optimal, equal = hf.Points(x, weights), hf.Points(x)
    >>> hf.herding_error(optimal, mixture, 1.0) < hf.herding_error(equal, mixture, 1.0)
    True
    """
    one_of("constraint", constraint, ("simplex", "sum", "none"))
    d = as_mixture("mixture", mixture).dim
    x = as_points("points_x", points_x, d)
    n = len(x)
    if n == 0:
        raise ValueError("points_x: expected at least one point, got none")
    covariance = as_definite("kernel_covariance", kernel_covariance, d)
    kernel = Gaussian() if kernel is None else as_kernel("kernel", kernel)
    gram = kernel_matrix(x, covariance, kernel)
    z = expected_kernel(mixture, x, covariance, kernel)
    if constraint == "simplex":
        return simplex_weights(gram, z)
    gram[np.diag_indices(n)] += JITTER
    best, unit = np.linalg.solve(gram, np.stack([z, np.ones(n)], axis=1)).T
    return best if constraint == "none" else best + unit * ((1.0 - best.sum()) / unit.sum())


def simplex_weights(gram: ArrayLike, z: ArrayLike) -> Array:
    """Non-negative weights of sum 1 that minimise ``w' gram w - 2 z' w``.

    The matrix (n, n) is symmetric and positive semi-definite, or as of a kernel that falls from 0, such as -r; z is (n,). A
    ValueError names shapes that do not fit, and numbers that are not finite.

    Examples
    --------
    >>> gram = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
    >>> print(hf.simplex_weights(gram, np.array([0.6, 0.4, 0.1])).round(3))
    [0.7 0.1 0.2]
    """
    z = as_array("z", z, (None,))
    n = len(z)
    gram = as_array("gram", gram, (n, n))
    if not n:
        raise ValueError("z: expected at least one point, got none")
    asymmetry = np.abs(gram - gram.T).max()
    if not asymmetry <= ROUNDING * np.abs(gram).max():
        raise ValueError(f"gram: expected a symmetric matrix, got an asymmetry of {asymmetry:g}")
    weights = np.zeros(n)
    # Of a kernel that falls from 0, such as -r; where weights sum to 1, a constant changes nothing.
    shift = 1.0 - gram.min() if gram[0, 0] <= 0.0 else 0.0
    shifted = np.ascontiguousarray(gram + shift)
    correct_weights(shifted, np.ascontiguousarray(z), weights, n, np.empty(n, np.int64), 0, np.empty((n, n)))
    if not 0 < weights.sum() < np.inf:
        raise ValueError(f"z: expected numbers of the size of those of gram, got {np.abs(z).max():g}")
    return weights / weights.sum()


def kernel_matrix(x: ArrayLike, covariance: ArrayLike, kernel: Kernel | None = None) -> Array:
    """Gram matrix of a unit-peak kernel of the given covariance, Gaussian by default; (n, d) -> (n, n).

    Examples
    --------
    >>> print(hf.kernel_matrix(np.array([[0.0], [1.0], [2.0]]), np.eye(1)).round(3))
    [[1.    0.607 0.135]
     [0.607 1.    0.607]
     [0.135 0.607 1.   ]]
    """
    x = as_particles("x", x)
    covariance = as_definite("covariance", covariance, x.shape[1])
    z = np.linalg.solve(np.linalg.cholesky(covariance), x.T)
    squared = np.zeros((len(x), len(x)))
    for axis in z:
        squared += (axis[:, None] - axis) ** 2
    return (Gaussian() if kernel is None else as_kernel("kernel", kernel)).value(squared)
