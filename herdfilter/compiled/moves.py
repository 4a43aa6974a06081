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
from numba import boolean, float64, int64, typeof, types

from herdfilter._checks import LARGEST
from herdfilter.filters.kalman import update
from herdfilter.filters.kalman.update import factorise
from herdfilter.filters.proposals import automatic, balanced, gaussianity, guided, lookahead, ranked
from herdfilter.filters.proposals.automatic import FORETOLD, UNGUIDED_SHARE
from herdfilter.filters.proposals.balanced import SETS, curve_order, unwrapped
from herdfilter.filters.proposals.gaussianity import CLEARLY, FEW, _over_chance, _standardise, kernel_width
from herdfilter.filters.proposals.guided import WIDENING
from herdfilter.filters.proposals.lookahead import SPARE_POINTS, _draw, _share, _update_noise
from herdfilter.filters.proposals.ranked import _share_weights
from herdfilter.filters.resampling import base
from herdfilter.filters.resampling.base import _inverse
from herdfilter.models.compiled import SIGNATURE
from herdfilter.samplers import compiled as sampler_loops
from herdfilter.samplers import line, quantile
from herdfilter.samplers.compiled import CALLED, FAST, INSIDE, PLAIN, QUICK, exp, njit
from herdfilter.samplers.line import RESOLUTION, SMALLEST_DEVIATION
from herdfilter.samplers.quantile import weighted_quantiles

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
_noises = GROUP((_sets, _rows, _row))
TABLES = GROUP((_noises, _noises, _row, _row))
"""Of a proposal: sets of noise (S, n, D), sigma points (p, D) and their weights, for ancestors without a width and with one;
even steps from 0 to 1 (n,), parameters."""
ROOM = GROUP((_rows, _rows, _row, _row))
"""Noise (n, d), what is observed (n, k), and two rows (n,); a step leaves nothing there."""
ANCESTORS = GROUP((_rows, _rows, _row, _rows, _noises))
"""States (M, d); their transition means, or with a width again the states; weights (M,); a factor (d, d) of the covariance
about each, if there is a width; and what the tables hold for their noise."""
UPDATE = GROUP((_counts, _rows, _sets, _sets, _row))
"""The arrays of a `NoiseUpdate` that `draw` takes."""
SHARE = GROUP((_rows, _row, _sets, _rows))
"""The arrays of a `NoiseUpdate` that `share` takes."""
_pointer = types.FunctionType
_order = _pointer(_counts(_rows, _row, _flags))
_found = GROUP((boolean, _rows, _row, UPDATE, SHARE))
_look = _pointer(_found(FUNCTION, FUNCTION, _order, int64, int64, ANCESTORS, WAYS, SEEN))
_carry = _pointer(float64(FUNCTION, FUNCTION, int64, ANCESTORS, _counts, _rows, _row, PARTICLES, WAYS, SEEN, ROOM))
_ways = FUNCTION, FUNCTION, _order, _look, _carry, int64, ANCESTORS, boolean, boolean
_follow = _pointer(float64(*_ways, PARTICLES, WAYS, SEEN, TABLES, ROOM))
_moments = GROUP((_rows, _rows, _rows))
_made = GROUP((float64, boolean, boolean, GROUP((float64, float64)), boolean))
_gauss = _pointer(_made(*_ways[:6], _moments, PARTICLES, WAYS, SEEN, TABLES, ROOM))
_quantiles = _pointer(types.none(*(_row,) * 7))
TOOLS = {
    "bootstrap": GROUP(()),
    "ranked": GROUP((TABLES, _order, _look, _carry, _follow)),
    "auto": GROUP((TABLES, _order, _look, _carry, _follow, _gauss)),
    "line": GROUP((TABLES, _order, _look, _carry, _gauss, _quantiles)),
}
"""Tables of a proposal, and functions that it calls: compiled by themselves, not anew in each of their callers."""


def move_type(name: str) -> Any:
    """Return the type of the compiled function of a proposal."""
    return _pointer(float64(FUNCTION, FUNCTION, TOOLS[name], GENERATOR, int64, boolean, PARTICLES, WAYS, SEEN, ROOM))


