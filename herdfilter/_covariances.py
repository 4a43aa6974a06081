"""Covariance matrices that may be singular: factors, a floor under their eigenvalues, their rank."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import UNDERFLOW, Array

RANK_TOLERANCE = 1e-8  # of a correlation matrix; directions of smaller ones have no spread
# rounding alone may cause such a variance, relative to the square of the mean
SUSPECT_VARIANCE = 1e-20
# relative range of equal numbers after a few operations with rounding
EQUAL_RANGE = 16 * np.finfo(float).eps


def covariance_factor(covariance: Array) -> Array:
    """Return F with ``F @ F.T == covariance`` for one (d, d) or a stack of them; Cholesky, eigenvectors if singular."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        # each by itself, so that a singular matrix affects no other
        if covariance.ndim > 2 and len(covariance) > 1:
            return np.array([covariance_factor(matrix) for matrix in covariance])
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def regularised(covariance: Array, relative: float = RANK_TOLERANCE) -> Array:
    """Return `covariance` with the eigenvalues of its correlation matrix raised to at least `relative`.

    Working with correlations lets units differ between dimensions. A dimension without spread gets the smallest positive
    variance of the others, or 1; a variance below `UNDERFLOW` counts as 0.
    """
    variance = np.diagonal(covariance)
    spread = variance > UNDERFLOW
    if len(variance) == 1 and spread[0]:  # the only correlation is 1
        return covariance
    if not spread.all():
        variance = np.where(spread, variance, variance[spread].min() if spread.any() else 1.0)
    scale = np.sqrt(variance)
    scales = scale[:, None] * scale
    values, vectors = np.linalg.eigh(covariance / scales)
    if values[0] >= relative:
        return covariance
    return np.asarray((vectors * np.maximum(values, relative)) @ vectors.T * scales)


def regularised_and_rank(covariance: Array) -> tuple[Array, int]:
    """Return a covariance (d, d), `regularised`, and the number of its directions with spread, at least 1."""
    regular = regularised(covariance)
    if regular is covariance:
        return regular, len(covariance)
    spread = np.diagonal(covariance) > UNDERFLOW
    scale = np.sqrt(np.diagonal(covariance)[spread])
    values = np.linalg.eigvalsh(covariance[np.ix_(spread, spread)] / np.outer(scale, scale))
    return regular, max(int(np.count_nonzero(values > RANK_TOLERANCE)), 1)


def standardise(x: Array, weights: Array) -> Array:
    """Move weighted points (n, d) to mean 0 and, where their covariance has full rank, scale them to covariance I."""
    x = x - weights @ x
    values, vectors = np.linalg.eigh((weights[:, None] * x).T @ x)
    if len(x) > x.shape[1] and values[0] > 1e-6 * values[-1]:
        # The symmetric root changes the points least.
        x = x @ (vectors / np.sqrt(values)) @ vectors.T
    return x


def plain_and_regular(x: Array, weights: Array, centred: Array) -> tuple[Array, Array]:
    """Return the covariance (d, d) of `centred` under `weights`, and the same `regularised`.

    A dimension in which the particles `x` agree to rounding has no variance; the sum alone would leave about 1e-32 of its
    square, or nothing, depending on the processor.
    """
    covariance = (centred.T * weights) @ centred
    centre = x[0] - centred[0]
    if (covariance.diagonal() <= SUSPECT_VARIANCE * centre * centre).any():
        present = x[weights > 0]
        constant = np.ptp(present, axis=0) <= EQUAL_RANGE * np.abs(present).max(axis=0)
        covariance[constant] = 0.0
        covariance[:, constant] = 0.0
    return covariance, regularised(covariance)
