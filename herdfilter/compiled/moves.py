"""How proposals carry particles over a step of the compiled loop: one compiled function for each.

It takes particles, whose weights sum to 1, over step t into `moved`, takes up the observation, leaves the new weights in the
place of the old, and returns the logarithm of the evidence; NaN if the step is not plain. It does what the proposal's
``propose`` does, in the same order with the same numbers.
"""

from __future__ import annotations

import hashlib
from collections import namedtuple
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
from herdfilter.filters.proposals.lookahead import SPARE_POINTS, NoiseUpdate, _draw, _share, _update_noise
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
tuple_type: Any = types.NamedTuple
FUNCTION: Any = types.FunctionType(SIGNATURE)
GENERATOR: Any = typeof(np.random.default_rng())  # type: ignore[no-untyped-call]


def named(name: str, **fields: Any) -> tuple[Any, Any]:
    """Return a class of named tuples, and its type in compiled code."""
    kind = namedtuple(name, fields)  # type: ignore[misc]
    return kind, tuple_type(tuple(fields.values()), kind)


Particles, PARTICLES = named("Particles", x=_rows, log_weights=_row, weights=_row, moved=_rows)
"""x (n, d), log-weights and weights (n,), and where a step leaves the new x."""
_way = {"parameters": _row, "f": FUNCTION, "dts": _row, "steps": _counts, "controls": _rows, "factors": _sets}
_seen = {"observe": FUNCTION, "known": _row, "derived": boolean, "z": _sets, "kinds": _counts}
_noise = {"which": _counts, "whitening": _sets, "log_peaks": _row, "noises": _sets, "circular": _flags, "angles": _flags}
_room = {"noise": _rows, "values": _rows, "found": _row, "buffer": _row, "centred": _rows}
Series, SERIES = named("Series", **_way, **_seen, **_noise, **_room)
"""Of T steps: parameters of the mean of the next state, that mean, time steps, indices of steps, controls, factors of the
transition noise; what is observed, its parameters, whether it is a mean, z (T, 1, k), the kind of each observation and which
noise it has; whitening matrices, log-densities at 0 and covariances of these noises; which entries of
state and observation are angles; and room for noise (n, d), what is observed (n, k), and two rows (n,): a step leaves
nothing there."""
_moments = {"means": _rows, "covariances": _sets, "ess": _row, "log_likelihoods": _row}
_sets_kept = {"resampled": _flags, "steps": _counts, "particles": _sets, "weights": _rows}
Table, TABLE = named("Table", **_moments, **_sets_kept)
"""Columns of a `FilterResult`, as many rows as steps; particles and weights have none unless they are kept."""
Span, SPAN = named("Span", first=int64, last=int64, least_ess=float64, resampled=boolean)
"""Steps of a series, the effective sample size that calls for resampling, and if that was done on the way to the first."""
Noise, NOISE = named("Noise", sets=_sets, points=_rows, weights=_row)
"""Sets of noise (S, n, D), sigma points (p, D) and their weights."""
Ancestors, ANCESTORS = named("Ancestors", x=_rows, starts=_rows, weights=_row, root=_rows, noise=NOISE)
"""States (M, d); their transition means, or with a width again the states; weights (M,); a factor (d, d) of the covariance
about each, if there is a width; and their noise."""
UPDATE = tuple_type((_counts, _rows, _sets, _sets, _row, _row, _sets, _rows, _sets), NoiseUpdate)
_pointer = types.FunctionType
_order = _pointer(_counts(_rows, _row, _flags))
_look = _pointer(GROUP((boolean, _rows, UPDATE))(SERIES, _order, int64, int64, ANCESTORS))
_carry = _pointer(float64(SERIES, int64, ANCESTORS, _counts, _rows, _row, PARTICLES))
_tables = {"narrow": NOISE, "wide": NOISE, "places": _row, "shares": _row}
Tools, TOOLS = named("Tools", **_tables, order=_order, look=_look, carry=_carry)
"""Of a proposal: noise of ancestors without a width and with one; even steps from 0 to 1 (n,), parameters; and functions
that it calls: compiled by themselves, not anew in each of their callers."""
_follow = _pointer(float64(SERIES, TOOLS, int64, ANCESTORS, boolean, boolean, PARTICLES))
_made = GROUP((float64, boolean, boolean, GROUP((float64, float64)), boolean))
_gauss = _pointer(_made(SERIES, TOOLS, int64, GROUP((_rows, _rows, _rows)), PARTICLES))
_quantiles = _pointer(types.none(*(_row,) * 7))


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


