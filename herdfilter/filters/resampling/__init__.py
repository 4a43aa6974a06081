"""Resampling schemes; one file per method."""

from herdfilter.filters.resampling.base import CopyingResampling, Resampling
from herdfilter.filters.resampling.mixture import MixtureResampling
from herdfilter.filters.resampling.multinomial import MultinomialResampling
from herdfilter.filters.resampling.regularised import RegularisedResampling
from herdfilter.filters.resampling.residual import ResidualResampling
from herdfilter.filters.resampling.ssp import SSPResampling
from herdfilter.filters.resampling.stratified import StratifiedResampling
from herdfilter.filters.resampling.systematic import SystematicResampling
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
