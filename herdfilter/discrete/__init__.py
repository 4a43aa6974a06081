"""Herding, thinning and herded Gibbs sampling on finite sets."""

from herdfilter._repr import listing_of
from herdfilter.discrete.herded_gibbs import DictionaryFullError, HerdedGibbs
from herdfilter.discrete.herding import herding
from herdfilter.discrete.thinning import thin

__all__ = ["DictionaryFullError", "HerdedGibbs", "herding", "thin"]
__dir__ = listing_of(globals())
