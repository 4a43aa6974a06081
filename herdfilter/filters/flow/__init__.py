"""Particle flow: particles moved from prior to posterior instead of weighed."""

from herdfilter.filters.flow.daum_huang import DaumHuangFilter
from herdfilter.filters.flow.exact_flow import ExactFlow, pseudo_times

__all__ = ["DaumHuangFilter", "ExactFlow", "pseudo_times"]
