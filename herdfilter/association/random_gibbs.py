"""Association by random Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_generator, check_count, one_of
from herdfilter.association._clusters import Method
from herdfilter.association._sweeps import ESTIMATES, Estimate, estimated, scaled, sweeps


@dataclass(frozen=True)
class RandomGibbs(Method):
    """Random Gibbs sampling: each track in turn draws from what the others leave.

    Parameters
    ----------
    sweeps : int
        Over all tracks of a cluster, from all missed.
    estimate : {"conditionals", "counts", "joint"}
        Marginals are averages of the conditional probabilities (Rao-Blackwell), relative frequencies of the states after
        each sweep, or sums over the distinct ones of these states, weighed by their products of ratios.

    Raises
    ------
    ValueError
        From `marginals`: if a track that competes with others has a first column of 0.

    Examples
    --------
    >>> ratios = [[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]]
    >>> exact = hf.association.marginals(ratios)
    >>> found = hf.association.marginals(ratios, hf.association.RandomGibbs(sweeps=500), rng=0)
    >>> print(np.abs(found - exact).max() < 0.1)
    True
    """

    sweeps: int = 1000
    estimate: Estimate = "conditionals"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sweeps", check_count("sweeps", self.sweeps))
        one_of("estimate", self.estimate, ESTIMATES)

    def cluster(self, ratios: Array, rng: Any = None) -> tuple[Array, float]:
        """Return the marginals of one cluster, and the log evidence if the estimate is "joint"."""
        rows = scaled(ratios)
        tracks = len(rows)
        uniforms = as_generator(rng).random((self.sweeps, tracks))
        codes = np.zeros(rows.shape, np.uint64)
        found = sweeps(rows, uniforms, self.sweeps, codes, np.zeros(rows.shape, np.bool_), np.zeros(tracks))
        return estimated(self.estimate, ratios, *found)
