"""Resampling schemes: those that copy particles, and others, one file per method."""

from herdfilter.filters.resampling.base import (
    CopyingResampling,
    MultinomialResampling,
    Resampling,
    ResidualResampling,
    SSPResampling,
    StratifiedResampling,
    SystematicResampling,
)
from herdfilter.filters.resampling.mixture import MixtureResampling
from herdfilter.filters.resampling.regularised import RegularisedResampling
from herdfilter.filters.resampling.transport import OptimalTransportResampling

__all__ = [
    "CopyingResampling",
    "MixtureResampling",
    "MultinomialResampling",
    "OptimalTransportResampling",
    "RegularisedResampling",
    "Resampling",
    "ResidualResampling",
    "SSPResampling",
    "StratifiedResampling",
    "SystematicResampling",
]
