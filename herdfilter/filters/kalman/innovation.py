"""What an observation tells: the residual, the gain and the density, for a Gaussian belief and for an ensemble."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.models.contract import Model, observation_circular, observation_covariance


class Innovation:
    """The finite part of an observation beside its prediction.

    Parameters
    ----------
    model : object
        Gives the noise R of the observation and says which of its entries are angles.
    z : ndarray, shape (k,)
        The observation; NaN where an entry is missing.
    predicted : ndarray, shape (k,)
        Its predicted mean.
    covariance : ndarray, shape (k, k)
        Covariance of the prediction, without R.
    cross : ndarray, shape (d, k)
        Covariance of the state with the observation.
    step : int

    Raises
    ------
    ValueError
        If `z` is of another shape than its prediction, or infinite.
    IndefiniteCovarianceError
        If ``covariance + R`` is not positive definite.
    """

    def __init__(
        self, model: Model, z: Array, predicted: Array, covariance: Array, cross: Array, step: int
    ) -> None:
        if z.shape != predicted.shape:
            raise ValueError(f"z: expected shape {predicted.shape}, as of observation_mean, got {z.shape}")
        if np.isinf(z).any():
            raise ValueError(f"z: expected finite numbers, or NaN where missing, got {z} at step {step}")
        self.z, self.predicted = z, predicted
        self.circular = observation_circular(model, len(z))
        self.kept = np.flatnonzero(~np.isnan(z))
        part = np.ix_(self.kept, self.kept)
        self.noise = observation_covariance(model, len(z), step)[part]
        try:
            factor = np.linalg.cholesky(covariance[part] + self.noise)  # S = L L'
        except np.linalg.LinAlgError:
            raise IndefiniteCovarianceError(step, "observation's") from None
        self._whitening = np.linalg.inv(factor)
        self._half_gain = self._whitening @ cross[:, self.kept].T  # the gain is half_gain' L^-1

    def residuals(self, predictions: Array) -> Array:
        """Finite part of ``z - predictions``, angles wrapped, (..., k) -> (..., kept)."""
        return wrap_angles(self.z - predictions, self.circular)[..., self.kept]

    def corrections(self, residuals: Array) -> Array:
        """Gain times each residual, (n, kept) -> (n, d)."""
        return residuals @ self._whitening.T @ self._half_gain

    @property
    def reduction(self) -> Array:
        """``K S K'``, by which the covariance of the state shrinks, (d, d)."""
        return self._half_gain.T @ self._half_gain

    @property
    def log_density(self) -> float:
        """Log-density of the finite part of the observation."""
        white = self._whitening @ self.residuals(self.predicted)
        log_root = np.log(np.diagonal(self._whitening)).sum()
        return float(log_root - 0.5 * (white @ white + len(white) * np.log(2 * np.pi)))
