"""Which measurement belongs to which track: marginal probabilities by exact and by approximate methods."""

from herdfilter._repr import listing_of
from herdfilter.association.base import Association, ClusterMethod
from herdfilter.association.belief_propagation import AssociationWarning, BeliefPropagation
from herdfilter.association.calls import associate, marginals, ratios
from herdfilter.association.exact import Exact
from herdfilter.association.gibbs import HerdedGibbs, RandomGibbs
from herdfilter.association.k_best import KBest, k_best_assignments

__all__ = [
    "Association",
    "AssociationWarning",
    "BeliefPropagation",
    "ClusterMethod",
    "Exact",
    "HerdedGibbs",
    "KBest",
    "RandomGibbs",
    "associate",
    "k_best_assignments",
    "marginals",
    "ratios",
]
__dir__ = listing_of(globals())
