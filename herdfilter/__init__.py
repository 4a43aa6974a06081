"""Nonlinear filtering with herded particles.

A particle filter whose random draws can be swapped for deterministic ones: kernel herding and continuous herded Gibbs
sampling (Wolf and Baum, "Continuous Herded Gibbs Sampling", 2021) from Gaussian-mixture approximations of the posterior.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from herdfilter import bandwidths, discrete, kernels, models, testing
from herdfilter._version import __version__ as __version__
from herdfilter.conditionals import ConditionalError, ConditionalHerdedGibbs
from herdfilter.discrepancy import (
    energy_distance,
    expected_energy_distance,
    herding_error,
    normalised_l2,
    sliced_wasserstein,
)
from herdfilter.filters import (
    AugmentedProposal,
    AutomaticProposal,
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
    GuidedAugmentedProposal,
    GuidedProposal,
    HerdedProposal,
    IndefiniteCovarianceError,
    KalmanMixtureProposal,
    MixtureResampling,
    MultinomialResampling,
    OptimalTransportResampling,
    Outcome,
    ParticleFilter,
    RegularisedResampling,
    ResidualResampling,
    SequentialQuasiMonteCarlo,
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
    ContinuousHerdedGibbs,
    KernelHerding,
    LCDSampling,
    MappedSampling,
    PlacedAgain,
    Polished,
    RandomGibbs,
    RandomSampling,
    Reweighted,
    SigmaPoints,
    SobolSampling,
)
from herdfilter.smoothing import Trajectories, UnreachableStateError, backward_simulation

if TYPE_CHECKING:
    from herdfilter import evaluation, plotting
    from herdfilter.evaluation.compare import compare

__all__ = [
    "AugmentedProposal",
    "AutomaticProposal",
    "AuxiliaryProposal",
    "BootstrapProposal",
    "ConditionalError",
    "ConditionalHerdedGibbs",
    "ContinuousHerdedGibbs",
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
    "GuidedAugmentedProposal",
    "GuidedProposal",
    "HerdedProposal",
    "IndefiniteCovarianceError",
    "KalmanMixtureProposal",
    "KernelDensityFit",
    "KernelHerding",
    "LCDSampling",
    "MappedSampling",
    "MixtureResampling",
    "MultinomialResampling",
    "OptimalTransportResampling",
    "Outcome",
    "ParticleFilter",
    "PlacedAgain",
    "Points",
    "Polished",
    "RandomGibbs",
    "RandomSampling",
    "RegularisedResampling",
    "ResidualResampling",
    "Reweighted",
    "SSPResampling",
    "SequentialQuasiMonteCarlo",
    "SigmaPoints",
    "SmartSamplingKalmanFilter",
    "SobolSampling",
    "StepRecord",
    "StratifiedResampling",
    "SystematicResampling",
    "Trajectories",
    "UnreachableStateError",
    "UnscentedKalmanFilter",
    "backward_simulation",
    "bandwidths",
    "compare",
    "discrete",
    "energy_distance",
    "evaluation",
    "expected_energy_distance",
    "herding_error",
    "kernels",
    "models",
    "normalised_l2",
    "plotting",
    "simulate",
    "sliced_wasserstein",
    "testing",
]

_ON_DEMAND = {
    "compare": "herdfilter.evaluation.compare",
    "evaluation": "herdfilter.evaluation",
    "plotting": "herdfilter.plotting",
}
"""Name -> the module that it is, or that has it: what filtering does not need is loaded when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_ON_DEMAND[name])
    value = globals()[name] = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
