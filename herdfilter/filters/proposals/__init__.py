"""Proposals: how particles are carried through the transition; one file per method."""

from herdfilter.filters.proposals.augmented import AugmentedProposal, GuidedAugmentedProposal
from herdfilter.filters.proposals.automatic import AutomaticProposal
from herdfilter.filters.proposals.auxiliary import AuxiliaryProposal
from herdfilter.filters.proposals.base import BootstrapProposal, Proposal, Uses
from herdfilter.filters.proposals.flow import FlowProposal
from herdfilter.filters.proposals.guided import GuidedProposal, KalmanMixtureProposal
from herdfilter.filters.proposals.guided import first_update as first_update
from herdfilter.filters.proposals.herded import HerdedProposal
from herdfilter.filters.proposals.histories import HistoryProposal
from herdfilter.filters.proposals.histories import for_model as for_model
from herdfilter.filters.proposals.histories import propose_step as propose_step
from herdfilter.filters.proposals.limits import draw_initial as draw_initial
from herdfilter.filters.proposals.limits import resample_within as resample_within
from herdfilter.filters.proposals.modes import ModeProposal
from herdfilter.filters.proposals.quasi_monte_carlo import SequentialQuasiMonteCarlo
from herdfilter.filters.proposals.ranked import RankedProposal
from herdfilter.filters.proposals.rao_blackwellised import RaoBlackwellisedProposal

__all__ = [
    "AugmentedProposal",
    "AutomaticProposal",
    "AuxiliaryProposal",
    "BootstrapProposal",
    "FlowProposal",
    "GuidedAugmentedProposal",
    "GuidedProposal",
    "HerdedProposal",
    "HistoryProposal",
    "KalmanMixtureProposal",
    "ModeProposal",
    "Proposal",
    "RankedProposal",
    "RaoBlackwellisedProposal",
    "SequentialQuasiMonteCarlo",
    "Uses",
]
