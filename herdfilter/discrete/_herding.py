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
