"""Compiled herding on a finite set."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from herdfilter._checks import Array

TIE = 1e-9  # relative to one step of the weights: sums that differ by less are equal, and the first of them is taken


def herded_labels(weights: Array, n: int) -> NDArray[np.int64]:
    """Herding on a finite set (Welling 2009): n labels whose counts stay close to t * weights at every t."""
    labels = np.empty(n, np.int64)
    _herd_labels(np.ascontiguousarray(weights, np.float64), np.zeros(len(weights)), labels)
    return labels


@njit(cache=True, nogil=True)
def _herd_labels(weights, lack, labels):
    """Fill in the labels; `lack`, zeros, is by how much every count falls short."""
    for t in range(len(labels)):
        best = 0
        for m in range(len(weights)):
            lack[m] += weights[m]
            if lack[m] > lack[best] + TIE:
                best = m
        labels[t] = best
        lack[best] -= 1.0


@njit(cache=True, nogil=True)
def herded_states(features, moments, n, tolerance):
    """Herding with features (S, k): n states, how many were found, and the direction at which it stopped.

    It stops early where the weights w separate the moments from all features, <w, moments> > max_x <w, phi(x)> by more than
    `tolerance` times the largest term: the moments are then certain to lie outside the convex hull.
    """
    size, k = features.shape
    w = np.empty(k)
    for j in range(k):
        w[j] = 0.0
    states = np.empty(n, dtype=np.int64)
    for t in range(n):
        scale = 0.0
        wanted = 0.0
        for j in range(k):
            w[j] += moments[j]
            wanted += w[j] * moments[j]
        best = 0
        best_score = -np.inf
        for x in range(size):
            score = 0.0
            length = 0.0
            for j in range(k):
                term = w[j] * features[x, j]
                score += term
                length += abs(term)
            scale = max(scale, length)
            if score > best_score + TIE * scale:
                best_score = score
                best = x
        if wanted - best_score > tolerance * scale:
            return states, t, w
        states[t] = best
        for j in range(k):
            w[j] -= features[best, j]
    return states, n, w
