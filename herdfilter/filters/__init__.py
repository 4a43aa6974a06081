"""Filters on one model contract."""

from herdfilter.filters.cloud import Cloud
from herdfilter.filters.exact import GridFilter
from herdfilter.filters.flow import DaumHuangFilter
from herdfilter.filters.kalman import (
    CubatureKalmanFilter,
    EnsembleKalmanFilter,
    ExtendedKalmanFilter,
    IndefiniteCovarianceError,
    SmartSamplingKalmanFilter,
    UnscentedKalmanFilter,
)
from herdfilter.filters.move import Move
from herdfilter.filters.observation import Observation
from herdfilter.filters.particle_filter import ParticleFilter
from herdfilter.filters.proposals import (
    AugmentedProposal,
    AutomaticProposal,
    AuxiliaryProposal,
    BootstrapProposal,
    FlowProposal,
    GuidedAugmentedProposal,
    GuidedProposal,
    HerdedProposal,
    KalmanMixtureProposal,
    ObservingProposal,
    Proposal,
    SequentialQuasiMonteCarlo,
)
from herdfilter.filters.resampling import (
    CopyingResampling,
    MixtureResampling,
    MultinomialResampling,
    OptimalTransportResampling,
    RegularisedResampling,
    Resampling,
    ResidualResampling,
    SSPResampling,
    StratifiedResampling,
    SystematicResampling,
)
from herdfilter.filters.results import DegenerateWeightsError, FilterResult, Outcome, StepRecord

__all__ = [
    "AugmentedProposal",
    "AutomaticProposal",
    "AuxiliaryProposal",
    "BootstrapProposal",
    "Cloud",
    "CopyingResampling",
    "CubatureKalmanFilter",
    "DaumHuangFilter",
    "DegenerateWeightsError",
    "EnsembleKalmanFilter",
    "ExtendedKalmanFilter",
    "FilterResult",
    "FlowProposal",
    "GridFilter",
    "GuidedAugmentedProposal",
    "GuidedProposal",
    "HerdedProposal",
    "IndefiniteCovarianceError",
    "KalmanMixtureProposal",
    "MixtureResampling",
    "Move",
    "MultinomialResampling",
    "Observation",
    "ObservingProposal",
    "OptimalTransportResampling",
    "Outcome",
    "ParticleFilter",
    "Proposal",
    "RegularisedResampling",
    "Resampling",
    "ResidualResampling",
    "SSPResampling",
    "SequentialQuasiMonteCarlo",
    "SmartSamplingKalmanFilter",
    "StepRecord",
    "StratifiedResampling",
    "SystematicResampling",
    "UnscentedKalmanFilter",
]