def _bootstrap(series, tools, rng, t, uneven, particles):
    """Do as `BootstrapProposal`, after `SystematicResampling` if weights are uneven."""
    x, log_weights, weights, moved = particles
    noise = series.noise
    if uneven:
        _systematic(x, weights, log_weights, rng.random(), noise)
        x = noise  # moved before it is overwritten
    advance(series, t, x, moved)  # x' = f(x) + F noise
    for i in range(noise.shape[0]):
        for j in range(noise.shape[1]):
            noise[i, j] = rng.standard_normal()
    _add_noise(moved, noise, series.factors[t])
    wrap(moved, series.circular)
    return weigh(series, t, particles)


def _ranked(series, tools, rng, t, uneven, particles):
    """Do as `RankedProposal`."""
    (given, follow), x = tools, particles.x
    tools, means = Tools(*given), zeros(x.shape)
    advance(series, t, x, means)
    ancestors = Ancestors(x, means, particles.weights.copy(), means, tools.narrow)
    return follow(series, tools, t, ancestors, tools.shares[0] > 0.0, False, particles)


def _auto(series, tools, rng, t, uneven, particles):
    """Do as `AutomaticProposal`, in two and more dimensions, where an observation has moments."""
    (given, follow, from_gaussian), (x, _, weights, _) = tools, particles
    tools, (n, d), circular, before, means = Tools(*given), x.shape, series.circular, weights.copy(), zeros(x.shape)
    moments = mean, root, centred = zeros((1, d)), zeros((d, d)), unwrapped(x, weights, circular)
    found, made, gaussian, over, blind = from_gaussian(series, tools, t, moments, particles)
    if made:
        return found
    # (2) Else as ranked particles, (3) blind where enough will be left, then of the Gaussian if they cannot be told from it;
    # (4) else widened where the noise is too narrow.
    advance(series, t, x, means)
    ancestors, width = Ancestors(x, means, before, root, tools.narrow), kernel_width(over, 1.0 / dot(before, before))
    factor, ahead = series.factors[t], unwrapped(means, before, circular)
    if gaussian and blind:
        whole = zeros(1)
        whole[0] = 1.0
        ancestors = Ancestors(mean, mean, whole, root, tools.wide)
    elif series.kinds[t] == USED and width > 0.0 and _narrow(ahead, before, factor):
        for a in range(d):
            for i in range(n):
                centred[i, a] = mean[0, a] + np.sqrt(1.0 - width**2) * (centred[i, a] - mean[0, a])
            for b in range(d):
                root[a, b] *= width
        wrap(centred, circular)
        ancestors = Ancestors(centred, centred, before, root, tools.wide)
    return follow(series, tools, t, ancestors, True, blind, particles)


