"""Association by Gibbs sampling: herded (Wolf and Baum 2020) and random."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, islice
from math import isqrt, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._jit import njit
from herdfilter.association.base import Integers, Method
from herdfilter.association.k_best import weighted_marginals

Estimate = Literal["conditionals", "counts", "joint"]
ESTIMATES = ("conditionals", "counts", "joint")
SEPARATE_AFTER = 100
"""Visits after which an assignment has a vector of its own: the error of a herded conditional falls as 1/visits."""
MOST_BYTES = 2**25
"""Bound of the table of weight vectors of a herded run."""


class Herding(NamedTuple):
    """The state of herded conditionals: weight vectors, and the hash table that finds them by key."""

    codes: NDArray[np.uint64]  # (T, 1 + M), random numbers that identify assignments
    counts_for: NDArray[
        np.bool_
    ]  # (T, 1 + M), the measurements in use on which a track's key depends
    separate_after: int  # visits of an assignment
    steps: Array  # (T,), of the additive sequences that decide the first visits; 0 for the largest weight
    weights: Array  # (vectors, 1 + M); the first ones belong to the draws of a sweep
    keys: NDArray[np.uint64]  # (slots,)
    vectors: Integers  # (slots,), rows of the weights; 0 for a free slot
    visits: NDArray[np.uint16]  # (slots,), of assignments


class GibbsMethod(Method):
    """Base of both methods: their options, and the sweeps over one cluster."""

    sweeps: int
    estimate: Estimate
    pairs: bool

    def __post_init__(self) -> None:
        _checks.check_fields(self, sweeps=_checks.check_count)
        _checks.one_of("estimate", self.estimate, ESTIMATES)
        _checks.check_flags(pairs=self.pairs)

    def cluster(
        self, ratios: Array, rng: np.random.Generator | int | None = None
    ) -> tuple[Array, float]:
        """Return the marginals of one cluster, and the log evidence if the estimate is "joint"."""
        rows = np.ascontiguousarray(ratios / ratios.max(axis=1, keepdims=True))
        rows /= rows.sum(axis=1, keepdims=True)
        if (rows[:, 0] == 0).any():
            raise ValueError(
                "ratios: expected a positive first column for Gibbs sampling, which changes two tracks at most, got 0 in a "
                "row that competes with others: take Exact() or BeliefPropagation()"
            )
        moves = gibbs_moves(rows, self.pairs)
        draws = int(np.count_nonzero(moves >= 0))
        tracks = len(rows)
        sums = np.zeros((2, *rows.shape))  # of conditionals, and of states
        states = np.empty((self.sweeps if self.estimate == "joint" else 0, tracks), np.int64)
        uniforms, herding = self._start(rows, draws, rng)
        sweep_tracks(rows, moves, uniforms, herding, sums, states)
        if self.estimate == "joint":
            distinct = np.unique(states, axis=0)
            log_weights = np.log(ratios[np.arange(tracks), distinct]).sum(axis=1)
            return weighted_marginals(distinct, log_weights, ratios.shape)
        totals = sums[ESTIMATES.index(self.estimate)]
        return totals / totals.sum(axis=1, keepdims=True), np.nan

    def _start(self, rows: Array, draws: int, rng: Any) -> tuple[Array, Herding]:
        """Return uniform numbers (sweeps, draws), or (sweeps, 0) if conditionals are herded, and the state of herding."""
        raise NotImplementedError


@dataclass(frozen=True)
class HerdedGibbs(GibbsMethod):
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
        super().__post_init__()
        _checks.one_of("key", self.key, ("set", "assignment"))
        _checks.one_of("first_visit", self.first_visit, ("irrational", "argmax"))
        if not isinstance(self.neglect, str | int | float) or self.neglect not in ("auto", 0):
            _checks.check_fields(self, neglect=_checks.as_positive)

    def _start(self, rows: Array, draws: int, rng: Any) -> tuple[Array, Herding]:
        bound = 3 / sqrt(self.sweeps) if self.neglect == "auto" else self.neglect
        steps = np.zeros(len(rows))
        if self.first_visit == "irrational":
            # Square roots of primes are independent over the rational numbers.
            primes = (n for n in count(2) if all(n % divisor for divisor in range(2, 1 + isqrt(n))))
            steps = np.sqrt(list(islice(primes, len(rows)))) % 1
        vectors = min(self.sweeps * draws, MOST_BYTES // (8 * rows.shape[1] + 72))
        # At least half of the slots stay free: 36 to 72 bytes a vector.
        slots = 2 ** int(2 * vectors).bit_length()
        herding = Herding(
            codes=np.random.default_rng(0).integers(2**64, size=rows.shape, dtype=np.uint64),
            counts_for=rows > bound,
            separate_after=SEPARATE_AFTER if self.key == "set" else 0,
            steps=steps,
            weights=np.zeros((draws + vectors, rows.shape[1])),
            keys=np.zeros(slots, np.uint64),
            vectors=np.zeros(slots, np.int64),
            visits=np.zeros(slots, np.uint16),
        )
        return np.empty((self.sweeps, 0)), herding


@dataclass(frozen=True)
class RandomGibbs(GibbsMethod):
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

    def _start(self, rows: Array, draws: int, rng: Any) -> tuple[Array, Herding]:
        # The compiled sweep has one signature: it gets a state of herding that it does not use.
        unused = HerdedGibbs(sweeps=1)._start(rows, draws, None)[1]
        return _checks.as_generator(rng).random((self.sweeps, draws)), unused


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
    missed = rows[:, :1]
    measured = rows[:, 1:]
    keeps = (measured * measured / (missed + measured)).sum(axis=1)
    overlap = np.where(np.add.outer(1 - keeps, 1 - keeps) < 1 / 3, measured @ measured.T, 0.0)
    np.fill_diagonal(overlap, 0)
    joint = overlap > 0
    closest = 1 + (tracks - 1).bit_length()
    if tracks > 1 + closest and joint.any():
        from scipy.sparse.csgraph import minimum_spanning_tree

        joint = minimum_spanning_tree(-overlap).toarray() < 0
        nearest = np.argsort(-overlap, axis=1, kind="stable")[:, :closest]
        np.put_along_axis(joint, nearest, True, axis=1)
    return np.concatenate([alone, np.argwhere(np.triu((joint | joint.T) & (overlap > 0)))])


@njit(cache=True, nogil=True)
def sweep_tracks(rows, moves, uniforms, herding, sums, states):
    """Sweep over the moves; add to the sums of conditionals and of states, and write the state after each sweep.

    A move (t, s) draws t from its conditional given the others but s, then s given all others; a move (t, -1) draws t
    alone. With uniform numbers, shape (sweeps, draws), conditionals are inverted. Without, shape (sweeps, 0), each is
    herded with one weight vector for each key: the exclusive or of a code of the draw and codes of the measurements of
    the others that count for t (or for s, if it is summed out). Once the whole assignment of the others was met
    `separate_after` times, it gets a vector of its own, a copy to begin with. At the first visit of a key the value is
    drawn with the track's additive sequence, or is that of largest weight if the step of the sequence is 0. Keys that find
    no slot in the table share one vector for each draw of a sweep.
    """
    codes, counts_for, separate_after, steps, weights, keys, vectors, visits = herding
    tracks, columns = rows.shape
    mask = np.uint64(len(keys) - 1)
    last_vector = (
        np.count_nonzero(moves >= 0) - 1
    )  # the first vectors belong to the draws of a sweep
    sequence = np.zeros(tracks)
    state = np.zeros(tracks, np.int64)
    free = np.ones(columns, np.bool_)
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
                # Of row s: the sum of its free entries, the largest measurement, and the sum without that.
                total = 1.0
                top = 0
                without_top = 0.0
                if s >= 0:
                    total = rows[s, 0]
                    for j in range(1, columns):
                        if free[j]:
                            total += rows[s, j]
                            without_top += min(rows[s, j], rows[s, top])
                            top = j if rows[s, j] > rows[s, top] else top
                norm = 0.0
                for j in range(columns):
                    p[j] = rows[t, j] if free[j] else 0.0
                    # p(t has j) is proportional to row t times the sum of row s without j.
                    if s >= 0 and j > 0:
                        p[j] *= (without_top if j == top else total - rows[s, j]) / total
                    norm += p[j]
                for j in range(columns):
                    p[j] /= norm
                    sums[0, t, j] += p[j]

                u = -1.0
                w = weights[0]
                if uniforms.shape[1]:
                    u = uniforms[sweep, draw]
                else:
                    # The key of the measurements in use, and that of the whole assignment of the others.
                    key = codes[t, 0]
                    if second >= 0 and s >= 0:
                        key = codes[first, 0] - codes[second, 0]
                    elif second >= 0:
                        key = codes[first, 0] + codes[second, 0]
                    assignment = ~key
                    for r in range(tracks):
                        if r != t and r != s and state[r] > 0:
                            assignment ^= codes[r, state[r]]
                            if counts_for[t, state[r]] or (s >= 0 and counts_for[s, state[r]]):
                                key ^= codes[0, state[r]]
                    # Look both up in the table (open addressing). The assignment comes second: its vector, once it has
                    # one, replaces that of the set, from which a new one is copied.
                    vector = 0
                    is_new = True
                    for code in (key if separate_after else assignment, assignment):
                        if code == assignment and visits[assignment & mask] < separate_after:
                            visits[assignment & mask] += 1
                            break
                        i = code & mask
                        while vectors[i] > 0 and keys[i] != code:
                            i = (i + np.uint64(1)) & mask
                        if vector == 0:
                            is_new = vectors[i] == 0
                        if vectors[i] == 0 and last_vector + 1 < len(weights):
                            last_vector += 1
                            keys[i] = code
                            vectors[i] = last_vector
                            for j in range(columns):
                                weights[last_vector, j] = weights[vector, j]
                        if vectors[i] > 0:
                            vector = vectors[i]
                    if vector == 0:  # the table is full
                        vector = draw
                        is_new = False
                    if is_new and steps[t] > 0:
                        sequence[t] = (sequence[t] + steps[t]) % 1.0
                        u = sequence[t]
                    w = weights[vector]
                    for j in range(columns):
                        w[j] += p[j]

                value = 0
                if u >= 0:  # inversion
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
