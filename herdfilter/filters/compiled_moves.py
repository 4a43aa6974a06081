"""How proposals carry particles over a step of the compiled loop: one compiled function for each.

It takes particles, whose weights sum to 1, over step t into `moved`, takes up the observation, leaves the new weights in the
place of the old, and returns the logarithm of the evidence; NaN if the step is not plain. It does what the proposal's
``propose`` does, in the same order with the same numbers.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, typeof, types

from herdfilter._checks import LARGEST
from herdfilter.filters.kalman import update
from herdfilter.filters.progress import stage
from herdfilter.filters.proposals import balanced, lookahead, ranked
from herdfilter.filters.proposals.balanced import curve_order
from herdfilter.filters.proposals.lookahead import SPARE_POINTS, _draw, _update_noise
from herdfilter.filters.proposals.ranked import _share_weights
from herdfilter.filters.resampling import base
from herdfilter.filters.resampling.base import _inverse
from herdfilter.models.compiled import SIGNATURE
from herdfilter.samplers import compiled as sampler_loops
from herdfilter.samplers.compiled import CALLED, FAST, INSIDE, exp

MISSING, USED, BY_ITSELF = 0, 1, 2
"""Ways of an observation: there is none; the loop takes it up; the filter takes the step by itself."""

_row, _rows, _sets = (types.Array(float64, k, "C") for k in (1, 2, 3))
_counts, _flags = types.Array(int64, 1, "C"), types.Array(boolean, 1, "C")
GROUP: Any = types.Tuple
FUNCTION: Any = types.FunctionType(SIGNATURE)
GENERATOR: Any = typeof(np.random.default_rng())  # type: ignore[no-untyped-call]
PARTICLES = GROUP((_rows, _row, _row, _rows))
"""x (n, d), log-weights and weights (n,), and `moved`."""
WAYS = GROUP((_row, _row, _counts, _rows, _sets))
"""Parameters of f, time steps, indices of steps, controls, factors of the transition noise: one, or one for each step."""
SEEN = GROUP((_row, boolean, _sets, _counts, _counts, _sets, _row, _sets, _flags, _flags))
"""Parameters of what is observed, whether it is a mean, z (T, 1, k), the way of each observation and which noise it has;
whitening matrices, log-densities at 0 and covariances of these noises; which entries of state and observation are angles."""
TABLES = GROUP((_sets, _rows, _row, _row, _row))
"""Of a proposal: sets of noise (S, n, D), sigma points (p, D), their weights, even steps from 0 to 1 (n,), parameters."""
ROOM = GROUP((_rows, _rows, _row, _row))
"""Noise (n, d), what is observed (n, k), and two rows (n,); a step leaves nothing there."""
MOVE = float64(FUNCTION, FUNCTION, GENERATOR, int64, boolean, PARTICLES, WAYS, SEEN, TABLES, ROOM)


@cache
def mover(name: str) -> Any:
    """Return the compiled function of a proposal; kept on the disk, and told where that takes long."""
    with stage(f"compiling a step of the {name} filter, once"):
        return compiled({"bootstrap": _bootstrap, "ranked": _ranked}[name], MOVE)


def compiled(function: Any, signature: Any) -> Any:
    """Compile a function of the loop; on the disk it bears a digest of all that is compiled into it."""
    parts = __file__, *(str(part.__file__) for part in (balanced, base, lookahead, ranked, update, sampler_loops))
    digest = hashlib.sha256(b"".join(Path(part).read_bytes() for part in parts))
    function.__qualname__ = f"{function.__name__}-{digest.hexdigest()[:16]}"
    return njit(signature, **CALLED)(function)


def _bootstrap(f, observe, rng, t, uneven, particles, ways, seen, tables, room):
    """Do as `BootstrapProposal`, after `SystematicResampling` if weights are uneven."""
    x, log_weights, weights, moved = particles
    noise = room[0]
    if uneven:
        _systematic(x, weights, log_weights, rng.random(), noise)
        x = noise  # moved before it is overwritten
    f(x, seen[2][t], ways[1][t], ways[3][t], ways[2][t], ways[0], moved)  # x' = f(x) + F noise
    for i in range(noise.shape[0]):
        for j in range(noise.shape[1]):
            noise[i, j] = rng.standard_normal()
    _add_noise(moved, noise, factor_at(t, ways))
    wrap(moved, seen[8])
    return weigh(observe, t, moved, log_weights, weights, ways, seen, room)


def _ranked(f, observe, rng, t, uneven, particles, ways, seen, tables, room):
    """Do as `RankedProposal`."""
    x, log_weights, weights, moved = particles
    (n, d), circular, factor = x.shape, seen[8], factor_at(t, ways)
    z, u, means = tables[0][ways[2][t] % len(tables[0])], tables[3], np.empty((n, d))
    f(x, seen[2][t], ways[1][t], ways[3][t], ways[2][t], ways[0], means)
    if not dot(means.ravel(), means.ravel()) <= LARGEST**2:
        return np.nan
    blind, blind_weights = np.empty((n, d)), np.full(n, 1.0 / n)
    evidence, guided = 0.0, seen[3][t] == USED and seen[1] and tables[4][0] > 0.0
    before = weights.copy()
    if guided:
        evidence = _guided(observe, t, means, u, z, particles, ways, seen, tables, room)
        if not 1.0 / dot(weights, weights) < np.sqrt(n):  # NaN, too
            return evidence
    chosen = _members(x, before, circular, u)
    _successors(means, chosen, z, factor, circular, blind)
    blind_log_weights = np.full(n, -np.log(n))
    found = weigh(observe, t, blind, blind_log_weights, blind_weights, ways, seen, room)
    if guided and not found > evidence + np.log(n):
        return evidence if found == found else np.nan
    for i in range(n):
        log_weights[i], weights[i] = blind_log_weights[i], blind_weights[i]
        for a in range(d):
            moved[i, a] = blind[i, a]
    return found


@njit(**INSIDE, inline="always")
def _guided(observe, t, means, u, z, particles, ways, seen, tables, room):
    """Move particles at noise that is updated by the observation; see `RankedProposal` and `Ancestors.look_ahead`."""
    x, log_weights, weights, moved = particles
    (n, d), circular, factor = x.shape, seen[8], factor_at(t, ways)
    centres, points = means.copy(), tables[1]
    wrap(centres, circular)
    p = len(points)
    count = min(n, (n + SPARE_POINTS + p - 1) // p)
    group = np.arange(n)
    members = group.copy()
    if count < n:
        order = curve_order(centres, weights, circular)
        for i in range(n):
            group[order[i]] = i * count // n
        for g in range(count):
            members[g] = order[(2 * g + 1) * n // (2 * count)]
    ahead = np.empty((count * p, d))
    _successors(means, members[:count], points, factor, circular, ahead)
    plain, offsets, residuals, noise = _compared(observe, t, ahead, centres, p, ways, seen)
    if not plain:
        return np.nan
    k, dim = residuals.shape[1], points.shape[1]
    noise_means, gains, roots = np.zeros((n, dim)), np.zeros((count, k, dim)), np.zeros((count, k, k))
    log_dets, densities = np.zeros(count), np.zeros(n)
    update = group, noise_means, gains, roots, log_dets
    spare = np.empty((count, k, k)), np.empty((count, k)), np.empty(count)
    if not _update_noise(offsets, residuals, noise, tables[2], points, *update, densities, *spare):
        return np.nan
    # the ancestors are taken by the weights after the update, but for a share of those before
    chances, ratio = np.empty(n), np.empty(n)
    _share_weights(weights, densities, tables[4][1], chances, ratio)
    chosen = _members(centres, chances, circular, u)
    drawn, log_ratio = np.empty((n, dim)), np.empty(n)
    _draw(*update, chosen, z, drawn, log_ratio)
    for i in range(n):
        log_weights[i] = ratio[chosen[i]] - np.log(n) + log_ratio[i]
    _successors(means, chosen, drawn, factor, circular, moved)
    return weigh(observe, t, moved, log_weights, weights, ways, seen, room)


@njit(**INSIDE, inline="always")
def _compared(observe, t, ahead, centres, p, ways, seen):
    """Return whether all is plain, h at each p states ahead less h at the first, residuals of centres, and R (1, k, k).

    Only observed entries count.
    """
    z, angles = seen[2][t], seen[9]
    entries, k, nothing = np.empty(z.shape[1], np.int64), 0, np.empty(0)
    for a in range(len(entries)):
        if z[0, a] == z[0, a]:
            entries[k], k = a, k + 1
    values, others = np.empty((len(ahead), z.shape[1])), np.empty((len(centres), z.shape[1]))
    observe(ahead, z, 0.0, nothing, ways[2][t], seen[0], values)
    observe(centres, z, 0.0, nothing, ways[2][t], seen[0], others)
    plain = dot(values.ravel(), values.ravel()) + dot(others.ravel(), others.ravel()) <= LARGEST**2
    count = len(ahead) // p
    offsets, residuals, noise = np.empty((count, p, k)), np.empty((len(centres), k)), np.empty((1, k, k))
    for a in range(k):
        entry = entries[a]
        for g in range(count):
            for s in range(p):
                offset = values[g * p + s, entry] - values[g * p, entry]
                offsets[g, s, a] = wrapped(offset) if angles[entry] else offset
        for i in range(len(centres)):
            residual = z[0, entry] - others[i, entry]
            residuals[i, a] = wrapped(residual) if angles[entry] else residual
        for b in range(k):
            noise[0, a, b] = seen[7][seen[4][t], entry, entries[b]]
    return plain, offsets, residuals, noise


@njit(**INSIDE)
def _members(x, weights, circular, u):
    """Return the members of weighted particles at ascending numbers u, as `ranked_members`."""
    order, chosen, ordered = curve_order(x, weights, circular), np.empty(len(u), np.int64), np.empty(len(weights))
    for i in range(len(weights)):
        ordered[i] = weights[order[i]]
    _inverse(ordered, u, chosen)
    for i in range(len(u)):
        chosen[i] = order[chosen[i]]
    return chosen


@njit(**INSIDE)
def _successors(means, chosen, noise, factor, circular, moved):
    """Fill in the successors of chosen transition means, each at its own noise, or else each at all rows of the noise."""
    each, (d, dim) = len(moved) // len(chosen), factor.shape
    for i in range(len(chosen)):
        for s in range(each):
            to, own = i * each + s, i if each == 1 else s
            for a in range(d):
                moved[to, a] = means[chosen[i], a]
                for b in range(dim):
                    moved[to, a] += factor[a, b] * noise[own, b]
    wrap(moved, circular)


@njit(**INSIDE)
def factor_at(t, ways):
    """Return the factor of the transition noise on the way to step t."""
    return ways[4][t if len(ways[4]) > 1 else 0]


@njit(**INSIDE)
def weigh(observe, t, x, log_weights, weights, ways, seen, room):
    """Take up an observation, if there is one; return the logarithm of its density, NaN if that or x is not plain."""
    plain = dot(x.ravel(), x.ravel()) <= LARGEST**2  # NaN is not
    if seen[3][t] != USED:
        return 0.0 if plain else np.nan
    z, which, values, found, buffer = seen[2][t], seen[4][t], room[1], room[2], room[3]
    observe(x, z, 0.0, np.empty(0), ways[2][t], seen[0], values)
    if seen[1]:
        plain = plain and dot(values.ravel(), values.ravel()) <= LARGEST**2
        _log_densities(values, z, seen[9], seen[5][which], seen[6][which], buffer, found)
    increment = normalise(log_weights, found if seen[1] else values.ravel(), weights)
    return increment if plain else np.nan


@njit(**FAST)
def dot(a, b):
    """Return the scalar product of two rows."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(**FAST)
