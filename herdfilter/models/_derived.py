"""The log-likelihood of a model that gives none of its own: that of Gaussian noise about its mean observation."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from herdfilter._checks import Array


def gaussian_log_density(residuals: Array, covariances: Array, step: int) -> Array:
    """Log-density of residuals (n, k) by N(0, S), with S (n, k, k), or (1, k, k) for all; (n,).

    Raises
    ------
    ValueError
        If a covariance is singular: then there is no density.
    """
    k = residuals.shape[1]
    try:
        if len(covariances) == 1:
            whitening, log_root = _whitening(covariances.tobytes(), k)
            white = residuals @ whitening.T
        else:
            roots = np.linalg.cholesky(covariances)
            log_root = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
            white = np.linalg.solve(roots, residuals[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        raise ValueError(
            "observation_covariance: the likelihood that it stands for needs a positive definite matrix, got a singular "
            f"one from the model at step {step}; give the model a log_likelihood of its own"
        ) from None
    with np.errstate(over="ignore"):  # so far away that the density is zero
        return log_root - 0.5 * (np.einsum("ij,ij->i", white, white) + k * math.log(2 * math.pi))


@lru_cache(maxsize=32)
def _whitening(data: bytes, k: int) -> tuple[Array, float]:
    """W with ``W.T @ W`` the inverse of a covariance, and log|W|; found once for one that stays the same."""
    root = np.linalg.cholesky(np.frombuffer(data).reshape(k, k))
    whitening = np.linalg.inv(root)
    whitening.flags.writeable = False
    return whitening, -float(np.log(np.diagonal(root)).sum())
