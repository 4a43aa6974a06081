"""The unscented Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_array, as_positive
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief
from herdfilter.filters.kalman.points import PointRule
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import Model
from herdfilter.samplers.sigma_points import SigmaPoints


class UnscentedKalmanFilter(KalmanFilter):
    r"""Kalman filter whose moments are taken over 2 m + 1 sigma points, weighted.

    The points are those of `SigmaPoints`, the centre and :math:`\pm \sqrt{m + \lambda}` columns of the Cholesky
    factor, with :math:`\lambda = \alpha^2 (m + \kappa) - m`; the centre has the weight :math:`\lambda / (m +
    \lambda)` in means and :math:`1 - \alpha^2 + \beta` more in covariances (Wan and van der Merwe 2000, eq. 15). New
    points are drawn for every prediction and every update. Here m is the dimension of the state, or of state and
    noise together where the noise is not additive.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial`` (that has ``mean`` and ``covariance``), ``transition_mean`` and
        ``transition_covariance`` or ``transition`` and ``noise_dim``, ``observation_mean`` and
        ``observation_covariance``.
    alpha, beta, kappa : float
        With `alpha` 1 and `beta` 0 the points are the original ones (Julier and Uhlmann 1997). Small `alpha`, or `kappa`
        below zero, makes the weight of the centre negative, and covariances may then lose definiteness.

    Raises
    ------
    TypeError
        If the model lacks a function.
    ValueError
        If a number is out of range.

    Notes
    -----
    Numbers are those of filterpy's ``UnscentedKalmanFilter`` since 2.0; before, it updated with the points that it
    predicted, whose spread lacks the transition noise. That is not called: it loops over points in Python, must be told
    how to average and subtract angles, and takes neither missing entries nor noise that is not additive.

    Examples
    --------
    The state is N(1, 4) when its square is seen, with noise of variance 1: the mean of the observation is 5 and its variance
    49. A linearisation misses both, sigma points with the kurtosis of a Gaussian neither.

    >>> model = hf.models.from_functions(lambda x: x, lambda x: x**2, Q=[[3.0]], R=[[1.0]], x0=[1.0], P0=[[1.0]])
    >>> for kf in [hf.ExtendedKalmanFilter(model), hf.UnscentedKalmanFilter(model, kappa=2.0)]:
    ...     kf.predict()
    ...     mean, covariance = kf.predicted_observation()
    ...     print(round(mean.item(), 3), round(covariance.item(), 3))
    ...
    1.0 17.0
    5.0 49.0
    """

    def __init__(self, model: Model, alpha: float = 1.0, beta: float = 0.0, kappa: float = 1.0) -> None:
        alpha, beta, kappa = (
            as_positive("alpha", alpha),
            float(as_array("beta", beta, ())),
            float(as_array("kappa", kappa, ())),
        )
        points = _Scaled(alpha, beta, kappa)
        super().__init__(model, GaussianBelief.initial(model, "UnscentedKalmanFilter", PointRule(points)))
        points(model.dim)  # names a kappa that is out of range here and now


@dataclass(frozen=True)
class _Scaled:
    """Scaled sigma points of N(0, I)."""

    alpha: float
    beta: float
    kappa: float

    def __call__(self, m: int) -> tuple[Array, Array, Array]:
        if m + self.kappa <= 0:
            raise ValueError(f"kappa: expected a number above {-m} in {m} dimensions, got {self.kappa:g}")
        normal = GaussianMixture.unchecked(np.ones(1), np.zeros((1, m)), np.eye(m))
        sampler = SigmaPoints("unscented", self.alpha**2 * (m + self.kappa) - m)
        points = sampler.sample(normal, sampler.size(normal))
        spread = points.weights.copy()
        spread[0] += 1 - self.alpha**2 + self.beta
        return points.x, points.weights, spread


UNSCENTED = PointRule(_Scaled(1.0, 0.0, 1.0))
"""The rule for moments with the defaults."""