def wrapped(angle):
    """Return an angle in [-pi, pi)."""
    return angle - 2 * np.pi * np.floor(angle * (0.5 / np.pi) + 0.5)


@njit(**FAST)
def _systematic(x, weights, log_weights, u, copies):
    """Copy the particles at the inverse of the cumulative weights at ``(j + u) / n``; as `SystematicResampling` does."""
    n, d = x.shape
    i, reached = 0, weights[0]
    for j in range(n):
        place = (j + u) / n
        while reached <= place and i < n - 1:
            i += 1
            reached += weights[i]
        while weights[i] == 0.0:  # rounding has gone past the last of positive weight
            i -= 1
        for a in range(d):
            copies[j, a] = x[i, a]
    for j in range(n):
        weights[j], log_weights[j] = 1.0 / n, -np.log(n)


@njit(**FAST)
def _add_noise(x, noise, factor):
    d, m = factor.shape
    for a in range(d):
        for b in range(m):
            scale = factor[a, b]
            if scale != 0.0:
                for i in range(len(x)):
                    x[i, a] += scale * noise[i, b]


@njit(**FAST)
def wrap(x, circular):
    """Bring the angles of x (n, d) to [-pi, pi)."""
    for a in range(x.shape[1]):
        if circular[a]:
            for i in range(x.shape[0]):
                x[i, a] = wrapped(x[i, a])


