"""Which measurement belongs to which track: marginal probabilities by exact and by approximate methods."""

from herdfilter.association._clusters import Association, ClusterMethod
from herdfilter.association.belief_propagation import AssociationWarning, BeliefPropagation
from herdfilter.association.calls import associate, marginals
from herdfilter.association.exact import Exact
from herdfilter.association.herded_gibbs import HerdedGibbs
from herdfilter.association.k_best import KBest, k_best_assignments
from herdfilter.association.matrix import ratios
from herdfilter.association.random_gibbs import RandomGibbs

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