def _on_line(series, tools, rng, t, uneven, particles):
    """Do as `AutomaticProposal` in one dimension, where an observation has moments and the noise a density."""
    (given, from_gaussian, quantiles), (x, log_weights, weights, _) = tools, particles
    tools, n, before, means = Tools(*given), len(x), weights.copy(), zeros(x.shape)
    moments = zeros((1, 1)), zeros((1, 1)), unwrapped(x, weights, series.circular)
    found, made, _, _, _ = from_gaussian(series, tools, t, moments, particles)
    if made:
        return found
    # (2) Else at exact quantiles of the predictive mixture,
    advance(series, t, x, means)
    deviation, ratio = series.factors[t][0, 0], zeros(n)
    if not (squares(means) <= LARGEST**2 and deviation > 0.0):
        return np.nan
    places, parts, share = unwrapped(means, before, series.circular), zeros((3, n)), tools.shares[0]
    for i in range(n):
        parts[0, i], parts[1, i], parts[2, i] = deviation, (1.0 - share) * before[i] + share / n, before[i]
    _at_quantiles(series, tools, quantiles, places, parts, particles)
    normalise(log_weights, ratio, weights)
    found = weigh(series, t, particles)
    if series.kinds[t] != USED or not 1.0 / dot(weights, weights) < np.sqrt(n):
        return found
    # or of what Kalman filters make of it where the likelihood leaves too few of them.
    plain, _, update = tools.look(series, tools.order, t, n * n, Ancestors(x, means, before, means, tools.narrow))
    if series.circular[0] or not plain:
        return np.nan
    chances, both, parts = zeros(n), zeros((2 * n, 1)), zeros((3, 2 * n))
    _share_weights(before, update.log_densities, tools.shares[1], chances, ratio)
    for i in range(n):
        variance = 1.0 + WIDENING
        for a in range(update.gains.shape[1]):
            variance -= update.gains[i, a, 0] ** 2
        both[i, 0], both[n + i, 0] = means[i, 0] + deviation * update.means[i, 0], means[i, 0]
        parts[0, i], parts[0, n + i] = deviation * np.sqrt(variance), deviation
        parts[1, i], parts[1, n + i] = (1.0 - UNGUIDED_SHARE) * chances[i], UNGUIDED_SHARE * before[i]
        parts[2, n + i] = before[i]
    _at_quantiles(series, tools, quantiles, both, parts, particles)
    return weigh(series, t, particles)


@njit(**INSIDE)
def _at_quantiles(series, tools, quantiles, means, parts, particles):
    """Move to the quantiles of components of a mixture; rows of `parts` are deviations, weights, and those of the target."""
    (_, log_weights, _, moved), u, values = particles, tools.places, series.circular.copy()
    values[0] = False  # the angles are unwrapped
    order, ordered, points = tools.order(means, parts[1], values), zeros((4, len(means))), zeros(len(u))
    for i in range(len(means)):
        mean = means[order[i], 0]
        ordered[0, i] = mean
        ordered[1, i] = max(parts[0, order[i]], max(RESOLUTION * abs(mean), SMALLEST_DEVIATION))
        ordered[2, i], ordered[3, i] = parts[1, order[i]], parts[2, order[i]]
    quantiles(ordered[0], ordered[1], ordered[2], ordered[3], u, points, log_weights)
    for i in range(len(u)):
        moved[i, 0] = points[i]
        log_weights[i] -= np.log(len(u))
    wrap(moved, series.circular)


def from_gaussian(series, tools, t, moments, particles):
    """Make the step from one Gaussian, if that serves, and fill in the moments of particles whose angles are unwrapped.

    Return the log-evidence, whether that is all, if particles are Gaussian, their squared cumulants over chance, and if no
    look ahead is needed.
    """
    (x, _, weights, moved), observed, (mean, root, centred) = particles, series.kinds[t] == USED, moments
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
    one, only = Ancestors(mean, mean, whole, root, tools.wide), no_indices(n)
    noise = tools.wide.sets[series.steps[t] % SETS]
    drawn, log_ratio = noise, zeros(n)
    if observed and (gaussian or (n > FEW and d > 1)):
        plain, _, update = tools.look(series, tools.order, t, SPARE_POINTS, one)
        if not plain:
            return np.nan, True, gaussian, over, blind
        few = min(n, FORETOLD)
        blind = _share_of(update, noise[:few], log_ratio[:few]) >= 0.5
        if gaussian:
            drawn = zeros(noise.shape)
            _draw(*update[:5], only, noise, zeros(update.gains.shape[1]), drawn, log_ratio)
            serves = n * (1.0 / _share_of(update, drawn[:few], log_ratio[:few]) - 1.0) <= 1.0
    if serves:
        found = tools.carry(series, t, one, only, drawn, log_ratio, particles)
        left = (
            n * dot(weights, weights) - 1.0
            if observed
            else _nonlinear_share(unwrapped(moved, weights, series.circular), noise)
        )
        if not n * left > 1.0 or found != found:
            return found, True, gaussian, over, blind
    return 0.0, False, gaussian, over, blind


@njit(**INSIDE)
def _share_of(update, noise, log_weights):
    """Do as `NoiseUpdate.share`."""
    k = len(update.residuals[0])
    return _share(
        update.offsets[0], update.residuals[0], update.noises, noise, log_weights, zeros((k + 1, k)), zeros(len(noise))
    )


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


