"""The smart sampling Kalman filter, S2KF."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, check_count
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief
from herdfilter.filters.kalman.points import PointRule
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import Model
from herdfilter.samplers.lcd import LCDSampling


class SmartSamplingKalmanFilter(KalmanFilter):
    """Kalman filter whose moments are taken over n optimal points of equal weight (Steinbring and Hanebeck 2013).

    The points are those of `LCDSampling` for N(0, I), computed once per process for each number and dimension, and
    mapped to the Gaussian for every prediction and every update. That is the Gaussian of the state, to whose image
    additive noise adds its covariance, or of state and noise together where the noise is not additive.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial`` (that has ``mean`` and ``covariance``), ``transition_mean`` and
        ``transition_covariance`` or ``transition`` and ``noise_dim``, ``observation_mean`` and
        ``observation_covariance``.
    n_particles : int
        Number of points, at least twice the dimension of the Gaussian.

    Raises
    ------
    TypeError
        If the model lacks a function.
    ValueError
        If `n_particles` is out of range; with noise that is not additive, only `predict` can tell.

    Examples
    --------
    The state is N(1, 4) when its square is seen, with noise of variance 1: the mean of the observation is 5 and its variance
    49. Points in pairs have the mean exactly; the variance is the better, the more points there are.

    >>> model = hf.models.from_functions(lambda x: x, lambda x: x**2, Q=[[3.0]], R=[[1.0]], x0=[1.0], P0=[[1.0]])
    >>> for n in [4, 20]:
    ...     kf = hf.SmartSamplingKalmanFilter(model, n_particles=n)
    ...     kf.predict()
    ...     mean, covariance = kf.predicted_observation()
    ...     print(round(mean.item(), 3), round(covariance.item()))
    ...
    5.0 29
    5.0 43
    """

    def __init__(self, model: Model, n_particles: int = 100) -> None:
        self.n_particles = check_count("n_particles", n_particles)
        rule = PointRule(_Optimal(self.n_particles))
        super().__init__(model, GaussianBelief.initial(model, "SmartSamplingKalmanFilter", rule))
        check_count("n_particles", n_particles, minimum=2 * model.dim)


@dataclass(frozen=True)
class _Optimal:
    """Points of N(0, I) by localized cumulative distributions."""

    n: int

    def __call__(self, m: int) -> tuple[Array, Array, Array]:
        if self.n < 2 * m:  # the points come in pairs, mirrored at the origin
            raise ValueError(f"n_particles: expected at least {2 * m} points for {m} dimensions, got {self.n}")
        normal = GaussianMixture.unchecked(np.ones(1), np.zeros((1, m)), np.eye(m))
        points = LCDSampling().sample(normal, self.n)
        return points.x, points.weights, points.weights
