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

    Examples
    --------
    Of these particles 1.5, 0.5, 1.5 and 0.5 copies are expected. The systematic scheme favours the first and the third
    together, or neither; here one pair does not tell about the other.

    >>> weights, rng = np.array([3, 1, 3, 1]) / 8, np.random.default_rng(0)
    >>> copies = [np.bincount(hf.SystematicResampling().ancestors(weights, rng), minlength=4) for _ in range(200)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1, 1], [2, 0, 2, 0]]
    >>> copies = [np.bincount(hf.SSPResampling().ancestors(weights, rng), minlength=4) for _ in range(200)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1, 1], [1, 1, 2, 0], [2, 0, 1, 1], [2, 0, 2, 0]]
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        copies, rest = whole_and_rest(weights)
        n = len(rest)
        copies += rounded_up(rest, n - int(copies.sum()), rng.random(n))
        return np.repeat(np.arange(n), copies)
