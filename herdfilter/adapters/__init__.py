"""Models and filters of other libraries, each an optional extra: import the module of the library that is meant."""

from herdfilter._repr import listing_of

__all__ = ["filterpy", "particles", "stone_soup"]
__dir__ = listing_of(globals())
