"""Whether Stone Soup is there; the folder imports this before all else."""

try:
    from stonesoup.proposal.base import Proposal as Proposal
except ImportError as error:
    raise ImportError(
        "herdfilter.adapters.stone_soup: expected Stone Soup 1.7 or newer, which cannot be imported: "
        "pip install 'herdfilter[stonesoup]'"
    ) from error
