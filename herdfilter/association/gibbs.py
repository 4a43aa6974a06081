"""Association by Gibbs sampling: herded (Wolf and Baum 2020) and random."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import sqrt
from typing import Literal

import numpy as np
from numba import njit

from herdfilter._checks import Array, as_generator, as_positive, check_count, one_of
from herdfilter.association.base import Integers, Method
from herdfilter.association.k_best import weighted_marginals

Estimate = Literal["conditionals", "counts", "joint"]
ESTIMATES = ("conditionals", "counts", "joint")
KEYS = ("set", "assignment")
FIRST_VISITS = ("irrational", "argmax")


@dataclass(frozen=True)
class HerdedGibbs(Method):
    """Deterministic Gibbs sampling of the association: every conditional distribution is herded.

    Each track in turn adds its conditional p, given the measurements of the others, to a weight vector w, takes the
    measurement of largest weight, and subtracts 1 from it. Wolf and Baum (2020), "Deterministic Gibbs sampling for data
    association in multi-object tracking", keep one w for each track and assignment of all others:
    ``HerdedGibbs(sweeps, key="assignment", first_visit="argmax", estimate="joint")``. By default there is one for each
    track and set of measurements in use: the conditional depends on nothing else, and each set is visited more often.

    Parameters
    ----------
    sweeps : int
        Sweeps over all tracks of a cluster; at the start all are missed.
    key : {"set", "assignment"}
        A weight vector belongs to the track and the set of measurements in use, or to the track and the assignment of all
        others.
    neglect : float or "auto"
        With the key "set": measurements whose ratio makes up at most this fraction of the track's row are left out of the
        set, so that vectors with similar conditionals are shared. 0 keeps all sets apart; 1 keeps one vector a track. By
        default ``3 / sqrt(sweeps)``: more sweeps can keep more sets apart.
    first_visit : {"irrational", "argmax"}
        At the first visit of a weight vector, its argmax would always be the most probable measurement. By default the
        measurement is drawn with the next multiple of an irrational number, modulo 1.
    estimate : {"conditionals", "counts", "joint"}
        As in `RandomGibbs`.

    Raises
    ------
    ValueError
        From `marginals`: if a track that competes with others has a first column of 0.

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

    def cluster(self, ratios: Array, rng: np.random.Generator | int | None = None) -> tuple[Array, float]:
        """Return the marginals of one cluster, and the log evidence if the estimate is "joint"."""
        rows = gibbs_rows(ratios)
        codes = np.random.default_rng(0).integers(2**64, size=rows.shape, dtype=np.uint64)  # any that differ
        counts_for = np.ones(rows.shape, np.bool_)
        if self.key == "set":
            codes[:, 1:] = codes[0, 1:]
            counts_for = rows > (3 / sqrt(self.sweeps) if self.neglect == "auto" else self.neglect)
        counts_for[:, 0] = False
        steps = np.zeros(len(rows))
        if self.first_visit == "irrational":
            primes: list[int] = []  # their square roots are independent over the rational numbers
            for number in count(2):
                if len(primes) == len(rows):
                    break
                if all(number % prime for prime in primes):
                    primes.append(number)
            steps = np.sqrt(primes) % 1
        found = sweep_tracks(rows, np.empty((0, len(rows))), self.sweeps, codes, counts_for, steps)
        return estimate_marginals(self.estimate, ratios, *found)


