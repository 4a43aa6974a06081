"""Kalman filters for nonlinear models, on the model contract and with the face of `ParticleFilter`."""

from herdfilter.filters.kalman.batched import BatchedKalmanFilter
from herdfilter.filters.kalman.core import KalmanFilter as KalmanFilter
from herdfilter.filters.kalman.ensemble import EnsembleKalmanFilter
from herdfilter.filters.kalman.gaussian import kalman_mixture as kalman_mixture
from herdfilter.filters.kalman.gaussian_filters import (
    CubatureKalmanFilter,
    ExtendedKalmanFilter,
    SmartSamplingKalmanFilter,
    UnscentedKalmanFilter,
)
from herdfilter.filters.kalman.jump_filters import InteractingMultipleModel, MixtureKalmanFilter
from herdfilter.filters.kalman.update import IndefiniteCovarianceError

__all__ = [
    "BatchedKalmanFilter",
    "CubatureKalmanFilter",
    "EnsembleKalmanFilter",
    "ExtendedKalmanFilter",
    "IndefiniteCovarianceError",
    "InteractingMultipleModel",
    "MixtureKalmanFilter",
    "SmartSamplingKalmanFilter",
    "UnscentedKalmanFilter",
]
