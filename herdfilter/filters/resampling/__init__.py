"""Resampling schemes; one file per method."""

from herdfilter.filters.resampling.base import CopyingResampling, Resampling
from herdfilter.filters.resampling.copies import (
    MultinomialResampling,
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
