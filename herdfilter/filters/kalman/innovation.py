"""What an observation tells: the residual, the gain and the density, for Gaussians and for an ensemble."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.models.contract import Model, observation_circular, observation_covariance


class Innovation:
    """The finite part of an observation beside K predictions.

    Parameters
    ----------
    model : object
        Gives the noise R of the observation and says which of its entries are angles.
    z : ndarray, shape (k,)
        The observation; NaN where an entry is missing.
    predicted : ndarray, shape (K, k)
        Its predicted means.
    covariances : ndarray, shape (K, k, k)
        Covariances of the predictions, without R.
    cross : ndarray, shape (K, d, k)
        Covariances of the state with the observation.
    step : int

    Raises
    ------
    ValueError
        If `z` is of another shape than its prediction, or infinite.
    IndefiniteCovarianceError
        If a matrix ``covariances + R`` is not positive definite.
    """

    def __init__(
        self, model: Model, z: Array, predicted: Array, covariances: Array, cross: Array, step: int
    ) -> None:
        if z.shape != predicted.shape[1:]:
            raise ValueError(
                f"z: expected shape {predicted.shape[1:]}, as of observation_mean, got {z.shape}"
            )
        if np.isinf(z).any():
            raise ValueError(f"z: expected finite numbers, or NaN where missing, got {z} at step {step}")
        self.z, self.predicted = z, predicted
        self.circular = observation_circular(model, len(z))
        self.kept = np.flatnonzero(~np.isnan(z))
        noise = observation_covariance(model, len(z), step)
        if len(self.kept) < len(z):
            part = np.ix_(self.kept, self.kept)
            noise, covariances, cross = noise[part], covariances[:, part[0], part[1]], cross[:, :, self.kept]
        self.noise = noise
        self.covariances, self.cross, self.step = covariances + noise, cross, step

    @cached_property
    def _whitening(self) -> Array:
        """Inverses of L, with S = L L' the covariances, (K, kept, kept)."""
        try:
            return np.linalg.inv(np.linalg.cholesky(self.covariances))
        except np.linalg.LinAlgError:
            raise IndefiniteCovarianceError(self.step, "observation's") from None

    @cached_property
    def _half_gain(self) -> Array:
        """Matrices G with the gain ``G' L^-1``, (K, kept, d)."""
        return self._whitening @ self.cross.transpose(0, 2, 1)

    def residuals(self, predictions: Array) -> Array:
        """Finite part of ``z - predictions``, angles wrapped, (..., k) -> (..., kept)."""
        return wrap_angles(self.z - predictions, self.circular)[..., self.kept]

    def corrections(self, residuals: Array) -> Array:
        """Gain times each residual, (K, n, kept) -> (K, n, d)."""
        return residuals @ self._whitening.transpose(0, 2, 1) @ self._half_gain

    @property
    def log_densities(self) -> Array:
        """Log-density of the finite part of the observation by each prediction, (K,)."""
        white = (self._whitening @ self.residuals(self.predicted)[:, :, None])[:, :, 0]
        log_roots = np.log(np.diagonal(self._whitening, axis1=1, axis2=2)).sum(axis=1)
        return log_roots - 0.5 * ((white * white).sum(axis=1) + white.shape[1] * np.log(2 * np.pi))