@cache
def mover(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the compiled function of a proposal, and its tools; kept on the disk."""
    function, *tools = {
        "bootstrap": (_bootstrap,),
        "ranked": (_ranked, curve_order, look_ahead, carry, follow),
        "auto": (_auto, curve_order, look_ahead, carry, follow, from_gaussian),
        "line": (_on_line, curve_order, look_ahead, carry, from_gaussian, weighted_quantiles),
    }[name]
    made = tuple(map(_tool, tools, tuple(TOOLS[name])[1:]))
    return compiled(function, move_type(name).signature, no_cpython_wrapper=True), made


@cache
def _tool(function: Any, kind: Any) -> Any:
    return compiled(function, kind.signature, no_cpython_wrapper=True, _nrt=function is not carry)


def compiled(function: Any, signature: Any, **options: Any) -> Any:
    """Compile a function of the loop; on the disk it bears a digest of all that is compiled into it."""
    parts = automatic, balanced, base, gaussianity, guided, line, lookahead, quantile, ranked, update, sampler_loops
    files = __file__, *(str(part.__file__) for part in parts)
    digest = hashlib.sha256(b"".join(Path(file).read_bytes() for file in files))
    function.__qualname__ = f"{function.__name__}-{digest.hexdigest()[:16]}"
    loop: Any = njit(function, **CALLED | {"no_cfunc_wrapper": False} | options)
    loop.compile(signature)
    loop.disable_compile()
    return loop


def _bootstrap(f, observe, tools, rng, t, uneven, particles, ways, seen, room):
    """Do as `BootstrapProposal`, after `SystematicResampling` if weights are uneven."""
    x, log_weights, weights, moved = particles
    noise = room[0]
    if uneven:
        _systematic(x, weights, log_weights, rng.random(), noise)
        x = noise  # moved before it is overwritten
    advance(f, t, x, ways, seen, moved)  # x' = f(x) + F noise
    for i in range(noise.shape[0]):
        for j in range(noise.shape[1]):
            noise[i, j] = rng.standard_normal()
    _add_noise(moved, noise, ways[4][min(t, len(ways[4]) - 1)])
    wrap(moved, seen[8])
    return weigh(observe, t, moved, log_weights, weights, ways, seen, room)


def _ranked(f, observe, tools, rng, t, uneven, particles, ways, seen, room):
    """Do as `RankedProposal`."""
    (tables, order, look, carry, follow), x = tools, particles[0]
    means, guided = zeros(x.shape), tables[3][0] > 0.0
    advance(f, t, x, ways, seen, means)
    ancestors = x, means, particles[2].copy(), means, tables[0]
    return follow(f, observe, order, look, carry, t, ancestors, guided, False, particles, ways, seen, tables, room)


def _auto(f, observe, tools, rng, t, uneven, particles, ways, seen, room):
    """Do as `AutomaticProposal`, in two and more dimensions, where an observation has moments."""
    (tables, order, look, carry, follow, from_gaussian), (x, _, weights, _) = tools, particles
    (n, d), circular, before, means = x.shape, seen[8], weights.copy(), zeros(x.shape)
    moments = mean, root, centred = zeros((1, d)), zeros((d, d)), unwrapped(x, weights, circular)
    found, made, gaussian, over, blind = from_gaussian(
        f, observe, order, look, carry, t, moments, particles, ways, seen, tables, room
    )
    if made:
        return found
    # (2) Else as ranked particles, (3) blind where enough will be left, then of the Gaussian if they cannot be told from it;
    # (4) else widened where the noise is too narrow.
    advance(f, t, x, ways, seen, means)
    ancestors, width = (x, means, before, root, tables[0]), kernel_width(over, 1.0 / dot(before, before))
    factor, ahead = ways[4][min(t, len(ways[4]) - 1)], unwrapped(means, before, circular)
    if gaussian and blind:
        whole = zeros(1)
        whole[0] = 1.0
        ancestors = mean, mean, whole, root, tables[1]
    elif seen[3][t] == USED and width > 0.0 and _narrow(ahead, before, factor):
        for a in range(d):
            for i in range(n):
                centred[i, a] = mean[0, a] + np.sqrt(1.0 - width**2) * (centred[i, a] - mean[0, a])
            for b in range(d):
                root[a, b] *= width
        wrap(centred, circular)
        ancestors = centred, centred, before, root, tables[1]
    return follow(f, observe, order, look, carry, t, ancestors, True, blind, particles, ways, seen, tables, room)


def _on_line(f, observe, tools, rng, t, uneven, particles, ways, seen, room):
    """Do as `AutomaticProposal` in one dimension, where an observation has moments and the noise a density."""
    (tables, order, look, carry, from_gaussian, quantiles), (x, log_weights, weights, moved) = tools, particles
    n, before, means = len(x), weights.copy(), zeros(x.shape)
    moments = zeros((1, 1)), zeros((1, 1)), unwrapped(x, weights, seen[8])
    found, made, _, _, _ = from_gaussian(f, observe, order, look, carry, t, moments, particles, ways, seen, tables, room)
    if made:
        return found
    # (2) Else at exact quantiles of the predictive mixture,
    advance(f, t, x, ways, seen, means)
    deviation, ratio = ways[4][min(t, len(ways[4]) - 1)][0, 0], zeros(n)
    if not (squares(means) <= LARGEST**2 and deviation > 0.0):
        return np.nan
    places, parts, share = unwrapped(means, before, seen[8]), zeros((3, n)), tables[3][0]
    for i in range(n):
        parts[0, i], parts[1, i], parts[2, i] = deviation, (1.0 - share) * before[i] + share / n, before[i]
    _at_quantiles(order, quantiles, places, parts, tables[2], seen[8], moved, log_weights)
    normalise(log_weights, ratio, weights)
    found = weigh(observe, t, moved, log_weights, weights, ways, seen, room)
    if seen[3][t] != USED or not 1.0 / dot(weights, weights) < np.sqrt(n):
        return found
    # or of what Kalman filters make of it where the likelihood leaves too few of them.
    ancestors = x, means, before, means, tables[0]
    plain, _, densities, update, _ = look(f, observe, order, t, n * n, ancestors, ways, seen)
    if seen[8][0] or not plain:
        return np.nan
    chances, both, parts = zeros(n), zeros((2 * n, 1)), zeros((3, 2 * n))
    _share_weights(before, densities, tables[3][1], chances, ratio)
    for i in range(n):
        variance = 1.0 + WIDENING
        for a in range(update[2].shape[1]):
            variance -= update[2][i, a, 0] ** 2
        both[i, 0], both[n + i, 0] = means[i, 0] + deviation * update[1][i, 0], means[i, 0]
        parts[0, i], parts[0, n + i] = deviation * np.sqrt(variance), deviation
        parts[1, i], parts[1, n + i] = (1.0 - UNGUIDED_SHARE) * chances[i], UNGUIDED_SHARE * before[i]
        parts[2, n + i] = before[i]
    _at_quantiles(order, quantiles, both, parts, tables[2], seen[8], moved, log_weights)
    return weigh(observe, t, moved, log_weights, weights, ways, seen, room)


@njit(**INSIDE)
def _at_quantiles(curve_order, quantiles, means, parts, u, circular, moved, log_weights):
    """Move to the quantiles of components of a mixture; rows of `parts` are deviations, weights, and those of the target."""
    values = circular.copy()
    values[0] = False  # the angles are unwrapped
    order, ordered, points = curve_order(means, parts[1], values), zeros((4, len(means))), zeros(len(u))
    for i in range(len(means)):
        mean = means[order[i], 0]
        ordered[0, i] = mean
        ordered[1, i] = max(parts[0, order[i]], max(RESOLUTION * abs(mean), SMALLEST_DEVIATION))
        ordered[2, i], ordered[3, i] = parts[1, order[i]], parts[2, order[i]]
    quantiles(ordered[0], ordered[1], ordered[2], ordered[3], u, points, log_weights)
    for i in range(len(u)):
        moved[i, 0] = points[i]
        log_weights[i] -= np.log(len(u))
    wrap(moved, circular)


def from_gaussian(f, observe, order, look, carry, t, moments, particles, ways, seen, tables, room):
    """Make the step from one Gaussian, if that serves, and fill in the moments of particles whose angles are unwrapped.

    Return the log-evidence, whether that is all, if particles are Gaussian, their squared cumulants over chance, and if no
    look ahead is needed.
    """
    (x, _, weights, moved), observed, (mean, root, centred) = particles, seen[3][t] == USED, moments
    (n, d), gaussian, over, blind = x.shape, True, (0.0, 0.0), False
    # (1) From one Gaussian, where the particles cannot be told from it, first a few and then all,
    inverse, whole = zeros((d, d)), zeros(1)
    stride = n // FEW if n >= 2 * FEW else 1
    while stride > 0:
        size, total, some, share = (n + stride - 1) // stride, 0.0, centred, weights
        z = zeros((size, d))
        if stride > 1:
            some, share = zeros((size, d)), zeros(size)
            for i in range(size):
                share[i] = weights[i * stride]
                total += share[i]
                for a in range(d):
                    some[i, a] = centred[i * stride, a]
            for i in range(size):
                share[i] /= total
        for a in range(d):
            mean[0, a] = 0.0
            for b in range(d):
                root[a, b] = inverse[a, b] = 0.0
        if not _standardise(some, share, mean[0], root, inverse, z):
            return np.nan, True, gaussian, over, blind
        over = _over_chance(z, share, zeros((d, d, d)), zeros((d, d)))
        gaussian = gaussian and max(over[0], over[1]) <= (CLEARLY if stride > 1 else 2.0)
        stride = 1 if stride > 1 else 0
    serves = gaussian
    # and the step is as good as linear: without an observation, where the successors are a linear function of their noise;
    # with one, where Kalman's update leaves almost even weights: as is foretold, and is so.
    whole[0] = 1.0
    one, only, noise = (mean, mean, whole, root, tables[1]), no_indices(n), tables[1][0][ways[2][t] % SETS]
    drawn, log_ratio = noise, zeros(n)
    if observed and (gaussian or (n > FEW and d > 1)):
        plain, _, _, update, known = look(f, observe, order, t, SPARE_POINTS, one, ways, seen)
        offsets, residual, R, lower = known
        if not plain:
            return np.nan, True, gaussian, over, blind
        few = min(n, FORETOLD)
        blind = _share(offsets, residual, R, noise[:few], log_ratio[:few], lower, zeros(few)) >= 0.5
        if gaussian:
            drawn = zeros(noise.shape)
            _draw(update[0], update[1], update[2], update[3], update[4], only, noise, residual.copy(), drawn, log_ratio)
            serves = n * (1.0 / _share(offsets, residual, R, drawn[:few], log_ratio[:few], lower, zeros(few)) - 1.0) <= 1.0
    if serves:
        found = carry(f, observe, t, one, only, drawn, log_ratio, particles, ways, seen, room)
        left = n * dot(weights, weights) - 1.0 if observed else _nonlinear_share(unwrapped(moved, weights, seen[8]), noise)
        if not n * left > 1.0 or found != found:
            return found, True, gaussian, over, blind
    return 0.0, False, gaussian, over, blind


@njit(**INSIDE)
def _narrow(means, weights, factor):
    """Return True if in some direction noise makes less than 1/n of the covariance of successors of means (n, d)."""
    (n, d), centre, rest = means.shape, zeros(len(factor)), zeros((len(factor), len(factor)))
    for i in range(n):
        for a in range(d):
            centre[a] += weights[i] * means[i, a]
    for i in range(n):
        for a in range(d):
            offset = weights[i] * (means[i, a] - centre[a]) / n
            for b in range(a + 1):
                rest[a, b] -= offset * (means[i, b] - centre[b])
    for a in range(d):
        for b in range(a + 1):
            rest[a, b] += (1.0 - 1.0 / n) * dot(factor[a], factor[b])
    return not factorise(rest, rest)


@njit(**PLAIN)
def _nonlinear_share(x, noise):
    """Return the share of the variance of states (n, d), in the worst dimension, that is not linear in balanced noise."""
    (n, d), most = x.shape, 0.0
    for a in range(d):
        mean = variance = linear = 0.0
        for i in range(n):
            mean += x[i, a] / n
        for i in range(n):
            variance += (x[i, a] - mean) ** 2 / n
        for b in range(noise.shape[1]):  # mean 0 and covariance I: the slopes are covariances
            slope = 0.0
            for i in range(n):
                slope += (x[i, a] - mean) * noise[i, b] / n
            linear += slope**2
        if variance > 0.0 and variance - linear > most * variance:
            most = (variance - linear) / variance
    return most


def follow(f, observe, curve_order, look, carry, t, ancestors, guided, blind, particles, ways, seen, tables, room):
    """Do as `RankedProposal.follow`: the other way is tried, too, where the first leaves fewer than sqrt(n)."""
    x, log_weights, weights, moved = particles
    (n, d), z, before, evidence, found = x.shape, ancestors[4][0][ways[2][t] % SETS], ancestors[2], 0.0, 0.0
    guided = guided and seen[3][t] == USED and seen[1]
    blind, to = blind or not guided, particles
    if not squares(ancestors[1]) <= LARGEST**2:
        return np.nan
    for trial in range(2):
        centres, chances, noise = ancestors[0], before, z
        ratio, log_ratio, chosen, ordered, m = zeros(n), zeros(len(before)), no_indices(n), zeros(len(before)), len(before)
        if not blind:
            plain, centres, densities, update, _ = look(f, observe, curve_order, t, SPARE_POINTS, ancestors, ways, seen)
            if not plain:
                return np.nan
            # the ancestors are taken by the weights after the update, but for a share of those before
            chances = zeros(m)
            _share_weights(before, densities, tables[3][1], chances, log_ratio)
        order = curve_order(centres, chances, seen[8])
        for i in range(m):
            ordered[i] = chances[order[i]]
        _inverse(ordered, tables[2], chosen)
        for i in range(n):
            chosen[i] = order[chosen[i]]
            ratio[i] = log_ratio[chosen[i]]
        if not blind:
            noise, log_ratio = zeros(z.shape), zeros(n)
            _draw(
                update[0], update[1], update[2], update[3], update[4], chosen, z, zeros(update[2].shape[1]), noise, log_ratio
            )
            for i in range(n):
                ratio[i] += log_ratio[i]
        found = carry(f, observe, t, ancestors, chosen, noise, ratio, to, ways, seen, room)
        if trial == 0:
            if not (guided and 1.0 / dot(weights, weights) < np.sqrt(n)):  # NaN, too
                return found
            evidence, blind, to = found, not blind, (x, zeros(n), zeros(n), zeros((n, d)))
    gain = found - evidence
    if gain != gain or (gain <= np.log(n) if blind else gain < -np.log(n)):
        return evidence + 0.0 * gain  # NaN if one of them is
    for i in range(n):
        log_weights[i], weights[i] = to[1][i], to[2][i]
        for a in range(d):
            moved[i, a] = to[3][i, a]
    return found


def look_ahead(f, observe, curve_order, t, spare, ancestors, ways, seen):
    """Do as `Ancestors.look_ahead`: return whether all is plain, where ancestors will be, and the update of their noise."""
    places, weights, (_, points, sigma_weights), circular = ancestors[0], ancestors[2], ancestors[4], seen[8]
    (n, d), (p, dim), z, angles, R = places.shape, points.shape, seen[2][t], seen[9], seen[7][seen[4][t]]
    count, group, centres = min(n, (n + spare + p - 1) // p), no_indices(n), zeros((n, d))
    members = group.copy()
    for i in range(n):
        group[i] = members[i] = i
    _successors(f, t, ancestors, group, points[:1], ways, seen, zeros((n, d)), centres)
    if count < n:
        order = curve_order(centres, weights, circular)
        for i in range(n):
            group[order[i]] = i * count // n
        for g in range(count):
            members[g] = order[(2 * g + 1) * n // (2 * count)]
    k, ahead = z.shape[1], zeros((count * p, d))
    _successors(f, t, ancestors, members[:count], points, ways, seen, zeros((count * p, d)), ahead)
    values, residuals = zeros((count * p, k)), zeros((n, k))
    observe(ahead, z, 0.0, ways[3][t], ways[2][t], seen[0], values)
    observe(centres, z, 0.0, ways[3][t], ways[2][t], seen[0], residuals)
    plain = squares(values) + squares(residuals) <= LARGEST**2
    # an entry that is missing tells nothing: its offsets and residuals are 0
    offsets, noise = zeros((count, p, k)), zeros((1, k, k))
    for a in range(k):
        known = z[0, a] == z[0, a]
        for g in range(count):
            for s in range(p):
                offset = values[g * p + s, a] - values[g * p, a] if known else 0.0
                offsets[g, s, a] = wrapped(offset) if angles[a] else offset
        for i in range(n):
            residual = z[0, a] - residuals[i, a] if known else 0.0
            residuals[i, a] = wrapped(residual) if angles[a] else residual
        for b in range(k):
            noise[0, a, b] = R[a, b] if known and z[0, b] == z[0, b] else 1.0 * (a == b)
    update = group, zeros((n, dim)), zeros((count, k, dim)), zeros((count, k, k)), zeros(count)
    share = offsets[0], residuals[0].copy(), noise, zeros((k + 1, k))
    densities = zeros(n)
    spare = zeros((count, k, k)), zeros((count, k)), zeros(count), zeros(k), zeros((k, dim)), zeros((2, k, p))
    plain = plain and _update_noise(offsets, residuals, noise, sigma_weights, points, *update, densities, *spare)
    return plain, centres, densities, update, share


def carry(f, observe, t, ancestors, chosen, noise, log_ratio, particles, ways, seen, room):
    """Carry chosen ancestors over the step at their noise, and take up the observation; see `Ancestors.particles`."""
    (_, log_weights, weights, moved), n = particles, len(chosen)
    log_n = np.log(n)
    for i in range(n):
        weights[i], log_weights[i] = 1.0 / n, log_ratio[i] - log_n
    _successors(f, t, ancestors, chosen, noise, ways, seen, room[0], moved)
    return weigh(observe, t, moved, log_weights, weights, ways, seen, room)


@njit(**PLAIN)
def _successors(f, t, ancestors, chosen, noise, ways, seen, start, moved):
    """Fill in the successors of chosen ancestors, each at its own noise, or else each at all rows of the noise."""
    places, root, factor, circular = ancestors[1], ancestors[3], ways[4][min(t, len(ways[4]) - 1)], seen[8]
    (d, dim), n = factor.shape, len(moved)
    each, own = n // len(chosen), noise.shape[1] - dim  # entries of the noise that move the start
    for i in range(len(chosen)):
        for s in range(each):
            to = i * each + s
            row = to if len(noise) == n else s
            for a in range(d):
                entry = places[chosen[i], a]
                for b in range(own):
                    entry += root[a, b] * noise[row, b]
                start[to, a] = entry
    if own > 0:
        wrap(start, circular)
        advance(f, t, start, ways, seen, moved)
    for to in range(n):
        row = to if len(noise) == n else to % each
        for a in range(d):
            entry = moved[to, a] if own > 0 else start[to, a]
            for b in range(dim):
                entry += factor[a, b] * noise[row, own + b]
            moved[to, a] = entry
    wrap(moved, circular)


@njit(**INSIDE)
def zeros(shape):
    """Do as `np.zeros`, which would be compiled for each of its callers."""
    return np.zeros(shape)


@njit(**INSIDE)
def no_indices(n):
    """Return n indices, all 0."""
    return np.zeros(n, np.int64)


@njit(**PLAIN)
def advance(f, t, x, ways, seen, means):
    """Fill in the transition means of states on the way to step t."""
    f(x, seen[2][t], ways[1][t], ways[3][t], ways[2][t], ways[0], means)


@njit(**PLAIN)
def weigh(observe, t, x, log_weights, weights, ways, seen, room):
    """Take up an observation, if there is one; return the logarithm of its density, NaN if that or x is not plain."""
    plain = squares(x) <= LARGEST**2  # NaN is not
    if seen[3][t] != USED:
        return 0.0 if plain else np.nan
    z, which, values, found, buffer = seen[2][t], seen[4][t], room[1], room[2], room[3]
    observe(x, z, 0.0, ways[3][t], ways[2][t], seen[0], values)
    if seen[1]:
        plain = plain and squares(values) <= LARGEST**2
        _log_densities(values, z, seen[9], seen[5][which], seen[6][which], buffer, found)
    else:
        for i in range(len(found)):
            found[i] = values[i, 0]
    increment = normalise(log_weights, found, weights)
    return increment if plain else np.nan


@njit(**QUICK)
def dot(a, b):
    """Return the scalar product of two rows."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(**QUICK)
def squares(x):
    """Return the sum of the squares of rows (n, d)."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
    return total


@njit(**QUICK)
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


@njit(**QUICK)
def wrap(x, circular):
    """Bring the angles of x (n, d) to [-pi, pi)."""
    for a in range(x.shape[1]):
        if circular[a]:
            for i in range(x.shape[0]):
                x[i, a] = wrapped(x[i, a])


@njit(**QUICK)
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


@njit(**QUICK)
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
