"""The extended Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_numbers
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief
from herdfilter.models.contract import Model, VectorFunction, central_differences


class ExtendedKalmanFilter(KalmanFilter):
    """Kalman filter on the model's linearisation at the mean (Jazwinski 1970, chapter 8).

    Where noise is additive the Jacobians are the model's, from the optional ``transition_jacobian(x, dt, control,
    step)``, (n, d) -> (n, d, d), and ``observation_jacobian(x, step)``, (n, d) -> (n, k, d); else central
    differences. Noise that is not additive is linearised together with the state.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial`` (that has ``mean`` and ``covariance``), ``transition_mean`` and
        ``transition_covariance`` or ``transition`` and ``noise_dim``, ``observation_mean`` and
        ``observation_covariance``.

    Raises
    ------
    TypeError
        If the model lacks a function.

    Notes
    -----
    Numbers are those of filterpy's ``ExtendedKalmanFilter``. That is not called: it needs the Jacobians and has no
    nonlinear transition.

    Examples
    --------
    Kalman's filter where the model is linear: his recursion, written out for one number.

    >>> model = hf.models.LinearGaussian(F=[[0.9]], H=[[1]], Q=[[0.5]], R=[[2]], initial_mean=[0], initial_covariance=[[1]])
    >>> mean, variance = 0.0, 1.0
    >>> for z in [1.2, 0.4, 2.0]:
    ...     mean, variance = 0.9 * mean, 0.81 * variance + 0.5
    ...     gain = variance / (variance + 2)
    ...     mean, variance = mean + gain * (z - mean), (1 - gain) * variance
    ...
    >>> result = hf.ExtendedKalmanFilter(model).run([1.2, 0.4, 2.0])
    >>> np.allclose(result.means[-1], mean), np.allclose(result.covariances[-1], variance)
    (True, True)
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model, GaussianBelief.initial(model, "ExtendedKalmanFilter", linearised))


@dataclass(frozen=True)
class _Linearised:
    """Moments of the linearisation at each mean (a `MomentRule`)."""

    def __call__(self, function: VectorFunction, means: Array, covariances: Array) -> tuple[Array, Array, Array]:
        """Return means, covariances and cross-covariances of the values."""
        if function.jacobian is None:
            centres, J = central_differences(function, means, np.sqrt(np.diagonal(covariances, axis1=1, axis2=2)))
        else:
            centres = function.values(means)
            J = as_numbers("jacobian", function.jacobian(means), (*centres.shape, means.shape[1]))
            expected = (*centres.shape, means.shape[1])
            if J.shape != expected or not np.isfinite(J).all():
                entries = "" if np.isfinite(J).all() else f" with {np.count_nonzero(~np.isfinite(J))} NaN or infinite"
                raise ValueError(
                    f"jacobian: expected finite numbers of shape {expected} from the model, got {J.shape}{entries}"
                )
        cross = covariances @ J.transpose(0, 2, 1)
        return centres, J @ cross, cross

    def mean(self, function: VectorFunction, means: Array, covariances: Array) -> Array:
        """Return the values at the means, (K, k)."""
        return function.values(means)


linearised = _Linearised()
"""The rule for moments."""
