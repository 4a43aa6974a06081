"""Errors and consistency of one estimated trajectory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from herdfilter._checks import Array, as_numbers
from herdfilter.models.contract import wrap_angles

__all__ = ["energy_distance_on_line", "inside_ellipsoid", "normalised_squares", "root_mean", "squared_error"]


def squared_error(estimate: Array, target: Array, dims: Sequence[int], circular: Sequence[int] = ()) -> Array:
    """Squared Euclidean distance at every step over the dimensions named, angles wrapped; (T, d) -> (T,).

    Examples
    --------
    >>> from herdfilter.study.metrics import squared_error
    >>> estimate, target = np.array([[3.0, 0.1]]), np.array([[0.0, 2 * np.pi]])
    >>> print(squared_error(estimate, target, dims=[0, 1], circular=[1]).round(4))
    [9.01]
    """
    estimate = as_numbers("estimate", estimate, (None, None))
    target = as_numbers("target", target, (None, None))
    return (wrap_angles(estimate - target, circular)[:, list(dims)] ** 2).sum(axis=1)


def root_mean(squared: Array) -> float:
    """Square root of the mean.

    Examples
    --------
    >>> from herdfilter.study.metrics import root_mean
    >>> print(round(root_mean(np.array([16.0, 16.0, 4.0])), 3))  # the root of 12
    3.464
    """
    return float(np.sqrt(np.mean(as_numbers("squared", squared, (None,)))))


def normalised_squares(errors: Array, covariances: Array) -> Array:
    r"""Normalised estimation error squared :math:`e^\top P^{-1} e` (Bar-Shalom, Li and Kirubarajan 2001, section 5.4).

    Parameters
    ----------
    errors : ndarray, shape (T, d)
        Truth minus estimate, angles wrapped.
    covariances : ndarray, shape (T, d, d)
        What the filter holds the covariances of its errors to be.

    Returns
    -------
    ndarray, shape (T,)
        Of mean d where the covariances are right, and chi-square with d degrees of freedom where the errors are Gaussian,
        too. NaN where a covariance is singular: particles that lie in a subspace give no finite number for errors
        outside.

    Examples
    --------
    >>> from herdfilter.study.metrics import normalised_squares
    >>> print(normalised_squares(np.array([[2.0, 1.0]]), np.diag([4.0, 1.0])[None]))
    [2.]
    """
    covariances = as_numbers("covariances", covariances, (None, None, None))
    errors = as_numbers("errors", errors, (None, None))
    result = np.full(len(errors), np.nan)
    sd = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
    some = np.isfinite(covariances).all(axis=(1, 2)) & (sd > 0).all(axis=1)
    scale = sd[some]
    values, vectors = np.linalg.eigh(covariances[some] / (scale[:, :, None] * scale[:, None, :]))
    along = (vectors * (errors[some] / scale)[:, :, None]).sum(axis=1)
    regular = values[:, 0] > _SINGULAR
    with np.errstate(over="ignore"):  # of a filter that has lost its target, and is sure of where it is
        result[np.flatnonzero(some)[regular]] = (along[regular] ** 2 / values[regular]).sum(axis=1)
    return result


_SINGULAR = 1e-12
"""Smallest eigenvalue of a correlation matrix that is not put down to rounding."""


def inside_ellipsoid(squares: Array, degrees: Array, level: float = 0.95) -> float:
    """Share of normalised squares (T,) within the ellipsoid of probability `level` of a Gaussian; NaN is left out.

    Examples
    --------
    >>> from herdfilter.study.metrics import inside_ellipsoid
    >>> squares = np.array([0.5, 3.0, 5.9, 6.1])  # the quantile of chi-square with 2 degrees is 5.99
    >>> print(inside_ellipsoid(squares, np.full(4, 2.0)))
    0.75
    """
    from scipy.special import chdtri

    squares, degrees = as_numbers("squares", squares, (None,)), as_numbers("degrees", degrees, (None,))
    some = np.isfinite(squares)
    return float(np.mean(squares[some] <= chdtri(degrees[some], 1 - level))) if some.any() else np.nan


def energy_distance_on_line(x: Array, weights: Array, edges: Array, masses: Array) -> float:
    r"""Energy distance :math:`2 \int (F_n - G)^2` of weighted points to a density that is constant in cells.

    Szekely and Rizzo (2013), "Energy statistics", in one dimension.

    Parameters
    ----------
    x, weights : ndarray, shape (n,)
    edges : ndarray, shape (N + 1,)
        Of the cells, increasing.
    masses : ndarray, shape (N,)
        Probability of each cell.

    Returns
    -------
    float
        In the unit of `x`; exact, and for n independent draws of mean ``E|X - X'| / n``.

    Examples
    --------
    >>> from herdfilter.study.metrics import energy_distance_on_line
    >>> edges, masses = np.array([0.0, 1.0]), np.array([1.0])  # uniform on [0, 1]
    >>> middle = energy_distance_on_line(np.array([0.5]), np.ones(1), edges, masses)
    >>> print(round(float(middle), 4))  # 2 * (2 / 24)
    0.1667
    """
    x, weights = as_numbers("x", x, (None,)), as_numbers("weights", weights, (None,))
    edges, masses = as_numbers("edges", edges, (None,)), as_numbers("masses", masses, (None,))
    order = np.argsort(x)
    ends = np.sort(np.concatenate([x, edges]))
    below = np.concatenate([[0.0], np.cumsum(weights[order])])[np.searchsorted(x[order], ends[:-1], "right")]
    G = np.interp(ends, edges, np.concatenate([[0.0], np.cumsum(masses)]))
    first, last = below - G[:-1], below - G[1:]
    return float(2 / 3 * (np.diff(ends) @ (first**2 + first * last + last**2)))
