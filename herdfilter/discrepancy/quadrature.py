"""Weights under which given points represent a mixture best.

On the simplex they solve a quadratic programme. With Gram matrix K and expectations z, ``w' K w / 2 - z' w`` is minimised
over ``w >= 0, sum w = 1`` by an active-set method (Lawson and Hanson 1974, ch. 23, with the sum as an equality constraint).
The points of positive weight are the free ones; K restricted to them is kept as a Cholesky factor, to which a point is added
or from which one is removed in O(k^2).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from herdfilter import _checks, kernels
from herdfilter._checks import Array
from herdfilter._jit import njit
from herdfilter.mixture import GaussianMixture, as_mixture

RIDGE = 1e-10  # added to the diagonal of the Gram matrix, whose diagonal is 1, for signed weights
# squared, relative, from the span of the free points: a nearer point is not added
DEPENDENT_DISTANCE = 1e-11
NEGLIGIBLE_GAIN = 1e-14  # of an entering point


def optimal_weights(
    x: ArrayLike,
    mixture: GaussianMixture,
    kernel_covariance: ArrayLike,
    constraint: Literal["simplex", "sum", "none"] = "simplex",
    kernel: kernels.Kernel | None = None,
) -> Array:
    r"""Return the weights (n,) of given points that minimise their herding error.

    .. math:: w^\top K w - 2 z^\top w + \mathrm E[k(X, X')]

    K is the Gram matrix of the points under the kernel, Gaussian by default, and z holds the kernel's expectations at them.
    Without a constraint these are the weights :math:`K^{-1} z` of Bayesian quadrature (O'Hagan 1991; Huszar and Duvenaud
    2012).

    Parameters
    ----------
    x : array_like, shape (n, d)
        Locations, in state units.
    mixture : GaussianMixture
        The target.
    kernel_covariance : array_like, shape (d, d)
        Covariance of the kernel, positive definite.
    constraint : {"simplex", "sum", "none"}
        ``"simplex"``: non-negative weights that sum to 1. ``"sum"``: signed weights that sum to 1. ``"none"``: signed
        weights with any sum.
    kernel : Kernel, optional
        See `herdfilter.kernels`.

    Notes
    -----
    K is singular to rounding if points lie close together relative to the kernel. Signed weights are therefore computed with
    1e-10 added to its diagonal, which limits their size. On the simplex, a point that depends on others, to 1e-11 in squared
    distance, keeps the weight 0.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> x = np.array([[-2.0], [0.0], [2.0]])
    >>> print(hf.optimal_weights(x, mixture, kernel_covariance=np.eye(1)).round(3))
    [0.17 0.66 0.17]
    """
    _checks.one_of("constraint", constraint, ("simplex", "sum", "none"))
    d = as_mixture("mixture", mixture).dim
    x = _checks.as_points("x", x, d)
    covariance = _checks.as_definite("kernel_covariance", kernel_covariance, d)
    kernel = kernels.Gaussian() if kernel is None else kernels.as_kernel("kernel", kernel)
    gram = kernel_matrix(x, covariance, kernel)
    z = kernels.expected_kernel(mixture, x, covariance, kernel)
    if constraint == "simplex":
        return simplex_weights(gram, z)
    gram[np.diag_indices(len(z))] += RIDGE
    weights, unit = np.linalg.solve(gram, np.stack([z, np.ones(len(z))], axis=1)).T
    if constraint == "sum":  # Lagrange: K w = z + lambda 1
        weights = weights + unit * ((1.0 - weights.sum()) / unit.sum())
    return np.asarray(weights)


def simplex_weights(gram: ArrayLike, z: ArrayLike) -> Array:
    """Return the non-negative weights of sum 1 that minimise ``w' gram w - 2 z' w``.

    The matrix (n, n) is symmetric and positive semi-definite, or that of a kernel that falls from 0, such as -r; z is (n,).

    Examples
    --------
    >>> gram = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
    >>> print(hf.simplex_weights(gram, np.array([0.6, 0.4, 0.1])).round(3))
    [0.7 0.1 0.2]
    """
    z = _checks.as_array("z", z, (None,))
    n = len(z)
    gram = _checks.as_array("gram", gram, (n, n))
    if not n:
        raise ValueError("z: expected at least one point, got none")
    asymmetry = np.abs(gram - gram.T).max()
    if not asymmetry <= _checks.MATRIX_ROUNDING * np.abs(gram).max():
        raise ValueError(f"gram: expected a symmetric matrix, got an asymmetry of {asymmetry:g}")
    # A kernel that falls from 0, such as -r, is raised: a constant changes nothing if weights sum to 1.
    shift = 1.0 - gram.min() if gram[0, 0] <= 0.0 else 0.0
    weights = correct_weights(np.ascontiguousarray(gram + shift), np.ascontiguousarray(z))
    if not 0 < (total := float(weights.sum())) < np.inf:
        raise ValueError(
            f"z: expected numbers about as large as those of gram, got {np.abs(z).max():g}"
        )
    normalised: Array = weights / total
    return normalised


def kernel_matrix(
    x: ArrayLike, covariance: ArrayLike, kernel: kernels.Kernel | None = None
) -> Array:
    """Return the Gram matrix of a unit-peak kernel of the given covariance, Gaussian by default; (n, d) -> (n, n).

    Examples
    --------
    >>> print(hf.kernel_matrix(np.array([[0.0], [1.0], [2.0]]), np.eye(1)).round(3))
    [[1.    0.607 0.135]
     [0.607 1.    0.607]
     [0.135 0.607 1.   ]]
    """
    x = _checks.as_particles("x", x)
    covariance = _checks.as_definite("covariance", covariance, x.shape[1])
    z = np.linalg.solve(np.linalg.cholesky(covariance), x.T).T
    squared = scipy.spatial.distance.cdist(z, z, "sqeuclidean")
    return (kernels.Gaussian() if kernel is None else kernels.as_kernel("kernel", kernel)).value(
        squared
    )


@njit(cache=True, nogil=True, error_model="numpy")
def correct_weights(gram, z):
    """Return the weights of the least error; free points are added one at a time, first the one that gains most."""
    n = len(z)
    w = np.zeros(n)
    free = np.empty(n, np.int64)
    factor = np.empty((n, n))
    work = np.empty((2, n))
    blocked = np.zeros(n, np.bool_)
    size = 0
    entering = -1
    for _ in range(20 * n):
        multiplier = 0.0
        if size > 0:
            size, multiplier = _minimise(z, w, free, size, factor, work)
        if entering >= 0:
            if w[entering] > 0.0:
                blocked[:] = False
            else:
                # It gains less than rounding: the next try waits until another enters.
                blocked[entering] = True
        # Half the slope of the error, below the multiplier of the constraint, is what a point gains.
        entering = -1
        largest_gain = 0.0
        for i in range(n):
            if w[i] > 0.0 or blocked[i]:
                continue
            if size == 0:
                gain = z[i] - 0.5 * gram[i, i]
            else:
                gain = z[i] - multiplier
                for k in range(size):
                    gain -= gram[i, free[k]] * w[free[k]]
            if entering < 0 or gain > largest_gain:
                entering = i
                largest_gain = gain
        if entering < 0 or (size > 0 and largest_gain <= NEGLIGIBLE_GAIN):
            break
        size = _add(gram, free, size, factor, entering)
        if size == 1:
            w[free[0]] = 1.0
    return w


@njit(inline="always")
def _add(gram, free, size, factor, point):
    """Append a point to the free ones, unless it depends on them; return their number."""
    row = factor[size]
    pivot = gram[point, point]
    for i in range(size):
        entry = gram[point, free[i]]
        for k in range(i):
            entry -= factor[i, k] * row[k]
        row[i] = entry / factor[i, i]
        pivot -= row[i] * row[i]
    if pivot <= DEPENDENT_DISTANCE * gram[point, point]:
        return size
    row[size] = np.sqrt(pivot)
    free[size] = point
    return size + 1


@njit(inline="always")
def _remove(free, size, factor, position):
    """Remove the free point at `position` from the factor by plane rotations; return the number of those that stay."""
    for i in range(position, size - 1):
        free[i] = free[i + 1]
        for k in range(i + 2):
            factor[i, k] = factor[i + 1, k]
    # The rows that moved up have one entry beyond the diagonal, which a rotation of two columns takes away.
    for k in range(position, size - 1):
        a = factor[k, k]
        b = factor[k, k + 1]
        r = np.sqrt(a * a + b * b)
        c = a / r
        s = b / r
        factor[k, k] = r
        for i in range(k + 1, size - 1):
            a = factor[i, k]
            b = factor[i, k + 1]
            factor[i, k] = c * a + s * b
            factor[i, k + 1] = c * b - s * a
    return size - 1


@njit(inline="always")
def _minimise(z, w, free, size, factor, work):
    """Minimise over the free points, dropping those of weight zero; return their number, and z_i - (K w)_i on them."""
    goal = work[0]
    ones = work[1]
    while True:
        for i in range(size):
            goal[i] = z[free[i]]
            ones[i] = 1.0
        # F F' y = z and F F' y = 1, both in place, by forward and backward substitution
        for vector in work:
            for i in range(size):
                for k in range(i):
                    vector[i] -= factor[i, k] * vector[k]
                vector[i] /= factor[i, i]
            for i in range(size - 1, -1, -1):
                vector[i] /= factor[i, i]
                for k in range(i):
                    vector[k] -= factor[i, k] * vector[i]
        total = 0.0
        unit = 0.0
        for i in range(size):
            total += goal[i]
            unit += ones[i]
        shift = (1.0 - total) / unit
        # Go towards the goal as far as no weight becomes negative.
        rate = 1.0
        leaving = -1
        for i in range(size):
            goal[i] += shift * ones[i]
            weight = w[free[i]]
            if goal[i] <= 0.0 and weight <= rate * (weight - goal[i]):
                rate = weight / (weight - goal[i]) if weight > goal[i] else 0.0
                leaving = i
        for i in range(size):
            w[free[i]] += rate * (goal[i] - w[free[i]])
        if leaving < 0:
            return size, -shift
        w[free[leaving]] = 0.0
        size = _remove(free, size, factor, leaving)
