"""Association by Gibbs sampling: herded (Wolf and Baum 2020) and random."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count, islice
from math import isqrt, sqrt
from typing import Any, Literal

import numpy as np

from herdfilter._checks import (
    Array,
    as_generator,
    as_positive,
    check_count,
    check_fields,
    check_flags,
    one_of,
)
from herdfilter._jit import njit
from herdfilter.association.base import Integers, Method
from herdfilter.association.k_best import weighted_marginals

Estimate = Literal["conditionals", "counts", "joint"]
ESTIMATES = ("conditionals", "counts", "joint")
KEYS = ("set", "assignment")
FIRST_VISITS = ("irrational", "argmax")
PATIENCE = 100
"""Visits after which an assignment has a vector of its own: the error of a herded conditional falls as 1/visits."""
MOST_BYTES = 2**25
"""Bound of the table of weight vectors of a herded run; a quarter of it holds uniform numbers of a random run."""


@dataclass(frozen=True)
class HerdedGibbs(Method):
    """Deterministic Gibbs sampling of the association: every conditional distribution is herded.

    Each track in turn adds its conditional p, given the measurements of the others, to a weight vector w, takes the
    measurement of largest weight, and subtracts 1 from it. Wolf and Baum (2020), "Deterministic Gibbs sampling for data
    association in multi-object tracking", keep one w for each track and assignment of all others:
    ``HerdedGibbs(sweeps, key="assignment", first_visit="argmax", estimate="joint", pairs=False)``. By default there is one
    for each track and set of measurements in use: the conditional depends on nothing else, and each set is visited more
    often. An assignment of all others that was met 100 times gets its own.

    Two close tracks that are hardly ever missed cannot exchange their measurements one after the other. Such pairs are
    drawn jointly (block Gibbs sampling): one track from its conditional with the other summed out, then the other. Pairs
    reach neither an exchange that only three tracks can make in a ring (each has two of three measurements in its gate),
    nor one whose steps are all very improbable: then take `Exact`.

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
        As in `RandomGibbs`; "joint" keeps the state after each sweep.
    pairs : bool
        Draw pairs of tracks jointly where single moves would rarely exchange their measurements.

    Raises
    ------
    ValueError
        From `marginals`: if a track that competes with others has a first column of 0. Moves of one or two tracks need not
        connect the assignments then.

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
    pairs: bool = True

    def __post_init__(self) -> None:
        check_sweeps(self)
        one_of("key", self.key, KEYS)
        one_of("first_visit", self.first_visit, FIRST_VISITS)
        if not isinstance(self.neglect, str | int | float) or self.neglect not in ("auto", 0):
            check_fields(self, neglect=as_positive)

    def cluster(
        self, ratios: Array, rng: np.random.Generator | int | None = None
    ) -> tuple[Array, float]:
        """Return the marginals of one cluster, and the log evidence if the estimate is "joint"."""
        rows = gibbs_rows(ratios)
        codes = np.random.default_rng(0).integers(
            2**64, size=rows.shape, dtype=np.uint64
        )  # any that differ
        counts_for = rows > (3 / sqrt(self.sweeps) if self.neglect == "auto" else self.neglect)
        patience = PATIENCE if self.key == "set" else 0
        steps = np.zeros(len(rows))
        if (
            self.first_visit == "irrational"
        ):  # square roots of primes are independent over the rational numbers
            primes = (n for n in count(2) if all(n % divisor for divisor in range(2, 1 + isqrt(n))))
            steps = np.sqrt(list(islice(primes, len(rows)))) % 1
        moves = gibbs_moves(rows, self.pairs)
        draws = int(np.count_nonzero(moves >= 0))
        most = min(self.sweeps * draws, MOST_BYTES // (8 * rows.shape[1] + 72))
        size = (
            2 ** int(2 * most).bit_length()
        )  # at least half of the slots stay free: 36 to 72 bytes a vector
        table = np.zeros(size, np.uint64), np.zeros(size, np.int64), np.zeros(size, np.uint16)
        herding = codes, counts_for, patience, steps, table, np.zeros((draws + most, rows.shape[1]))
        return run_sweeps(
            self.estimate, ratios, rows, moves, [np.empty((self.sweeps, 0))], *herding
        )


@dataclass(frozen=True)
class RandomGibbs(Method):
    """Random Gibbs sampling: each track in turn draws from its conditional, given the measurements of the others.

    Pairs and limits are those of `HerdedGibbs`: a track that competes with others needs a positive first column.

    Parameters
    ----------
    sweeps : int
        Sweeps over all tracks of a cluster; at the start all are missed.
    estimate : {"conditionals", "counts", "joint"}
        Marginals are averages of the conditional probabilities (Rao-Blackwell), relative frequencies of the states after
        each sweep, or sums over the distinct states, weighted by their products of ratios.
    pairs : bool
        As in `HerdedGibbs`.

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
    pairs: bool = True

    def __post_init__(self) -> None:
        check_sweeps(self)

    def cluster(
        self, ratios: Array, rng: np.random.Generator | int | None = None
    ) -> tuple[Array, float]:
        """Return the marginals of one cluster, and the log evidence if the estimate is "joint"."""
        rows = gibbs_rows(ratios)
        moves = gibbs_moves(rows, self.pairs)
        generator = as_generator(rng)
        draws = int(np.count_nonzero(moves >= 0))
        part = 1 + MOST_BYTES // (32 * draws)
        uniforms = (
            generator.random((min(part, self.sweeps - n), draws))
            for n in range(0, self.sweeps, part)
        )
        table = np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros(1, np.uint16)
        unused = (
            np.zeros(rows.shape, np.uint64),
            rows > 0,
            0,
            np.zeros(len(rows)),
            table,
            np.zeros((1, rows.shape[1])),
        )
        return run_sweeps(self.estimate, ratios, rows, moves, uniforms, *unused)


def check_sweeps(method: HerdedGibbs | RandomGibbs) -> None:
    """Check the options that both methods have."""
    check_fields(method, sweeps=check_count)
    one_of("estimate", method.estimate, ESTIMATES)
    check_flags(pairs=method.pairs)


def gibbs_rows(ratios: Array) -> Array:
    """Return the rows divided by their sums; raise ValueError if a first entry is 0."""
    rows = np.ascontiguousarray(ratios / ratios.max(axis=1, keepdims=True))
    rows /= rows.sum(axis=1, keepdims=True)
    if (rows[:, 0] == 0).any():
        raise ValueError(
            "ratios: expected a positive first column for Gibbs sampling, which changes two tracks at most, got 0 in a row "
            "that competes with others: take Exact() or BeliefPropagation()"
        )
    return rows


def gibbs_moves(rows: Array, pairs: bool) -> Integers:
    """Return the moves of a sweep, shape (moves, 2): each track alone, (t, -1), and pairs (t, s) to be drawn jointly.

    Given that all other measurements are taken, a track drawn alone lets go of its own with the probability that it is
    missed. A joint move costs as much as three single ones. So it pays for two tracks that let go less than once in three
    sweeps, both counted. Of these pairs, a sweep has those of a spanning tree of most overlap, so that exchanges reach all
    tracks, and each track's 1 + log2(T) of most overlap. Overlap is the probability of the same measurement if the tracks
    were independent.
    """
    tracks = len(rows)
    alone = np.column_stack([np.arange(tracks), np.full(tracks, -1)])
    if not pairs:
        return alone
    missed, measured = rows[:, :1], rows[:, 1:]
    keeps = (measured * measured / (missed + measured)).sum(axis=1)
    overlap = np.where(np.add.outer(1 - keeps, 1 - keeps) < 1 / 3, measured @ measured.T, 0.0)
    np.fill_diagonal(overlap, 0)
    joint, closest = overlap > 0, 1 + (tracks - 1).bit_length()
    if tracks > 1 + closest and joint.any():
        from scipy.sparse.csgraph import minimum_spanning_tree

        joint = minimum_spanning_tree(-overlap).toarray() < 0
        np.put_along_axis(
            joint, np.argsort(-overlap, axis=1, kind="stable")[:, :closest], True, axis=1
        )
    return np.concatenate([alone, np.argwhere(np.triu((joint | joint.T) & (overlap > 0)))])


def run_sweeps(
    estimate: Estimate,
    ratios: Array,
    rows: Array,
    moves: Integers,
    uniforms: Iterable[Array],
    *herding: Any,
) -> tuple[Array, float]:
    """Sweep in parts; return the marginals by one of the `ESTIMATES`, and the log evidence or NaN."""
    tracks, columns = ratios.shape
    state = np.zeros(tracks, np.int64)
    sums = np.zeros((2, tracks, columns))  # of conditionals, and of states
    parts = []
    for part in uniforms:
        parts.append(np.empty((len(part) if estimate == "joint" else 0, tracks), np.int64))
        sweep_tracks(rows, moves, part, *herding, state, sums, parts[-1])
    if estimate == "joint":
        distinct = np.unique(np.concatenate(parts), axis=0)
        log_weights = np.log(ratios[np.arange(tracks), distinct]).sum(axis=1)
        return weighted_marginals(distinct, log_weights, ratios.shape)
    totals = sums[ESTIMATES.index(estimate)]
    return totals / totals.sum(axis=1, keepdims=True), np.nan


@njit(cache=True, nogil=True)
def sweep_tracks(
    ratios, moves, uniforms, codes, counts_for, patience, steps, table, weights, state, sums, states
):
    """Sweep over the moves; add to the sums of conditionals and of states, and write the state after each sweep.

    A move (t, s) draws t from its conditional given the others but s, then s given all others; a move (t, -1) draws t
    alone. With uniform numbers, shape (sweeps, draws), conditionals are inverted. Without, shape (sweeps, 0), each is
    herded with one weight vector for each key: the exclusive or of a code of the draw and codes of the measurements of
    the others that count for t (or for s, if it is open). Once the whole assignment of the others was met `patience`
    times, it gets a vector of its own, a copy to begin with. At the first visit of a key the value is drawn with the
    track's additive sequence, or is that of largest weight if the step of the sequence is 0. Keys that find no place in
    the table share one vector for each draw of a sweep.
    """
    tracks, columns = ratios.shape
    keys, places, visits = (
        table  # a hash table with open addresses: rows of the weights, 0 for a free slot
    )
    mask = np.uint64(len(keys) - 1)
    met = np.count_nonzero(moves >= 0) - 1  # the first vectors belong to the draws of a sweep
    at = np.zeros(tracks)  # of the additive sequences
    free = np.ones(columns, np.bool_)
    for t in range(tracks):
        free[state[t]] = state[t] == 0
    p = np.empty(columns)
    for sweep in range(len(uniforms)):
        draw = 0
        for move in range(len(moves)):
            first, second = moves[move]
            free[state[first]] = True
            if second >= 0:
                free[state[second]] = True
            for t, s in ((first, second), (second, -1)):
                if t < 0:
                    continue
                total, top, rest = (
                    1.0,
                    0,
                    0.0,
                )  # of row s: free entries, the largest, and the sum of all but that
                if s >= 0:
                    total = ratios[s, 0]
                    for j in range(1, columns):
                        if free[j]:
                            total += ratios[s, j]
                            rest += min(ratios[s, j], ratios[s, top])
                            top = j if ratios[s, j] > ratios[s, top] else top
                norm = 0.0
                for j in range(columns):
                    p[j] = ratios[t, j] if free[j] else 0.0
                    if (
                        s >= 0 and j > 0
                    ):  # p(t has j) is proportional to row t times what is left of row s
                        p[j] *= (rest if j == top else total - ratios[s, j]) / total
                    norm += p[j]
                for j in range(columns):
                    p[j] /= norm
                    sums[0, t, j] += p[j]

                u = -1.0
                w = weights[0]
                if uniforms.shape[1]:
                    u = uniforms[sweep, draw]
                else:
                    key = codes[t, 0]
                    if second >= 0:
                        key = (
                            codes[first, 0] - codes[second, 0]
                            if s >= 0
                            else codes[first, 0] + codes[second, 0]
                        )
                    whole = ~key
                    for r in range(tracks):
                        if r != t and r != s and state[r] > 0:
                            whole ^= codes[r, state[r]]
                            if counts_for[t, state[r]] or (s >= 0 and counts_for[s, state[r]]):
                                key ^= codes[0, state[r]]
                    place, new = 0, True
                    for code in (key if patience else whole, whole):
                        if code == whole and visits[whole & mask] < patience:
                            visits[whole & mask] += 1
                            break
                        i = code & mask
                        while places[i] > 0 and keys[i] != code:
                            i = (i + np.uint64(1)) & mask
                        if place == 0:
                            new = places[i] == 0
                        if places[i] == 0 and met + 1 < len(weights):
                            met += 1
                            keys[i] = code
                            places[i] = met
                            for j in range(columns):
                                weights[met, j] = weights[place, j]
                        if places[i] > 0:
                            place = places[i]
                    if place == 0:  # the table is full
                        place, new = draw, False
                    if new and steps[t] > 0:
                        at[t] = (at[t] + steps[t]) % 1.0
                        u = at[t]
                    w = weights[place]
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
                draw += 1
        for t in range(tracks):
            sums[1, t, state[t]] += 1.0
            if len(states):
                states[sweep, t] = state[t]
