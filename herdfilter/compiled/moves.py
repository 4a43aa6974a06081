"""How proposals carry particles over a step of the compiled loop, one compiled function for each, and the loop itself.

Such a function takes particles, whose weights sum to 1, over step t into `moved`, takes up the observation, leaves the new
weights in the place of the old, and returns the logarithm of the evidence; NaN if the step is not plain. It does what the
proposal's ``propose`` does, in the same order with the same numbers.
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
from herdfilter.filters.kalman.update import factorise
from herdfilter.filters.proposals.automatic import FORETOLD, UNGUIDED_SHARE
from herdfilter.filters.proposals.balanced import SETS, curve_order, unwrapped
from herdfilter.filters.proposals.gaussianity import (
    CLEARLY,
    FEW,
    _nonlinear_share,
    _over_chance,
    _standardise,
    kernel_width,
)
from herdfilter.filters.proposals.guided import WIDENING
from herdfilter.filters.proposals.lookahead import SPARE_POINTS, NoiseUpdate, _draw, _share, new_update
from herdfilter.filters.proposals.ranked import _share_weights
from herdfilter.filters.resampling.base import _inverse
from herdfilter.filters.state import NO_WEIGHT
from herdfilter.models.compiled import SIGNATURE
from herdfilter.samplers.compiled import CALLED, INSIDE, PLAIN, QUICK, exp, njit
from herdfilter.samplers.line import RESOLUTION, SMALLEST_DEVIATION
from herdfilter.samplers.quantile import weighted_quantiles

MISSING, USED, BY_ITSELF = 0, 1, 2
"""Ways of an observation: there is none; the loop takes it up; the filter takes the step by itself."""

_row, _rows, _sets = (types.Array(float64, k, "C") for k in (1, 2, 3))
_counts, _count_rows = (types.Array(int64, k, "C") for k in (1, 2))
_flags = types.Array(boolean, 1, "C")
GROUP: Any = types.Tuple
_pointer: Any = types.FunctionType
_tuple_type: Any = types.NamedTuple


def named(name: str, **fields: Any) -> tuple[Any, Any]:
    """Return a class of named tuples, and its type in compiled code."""
    kind: Any = namedtuple(name, fields)  # type: ignore[misc]
    return kind, _tuple_type(tuple(fields.values()), kind)


Particles, PARTICLES = named("Particles", x=_rows, log_weights=_row, weights=_row, moved=_rows, ancestors=_counts)
"""x (n, d), log-weights and weights (n,), where a step leaves the new x, and ancestors (n,), -1 where there are none."""
Series, SERIES = named(
    "Series",
    parameters=_row,
    f=_pointer(SIGNATURE),
    dts=_row,
    steps=_counts,
    controls=_rows,
    factors=_sets,
    observe=_pointer(SIGNATURE),
    observed_parameters=_row,
    derived=boolean,
    z=_sets,
    kinds=_counts,
    which=_counts,
    whitening=_sets,
    log_peaks=_row,
    noises=_sets,
    circular=_flags,
    angles=_flags,
    states=_rows,
    values=_rows,
    room=_rows,
    chosen=_counts,
)
"""Of T steps: parameters of the mean of the next state, that mean, time steps, indices of steps, controls, factors of the
transition noise; what is observed, its parameters, whether it is a mean, z (T, 1, k), the kind of each observation and which
noise it has; whitening matrices, log-densities at 0 and covariances of these noises; which entries of
state and observation are angles; and room for states (n, d), what is observed (n, k), rows (d + 2, n) and indices (n,): a
step leaves nothing there."""
Table, TABLE = named(
    "Table",
    means=_rows,
    covariances=_sets,
    ess=_row,
    log_likelihoods=_row,
    resampled=_flags,
    steps=_counts,
    distinct_ancestors=_row,
    particles=_sets,
    weights=_rows,
    ancestors=_count_rows,
)
"""Columns of a `FilterResult`, a row for each step; particles, weights and ancestors have none unless they are kept."""
Span, SPAN = named("Span", first=int64, last=int64, least_ess=float64, resampled=boolean)
"""Steps of a series, the effective sample size that calls for resampling, and if that was done on the way to the first."""
Noise, NOISE = named("Noise", sets=_sets, points=_rows, weights=_row)
"""Sets of noise (S, n, D), sigma points (p, D) and their weights."""
Ancestors, ANCESTORS = named("Ancestors", x=_rows, starts=_rows, weights=_row, root=_rows, noise=NOISE)
"""States (M, d); their transition means, or with a width again the states; weights (M,); a factor (d, d) of the covariance
about each, if there is a width; and their noise."""
Gaussian, GAUSSIAN = named(
    "Gaussian", log_evidence=float64, serves=boolean, close=boolean, blind=boolean, width=float64, only=ANCESTORS
)
"""The log-evidence of a step from one Gaussian; whether that is all; if particles are close to Gaussian; if no look ahead is
needed; the width of kernels; and the Gaussian as the only ancestor."""
UPDATE = _tuple_type((_counts, _rows, _sets, _sets, _row, _row, _sets, _rows, _sets, _rows), NoiseUpdate)
_order = _pointer(_counts(_rows, _row, _flags))
_look = _pointer(GROUP((boolean, _rows, UPDATE))(SERIES, _order, int64, int64, ANCESTORS))
_carry = _pointer(float64(SERIES, int64, ANCESTORS, _counts, _rows, _row, PARTICLES))
Tools, TOOLS = named("Tools", narrow=NOISE, wide=NOISE, levels=_row, shares=_row, order=_order, look=_look, carry=_carry)
"""Of a proposal: noise of ancestors without a width and with one; even steps from 0 to 1 (n,), parameters; and functions
that it calls: compiled by themselves, not anew in each of their callers."""
_follow = _pointer(float64(SERIES, TOOLS, int64, ANCESTORS, boolean, boolean, PARTICLES))
_from_gaussian = _pointer(GAUSSIAN(SERIES, TOOLS, int64, PARTICLES))
_quantiles = _pointer(types.none(*(_row,) * 7))


def run(given, move, tools, rng, particles, span, table):
    """Take steps with the particles; return the end of those taken, and whether another one was begun.

    It makes no array, and counts no references: compiled code that is given arrays from here does not, either.
    """
    series, resampled, spoilt = Series(*given), span.resampled, False
    log_weights, weights = particles.log_weights, particles.weights
    t, ess = span.first, 1.0 / dot(weights, weights)
    while t < span.last and series.kinds[t] != BY_ITSELF:
        successors = Particles(particles.moved, log_weights, weights, particles.x, particles.ancestors)
        if series.dts[t] > 0:
            resampled = ess < span.least_ess
            increment = move(series, tools, rng, t, resampled, particles)
            particles = successors
        else:
            increment = weigh(series, t, successors)
        x = particles.x
        ess = 1.0 / dot(weights, weights)
        spoilt = increment != increment or not moments(series, x, weights, table.means[t], table.covariances[t])
        if spoilt:
            break
        table.ess[t] = ess
        table.log_likelihoods[t] = increment
        table.resampled[t] = resampled
        table.distinct_ancestors[t] = _count_distinct(particles.ancestors, weights, series.room[0])
        if len(table.particles):
            for i in range(len(x)):
                table.weights[t, i] = weights[i]
                table.ancestors[t, i] = particles.ancestors[i]
                for a in range(x.shape[1]):
                    table.particles[t, i, a] = x[i, a]
        t += 1
    return t, spoilt


def _bootstrap(series, tools, rng, t, uneven, particles):
    """Do as `BootstrapProposal`, after `SystematicResampling` if weights are uneven."""
    x, log_weights, weights, moved, ancestors = particles
    noise, levels, factor = series.states, series.room[0], series.factors[t]
    n, d = x.shape
    for i in range(n):
        ancestors[i] = i
    if uneven:
        offset = rng.random()
        for j in range(n):
            levels[j] = (j + offset) / n
        _inverse(weights, levels, series.chosen)
        for j in range(n):
            weights[j] = 1.0 / n
            log_weights[j] = -np.log(n)
            ancestors[j] = series.chosen[j]
            for a in range(d):
                noise[j, a] = x[series.chosen[j], a]
        x = noise  # moved before it is overwritten
    advance(series, t, x, moved)  # x' = f(x) + F noise
    for i in range(n):
        for b in range(d):
            noise[i, b] = rng.standard_normal()
    for a in range(d):
        for b in range(d):
            if factor[a, b] != 0.0:
                for i in range(n):
                    moved[i, a] += factor[a, b] * noise[i, b]
    wrap(moved, series.circular)
    return weigh(series, t, particles)


def _ranked(series, tools, rng, t, uneven, particles):
    """Do as `RankedProposal`."""
    given, follow = tools
    proposal, x = Tools(*given), particles.x
    means = np.zeros(x.shape)
    advance(series, t, x, means)
    ancestors = Ancestors(x, means, particles.weights.copy(), means, proposal.narrow)
    return follow(series, proposal, t, ancestors, proposal.shares[0] > 0.0, False, particles)


def _auto(series, tools, rng, t, uneven, particles):
    """Do as `AutomaticProposal`, in two and more dimensions, where an observation has moments."""
    given, follow, from_gaussian = tools
    proposal, x, before = Tools(*given), particles.x, particles.weights.copy()
    gaussian = from_gaussian(series, proposal, t, particles)
    if gaussian.serves:
        return gaussian.log_evidence
    # (2) Else as ranked particles, (3) blind where enough will be left, then of the Gaussian if they cannot be told from it;
    # (4) else widened where the noise is too narrow.
    means, width, root = np.zeros(x.shape), gaussian.width, gaussian.only.root
    advance(series, t, x, means)
    ancestors = Ancestors(x, means, before, root, proposal.narrow)
    if gaussian.close and gaussian.blind:
        ancestors = gaussian.only
    elif series.kinds[t] == USED and width > 0.0 and _narrow(series, t, means, before):
        centred = unwrapped(x, before, series.circular)
        for a in range(len(root)):
            mean = gaussian.only.x[0, a]
            for i in range(len(x)):
                centred[i, a] = mean + np.sqrt(1.0 - width**2) * (centred[i, a] - mean)
            for b in range(len(root)):
                root[a, b] *= width
        wrap(centred, series.circular)
        ancestors = Ancestors(centred, centred, before, root, proposal.wide)
    return follow(series, proposal, t, ancestors, True, gaussian.blind, particles)


def _on_line(series, tools, rng, t, uneven, particles):
    """Do as `AutomaticProposal` in one dimension, where an observation has moments and the noise a density."""
    given, from_gaussian, quantiles = tools
    x, log_weights, weights, moved, no_ancestors = particles
    proposal, n, before, means = Tools(*given), len(x), weights.copy(), np.zeros(x.shape)
    gaussian = from_gaussian(series, proposal, t, particles)
    if gaussian.serves:
        return gaussian.log_evidence
    advance(series, t, x, means)
    deviation, share, log_evidence = series.factors[t][0, 0], proposal.shares[0], np.nan
    if not (squares(means) <= LARGEST**2 and deviation > 0.0):
        return np.nan
    means = unwrapped(means, before, series.circular)
    # (2) Else at exact quantiles of the predictive mixture, or of what Kalman filters make of it, beside it, where the
    # likelihood leaves too few of them.
    for guided in range(2):
        first = guided * n
        centres, parts = np.zeros((first + n, 1)), np.zeros((3, first + n))
        deviations, chances, targets = parts[0], parts[1], parts[2]
        for i in range(n):
            centres[first + i, 0] = means[i, 0]
            deviations[first + i] = deviation
            chances[first + i] = UNGUIDED_SHARE * before[i] if guided else (1.0 - share) * before[i] + share / n
            targets[first + i] = before[i]
        if guided:
            ancestors = Ancestors(x, means, before, means, proposal.narrow)
            plain, _, update = proposal.look(series, proposal.order, t, n * n, ancestors)
            if series.circular[0] or not plain:
                return np.nan
            posterior = np.zeros(n)
            _share_weights(before, update.log_densities, proposal.shares[1], posterior, np.zeros(n))
            for i in range(n):
                variance = 1.0 + WIDENING
                for a in range(update.gains.shape[1]):
                    variance -= update.gains[i, a, 0] ** 2
                centres[i, 0] = means[i, 0] + deviation * update.means[i, 0]
                deviations[i] = deviation * np.sqrt(variance)
                chances[i] = (1.0 - UNGUIDED_SHARE) * posterior[i]
        order = proposal.order(centres, chances, np.zeros(1, np.bool_))  # the angles are unwrapped
        ordered, points = np.zeros((4, first + n)), np.zeros(n)
        for i in range(first + n):
            mean = centres[order[i], 0]
            ordered[0, i] = mean
            ordered[1, i] = max(deviations[order[i]], max(RESOLUTION * abs(mean), SMALLEST_DEVIATION))
            ordered[2, i] = chances[order[i]]
            ordered[3, i] = targets[order[i]]
        quantiles(ordered[0], ordered[1], ordered[2], ordered[3], proposal.levels, points, log_weights)
        for i in range(n):
            no_ancestors[i] = -1
            moved[i, 0] = points[i]
            log_weights[i] -= np.log(n)
        wrap(moved, series.circular)
        if not guided:
            normalise(log_weights, np.zeros(n), weights)
        log_evidence = weigh(series, t, particles)
        if series.kinds[t] != USED or not 1.0 / dot(weights, weights) < np.sqrt(n):
            break
    return log_evidence


def from_gaussian(series, proposal, t, particles):
    """Make the step from one Gaussian, if that serves, and say what else is known of the particles."""
    x, _, weights, moved, _ = particles
    (n, d), observed, centred = x.shape, series.kinds[t] == USED, unwrapped(x, weights, series.circular)
    # (1) From one Gaussian, where the particles cannot be told from it, first a few and then all,
    close, plain, over, stride = True, True, (0.0, 0.0), n // FEW if n >= 2 * FEW else 1
    mean, root = np.zeros((1, d)), np.zeros((d, d))
    while stride > 0 and plain:
        size, total = (n + stride - 1) // stride, 0.0
        some, share = np.zeros((size, d)), np.zeros(size)
        for i in range(size):
            total += weights[i * stride]
        for i in range(size):
            share[i] = weights[i * stride] / total
            for a in range(d):
                some[i, a] = centred[i * stride, a]
        z, mean, root = np.zeros((size, d)), np.zeros((1, d)), np.zeros((d, d))
        plain = _standardise(some, share, mean[0], root, np.zeros((d, d)), z)
        over = _over_chance(z, share, np.zeros((d, d, d)), np.zeros((d, d)))
        close = close and max(over[0], over[1]) <= (CLEARLY if stride > 1 else 2.0)
        stride = 1 if stride > 1 else 0
    width = kernel_width(over, 1.0 / dot(weights, weights))
    # and the step is as good as linear: without an observation, where the successors are a linear function of their noise;
    # with one, where Kalman's update leaves almost even weights: as is foretold, and is so.
    only, chosen = Ancestors(mean, mean, np.ones(1), root, proposal.wide), np.zeros(n, np.int64)
    noise, log_ratio = proposal.wide.sets[series.steps[t] % SETS], np.zeros(n)
    drawn, few, serves, blind, log_evidence = noise, min(n, FORETOLD), close, False, 0.0
    if plain and observed and (close or (n > FEW and d > 1)):
        plain, _, update = proposal.look(series, proposal.order, t, SPARE_POINTS, only)
        if plain:
            blind = _share(update, noise[:few], np.zeros(few)) >= 0.5
        if plain and close:
            drawn = np.zeros(noise.shape)
            _draw(update, chosen, noise, drawn, log_ratio)
            serves = n * (1.0 / _share(update, drawn[:few], log_ratio[:few].copy()) - 1.0) <= 1.0
    if plain and serves:
        log_evidence = proposal.carry(series, t, only, chosen, drawn, log_ratio, particles)
        lost = n * dot(weights, weights) - 1.0
        if not observed:
            lost = _nonlinear_share(unwrapped(moved, weights, series.circular), noise)
        serves = not n * lost > 1.0 or log_evidence != log_evidence
    if not plain:
        log_evidence, serves = np.nan, True
    return Gaussian(log_evidence, serves, close, blind, width, only)


@njit(**INSIDE)
def _narrow(series, t, means, weights):
    """Return True if in some direction noise makes less than 1/n of the covariance of successors of means (n, d)."""
    (n, d), factor, rest = means.shape, series.factors[t], np.zeros((means.shape[1], means.shape[1]))
    moments(series, means, weights, np.zeros(d), rest)
    for a in range(d):
        for b in range(a + 1):
            rest[a, b] = (1.0 - 1.0 / n) * dot(factor[a], factor[b]) - rest[a, b] / n
    return not factorise(rest, rest)


def follow(series, proposal, t, ancestors, guided, blind, particles):
    """Do as `RankedProposal.follow`: the other way is tried, too, where the first leaves fewer than sqrt(n)."""
    (n, d), before, weights = particles.x.shape, ancestors.weights, particles.weights
    guided = guided and series.kinds[t] == USED and series.derived
    blind = blind or not guided
    balanced, log_evidence, successors = ancestors.noise.sets[series.steps[t] % SETS], 0.0, particles
    if not squares(ancestors.starts) <= LARGEST**2:
        return np.nan
    for trial in range(2):
        centres, chances, noise = ancestors.x, before, balanced
        ancestor_ratio, log_ratio, chosen = np.zeros(len(before)), np.zeros(n), np.zeros(n, np.int64)
        if not blind:
            plain, centres, update = proposal.look(series, proposal.order, t, SPARE_POINTS, ancestors)
            if not plain:
                return np.nan
            # the ancestors are taken by the weights after the update, but for a share of those before
            chances = np.zeros(len(before))
            _share_weights(before, update.log_densities, proposal.shares[1], chances, ancestor_ratio)
        order = proposal.order(centres, chances, series.circular)
        _inverse(chances[order], proposal.levels, chosen)
        chosen = order[chosen]
        if not blind:
            noise = np.zeros(balanced.shape)
            _draw(update, chosen, balanced, noise, log_ratio)
        for i in range(n):
            log_ratio[i] += ancestor_ratio[chosen[i]]
        found = proposal.carry(series, t, ancestors, chosen, noise, log_ratio, successors)
        if trial == 0:
            if not (guided and 1.0 / dot(weights, weights) < np.sqrt(n)):  # NaN, too
                return found
            log_evidence, blind = found, not blind
            successors = Particles(particles.x, np.zeros(n), np.zeros(n), np.zeros((n, d)), np.zeros(n, np.int64))
    gain = found - log_evidence
    if gain != gain or (gain <= np.log(n) if blind else gain < -np.log(n)):
        return log_evidence + 0.0 * gain  # NaN if one of them is
    for i in range(n):
        particles.log_weights[i] = successors.log_weights[i]
        weights[i] = successors.weights[i]
        particles.ancestors[i] = successors.ancestors[i]
        for a in range(d):
            particles.moved[i, a] = successors.moved[i, a]
    return found


def look_ahead(series, curve_order, t, spare, ancestors):
    """Do as `Ancestors.look_ahead`: return whether all is plain, where ancestors will be, and the update of their noise."""
    points, sigma_weights = ancestors.noise.points, ancestors.noise.weights
    (n, d), p, z, angles = ancestors.x.shape, len(points), series.z[t], series.angles
    count, group, centres = min(n, (n + spare + p - 1) // p), np.zeros(n, np.int64), np.zeros((n, d))
    for i in range(n):
        group[i] = i
    members = group.copy()
    _successors(series, t, ancestors, group, points[:1], np.zeros((n, d)), centres)
    if count < n:
        order = curve_order(centres, ancestors.weights, series.circular)
        for i in range(n):
            group[order[i]] = i * count // n
        for g in range(count):
            members[g] = order[(2 * g + 1) * n // (2 * count)]
    k, ahead = z.shape[1], np.zeros((count * p, d))
    _successors(series, t, ancestors, members[:count], points, np.zeros((count * p, d)), ahead)
    values, residuals, offsets = np.zeros((count * p, k)), np.zeros((n, k)), np.zeros((count, p, k))
    observe(series, t, ahead, values)
    observe(series, t, centres, residuals)
    plain = squares(values) + squares(residuals) <= LARGEST**2
    # an entry that is missing tells nothing: its offsets and residuals are 0
    for a in range(k):
        known = z[0, a] == z[0, a]
        for g in range(count):
            for s in range(p):
                offset = values[g * p + s, a] - values[g * p, a] if known else 0.0
                offsets[g, s, a] = wrapped(offset) if angles[a] else offset
        for i in range(n):
            residual = z[0, a] - residuals[i, a] if known else 0.0
            residuals[i, a] = wrapped(residual) if angles[a] else residual
    noise = series.noises[series.which[t] : series.which[t] + 1]
    update, sound = new_update(offsets, sigma_weights, points, residuals, noise, group)
    return plain and sound, centres, update


def carry(series, t, ancestors, chosen, noise, log_ratio, particles):
    """Carry chosen ancestors over the step at their noise, and take up the observation; see `Ancestors.particles`."""
    n = len(chosen)
    log_n = np.log(n)
    one_gaussian = len(ancestors.x) == 1 and noise.shape[1] > ancestors.x.shape[1]
    for i in range(n):
        particles.weights[i] = 1.0 / n
        particles.log_weights[i] = log_ratio[i] - log_n
        particles.ancestors[i] = -1 if one_gaussian else chosen[i]
    _successors(series, t, ancestors, chosen, noise, series.states, particles.moved)
    return weigh(series, t, particles)


@njit(**PLAIN)
def _successors(series, t, ancestors, chosen, noise, room, moved):
    """Fill in the successors of chosen ancestors, each at its own row of the noise, or else each at all rows."""
    starts, root, factor = ancestors.starts, ancestors.root, series.factors[t]
    (d, dim), each, stride = factor.shape, len(moved) // len(chosen), 1 if len(noise) == len(moved) else 0
    width = noise.shape[1] - dim  # entries of the noise that move the start
    start = room if width else moved
    for i in range(len(chosen)):
        for s in range(each):
            for a in range(d):
                entry = starts[chosen[i], a]
                for b in range(width):
                    entry += root[a, b] * noise[i * stride + s, b]
                start[i * each + s, a] = entry
    if width:
        wrap(start, series.circular)
        advance(series, t, start, moved)
    for i in range(len(chosen)):
        for s in range(each):
            for a in range(d):
                entry = moved[i * each + s, a]
                for b in range(dim):
                    entry += factor[a, b] * noise[i * stride + s, width + b]
                moved[i * each + s, a] = entry
    wrap(moved, series.circular)


@njit(**PLAIN)
def advance(series, t, x, means):
    """Fill in the transition means of states on the way to step t."""
    series.f(x, series.z[t], series.dts[t], series.controls[t], series.steps[t], series.parameters, means)


@njit(**PLAIN)
def observe(series, t, x, values):
    """Fill in what is observed of states at step t."""
    series.observe(x, series.z[t], 0.0, series.controls[t], series.steps[t], series.observed_parameters, values)


@njit(**QUICK)
def weigh(series, t, particles):
    """Take up an observation of what has moved, if there is one; return its log-density, NaN if that or x is not plain.

    A log-density is ``log_peak - |W (z - h(x))|^2 / 2``, of the entries of z that are observed.
    """
    x, z, values = particles.moved, series.z[t], series.values
    log_likelihoods, buffer = series.room[0], series.room[1]
    plain = squares(x) <= LARGEST**2  # NaN is not
    if series.kinds[t] != USED:
        return 0.0 if plain else np.nan
    n, k = values.shape
    observe(series, t, x, values)
    for i in range(n):
        log_likelihoods[i] = values[i, 0]
    if series.derived:
        whitening, log_peak = series.whitening[series.which[t]], series.log_peaks[series.which[t]]
        plain = plain and squares(values) <= LARGEST**2
        for a in range(k):
            for i in range(n):
                values[i, a] = z[0, a] - values[i, a]
        wrap(values, series.angles)
        for i in range(n):
            log_likelihoods[i] = log_peak
        for a in range(k):
            for i in range(n):
                buffer[i] = 0.0
            for b in range(a + 1):
                scale = whitening[a, b]
                if scale != 0.0:  # a missing entry is NaN, and has no scale
                    for i in range(n):
                        buffer[i] += scale * values[i, b]
            for i in range(n):
                log_likelihoods[i] -= 0.5 * buffer[i] * buffer[i]
    increment = normalise(particles.log_weights, log_likelihoods, particles.weights)
    return increment if plain else np.nan


@njit(**QUICK)
def _count_distinct(ancestors, weights, families):
    """Return the number of ancestors, NaN where there are none; `families` (n,) is workspace for their weights."""
    distinct = 0.0
    for i in range(len(weights)):
        families[i] = 0.0
    for i in range(len(weights)):
        if ancestors[i] < 0:
            return np.nan
        families[ancestors[i]] += weights[i]
    for i in range(len(weights)):
        if families[i] > NO_WEIGHT:
            distinct += 1.0
    return distinct


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


@njit(**QUICK)
def wrap(x, circular):
    """Bring the angles of x (n, d) to [-pi, pi)."""
    for a in range(x.shape[1]):
        if circular[a]:
            for i in range(x.shape[0]):
                x[i, a] = wrapped(x[i, a])


@njit(**QUICK)
def moments(series, x, weights, mean, covariance):
    """Write mean, its angles wrapped, and covariance; return False if that is not finite. Angles are unwrapped before."""
    centred, circular = series.room, series.circular
    n, d = x.shape
    trace = 0.0
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
        trace += total
    return trace < np.inf


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


POINTERS = {
    curve_order: _order,
    look_ahead: _look,
    carry: _carry,
    follow: _follow,
    from_gaussian: _from_gaussian,
    weighted_quantiles: _quantiles,
}
"""Function that others call -> its type."""
SHARED = curve_order, look_ahead, carry
MOVES: dict[str, tuple[Any, ...]] = {
    "bootstrap": (_bootstrap,),
    "ranked": (_ranked, follow),
    "auto": (_auto, follow, from_gaussian),
    "line": (_on_line, from_gaussian, weighted_quantiles),
}
"""Name -> the function of a proposal, and what it calls beside what all of them call but the first."""


@cache
def engine(name: str) -> tuple[Any, ...]:
    """Return a loop, compiled, the function of its proposal, the functions that all of these call, and those it calls."""
    function, *others = MOVES[name]
    tools = GROUP((GROUP(TOOLS.types), *(POINTERS[tool] for tool in others)) if others else ())
    rng: Any = typeof(np.random.default_rng())  # type: ignore[no-untyped-call]
    move = float64(SERIES, tools, rng, int64, boolean, PARTICLES)
    loop = GROUP((int64, boolean))(GROUP(SERIES.types), _pointer(move), tools, rng, PARTICLES, SPAN, TABLE)
    shared, called = ([compiled(tool, POINTERS[tool].signature) for tool in part] for part in (others and SHARED, others))
    return compiled(run, loop), compiled(function, move), shared, called


@cache
def compiled(function: Any, signature: Any) -> Any:
    """Compile a function of the loop; on the disk it bears a digest of all that may be compiled into it."""
    package = Path(__file__).parents[1]
    files = [*package.glob("filters/**/*.py"), *package.glob("samplers/*.py"), Path(__file__)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files)))
    function.__qualname__ = f"{function.__name__}-{digest.hexdigest()[:16]}"
    options = {"no_cfunc_wrapper": False, "no_cpython_wrapper": function is not run}
    loop: Any = njit(function, **CALLED | options, _nrt=function not in (run, _bootstrap, carry))
    loop.compile(signature)
    loop.disable_compile()
    return loop
