"""A likelihood as a linear observation: its logarithm is taken for quadratic where particles will be."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import covariance_factor
from herdfilter.angles import unwrap, wrap
from herdfilter.filters.observation import Observation
from herdfilter.filters.state import Indices
from herdfilter.models.resolved import Transition
from herdfilter.samplers.compiled import CALLED, njit

LEAST_LOG_LIKELIHOOD = -1e12
"""Stands for less, and for the logarithm of zero; where it is met the likelihood is taken for flat."""

FLAT = 1e-4
"""Curvature that is taken for none: it would take so small a share of a variance."""


@lru_cache(maxsize=64)
def stencil(dim: int) -> tuple[Array, Indices, Indices]:
    """Return unit steps forwards and backwards, then forwards in pairs of dimensions, (p, dim); and these pairs."""
    first, second = np.triu_indices(dim, 1)
    unit = np.eye(dim)
    return np.concatenate([unit, -unit, unit[first] + unit[second]]), first, second


def linear_observations(
    observation: Observation,
    transition: Transition,
    centres: Array,
    weights: Array,
    members: Indices,
    group: Indices,
    slopes: Array,
    points: Array,
) -> tuple[Array, Array, Array]:
    r"""Return linear observations of noise I that have the likelihood of states near the centre of each group.

    The log-likelihood is expanded to second order at the centre of each group, by differences over a standard deviation of
    what the group spans, its noise and its members (Pitt and Shephard 1999 did so by derivatives). With curvature -L L' and
    slope L r it is that of an observation with mean L' u, residual r and noise I, but for a constant; directions without
    curvature count for nothing. Each particle has its own residual, as far as the quadratic goes, but none may promise more
    than the largest likelihood: followed beyond where it holds, it would draw all particles to where it is most wrong.

    Parameters
    ----------
    centres, weights : ndarray, shapes (n, d) and (n,)
        Where particles will be at no noise.
    members, group : ndarray of int, shapes (B,) and (n,)
        The centre of each group, and the group of each particle.
    slopes : ndarray, shape (B, D, d)
        Derivatives of the states of each group in their noise.
    points : ndarray, shape (p, D)
        Sigma points of the noise.

    Returns
    -------
    offsets : ndarray, shape (B, p, d)
        Mean observations at the points, less that at no noise.
    residuals : ndarray, shape (n, d)
    log_peaks : ndarray, shape (n,)
        The constants: log-likelihoods where the residuals vanish.
    """
    (gains, _, d), (steps, first, second) = slopes.shape, stencil(centres.shape[1])
    x = unwrap(centres, weights, transition.circular)
    x = x - weights @ x
    span = np.einsum("bja,bjc->ac", slopes, slopes) / gains + gains ** (-2 / d) * (weights * x.T) @ x
    root = covariance_factor(span)
    try:
        back = np.linalg.inv(root)
    except np.linalg.LinAlgError:  # a direction that nothing spans is not asked for
        back = np.linalg.pinv(root)
    states = transition.wrapped(centres[members, None] + steps @ root.T).reshape(-1, d)
    values = observation.log_likelihood(np.concatenate([centres, states]))
    places = wrap(centres - centres[members[group]], transition.circular)
    offsets, residuals, log_peaks = np.empty((gains, len(points), d)), np.empty_like(centres), np.empty(len(centres))
    arrays = back.T, np.ascontiguousarray(slopes), points, places
    _linearise(
        np.maximum(values, LEAST_LOG_LIKELIHOOD), members, group, first, second, *arrays, offsets, residuals, log_peaks
    )
    return offsets, residuals, log_peaks


@njit(**CALLED)
def _linearise(values, members, group, first, second, back, slopes, points, places, offsets, residuals, log_peaks):
    """Fill in what `linear_observations` returns; values at the centres come first, then those at each group's stencil."""
    (gains, dim, d), n = slopes.shape, len(places)
    size, best, peak = 2 * d + len(first), 0, values.max()
    roots, slants, factor = np.zeros((gains, d, d)), np.empty((gains, d)), np.empty((dim, d))
    for b in range(gains):
        root, slant, found, here = roots[b], slants[b], values[n + b * size : n + (b + 1) * size], values[members[b]]
        if found.min() <= LEAST_LOG_LIKELIHOOD or here <= LEAST_LOG_LIKELIHOOD:  # nothing guides at the edge of what can be
            found = np.full(size, here)
        for a in range(d):
            root[a, a], slant[a] = 2.0 * here - found[a] - found[d + a], 0.5 * (found[a] - found[d + a])
        for k in range(len(first)):
            root[second[k], first[k]] = found[first[k]] + found[second[k]] - found[2 * d + k] - here
        # L in the place of the matrix, as far as that is semidefinite: no row is longer than its diagonal allows
        for a in range(d):
            rest = max(root[a, a], 0.0)
            for c in range(a):
                entry, most = root[a, c], np.sqrt(rest)
                for k in range(c):
                    entry -= root[a, k] * root[c, k]
                root[a, c] = min(max(entry / root[c, c], -most), most) if root[c, c] > 0.0 else 0.0
                rest = max(rest - root[a, c] ** 2, 0.0)
                slant[a] -= root[a, c] * slant[c]
            root[a, a] = np.sqrt(rest) if rest > FLAT else 0.0
            slant[a] = slant[a] / root[a, a] if rest > FLAT else 0.0
        if here > values[members[best]] or b == 0:
            best = b
        for c in range(d):  # L' in terms of the state, and of the noise
            for j in range(dim):
                factor[j, c] = 0.0
            for a in range(d):
                entry = 0.0
                for k in range(c, d):
                    entry += back[a, k] * root[k, c]
                for j in range(dim):
                    factor[j, c] += slopes[b, j, a] * entry
            for t in range(len(points)):
                offsets[b, t, c] = 0.0
                for j in range(dim):
                    if points[t, j] != 0.0:
                        offsets[b, t, c] += points[t, j] * factor[j, c]
    promise = values[members[best]]
    for a in range(d):
        promise += 0.5 * slants[best, a] ** 2
    peak = max(peak, promise)
    place = np.empty(d)
    for i in range(n):
        g, square = group[i], 0.0
        for k in range(d):
            place[k] = 0.0
            for a in range(d):
                place[k] += places[i, a] * back[a, k]
        for c in range(d):
            residuals[i, c] = slants[g, c]
            for k in range(c, d):
                residuals[i, c] -= place[k] * roots[g, k, c]
            square += residuals[i, c] ** 2
        most = 2.0 * (peak - values[i])
        if square > most:
            scale = np.sqrt(most / square)
            for c in range(d):
                residuals[i, c] *= scale
        log_peaks[i] = values[i] + 0.5 * (min(square, most) + d * np.log(2 * np.pi))
