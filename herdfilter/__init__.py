"""Nonlinear filtering with herded particles.

A particle filter whose random draws can be swapped for deterministic ones: kernel herding and continuous herded Gibbs
sampling (Wolf and Baum, "Continuous Herded Gibbs Sampling", 2021) from Gaussian-mixture approximations of the posterior.
"""

from herdfilter import bandwidths, discrete, kernels, models, testing
from herdfilter.discrepancy import energy_distance, herding_error, normalised_l2, sliced_wasserstein
from herdfilter.evaluation.compare import compare
from herdfilter.filters import (
    AugmentedProposal,
    AuxiliaryProposal,
    BootstrapProposal,
    CubatureKalmanFilter,
    DaumHuangFilter,
    DegenerateWeightsError,
    EnsembleKalmanFilter,
    ExtendedKalmanFilter,
    FilterResult,
    FlowProposal,
    GridFilter,
    HerdedProposal,
    IndefiniteCovarianceError,
    MixtureResampling,
    MultinomialResampling,
    OptimalTransportResampling,
    Outcome,
    ParticleFilter,
    ResidualResampling,
    SmartSamplingKalmanFilter,
    SSPResampling,
    StepRecord,
    StratifiedResampling,
    SystematicResampling,
    UnscentedKalmanFilter,
)
from herdfilter.fitting import EMFit, GaussianFit, KernelDensityFit
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import simulate
from herdfilter.points import Points
from herdfilter.samplers import (
    ConditionalError,
    ConditionalHerdedGibbs,
    ContinuousHerdedGibbs,
    CoordinateHerding,
    KernelHerding,
    LCDSampling,
    MappedSampling,
    Polished,
    RandomGibbs,
    RandomSampling,
    Reweighted,
    SigmaPoints,
    SobolSampling,
)

__version__ = "0.1.0"

__all__ = [
    "AugmentedProposal",
    "AuxiliaryProposal",
    "BootstrapProposal",
    "ConditionalError",
    "ConditionalHerdedGibbs",
    "ContinuousHerdedGibbs",
    "CoordinateHerding",
    "CubatureKalmanFilter",
    "DaumHuangFilter",
    "DegenerateWeightsError",
    "EMFit",
    "EnsembleKalmanFilter",
    "ExtendedKalmanFilter",
    "FilterResult",
    "FlowProposal",
    "GaussianFit",
    "GaussianMixture",
    "GridFilter",
    "HerdedProposal",
    "IndefiniteCovarianceError",
    "KernelDensityFit",
    "KernelHerding",
    "LCDSampling",
    "MappedSampling",
    "MixtureResampling",
    "MultinomialResampling",
    "OptimalTransportResampling",
    "Outcome",
    "ParticleFilter",
    "Points",
    "Polished",
    "RandomGibbs",
    "RandomSampling",
    "ResidualResampling",
    "Reweighted",
    "SSPResampling",
    "SigmaPoints",
    "SmartSamplingKalmanFilter",
    "SobolSampling",
    "StepRecord",
    "StratifiedResampling",
    "SystematicResampling",
    "UnscentedKalmanFilter",
    "bandwidths",
    "compare",
    "discrete",
    "energy_distance",
    "herding_error",
    "kernels",
    "models",
    "normalised_l2",
    "simulate",
    "sliced_wasserstein",
    "testing",
]