def follow(series, tools, t, ancestors, guided, blind, particles):
    """Do as `RankedProposal.follow`: the other way is tried, too, where the first leaves fewer than sqrt(n)."""
    x, log_weights, weights, moved = particles
    (n, d), z, before, evidence, found = x.shape, ancestors.noise.sets[series.steps[t] % SETS], ancestors.weights, 0.0, 0.0
    guided = guided and series.kinds[t] == USED and series.derived
    blind, to = blind or not guided, particles
    if not squares(ancestors.starts) <= LARGEST**2:
        return np.nan
    for trial in range(2):
        centres, chances, noise = ancestors.x, before, z
        ratio, log_ratio, chosen, ordered, m = zeros(n), zeros(len(before)), no_indices(n), zeros(len(before)), len(before)
        if not blind:
            plain, centres, update = tools.look(series, tools.order, t, SPARE_POINTS, ancestors)
            if not plain:
                return np.nan
            # the ancestors are taken by the weights after the update, but for a share of those before
            chances = zeros(m)
            _share_weights(before, update.log_densities, tools.shares[1], chances, log_ratio)
        order = tools.order(centres, chances, series.circular)
        for i in range(m):
            ordered[i] = chances[order[i]]
        _inverse(ordered, tools.places, chosen)
        for i in range(n):
            chosen[i] = order[chosen[i]]
            ratio[i] = log_ratio[chosen[i]]
        if not blind:
            noise, log_ratio = zeros(z.shape), zeros(n)
            _draw(*update[:5], chosen, z, zeros(update.gains.shape[1]), noise, log_ratio)
            for i in range(n):
                ratio[i] += log_ratio[i]
        found = tools.carry(series, t, ancestors, chosen, noise, ratio, to)
        if trial == 0:
            if not (guided and 1.0 / dot(weights, weights) < np.sqrt(n)):  # NaN, too
                return found
            evidence, blind, to = found, not blind, Particles(x, zeros(n), zeros(n), zeros((n, d)))
    gain = found - evidence
    if gain != gain or (gain <= np.log(n) if blind else gain < -np.log(n)):
        return evidence + 0.0 * gain  # NaN if one of them is
    for i in range(n):
        log_weights[i], weights[i] = to.log_weights[i], to.weights[i]
        for a in range(d):
            moved[i, a] = to.moved[i, a]
    return found


