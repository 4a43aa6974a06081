"""Errors and consistency of one estimated trajectory, and distances of estimates to many targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.study.statistics import of
from herdfilter.study.targets import Targets
from herdfilter.tracking import metrics

__all__ = ["normalised_squares", "squared_error"]


def squared_error(
    estimate: Array, target: Array, dims: Sequence[int], circular: Sequence[int] = ()
) -> Array:
    """Return the squared Euclidean distance at every step over the given dimensions, angles wrapped; (T, d) -> (T,).

    Examples
    --------
    >>> from herdfilter.study.metrics import squared_error
    >>> estimate, target = np.array([[3.0, 0.1]]), np.array([[0.0, 2 * np.pi]])
    >>> print(squared_error(estimate, target, dims=[0, 1], circular=[1]).round(4))
    [9.01]
    """
    return np.asarray((wrap_angles(estimate - target, circular)[:, list(dims)] ** 2).sum(axis=1))


def root_mean(squared: Array) -> float:
    """Return the square root of the mean."""
    return float(np.sqrt(np.mean(squared)))


def normalised_squares(errors: Array, covariances: Array) -> Array:
    r"""Return the normalised estimation errors squared, :math:`e^\top P^{-1} e` (Bar-Shalom, Li and Kirubarajan 2001, 5.4).

    Parameters
    ----------
    errors : ndarray, shape (T, d)
        Truth minus estimate, angles wrapped.
    covariances : ndarray, shape (T, d, d)
        Covariances that the filter states for its errors.

    Returns
    -------
    ndarray, shape (T,)
        Their mean is d if the covariances are right, and they are chi-square with d degrees of freedom if the errors are
        Gaussian, too. NaN where a covariance is singular.

    Examples
    --------
    >>> from herdfilter.study.metrics import normalised_squares
    >>> print(normalised_squares(np.array([[2.0, 1.0]]), np.diag([4.0, 1.0])[None]))
    [2.]
    """
    covariances = _checks.as_numbers("covariances", covariances, (None, None, None))
    errors = _checks.as_numbers("errors", errors, (None, None))
    # Correlations tell a singular covariance from one whose dimensions merely differ in units.
    is_finite = np.isfinite(covariances).all(axis=(1, 2), keepdims=True)
    covariances = np.where(is_finite, covariances, 0.0)
    sd = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
    scale = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariances / (scale[:, :, None] * scale[:, None, :]))
    projections = (vectors * (errors / scale)[:, :, None]).sum(axis=1)
    # Without variance, in a dimension or altogether, the least eigenvalue is not positive.
    values[values[:, 0] <= _SINGULAR] = np.nan
    with np.errstate(over="ignore"):  # a lost filter with a small covariance
        return np.asarray((projections**2 / values).sum(axis=1))


_SINGULAR = 1e-12  # eigenvalues of a correlation matrix up to here count as zero


def inside_ellipsoid(squares: Array, degrees: Array, level: float = 0.95) -> float:
    """Return the share of normalised squares (T,), NaN left out, within a Gaussian's ellipsoid of probability `level`."""
    from scipy.special import chdtri

    finite = np.isfinite(squares)
    return of(np.mean, squares[finite] <= chdtri(degrees[finite], 1 - level))


def energy_distance_on_line(x: Array, weights: Array, edges: Array, masses: Array) -> float:
    r"""Return the energy distance :math:`2 \int (F_n - G)^2` of points (n,) to a density that is constant in cells.

    Szekely and Rizzo (2013), "Energy statistics", in one dimension. It is exact, and in the unit of `x`; its mean over n
    independent draws is ``E|X - X'| / n``. The cells have increasing `edges` (N + 1,) and probabilities `masses` (N,).
    """
    # Between neighbouring points and edges F_n is constant and G is linear.
    order = np.argsort(x)
    ends = np.sort(np.concatenate([x, edges]))
    F = np.concatenate([[0.0], np.cumsum(weights[order])])[
        np.searchsorted(x[order], ends[:-1], "right")
    ]
    G = np.interp(ends, edges, np.concatenate([[0.0], np.cumsum(masses)]))
    first = F - G[:-1]
    last = F - G[1:]
    # The integral of a squared linear function from a to b over an interval is a third of a^2 + ab + b^2, times its length.
    return float(2 / 3 * (np.diff(ends) @ (first**2 + first * last + last**2)))


def set_errors(
    truth: Array, estimates: Array, targets: Targets, dims: Sequence[int]
) -> dict[str, Array]:
    """Compare labelled estimates (T, labels, d) with targets (T, targets, d) over `dims`; absent ones are NaN.

    Each number is over time, (T,), and distances are in the unit of the error; only the label switches are counted in the
    whole run.
    """
    x = truth[..., list(dims)]
    y = estimates[..., list(dims)]
    present: Any = ~np.isnan(y).any(axis=2)
    points = [row[at] for row, at in zip(y, present, strict=True)]
    labels = [np.flatnonzero(at).tolist() for at in present]
    c = targets.cutoff
    pairs = list(zip(x, points, strict=True))
    steps = [metrics.gospa(*pair, c, targets.gospa_order) for pair in pairs]
    ospas = [metrics.ospa(*pair, c, targets.ospa_order) for pair in pairs]
    distances, localisation, missed, false = np.array(steps).T
    counts = np.isfinite(truth).all(axis=2).sum(axis=1).astype(float)
    return {
        "gospa": distances,
        "ospa": np.array(ospas),
        # Parts of the p-th power of GOSPA.
        "localisation": localisation,
        "missed": missed,
        "false": false,
        "cardinality": present.sum(axis=1) - counts,  # too many estimates are positive
        "label_switches": np.array(metrics.label_switches(x, points, labels, c)),
    }


def labelled_estimates(result: Any, steps: int, dim: int) -> Array:
    """Return the estimates of a tracker as one array (T, labels, d), labels in the order in which they appear.

    The result of its ``run`` has ``means``, an array (m, d) for each step, and ``labels``, m different hashable ones for
    each step; ValueError if they do not fit, or an estimate is not finite. A label is NaN at steps without an estimate.
    """
    for name in ("means", "labels"):
        values = getattr(result, name, None)
        if values is None or len(values) != steps:
            got = "none" if values is None else len(values)
            raise ValueError(
                f"{name}: expected one entry for each of {steps} steps from a tracker, got {got}"
            )
    paths: dict[Any, Array] = {}
    for step, (means, labels) in enumerate(zip(result.means, result.labels, strict=True)):
        points: Any = _checks.as_array("means", means, (None, dim)) if len(means) else []
        if len(labels) != len(points) or len(set(labels)) < len(labels):
            raise ValueError(
                f"labels: expected {len(points)} different ones at step {step + 1}, got {_checks.short_repr(list(labels))}"
            )
        for label, point in zip(labels, points, strict=True):
            paths.setdefault(label, np.full((steps, dim), np.nan))[step] = point
    return np.stack([*paths.values()], axis=1) if paths else np.empty((steps, 0, dim))
