"""Kalman filters for nonlinear models, on the model contract and with the face of `ParticleFilter`."""

from herdfilter.filters.kalman.core import IndefiniteCovarianceError, KalmanFilter
from herdfilter.filters.kalman.cubature import CubatureKalmanFilter
from herdfilter.filters.kalman.ensemble import EnsembleKalmanFilter
from herdfilter.filters.kalman.extended import ExtendedKalmanFilter
from herdfilter.filters.kalman.histories import MixtureKalmanFilter
from herdfilter.filters.kalman.interacting import InteractingMultipleModel
from herdfilter.filters.kalman.mixture import kalman_mixture
from herdfilter.filters.kalman.smart_sampling import SmartSamplingKalmanFilter
from herdfilter.filters.kalman.unscented import UnscentedKalmanFilter

__all__ = [
    "CubatureKalmanFilter",
    "EnsembleKalmanFilter",
    "ExtendedKalmanFilter",
    "IndefiniteCovarianceError",
    "InteractingMultipleModel",
    "KalmanFilter",
    "MixtureKalmanFilter",
    "SmartSamplingKalmanFilter",
    "UnscentedKalmanFilter",
    "kalman_mixture",
]
