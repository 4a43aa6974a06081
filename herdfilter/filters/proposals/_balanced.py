"""Fixed points of N(0, I) whose successive members balance each other."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy

from herdfilter._checks import Array
from herdfilter.filters.proposals._normality import over_chance
from herdfilter.filters.proposals._scrambled_sobol import scrambled_sobol
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.mapped import standardised

SETS = 8
"""How many sets there are to be taken in turn: what one of them gets wrong the next does not repeat."""

TRIES = 8
"""Scrambles of which the best is taken."""


class BalancedPoints:
    """The first set as a sampler of N(0, I), for `MappedSampling`."""

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Return `n` points of the standard normal in as many dimensions as the mixture has."""
        return Points.unchecked(balanced_noise(n, mixture.dim, 0), np.full(n, 1.0 / n))


@lru_cache(maxsize=1024)
def balanced_noise(n: int, dim: int, turn: int) -> Array:
    """Return n points of N(0, I), (n, dim), always the same; any run of successive ones is spread like the whole.

    The points of a Sobol sequence, in the order of the sequence: beside ``i / n`` as one more coordinate they are a set of
    low discrepancy in dim + 1 dimensions (Niederreiter 1992, lemma 3.7). They are shifted and scaled to mean 0 and, where
    they span the space, covariance I. Of eight scrambles, by a generator that `dim` and `turn` seed, that one is taken whose
    third and fourth cumulants are least.
    """
    weights = np.full(n, 1.0 / n)
    rng, least = np.random.default_rng([dim, turn]), np.inf
    best: Array = np.empty((n, dim))
    for _ in range(TRIES):
        u = scrambled_sobol(n, dim, rng)
        x = standardised(Points.unchecked(scipy.special.ndtri(u), weights)).x
        cumulants = sum(over_chance(x, weights))
        if cumulants < least:
            best, least = x, cumulants
    best.flags.writeable = False
    return best
