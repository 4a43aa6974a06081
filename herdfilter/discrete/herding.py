"""Herding on a finite set (Welling, "Herding dynamical weights to learn", ICML 2009)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_array, as_weights, check_count
from herdfilter._jit import njit

# Relative margin, far above rounding, by which weights must separate moments from features.
SEPARATING_MARGIN = 1e-9
# Relative to one step of the weights: scores that differ by less are equal, and the first is taken.
TIED_SCORES = 1e-9


def herding(moments: ArrayLike, n: int, features: ArrayLike | None = None) -> NDArray[np.int64]:
    r"""Return a sequence of states whose average features follow the given moments (Welling 2009, eqs. 1 and 2).

    :math:`x_t = \arg\max_x \langle w_{t-1}, \phi(x) \rangle`, then :math:`w_t = w_{t-1} + m - \phi(x_t)` with the moments
    m, :math:`w_0 = m` and ties to the lowest state. Since :math:`w_t - w_0` is t times the error of the first t states, the
    error falls as 1/t for as long as the weights stay bounded, as they do for moments inside the convex hull of the
    features.

    Parameters
    ----------
    moments : array_like, shape (k,)
        The moments to match. Without `features`, probabilities of the k states; normalised to sum to 1.
    n : int
        Length of the sequence.
    features : array_like, shape (S, k), optional
        Feature vectors phi(x) of the S states. By default the indicators of the states: the number of visits of a state then
        exceeds t times its probability by less than 1 at every t, and falls short of it by at most 1 + 1/2 + ... + 1/S.

    Returns
    -------
    ndarray of int, shape (n,)
        States from 0 to S - 1.

    Raises
    ------
    ValueError
        If an argument is not of the stated kind, or if the moments lie outside the convex hull of the features. The error is
        raised as soon as the weights separate the moments from all features; moments barely outside may go unnoticed.

    Examples
    --------
    >>> from herdfilter.discrete import herding
    >>> herding([0.5, 0.25, 0.25], 8).tolist()
    [0, 1, 2, 0, 0, 1, 2, 0]
    """
    n = check_count("n", n)
    if features is None:
        return herded_labels(as_weights("moments", moments), n)
    phi = as_array("features", features, (None, None))
    if phi.size == 0:
        raise ValueError(
            f"features: expected at least one state and one feature, got shape {phi.shape}"
        )
    target = as_array("moments", moments, (phi.shape[1],))
    states = np.empty(n, np.int64)
    length, direction = herded_states(np.ascontiguousarray(phi), target, states)
    if length < n:
        raise ValueError(
            f"moments: expected a point in the convex hull of the features, got one outside: along the direction "
            f"{np.array2string(direction, precision=3, threshold=8)} it lies at {direction @ target:.6g}, all features "
            f"at most at {(phi @ direction).max():.6g}"
        )
    return states


def herded_labels(weights: Array, n: int) -> NDArray[np.int64]:
    """Herd n labels, shape (n,): after t of them label m has come up about ``t weights[m]`` times (Welling 2009)."""
    labels = np.empty(n, np.int64)
    _herd_labels(np.ascontiguousarray(weights, np.float64), np.zeros(len(weights)), labels)
    return labels


@njit(cache=True, nogil=True)
def _herd_labels(weights, lack, labels):
    """Fill in the labels; `lack`, zeros at first, is the amount by which every count falls short."""
    for t in range(len(labels)):
        best = 0
        for m in range(len(weights)):
            lack[m] += weights[m]
            if lack[m] > lack[best] + TIED_SCORES:
                best = m
        labels[t] = best
        lack[best] -= 1.0


@njit(cache=True, nogil=True)
def herded_states(features, moments, states):
    """Fill in the states by herding with features (S, k); return how many were chosen, and the last weights.

    The loop stops early if the weights w separate the moments from all features, <w, moments> > max_x <w, phi(x)> by more
    than rounding: the moments then lie outside the convex hull.
    """
    size, k = features.shape
    w = np.zeros(k)
    for t in range(len(states)):
        scale = 0.0
        target_score = 0.0
        for j in range(k):
            w[j] += moments[j]
            target_score += w[j] * moments[j]
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
            # Rounding grows with the largest sum of terms.
            if score > best_score + TIED_SCORES * scale:
                best_score = score
                best = x
        if target_score - best_score > SEPARATING_MARGIN * scale:
            return t, w
        states[t] = best
        for j in range(k):
            w[j] -= features[best, j]
    return len(states), w
