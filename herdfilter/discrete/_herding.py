"""Compiled herding on a finite set."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def herded_labels(weights, n):
    """Herding on a finite set (Welling 2009): n labels whose counts stay close to t * weights at every t."""
    lack = np.empty(len(weights))
    for m in range(len(weights)):
        lack[m] = 0.0
    labels = np.empty(n, dtype=np.int64)
    for t in range(n):
        for m in range(len(weights)):
            lack[m] += weights[m]
        best = 0
        for m in range(1, len(weights)):
            if lack[m] > lack[best]:
                best = m
        labels[t] = best
        lack[best] -= 1.0
    return labels


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
            if score > best_score:
                best_score = score
                best = x
        if wanted - best_score > tolerance * scale:
            return states, t, w
        states[t] = best
        for j in range(k):
            w[j] -= features[best, j]
    return states, n, w
