"""Filters on one model contract."""

from herdfilter.filters.grid import GridFilter
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
    "DegenerateWeightsError",
    "FilterResult",
    "GridFilter",
    "HerdedProposal",
    "MixtureResampling",
    "MultinomialResampling",
    "OptimalTransportResampling",
    "Outcome",
    "ParticleFilter",
    "Proposal",
    "Resampling",
    "ResidualResampling",
    "SSPResampling",
    "StepRecord",
    "StratifiedResampling",
    "SystematicResampling",
]
