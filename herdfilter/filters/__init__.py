"""Filters on one model contract."""

from herdfilter.filters.grid import GridFilter
from herdfilter.filters.kalman import (
    CubatureKalmanFilter,
    EnsembleKalmanFilter,
    ExtendedKalmanFilter,
    IndefiniteCovarianceError,
    SmartSamplingKalmanFilter,
    UnscentedKalmanFilter,
)
from herdfilter.filters.particle_filter import ParticleFilter
from herdfilter.filters.proposals import AugmentedProposal, BootstrapProposal, HerdedProposal, Proposal
from herdfilter.filters.resampling import (
    MixtureResampling,
    MultinomialResampling,
    OptimalTransportResampling,
    Resampling,
    ResidualResampling,
    SSPResampling,
    StratifiedResampling,
    SystematicResampling,
)
from herdfilter.filters.results import DegenerateWeightsError, FilterResult, Outcome, StepRecord

__all__ = [
    "AugmentedProposal",
    "BootstrapProposal",
    "CubatureKalmanFilter",
    "DegenerateWeightsError",
    "EnsembleKalmanFilter",
    "ExtendedKalmanFilter",
    "FilterResult",
    "GridFilter",
    "HerdedProposal",
    "IndefiniteCovarianceError",
    "MixtureResampling",
    "MultinomialResampling",
    "OptimalTransportResampling",
    "Outcome",
    "ParticleFilter",
    "Proposal",
    "Resampling",
    "ResidualResampling",
    "SSPResampling",
    "SmartSamplingKalmanFilter",
    "StepRecord",
    "StratifiedResampling",
    "SystematicResampling",
    "UnscentedKalmanFilter",
]
