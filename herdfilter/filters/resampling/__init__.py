"""Resampling schemes; one file a method."""

from herdfilter.filters.resampling.base import Resampling
from herdfilter.filters.resampling.mixture import MixtureResampling
from herdfilter.filters.resampling.systematic import SystematicResampling

__all__ = ["MixtureResampling", "Resampling", "SystematicResampling"]
