"""SSP resampling: rests of the numbers of offspring traded in pairs until all are whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.filters.resampling._ssp import rounded_up
from herdfilter.filters.resampling.base import CopyingResampling, Indices, whole_and_rest


@dataclass(frozen=True)
class SSPResampling(CopyingResampling):
    """Srinivasan sampling process: floor or ceil of ``n weights[i]`` copies, negatively associated.

    Two particles at a time, one rest of ``n weights`` grows at the expense of the other, in a direction drawn so that
    neither changes in the mean, until one of the two is whole (Gerber, Chopin and Whiteley 2019, after Srinivasan 2001). The
    scheme converges whatever the order of the particles, where systematic resampling, as even, may fail to.
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        n = len(weights)
        copies, rest = whole_and_rest(weights)
        copies += rounded_up(rest, n - int(copies.sum()), rng.random(n))
        return np.repeat(np.arange(n), copies)
