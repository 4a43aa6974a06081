"""Filters on one model contract."""

from herdfilter.filters import proposals, resampling
from herdfilter.filters.cloud import Cloud
from herdfilter.filters.exact import GridFilter
from herdfilter.filters.flow import DaumHuangFilter
from herdfilter.filters.kalman import (
    CubatureKalmanFilter,
    EnsembleKalmanFilter,
    ExtendedKalmanFilter,
    IndefiniteCovarianceError,
    InteractingMultipleModel,
    MixtureKalmanFilter,
    SmartSamplingKalmanFilter,
    UnscentedKalmanFilter,
)
from herdfilter.filters.move import Move
from herdfilter.filters.observation import Observation
from herdfilter.filters.particle_filter import ParticleFilter
from herdfilter.filters.proposals import *  # noqa: F403
from herdfilter.filters.replay import Replay
from herdfilter.filters.resampling import *  # noqa: F403
from herdfilter.filters.results import DegenerateWeightsError, FilterResult, Outcome, StepRecord

__all__ = [
    "Cloud",
    "CubatureKalmanFilter",
    "DaumHuangFilter",
    "DegenerateWeightsError",
    "EnsembleKalmanFilter",
    "ExtendedKalmanFilter",
    "FilterResult",
    "GridFilter",
    "IndefiniteCovarianceError",
    "InteractingMultipleModel",
    "MixtureKalmanFilter",
    "Move",
    "Observation",
    "Outcome",
    "ParticleFilter",
    "Replay",
    "SmartSamplingKalmanFilter",
    "StepRecord",
    "UnscentedKalmanFilter",
]
__all__ += proposals.__all__
__all__ += resampling.__all__
