"""Which measurement belongs to which track: marginal probabilities by exact and by approximate methods."""

from herdfilter.association._clusters import Association, ClusterMethod
from herdfilter.association.belief_propagation import AssociationWarning, BeliefPropagation
from herdfilter.association.calls import associate, marginals
from herdfilter.association.exact import Exact
from herdfilter.association.matrix import ratios

__all__ = [
    "Association",
    "AssociationWarning",
    "BeliefPropagation",
    "ClusterMethod",
    "Exact",
    "associate",
    "marginals",
    "ratios",
]
