"""Filters that compute the posterior itself, where a model allows it: references for all others."""

from herdfilter.filters.exact.grid import GridFilter, GridResult

__all__ = ["GridFilter", "GridResult"]
