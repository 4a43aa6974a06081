"""Particle flow: particles moved from prior to posterior instead of weighed."""

from herdfilter.filters.flow.daum_huang import DaumHuangFilter
from herdfilter.filters.flow.exact_flow import exact_flow, pseudo_times

__all__ = ["DaumHuangFilter", "exact_flow", "pseudo_times"]
