"""A likelihood as a linear observation: its logarithm is expanded to second order where particles are predicted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from herdfilter import angles
from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.filters.observation import Observation
from herdfilter.filters.state import Indices
from herdfilter.samplers import compiled

LEAST_LOG_LIKELIHOOD = -1e12
"""Smaller log-likelihoods, and -inf, are raised to this; an expansion that meets it treats the likelihood as flat."""

FLAT = 1e-4
"""Curvatures up to this count as zero: they would reduce a variance by so small a share."""


@lru_cache(maxsize=64)
def stencil(dim: int) -> Array:
    """Return the steps (p, dim) of second differences: unit steps forwards, backwards and in pairs."""
    first, second = np.triu_indices(dim, 1)
    unit = np.eye(dim)
    return np.concatenate([unit, -unit, unit[first] + unit[second]])


def linear_observations(
    observation: Observation,
    ancestors: Any,
    centres: Array,
    members: Indices,
    group: Indices,
    ahead: Array,
) -> tuple[Array, Array, Array]:
    r"""Return linear observations with noise I that approximate the likelihood about the centre of each group.

    The log-likelihood is expanded to second order at the centre of each group (Pitt and Shephard 1999 did so by
    derivatives). Differences are taken over a standard deviation of the states that a group spans, by its noise and its
    members. With curvature -L L' and slope L r the expansion is, up to a constant, the log-likelihood of an observation with
    mean L' u, residual r and noise I; directions without curvature are ignored. Each particle has its own residual by
    the same quadratic. None may promise more than the largest likelihood: extrapolated too far, the quadratic would draw all
    particles to where it is most wrong.

    Parameters
    ----------
    ancestors : Ancestors
    centres : ndarray, shape (n, d)
        States of the ancestors after the transition without noise.
    members, group : ndarray of int, shapes (B,) and (n,)
        The centre of each group, and the group of each particle.
    ahead : ndarray, shape (B, p, d)
        States of the centre of each group at the p sigma points of its noise.

    Returns
    -------
    offsets : ndarray, shape (B, p, d)
        Mean observations at the points, less that at no noise.
    residuals : ndarray, shape (n, d)
    log_peaks : ndarray, shape (n,)
        The constants: log-likelihoods where the residuals vanish.
    """
    gains, _, d = ahead.shape
    transition = ancestors.transition
    weights = ancestors.weights
    slopes = ancestors.slopes(ahead)
    x = angles.unwrap(centres, weights, transition.circular)
    x = x - weights @ x
    # Covariance within a group: of the noise, and of members when the particles are divided into `gains` cells.
    span = (
        np.einsum("bja,bjc->ac", slopes, slopes) / gains + gains ** (-2 / d) * (weights * x.T) @ x
    )
    root = covariance_factor(span)
    try:
        inverse_root = np.linalg.inv(root)
    except np.linalg.LinAlgError:  # directions that nothing spans are ignored
        inverse_root = np.linalg.pinv(root)
    states = transition.wrapped(centres[members, None] + stencil(d) @ root.T).reshape(-1, d)
    points = np.concatenate([centres, states])
    values = observation.log_likelihood(points)
    if transition.motion.limited:  # outside a likelihood means nothing
        values[~transition.motion.inside(points)] = -np.inf
    shifts = angles.wrap(centres - centres[members[group]], transition.circular)
    linearised: tuple[Array, Array, Array] = _linearise(
        np.maximum(values, LEAST_LOG_LIKELIHOOD),
        members,
        group,
        inverse_root.T,
        np.ascontiguousarray(slopes),
        ancestors.sigma_points[0],
        shifts,
    )
    return linearised


@compiled.njit(**compiled.CALLED)
def _linearise(values, members, group, back, slopes, points, shifts):
    """Return what `linear_observations` does; values at the centres come first, then those at each group's stencil."""
    gains, dim, d = slopes.shape
    n = len(shifts)
    size = 2 * d + d * (d - 1) // 2
    offsets = np.zeros((gains, len(points), d))
    residuals = np.zeros((n, d))
    log_peaks = np.zeros(n)
    best = 0
    peak = values.max()
    roots = np.zeros((gains, d, d))
    # the residual r at the centre of each group: the slope in the units of its curvature
    scores = np.zeros((gains, d))
    factor = np.zeros((dim, d))
    for b in range(gains):
        root = roots[b]
        score = scores[b]
        around = values[n + b * size : n + (b + 1) * size]
        centre = values[members[b]]
        # at the edge of the possible: flat
        if around.min() <= LEAST_LOG_LIKELIHOOD or centre <= LEAST_LOG_LIKELIHOOD:
            around = np.full(size, centre)
        # Minus the matrix of second differences, and the first differences.
        for a in range(d):
            root[a, a] = 2.0 * centre - around[a] - around[d + a]
            score[a] = 0.5 * (around[a] - around[d + a])
        pair = 2 * d
        for a in range(d):
            for c in range(a + 1, d):
                root[c, a] = around[a] + around[c] - around[pair] - centre
                pair += 1
        # The Cholesky factor L in place of the matrix. Where that is not semidefinite, entries are clipped so that no row
        # is longer than its diagonal entry allows. The slope becomes r = L^-1 slope by the same elimination.
        for a in range(d):
            pivot = max(root[a, a], 0.0)
            for c in range(a):
                entry = root[a, c]
                bound = np.sqrt(pivot)
                for k in range(c):
                    entry -= root[a, k] * root[c, k]
                root[a, c] = (
                    min(max(entry / root[c, c], -bound), bound) if root[c, c] > 0.0 else 0.0
                )
                pivot = max(pivot - root[a, c] ** 2, 0.0)
                score[a] -= root[a, c] * score[c]
            root[a, a] = np.sqrt(pivot) if pivot > FLAT else 0.0
            score[a] = score[a] / root[a, a] if pivot > FLAT else 0.0
        if centre > values[members[best]] or b == 0:
            best = b
        for c in range(d):  # L' as a function of the state, then of the noise
            for j in range(dim):
                factor[j, c] = 0.0
            for a in range(d):
                entry = 0.0
                for k in range(c, d):
                    entry += back[a, k] * root[k, c]
                for j in range(dim):
                    factor[j, c] += slopes[b, j, a] * entry
            for t in range(len(points)):
                for j in range(dim):
                    if points[t, j] != 0.0:
                        offsets[b, t, c] += points[t, j] * factor[j, c]
    # The largest likelihood: of all that were computed, or the maximum of the quadratic about the best centre.
    promise = values[members[best]]
    for a in range(d):
        promise += 0.5 * scores[best, a] ** 2
    peak = max(peak, promise)
    # shift of a particle from the centre of its group, in units of the span
    shift = np.zeros(d)
    for i in range(n):
        g = group[i]
        square = 0.0
        for k in range(d):
            shift[k] = 0.0
            for a in range(d):
                shift[k] += shifts[i, a] * back[a, k]
        for c in range(d):
            residuals[i, c] = scores[g, c]
            for k in range(c, d):
                residuals[i, c] -= shift[k] * roots[g, k, c]
            square += residuals[i, c] ** 2
        # A quadratic with the residual r rises by |r|^2 / 2 above the value at the particle: no higher than the peak.
        bound = 2.0 * (peak - values[i])
        if square > bound:
            scale = np.sqrt(bound / square)
            for c in range(d):
                residuals[i, c] *= scale
        log_peaks[i] = values[i] + 0.5 * (min(square, bound) + d * np.log(2 * np.pi))
    return offsets, residuals, log_peaks