def look_ahead(series, curve_order, t, spare, ancestors):
    """Do as `Ancestors.look_ahead`: return whether all is plain, where ancestors will be, and the update of their noise."""
    _, points, sigma_weights = ancestors.noise
    (n, d), (p, dim), z, angles = ancestors.x.shape, points.shape, series.z[t], series.angles
    R = series.noises[series.which[t]]
    count, group, centres = min(n, (n + spare + p - 1) // p), no_indices(n), zeros((n, d))
    members = group.copy()
    for i in range(n):
        group[i] = members[i] = i
    _successors(series, t, ancestors, group, points[:1], zeros((n, d)), centres)
    if count < n:
        order = curve_order(centres, ancestors.weights, series.circular)
        for i in range(n):
            group[order[i]] = i * count // n
        for g in range(count):
            members[g] = order[(2 * g + 1) * n // (2 * count)]
    k, ahead = z.shape[1], zeros((count * p, d))
    _successors(series, t, ancestors, members[:count], points, zeros((count * p, d)), ahead)
    values, residuals = zeros((count * p, k)), zeros((n, k))
    observe(series, t, ahead, values)
    observe(series, t, centres, residuals)
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
    update = group, zeros((n, dim)), zeros((count, k, dim)), zeros((count, k, k)), zeros(count), zeros(n)
    first = residuals[:1].copy()  # the others are overwritten
    spare = zeros((count, k, k)), zeros((count, k)), zeros(count), zeros(k), zeros((k, dim)), zeros((2, k, p))
    plain = plain and _update_noise(offsets, residuals, noise, sigma_weights, points, *update, *spare)
    return plain, centres, NoiseUpdate(*update, offsets, first, noise)


def carry(series, t, ancestors, chosen, noise, log_ratio, particles):
    """Carry chosen ancestors over the step at their noise, and take up the observation; see `Ancestors.particles`."""
    (_, log_weights, weights, moved), n = particles, len(chosen)
    log_n = np.log(n)
    for i in range(n):
        weights[i], log_weights[i] = 1.0 / n, log_ratio[i] - log_n
    _successors(series, t, ancestors, chosen, noise, series.noise, moved)
    return weigh(series, t, particles)


@njit(**PLAIN)
def _successors(series, t, ancestors, chosen, noise, start, moved):
    """Fill in the successors of chosen ancestors, each at its own noise, or else each at all rows of the noise."""
    places, root, factor, circular = ancestors.starts, ancestors.root, series.factors[t], series.circular
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
        advance(series, t, start, moved)
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
def advance(series, t, x, means):
    """Fill in the transition means of states on the way to step t."""
    series.f(x, series.z[t], series.dts[t], series.controls[t], series.steps[t], series.parameters, means)


@njit(**PLAIN)
def observe(series, t, x, values):
    """Fill in what is observed of states at step t."""
    series.observe(x, series.z[t], 0.0, series.controls[t], series.steps[t], series.known, values)


@njit(**PLAIN)
def weigh(series, t, particles):
    """Take up an observation of what has moved, if there is one; return its log-density, NaN if that or x is not plain."""
    _, log_weights, weights, x = particles
    plain = squares(x) <= LARGEST**2  # NaN is not
    if series.kinds[t] != USED:
        return 0.0 if plain else np.nan
    which, values, found = series.which[t], series.values, series.found
    observe(series, t, x, values)
    if series.derived:
        plain = plain and squares(values) <= LARGEST**2
        whitening, log_peak = series.whitening[which], series.log_peaks[which]
        _log_densities(values, series.z[t], series.angles, whitening, log_peak, series.buffer, found)
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
def moments(series, x, weights, mean, covariance):
    """Write mean, its angles wrapped, and covariance; return False if that is not finite. Angles are unwrapped before."""
    centred, circular = series.centred, series.circular
    n, d = x.shape
    for a in range(d):
        row, reference, total = centred[a], 0.0, 0.0
        if circular[a]:
            sine = cosine = 0.0
            for i in range(n):
                sine += weights[i] * np.sin(x[i, a])
                cosine += weights[i] * np.cos(x[i, a])
            reference = np.arctan2(sine, cosine)
        for i in range(n):
            row[i] = wrapped(x[i, a] - reference) if circular[a] else x[i, a]
            total += weights[i] * row[i]
        for i in range(n):
            row[i] -= total
        mean[a] = wrapped(reference + total) if circular[a] else total
        for b in range(a + 1):
            other, total = centred[b], 0.0
            for i in range(n):
                total += weights[i] * row[i] * other[i]
            covariance[a, b] = covariance[b, a] = total
    total = 0.0
    for a in range(d):
        total += covariance[a, a]
    return total < np.inf


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


SHARED = {curve_order: _order, look_ahead: _look, carry: _carry}
MOVES: dict[str, Any] = {
    "bootstrap": (_bootstrap, {}),
    "ranked": (_ranked, {follow: _follow}),
    "auto": (_auto, {follow: _follow, from_gaussian: _gauss}),
    "line": (_on_line, {from_gaussian: _gauss, weighted_quantiles: _quantiles}),
}
"""Name -> the function of a proposal, and what it calls beside what all of them call but the first."""


@cache
def mover(name: str) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return the type of the function of a proposal, that function compiled, kept on the disk, and its tools."""
    function, others = MOVES[name]
    given = GROUP((GROUP(TOOLS.types), *others.values()) if others else ())
    kind = _pointer(float64(SERIES, given, GENERATOR, int64, boolean, PARTICLES))
    tools = tuple(_tool(*tool) for tool in (SHARED | others).items()) if others else ()
    return kind, _tool(function, kind), tools


@cache
def _tool(function: Any, kind: Any) -> Any:
    return compiled(function, kind.signature, no_cpython_wrapper=True, _nrt=function not in (carry, _bootstrap))
