"""Proposals: how particles are carried through the transition; one file a method."""

from herdfilter.filters.proposals.augmented import AugmentedProposal
from herdfilter.filters.proposals.base import Proposal
from herdfilter.filters.proposals.bootstrap import BootstrapProposal
from herdfilter.filters.proposals.herded import HerdedProposal

__all__ = ["AugmentedProposal", "BootstrapProposal", "HerdedProposal", "Proposal"]
