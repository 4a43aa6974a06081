"""Stone Soup: its models as models of this package, and herded particles in its particle filter.

Stone Soup finds the names below under ``stonesoup.plugins.herdfilter``, too.

Raises
------
ImportError
    If Stone Soup is missing, or too old to have proposals.
"""

try:
    import stonesoup.proposal.base  # noqa: F401
except ImportError as error:
    raise ImportError(
        "herdfilter.adapters.stone_soup: expected Stone Soup 1.7 or newer, which cannot be imported: "
        "pip install 'herdfilter[stonesoup]'"
    ) from error

from herdfilter.adapters.stone_soup.models import StoneSoupModel, from_stonesoup, readings
from herdfilter.adapters.stone_soup.particles import HerdfilterProposal, HerdfilterResampler

__all__ = [
    "HerdfilterProposal",
    "HerdfilterResampler",
    "StoneSoupModel",
    "from_stonesoup",
    "readings",
]
