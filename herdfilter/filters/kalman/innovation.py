"""What an observation tells: the residual, the gain and the density, for Gaussians and for an ensemble."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.observation import Observation


class Innovation:
    """The finite part of an observation beside K predictions.

    Parameters
    ----------
    seen : Observation
        The observation.
    predicted : ndarray, shape (K, k)
        Its predicted means.
    covariances : ndarray, shape (K, k, k)
        Covariances of the predictions, that of the noise included.
    cross : ndarray, shape (K, d, k)
        Covariances of the state with the observation.

    Raises
    ------
    ValueError
        If the observation is of another shape than its prediction, or infinite.
    IndefiniteCovarianceError
        If one of the covariances is not positive definite.
    """

    def __init__(self, seen: Observation, predicted: Array, covariances: Array, cross: Array) -> None:
        seen.expect(predicted.shape[1:], "observation_mean")
        if len(seen.kept) < len(seen.vector):
            covariances, cross = seen.part(covariances), cross[:, :, seen.kept]
        self.seen, self.predicted = seen, predicted
        self.covariances, self.cross = covariances, cross

    @cached_property
    def _whitening(self) -> Array:
        """Inverses of L, with S = L L' the covariances, (K, kept, kept)."""
        try:
            return np.linalg.inv(np.linalg.cholesky(self.covariances))
        except np.linalg.LinAlgError:
            raise IndefiniteCovarianceError(self.seen.step, "observation's") from None

    @cached_property
    def _half_gain(self) -> Array:
        """Matrices G with the gain ``G' L^-1``, (K, kept, d)."""
        return self._whitening @ self.cross.transpose(0, 2, 1)

    def corrections(self, residuals: Array) -> Array:
        """Gain times each residual, (K, n, kept) -> (K, n, d)."""
        return residuals @ self._whitening.transpose(0, 2, 1) @ self._half_gain

    @property
    def log_densities(self) -> Array:
        """Log-density of the finite part of the observation by each prediction, (K,)."""
        white = (self._whitening @ self.seen.residuals(self.predicted)[:, :, None])[:, :, 0]
        log_roots = np.log(np.diagonal(self._whitening, axis1=1, axis2=2)).sum(axis=1)
        return log_roots - 0.5 * ((white * white).sum(axis=1) + white.shape[1] * np.log(2 * np.pi))
