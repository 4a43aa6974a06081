"""Stone Soup: its models as models of this package, and herded particles in its particle filter.

Stone Soup finds the names below under ``stonesoup.plugins.herdfilter``, too.

Raises
------
ImportError
    If Stone Soup is missing, or too old to have proposals.
"""

from herdfilter.adapters.stone_soup import _library as _library
from herdfilter.adapters.stone_soup.models import StoneSoupModel, from_stonesoup
from herdfilter.adapters.stone_soup.proposal import HerdfilterProposal
from herdfilter.adapters.stone_soup.resampler import HerdfilterResampler
from herdfilter.adapters.stone_soup.sensors import readings

__all__ = ["HerdfilterProposal", "HerdfilterResampler", "StoneSoupModel", "from_stonesoup", "readings"]
