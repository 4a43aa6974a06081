"""Filters by name: the catalogue, and the constructor expressions in which it and scenarios are written."""

from herdfilter._repr import listing_of
from herdfilter.catalogue.specifications import catalogue, resolve_filters

__all__ = ["catalogue", "resolve_filters"]
__dir__ = listing_of(globals())