@dataclass(frozen=True)
class RandomGibbs(Method):
    """Random Gibbs sampling: each track in turn draws from its conditional, given the measurements of the others.

    As for `HerdedGibbs`, a track that competes with others needs a positive first column.

    Parameters
    ----------
    sweeps : int
        Sweeps over all tracks of a cluster; at the start all are missed.
    estimate : {"conditionals", "counts", "joint"}
        Marginals are averages of the conditional probabilities (Rao-Blackwell), relative frequencies of the states after
        each sweep, or sums over the distinct states, weighted by their products of ratios.

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

    def cluster(self, ratios: Array, rng: np.random.Generator | int | None = None) -> tuple[Array, float]:
        """Return the marginals of one cluster, and the log evidence if the estimate is "joint"."""
        rows = gibbs_rows(ratios)
        uniforms = as_generator(rng).random((self.sweeps, len(rows)))
        unused = np.zeros(rows.shape, np.uint64), np.zeros(rows.shape, np.bool_), np.zeros(len(rows))
        found = sweep_tracks(rows, uniforms, self.sweeps, *unused)
        return estimate_marginals(self.estimate, ratios, *found)


def gibbs_rows(ratios: Array) -> Array:
    """Return the rows divided by their sums; raise ValueError if a first entry is 0."""
    rows = np.ascontiguousarray(ratios / ratios.max(axis=1, keepdims=True))
    rows /= rows.sum(axis=1, keepdims=True)
    if (rows[:, 0] == 0).any():
        raise ValueError(
            "ratios: expected a positive first column for Gibbs sampling, which changes one track at a time, got 0 in a row "
            "that competes with others: take Exact() or BeliefPropagation()"
        )
    return rows


def estimate_marginals(estimate: Estimate, ratios: Array, sums: Array, states: Integers) -> tuple[Array, float]:
    """Return the marginals by one of the `ESTIMATES`, and the log evidence or NaN."""
    if estimate == "conditionals":
        return sums / len(states), np.nan
    tracks, columns = ratios.shape
    if estimate == "counts":
        return np.array([np.bincount(states[:, t], minlength=columns) for t in range(tracks)]) / len(states), np.nan
    distinct = np.unique(states, axis=0)
    log_weights = np.log(ratios[np.arange(tracks), distinct]).sum(axis=1)
    return weighted_marginals(distinct, log_weights, ratios.shape)


@njit(cache=True, nogil=True)
def sweep_tracks(ratios, uniforms, n_sweeps, codes, counts_for, steps):
    """Sweep over the tracks from all missed; return the sums of the conditionals and the state after each sweep.

    With uniform numbers, shape (n_sweeps, T), every track draws from its conditional. Without, shape (0, T), it is herded
    with one weight vector for each key: the exclusive or of the codes of the other tracks' measurements that count for the
    track. At the first visit of a key the value is drawn with the track's additive sequence, or is that of largest weight
    if the step of the sequence is 0.
    """
    tracks, columns = ratios.shape
    size = 2
    if not len(uniforms):
        while size < 2 * n_sweeps * tracks:
            size *= 2
    keys = np.zeros(size, np.uint64)  # a hash table with open addresses
    places = np.zeros(size, np.int64)  # rows of the weights, from 1 on; 0 for a free slot
    weights = np.zeros((256, columns))
    met = 0
    at = np.zeros(tracks)  # of the additive sequences
    state = np.zeros(tracks, np.int64)
    free = np.ones(columns, np.bool_)
    p = np.empty(columns)
    sums = np.zeros((tracks, columns))
    states = np.empty((n_sweeps, tracks), np.int64)
    for sweep in range(n_sweeps):
        for t in range(tracks):
            free[state[t]] = True
            total = 0.0
            for j in range(columns):
                p[j] = ratios[t, j] if free[j] else 0.0
                total += p[j]
            for j in range(columns):
                p[j] /= total
                sums[t, j] += p[j]

            u = -1.0
            w = weights[0]
            if len(uniforms):
                u = uniforms[sweep, t]
            else:
                key = codes[t, 0]
                for s in range(tracks):
                    if s != t and counts_for[t, state[s]]:
                        key ^= codes[s, state[s]]
                i = key & np.uint64(size - 1)
                while places[i] > 0 and keys[i] != key:
                    i = (i + np.uint64(1)) & np.uint64(size - 1)
                if places[i] == 0:
                    met += 1
                    if met == len(weights):
                        larger = np.zeros((2 * met, columns))
                        for k in range(met):
                            for j in range(columns):
                                larger[k, j] = weights[k, j]
                        weights = larger
                    keys[i] = key
                    places[i] = met
                    if steps[t] > 0:
                        at[t] = (at[t] + steps[t]) % 1.0
                        u = at[t]
                w = weights[places[i]]
                for j in range(columns):
                    w[j] += p[j]

            value = 0
            if u >= 0:
                below = p[0]
                for j in range(1, columns):
                    if u >= below and p[j] > 0:
                        value = j
                    below += p[j]
            else:
                for j in range(1, columns):
                    if p[j] > 0 and w[j] > w[value]:
                        value = j
            w[value] -= 1.0
            state[t] = value
            free[value] = value == 0
            states[sweep, t] = value
    return sums, states