@njit(**FAST)
def _log_densities(values, z, angles, whitening, log_peak, buffer, found):
    """Log-density ``log_peak - |W (z - h(x))|^2 / 2`` of the observed entries of z (1, k), with h(x) (n, k)."""
    n, k = values.shape
    for a in range(k):
        for i in range(n):
            values[i, a] = z[0, a] - values[i, a]
    wrap(values, angles)
    for i in range(n):
        found[i] = log_peak
    for a in range(k):
        for i in range(n):
            buffer[i] = 0.0
        for b in range(a + 1):
            scale = whitening[a, b]
            if scale != 0.0:  # a missing entry is NaN, and has no scale
                for i in range(n):
                    buffer[i] += scale * values[i, b]
        for i in range(n):
            found[i] -= 0.5 * buffer[i] * buffer[i]


@njit(**FAST)
def normalise(log_weights, likelihoods, weights):
    """Add log-likelihoods to log-weights, make their sum 1 and return its logarithm; NaN if it is none, or one of them."""
    n, peak, total, wrong = len(weights), -np.inf, 0.0, 0.0
    for i in range(n):
        log_weights[i] += likelihoods[i]
        peak = max(peak, log_weights[i])
    for i in range(n):
        below = log_weights[i] - peak
        weights[i] = exp(below) if below > -300.0 else 0.0  # squares of smaller ones are subnormal, and slow
        total += weights[i]
        wrong += 0.0 if below <= 0.0 else 1.0
    increment = peak + np.log(total) if wrong == 0.0 else np.nan
    share = 1.0 / total
    for i in range(n):
        log_weights[i] -= increment
        weights[i] *= share
    return increment
