"""Association by herded Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt
from typing import Any, Literal

import numpy as np

from herdfilter._checks import Array, as_positive, check_count, one_of
from herdfilter.association._clusters import Method
from herdfilter.association._sweeps import ESTIMATES, Estimate, estimated, scaled, sweeps

KEYS = ("set", "assignment")
FIRST_VISITS = ("irrational", "argmax")


@dataclass(frozen=True)
class HerdedGibbs(Method):
    """Deterministic Gibbs sampling of the association: every conditional distribution is herded.

    Each track in turn adds its conditional p, given what the others leave, to a weight vector w, takes the measurement of
    largest weight, and subtracts 1 from it. Wolf and Baum (2020), "Deterministic Gibbs sampling for data association in
    multi-object tracking", keep one w for each track and assignment of all others. Here it is one for each track and set
    of those measurements in use that matter to the track: that is all the conditional depends on, there are far fewer, and
    each is visited more often.

    Parameters
    ----------
    sweeps : int
        Over all tracks of a cluster, from all missed.
    key : {"set", "assignment"}
        What a weight vector is kept for, beside the track: the set of measurements in use, or the assignment of all other
        tracks, as published.
    neglect : float or "auto"
        With the key "set": measurements whose ratio makes up at most this share of the track's row are left out of the
        set. The conditional is always the right one; vectors whose conditionals differ little are shared. 0 tells all sets
        apart; 1 keeps one vector a track. By default ``3 / sqrt(sweeps)``: with more sweeps, more sets can be told apart.
    first_visit : {"irrational", "argmax"}
        Where a weight vector is met for the first time, its argmax would always be the most probable measurement. By
        default the value is taken at the next point of the track's sequence of multiples of an irrational number.
    estimate : {"conditionals", "counts", "joint"}
        As in `RandomGibbs`.

    Raises
    ------
    ValueError
        From `marginals`: if a track that competes with others has a first column of 0.

    Notes
    -----
    As published: ``HerdedGibbs(sweeps, key="assignment", first_visit="argmax", estimate="joint")``. It gives the numbers of
    the authors' program where all tracks exist for certain; that program tells a track that is dead from one that is missed,
    which are one alternative here.

    Examples
    --------
    >>> ratios = [[0.1, 2.0, 1.0], [0.1, 1.0, 2.0]]
    >>> exact = hf.association.marginals(ratios)
    >>> found = hf.association.marginals(ratios, hf.association.HerdedGibbs(sweeps=500))
    >>> print(np.abs(found - exact).max() < 0.01)
    True
    """

    sweeps: int = 1000
    key: Literal["set", "assignment"] = "set"
    neglect: float | Literal["auto"] = "auto"
    first_visit: Literal["irrational", "argmax"] = "irrational"
    estimate: Estimate = "conditionals"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sweeps", check_count("sweeps", self.sweeps))
        one_of("key", self.key, KEYS)
        one_of("first_visit", self.first_visit, FIRST_VISITS)
        one_of("estimate", self.estimate, ESTIMATES)
        if not isinstance(self.neglect, str | int | float) or self.neglect not in ("auto", 0):
            object.__setattr__(self, "neglect", as_positive("neglect", self.neglect))

    def cluster(self, ratios: Array, rng: Any = None) -> tuple[Array, float]:
        """Return the marginals of one cluster, and the log evidence if the estimate is "joint"."""
        rows = scaled(ratios)
        codes = np.random.default_rng(0).integers(2**64, size=rows.shape, dtype=np.uint64)  # any that differ
        counts_for = np.ones(rows.shape, np.bool_)
        if self.key == "set":
            codes[:, 1:] = codes[0, 1:]
            counts_for = rows > (3 / sqrt(self.sweeps) if self.neglect == "auto" else self.neglect)
        counts_for[:, 0] = False
        steps = np.sqrt(_primes(len(rows))) % 1 if self.first_visit == "irrational" else np.zeros(len(rows))
        found = sweeps(rows, np.empty((0, len(rows))), self.sweeps, codes, counts_for, steps)
        return estimated(self.estimate, ratios, *found)


def _primes(n: int) -> list[int]:
    """Return the first n prime numbers; their square roots are independent over the rational numbers."""
    found: list[int] = []
    candidate = 2
    while len(found) < n:
        if all(candidate % prime for prime in found if prime <= isqrt(candidate)):
            found.append(candidate)
        candidate += 1
    return found
