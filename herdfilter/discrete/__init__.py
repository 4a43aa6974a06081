"""Herding and herded Gibbs sampling on finite sets."""

from herdfilter.discrete.herded_gibbs import DictionaryFullError, HerdedGibbs
from herdfilter.discrete.herding import herding

__all__ = ["DictionaryFullError", "HerdedGibbs", "herding"]
