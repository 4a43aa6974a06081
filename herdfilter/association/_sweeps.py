"""Compiled sweeps of Gibbs sampling over the tracks of a cluster."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit

from herdfilter._checks import Array
from herdfilter.association._clusters import Integers
from herdfilter.association.k_best import weighed

Estimate = Literal["conditionals", "counts", "joint"]
ESTIMATES = ("conditionals", "counts", "joint")


def scaled(ratios: Array) -> Array:
    """Rows that sum to 1; Gibbs sampling needs all their first entries."""
    rows = np.ascontiguousarray(ratios / ratios.max(axis=1, keepdims=True))
    rows /= rows.sum(axis=1, keepdims=True)
    if (rows[:, 0] == 0).any():
        raise ValueError(
            "ratios: Gibbs sampling changes one track at a time and expects a positive first column, got 0 in a row that "
            "competes with others: take Exact() or BeliefPropagation()"
        )
    return rows


def estimated(estimate: Estimate, ratios: Array, sums: Array, states: Integers) -> tuple[Array, float]:
    """Marginals by one of the `ESTIMATES`, and the log evidence or NaN."""
    if estimate == "conditionals":
        return sums / len(states), np.nan
    tracks, columns = ratios.shape
    if estimate == "counts":
        return np.array([np.bincount(states[:, t], minlength=columns) for t in range(tracks)]) / len(states), np.nan
    distinct = np.unique(states, axis=0)
    log_weights = np.log(ratios[np.arange(tracks), distinct]).sum(axis=1)
    return weighed(distinct, log_weights, ratios.shape)


@njit(cache=True, nogil=True)
def sweeps(ratios, uniforms, n_sweeps, codes, counts_for, steps):
    """Sweep over the tracks from all missed; return the sums of the conditionals and the state after each sweep.

    With uniform numbers, shape (n_sweeps, T), every track draws from its conditional. Without, shape (0, T), it is herded:
    with one weight vector for each key, which is the exclusive or of the codes of what the other tracks have, as far as
    that counts for the track. A key met first takes its value from the additive sequence with the step of the track, and
    the largest weight where that step is 0.
    """
    tracks, columns = ratios.shape
    size = 2
    if not len(uniforms):
        while size < 2 * n_sweeps * tracks:
            size *= 2
    keys = np.zeros(size, np.uint64)  # a hash table with open addresses
    places = np.zeros(size, np.int64)  # rows of the weights, from 1 on; 0 is none
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
