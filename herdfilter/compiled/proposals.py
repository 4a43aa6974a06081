"""The compiled loop over the steps of a series, and one compiled function for each proposal that it supports.

The function of a proposal takes particles, whose weights sum to 1, over step t: it fills in `next_x`, overwrites the weights
with those after the observation, and returns the log-evidence of the step, or NaN if the loop cannot take the step. It does
what the proposal's ``propose`` does, in the same order with the same numbers.
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
from herdfilter.filters.proposals import automatic, gaussianity, lookahead
from herdfilter.filters.proposals.guided import WIDENING
from herdfilter.filters.proposals.lookahead import mixed_weights
from herdfilter.filters.resampling.base import _inverse
from herdfilter.filters.state import NO_WEIGHT
from herdfilter.models.compiled import SIGNATURE
from herdfilter.samplers import line
from herdfilter.samplers.balanced import SETS, curve_order, over_chance, unwrapped
from herdfilter.samplers.compiled import CALLED, INSIDE, NO_ARRAYS, QUICK, exp, njit
from herdfilter.samplers.quantile import weighted_quantiles

MISSING = 0
USED = 1
BY_ITSELF = 2
"""Kinds of observations: there is none; the loop uses it; the filter takes the step by itself."""

_row, _rows, _sets = (types.Array(float64, k, "C") for k in (1, 2, 3))
_counts, _count_rows = (types.Array(int64, k, "C") for k in (1, 2))
_flags = types.Array(boolean, 1, "C")
GROUP: Any = types.Tuple
_pointer: Any = types.FunctionType
_tuple_type: Any = types.NamedTuple


def named(name: str, **fields: Any) -> tuple[Any, Any]:
    """Return a class of named tuples, and its type in compiled code."""
    kind = namedtuple(name, fields)  # type: ignore[misc]
    return kind, _tuple_type(tuple(fields.values()), kind)


Particles, PARTICLES = named(
    "Particles",
    x=_rows,  # (n, d)
    log_weights=_row,
    weights=_row,
    next_x=_rows,  # (n, d), filled in by a step
    ancestors=_counts,  # (n,), -1 where there are none
)
Series, SERIES = named(
    "Series",
    parameters=_row,  # of f
    f=_pointer(SIGNATURE),  # mean of the next state
    dts=_row,
    steps=_counts,  # index of each step, as models count them
    controls=_rows,
    factors=_sets,  # of the covariance of the transition noise, (T, d, d)
    observe=_pointer(SIGNATURE),  # mean observation, or log-likelihood
    observed_parameters=_row,
    derived=boolean,  # True if the likelihood is derived from the mean observation
    z=_sets,  # (T, 1, k), NaN where an entry is missing
    kinds=_counts,
    noise_indices=_counts,  # (T,): which of the next three arrays' entries a step has
    whitening=_sets,  # matrices W, whose W'W is the inverse of the observation covariance
    log_peaks=_row,  # log-densities of observation noise at 0
    noises=_sets,  # observation covariances
    circular=_flags,  # entries of the state that are angles
    observation_circular=_flags,
    states=_rows,  # (n, d), workspace as the next three: no step reads what another leaves
    values=_rows,  # (n, k)
    workspace=_rows,  # (d + 2, n)
    indices=_counts,  # (n,)
    evaluations=_counts,  # (2,), states given to f and to the observation
)
"""All arrays and functions that T steps need."""
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
"""Columns of a `FilterResult`, a row for each step; particles, weights and ancestors have no rows unless they are stored."""
Span, SPAN = named(
    "Span",
    first=int64,
    last=int64,
    least_ess=float64,  # particles are resampled below it
    resampled=boolean,  # True if they were resampled on the way to the first step
)
Noise, NOISE = named("Noise", sets=_sets, points=_rows, weights=_row)
"""Sets of noise (S, n, D), sigma points (p, D) and their weights."""
Ancestors, ANCESTORS = named(
    "Ancestors",
    x=_rows,  # (M, d)
    starts=_rows,  # transition means of x; or, of kernels with a width, x itself
    weights=_row,
    root=_rows,  # (d, d), factor of the covariance of a kernel
    noise=NOISE,
    spare=int64,  # number of evaluations of the model that are left to look ahead from groups of them
)
Gaussian, GAUSSIAN = named(
    "Gaussian",
    log_evidence=float64,  # of the step, if accepted
    accepted=boolean,  # True if the step was taken from one Gaussian
    close=boolean,  # True if the particles are close to Gaussian
    unguided=boolean,  # True if enough particles will count without a look ahead
    width=float64,  # of kernels about the particles
    ancestor=ANCESTORS,  # the Gaussian itself
    spare=int64,  # as in `Ancestors`
)
UPDATE = _tuple_type(
    (_counts, _rows, _sets, _sets, _row, _row, _sets, _rows, _sets, _rows), lookahead.NoiseUpdate
)
_order = _pointer(_counts(_rows, _row, _flags))
_look = _pointer(GROUP((boolean, _rows, UPDATE))(SERIES, _order, int64, ANCESTORS))
_carry = _pointer(float64(SERIES, int64, ANCESTORS, _counts, _rows, _row, PARTICLES))
# A function that several call is passed as a pointer, so that it is compiled once and not anew in each of its callers.
Tools, TOOLS = named(
    "Tools",
    narrow=NOISE,  # of ancestors without a width
    wide=NOISE,  # of ancestors with a width
    levels=_rows,  # (S, n), ascending levels between 0 and 1
    shares=_row,  # of ranked particles: 1.0 if guided, the defensive share, and 1.0 if both ways are tried; else two shares
    order=_order,
    look=_look,
    carry=_carry,
)


def run(series_fields, propose, tools, rng, particles, span, table):
    """Take steps with the particles; return the end of those taken, and whether another step was begun but not finished.

    It makes no array and counts no references, so compiled functions that are passed its arrays must not do so, either.
    """
    series = Series(*series_fields)
    resampled = span.resampled
    spoilt = False
    log_weights = particles.log_weights
    weights = particles.weights
    t = span.first
    ess = 1.0 / dot(weights, weights)
    while t < span.last and series.kinds[t] != BY_ITSELF:
        # x and next_x swap roles at every step: nothing is copied
        successors = Particles(
            particles.next_x, log_weights, weights, particles.x, particles.ancestors
        )
        if series.dts[t] > 0:
            resampled = ess < span.least_ess
            increment = propose(series, tools, rng, t, resampled, particles)
            particles = successors
        else:
            increment = weigh(series, t, successors)
        x = particles.x
        ess = 1.0 / dot(weights, weights)
        spoilt = increment != increment or not weighted_moments(
            series, x, weights, table.means[t], table.covariances[t]
        )
        if spoilt:
            break
        table.ess[t] = ess
        table.log_likelihoods[t] = increment
        table.resampled[t] = resampled
        table.distinct_ancestors[t] = _count_distinct(
            particles.ancestors, weights, series.workspace[0]
        )
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
    x, log_weights, weights, next_x, ancestors = particles
    noise = series.states
    levels = series.workspace[0]
    factor = series.factors[t]
    n, d = x.shape
    for i in range(n):
        ancestors[i] = i
    if uneven:
        offset = rng.random()
        for j in range(n):
            levels[j] = (j + offset) / n
        _inverse(weights, levels, series.indices)
        for j in range(n):
            weights[j] = 1.0 / n
            log_weights[j] = -np.log(n)
            ancestors[j] = series.indices[j]
            for a in range(d):
                noise[j, a] = x[series.indices[j], a]
        x = noise  # `advance` has read the copies before the noise overwrites them
    advance(series, t, x, next_x)  # x' = f(x) + F noise
    for i in range(n):
        for b in range(d):
            noise[i, b] = rng.standard_normal()
    for a in range(d):
        for b in range(d):
            if factor[a, b] != 0.0:
                for i in range(n):
                    next_x[i, a] += factor[a, b] * noise[i, b]
    wrap_in_place(next_x, series.circular)
    return weigh(series, t, particles)


def _ranked(series, tools, rng, t, uneven, particles):
    """Do as `RankedProposal`."""
    tool_fields, follow = tools
    proposal = Tools(*tool_fields)
    x = particles.x
    means = np.zeros(x.shape)
    advance(series, t, x, means)
    spare = len(x) + lookahead.SPARE_POINTS
    ancestors = Ancestors(x, means, particles.weights.copy(), means, proposal.narrow, spare)
    return follow(series, proposal, t, ancestors, False, particles)


def _auto(series, tools, rng, t, uneven, particles):
    """Do as `AutomaticProposal`, in two and more dimensions, where an observation has moments."""
    tool_fields, follow, from_gaussian = tools
    proposal = Tools(*tool_fields)
    x = particles.x
    before = particles.weights.copy()
    gaussian = from_gaussian(series, proposal, t, particles)
    if gaussian.accepted:
        return gaussian.log_evidence
    # The numbers are those of the rule in `AutomaticProposal`: (2) ranked particles, (3) ignoring the observation where
    # enough of them will count, and then sampling the Gaussian if it fits; (4) else widened where the noise is too narrow.
    means = np.zeros(x.shape)
    width = gaussian.width
    root = gaussian.ancestor.root
    advance(series, t, x, means)
    more = automatic.MORE_EACH * max(0, automatic.FEW_PARTICLES - len(x))
    ancestors = Ancestors(x, means, before, root, proposal.narrow, gaussian.spare + more)
    if gaussian.close and gaussian.unguided:
        ancestors = gaussian.ancestor
    elif series.kinds[t] == USED and width > 0.0 and _narrow(series, t, means, before):
        # Kernels of this width about shrunken particles: together they keep the particles' mean and covariance.
        centred = unwrapped(x, before, series.circular)
        for a in range(len(root)):
            mean = gaussian.ancestor.x[0, a]
            for i in range(len(x)):
                centred[i, a] = mean + np.sqrt(1.0 - width**2) * (centred[i, a] - mean)
            for b in range(len(root)):
                root[a, b] *= width
        wrap_in_place(centred, series.circular)
        spare = gaussian.spare // 2 + more
        ancestors = Ancestors(centred, centred, before, root, proposal.wide, spare)
    return follow(series, proposal, t, ancestors, gaussian.unguided, particles)


def _on_line(series, tools, rng, t, uneven, particles):
    """Do as `AutomaticProposal` in one dimension, where an observation has moments and the noise a density."""
    tool_fields, from_gaussian, quantiles = tools
    x, log_weights, weights, next_x, no_ancestors = particles
    proposal = Tools(*tool_fields)
    n = len(x)
    before = weights.copy()
    means = np.zeros(x.shape)
    gaussian = from_gaussian(series, proposal, t, particles)
    if gaussian.accepted:
        return gaussian.log_evidence
    advance(series, t, x, means)
    deviation = series.factors[t][0, 0]
    share = proposal.shares[0]
    log_evidence = np.nan
    if not (squares(means) <= LARGEST**2 and deviation > 0.0):
        return np.nan
    means = unwrapped(means, before, series.circular)
    # (2) Exact quantiles of the predictive mixture. If the likelihood leaves too few of them, the n components that Kalman's
    # updates make of it are put before it, and quantiles of both together are taken.
    for guided in range(2):
        first = guided * n
        centres = np.zeros((first + n, 1))
        deviations = np.full(first + n, deviation)
        # of the mixture whose quantiles are taken
        probabilities = np.zeros(first + n)
        # weights of the predictive mixture, which the importance weights refer to
        targets = np.zeros(first + n)
        for i in range(n):
            centres[first + i, 0] = means[i, 0]
            probabilities[first + i] = (
                automatic.AUTO_UNGUIDED_SHARE * before[i]
                if guided
                else (1.0 - share) * before[i] + share / n
            )
            targets[first + i] = before[i]
        if guided:
            ancestors = Ancestors(x, means, before, means, proposal.narrow, n + n * n)
            plain, _, update = proposal.look(series, proposal.order, t, ancestors)
            if series.circular[0] or not plain:
                return np.nan
            posterior, _ = mixed_weights(before, update.log_densities, proposal.shares[1])
            for i in range(n):
                variance = 1.0 + WIDENING
                for a in range(update.gains.shape[1]):
                    variance -= update.gains[i, a, 0] ** 2
                centres[i, 0] = means[i, 0] + deviation * update.means[i, 0]
                deviations[i] = deviation * np.sqrt(variance)
                probabilities[i] = (1.0 - automatic.AUTO_UNGUIDED_SHARE) * posterior[i]
        # the angles are unwrapped
        order = proposal.order(centres, probabilities, np.zeros(1, np.bool_))
        ordered_means = centres.reshape(first + n)[order]
        ordered_deviations = deviations[order]
        for i in range(first + n):
            # narrower components, which rounding cannot resolve, would have no quantiles
            resolved = max(line.RESOLUTION * abs(ordered_means[i]), line.SMALLEST_DEVIATION)
            ordered_deviations[i] = max(ordered_deviations[i], resolved)
        points = np.zeros(n)
        quantiles(
            ordered_means,
            ordered_deviations,
            probabilities[order],
            targets[order],
            proposal.levels[0],
            points,
            log_weights,
        )
        for i in range(n):
            no_ancestors[i] = -1
            next_x[i, 0] = points[i]
            log_weights[i] -= np.log(n)
        wrap_in_place(next_x, series.circular)
        if not guided:
            normalise(log_weights, np.zeros(n), weights)
        log_evidence = weigh(series, t, particles)
        if series.kinds[t] != USED or not 1.0 / dot(weights, weights) < np.sqrt(n):
            break
    return log_evidence


def from_gaussian(series, proposal, t, particles):
    """Take the step from one Gaussian, if the rule (1) of `AutomaticProposal` allows; return what it found out."""
    x, _, weights, next_x, _ = particles
    n, d = x.shape
    observed = series.kinds[t] == USED
    centred = unwrapped(x, weights, series.circular)
    # Are the particles close to Gaussian? A subsample of about FEW comes first, and may only say no in clear cases; all
    # particles come second, and leave their moments.
    close = True
    plain = True
    stride = max(1, n // gaussianity.FEW)
    while stride > 0 and plain:
        size = (n + stride - 1) // stride
        total = 0.0
        subsample = np.zeros((size, d))
        subsample_weights = np.zeros(size)
        for i in range(size):
            row = int(i * gaussianity.GOLDEN % 1.0 * n) if stride > 1 else i
            series.indices[i] = row
            total += weights[row]
        for i in range(size):
            row = series.indices[i]
            subsample_weights[i] = weights[row] / total
            for a in range(d):
                subsample[i, a] = centred[row, a]
        z = np.zeros((size, d))
        mean = np.zeros((1, d))
        root = np.zeros((d, d))
        plain = gaussianity._standardise(
            subsample, subsample_weights, mean[0], root, np.zeros((d, d)), z
        )
        over = over_chance(z, subsample_weights)
        if stride > 1:
            close = max(over[0], over[1]) <= gaussianity.CLEARLY
        stride = int(stride > 1)
    ess = 1.0 / dot(weights, weights)
    chance = gaussianity.ranked_chance(ess, d)
    over = (over[0] / chance, over[1] / chance)
    close = close and max(over[0], over[1]) <= 2.0
    width = gaussianity.relative_width(over, ess)
    # Is the step as good as linear? Without an observation: the successors are almost a linear function of their noise. With
    # one: Kalman's update leaves almost even weights. The first few points predict that, all of them then confirm it.
    ancestor = Ancestors(mean, mean, np.ones(1), root, proposal.wide, 0)
    ancestor_indices = np.zeros(n, np.int64)
    standard_noise = proposal.wide.sets[series.steps[t] % SETS]
    noise = standard_noise
    log_ratio = np.zeros(n)
    n_probes = min(n, automatic.PILOT)
    spent = 0
    even = n * (n * dot(weights, weights) - 1.0) <= 1.0
    accepted = close
    unguided = False
    log_evidence = 0.0
    if plain and observed and (close or (n > gaussianity.FEW and d > 1)):
        plain, _, update = proposal.look(series, proposal.order, t, ancestor)
        spent = 2 * len(proposal.wide.points)
        unguided_share = lookahead._share(update, standard_noise[:n_probes], np.zeros(n_probes))
        unguided = unguided_share >= automatic.ENOUGH
        if close:
            noise, log_ratio = lookahead._draw(update, ancestor_indices, standard_noise)
            probed = lookahead._share(update, noise[:n_probes], log_ratio[:n_probes].copy())
            accepted = n * (1.0 / probed - 1.0) <= 1.0
    if plain and accepted:
        log_evidence = proposal.carry(
            series, t, ancestor, ancestor_indices, noise, log_ratio, particles
        )
        if observed:
            # after uneven weights the first quarter has to bear it out before the others are made
            for m in (n if even else (n + 3) // 4, n):
                if accepted:
                    total = squared = 0.0
                    for i in range(m):
                        total += weights[i]
                        squared += weights[i] ** 2
                    # m / ESS - 1
                    accepted = n * (m * squared / total**2 - 1.0) <= 1.0
                    spent += 2 * m
        else:
            successors = unwrapped(next_x, weights, series.circular)
            accepted = n * gaussianity._nonlinear_share(successors, standard_noise) <= 1.0
        accepted = accepted or log_evidence != log_evidence
    if not plain:
        # accepted, so that the NaN is returned at once and the filter takes the step by itself
        log_evidence = np.nan
        accepted = True
    return Gaussian(log_evidence, accepted, close, unguided, width, ancestor, n - spent)


@njit(**INSIDE)
def _narrow(series, t, means, weights):
    """Return True if in some direction noise makes less than 1/n of the covariance of successors of means (n, d)."""
    n, d = means.shape
    factor = series.factors[t]
    difference = np.zeros((d, d))
    weighted_moments(series, means, weights, np.zeros(d), difference)
    # FF' - (FF' + C) / n, with C the covariance of the means, is positive definite unless the noise is too narrow
    for a in range(d):
        for b in range(a + 1):
            difference[a, b] = (1.0 - 1.0 / n) * dot(factor[a], factor[b]) - difference[a, b] / n
    return not factorise(difference, difference)


def follow(series, proposal, t, ancestors, unguided, particles):
    """Do as `RankedProposal.follow`: if the first way leaves fewer than sqrt(n), the other is tried, too."""
    n, d = particles.x.shape
    before = ancestors.weights
    weights = particles.weights
    guided = proposal.shares[0] > 0.0 and series.kinds[t] == USED and series.derived
    unguided = unguided or not guided
    sets = ancestors.noise.sets
    balanced = sets[series.steps[t] % len(sets)]
    levels = proposal.levels[series.steps[t] % len(proposal.levels)]
    successors = particles
    if not squares(ancestors.starts) <= LARGEST**2:
        return np.nan
    for trial in range(2):
        centres = ancestors.x
        probabilities = before
        noise = balanced
        ancestor_ratio = np.zeros(len(before))
        log_ratio = np.zeros(n)
        ancestor_indices = np.zeros(n, np.int64)
        if not unguided:
            plain, centres, update = proposal.look(series, proposal.order, t, ancestors)
            if not plain:
                return np.nan
            # Ancestors are chosen by the weights after the update, mixed with a share of those before it, so that the
            # importance weights stay bounded.
            probabilities, ancestor_ratio = mixed_weights(
                before, update.log_densities, proposal.shares[1]
            )
        order = proposal.order(centres, probabilities, series.circular)
        _inverse(probabilities[order], levels, ancestor_indices)
        ancestor_indices = order[ancestor_indices]
        if not unguided:
            noise, log_ratio = lookahead._draw(update, ancestor_indices, balanced)
        for i in range(n):
            log_ratio[i] += ancestor_ratio[ancestor_indices[i]]
        log_evidence = proposal.carry(
            series, t, ancestors, ancestor_indices, noise, log_ratio, successors
        )
        if trial == 0:
            second = guided and proposal.shares[2] > 0.0
            if not (second and 1.0 / dot(weights, weights) < np.sqrt(n)):  # NaN, too
                return log_evidence
            first_evidence = log_evidence
            unguided = not unguided
            successors = Particles(
                particles.x, np.zeros(n), np.zeros(n), np.zeros((n, d)), np.zeros(n, np.int64)
            )
    # The guided way is taken, unless the evidence of the unguided one is over n times as large.
    gain = log_evidence - first_evidence
    if gain != gain or (gain <= np.log(n) if unguided else gain < -np.log(n)):
        return first_evidence + 0.0 * gain  # NaN if one of them is
    # slices would take seconds to compile
    for i in range(n):
        particles.log_weights[i] = successors.log_weights[i]
        weights[i] = successors.weights[i]
        particles.ancestors[i] = successors.ancestors[i]
        for a in range(d):
            particles.next_x[i, a] = successors.next_x[i, a]
    return log_evidence


def look_ahead(series, curve_order, t, ancestors):
    """Do as `Ancestors.look_ahead`: return whether all numbers are plain, the predicted states, and the noise update."""
    points = ancestors.noise.points
    n, d = ancestors.x.shape
    p = len(points)
    z = series.z[t]
    angles = series.observation_circular
    # Neighbours along the curve share one set of sigma points, so that about as many are observed as are to spare.
    count = max(1, min(n, (ancestors.spare + p - 1) // p))
    group = np.arange(n)
    centres = np.zeros((n, d))
    members = group.copy()
    _successors(series, t, ancestors, group, points[:1], np.zeros((n, d)), centres)
    if count < n:
        order = curve_order(centres, ancestors.weights, series.circular)
        for i in range(n):
            group[order[i]] = i * count // n
        for g in range(count):
            members[g] = order[(2 * g + 1) * n // (2 * count)]
    k = z.shape[1]
    ahead = np.zeros((count * p, d))
    _successors(series, t, ancestors, members[:count], points, np.zeros((count * p, d)), ahead)
    values = np.zeros((count * p, k))
    residuals = np.zeros((n, k))
    offsets = np.zeros((count, p, k))
    observe(series, t, ahead, values)
    observe(series, t, centres, residuals)
    plain = squares(values) + squares(residuals) <= LARGEST**2
    for a in range(k):
        # an entry that is missing says nothing: its offsets and residuals are 0
        present = z[0, a] == z[0, a]
        for g in range(count):
            for s in range(p):
                offset = values[g * p + s, a] - values[g * p, a] if present else 0.0
                offsets[g, s, a] = wrapped(offset) if angles[a] else offset
        for i in range(n):
            residual = z[0, a] - residuals[i, a] if present else 0.0
            residuals[i, a] = wrapped(residual) if angles[a] else residual
    noise_index = series.noise_indices[t]
    noise = series.noises[noise_index : noise_index + 1]
    update, sound = lookahead.update_noise(
        offsets, ancestors.noise.weights, points, residuals, noise, group
    )
    return plain and sound, centres, update


def carry(series, t, ancestors, ancestor_indices, noise, log_ratio, particles):
    """Propagate the chosen ancestors with their noise, and weight them by the observation; see `Ancestors.particles`."""
    n = len(ancestor_indices)
    log_n = np.log(n)
    one_gaussian = len(ancestors.x) == 1 and noise.shape[1] > ancestors.x.shape[1]
    for i in range(n):
        particles.weights[i] = 1.0 / n
        particles.log_weights[i] = log_ratio[i] - log_n
        particles.ancestors[i] = -1 if one_gaussian else ancestor_indices[i]
    _successors(series, t, ancestors, ancestor_indices, noise, series.states, particles.next_x)
    return weigh(series, t, particles)


@njit(**NO_ARRAYS)
def _successors(series, t, ancestors, ancestor_indices, noise, workspace, next_x):
    """Fill in the successors of the chosen ancestors.

    Each has one successor, at its own row of the noise; or, if `next_x` has more rows, one at every row of the noise.
    """
    starts = ancestors.starts
    root = ancestors.root
    factor = series.factors[t]
    d, dim = factor.shape
    each = len(next_x) // len(ancestor_indices)
    stride = 1 if len(noise) == len(next_x) else 0
    # number of noise entries that spread the start within its kernel
    width = noise.shape[1] - dim
    start = workspace if width else next_x
    for i in range(len(ancestor_indices)):
        for s in range(each):
            for a in range(d):
                entry = starts[ancestor_indices[i], a]
                for b in range(width):
                    entry += root[a, b] * noise[i * stride + s, b]
                start[i * each + s, a] = entry
    if width:
        wrap_in_place(start, series.circular)
        advance(series, t, start, next_x)
    for i in range(len(ancestor_indices)):
        for s in range(each):
            for a in range(d):
                entry = next_x[i * each + s, a]
                for b in range(dim):
                    entry += factor[a, b] * noise[i * stride + s, width + b]
                next_x[i * each + s, a] = entry
    wrap_in_place(next_x, series.circular)


@njit(**NO_ARRAYS)
def advance(series, t, x, means):
    """Fill in the transition means of states on the way to step t."""
    series.evaluations[0] += len(x)
    series.f(
        x, series.z[t], series.dts[t], series.controls[t], series.steps[t], series.parameters, means
    )


@njit(**NO_ARRAYS)
def observe(series, t, x, values):
    """Fill in the mean observations, or log-likelihoods, of states at step t."""
    series.evaluations[1] += len(x)
    series.observe(
        x, series.z[t], 0.0, series.controls[t], series.steps[t], series.observed_parameters, values
    )


@njit(**QUICK)
def weigh(series, t, particles):
    """Weight the new states by the observation, if any; return its log-density, NaN if that or a state is not plain.

    The log-likelihood is ``log_peak - |W (z - h(x))|^2 / 2``, over the entries of z that are observed.
    """
    x = particles.next_x
    z = series.z[t]
    values = series.values
    log_likelihoods = series.workspace[0]
    white = series.workspace[1]
    plain = squares(x) <= LARGEST**2  # NaN is not
    if series.kinds[t] != USED:
        return 0.0 if plain else np.nan
    n, k = values.shape
    observe(series, t, x, values)
    for i in range(n):
        log_likelihoods[i] = values[i, 0]
    if series.derived:
        whitening = series.whitening[series.noise_indices[t]]
        log_peak = series.log_peaks[series.noise_indices[t]]
        plain = plain and squares(values) <= LARGEST**2
        for a in range(k):
            for i in range(n):
                values[i, a] = z[0, a] - values[i, a]
        wrap_in_place(values, series.observation_circular)
        for i in range(n):
            log_likelihoods[i] = log_peak
        # entry by entry for all particles: the inner loops vectorise
        for a in range(k):
            for i in range(n):
                white[i] = 0.0
            for b in range(a + 1):
                scale = whitening[a, b]
                if scale != 0.0:  # a missing entry is NaN, and has no scale
                    for i in range(n):
                        white[i] += scale * values[i, b]
            for i in range(n):
                log_likelihoods[i] -= 0.5 * white[i] * white[i]
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
def wrap_in_place(x, circular):
    """Bring the angles of x (n, d) to [-pi, pi)."""
    for a in range(x.shape[1]):
        if circular[a]:
            for i in range(x.shape[0]):
                x[i, a] = wrapped(x[i, a])


@njit(**QUICK)
def weighted_moments(series, x, weights, mean, covariance):
    """Fill in mean, its angles wrapped, and covariance; return False if that is not finite.

    Angles are unwrapped about their circular mean first, as by `herdfilter.angles.moments`.
    """
    centred = series.workspace
    circular = series.circular
    n, d = x.shape
    trace = 0.0
    for a in range(d):
        row = centred[a]
        reference = 0.0
        total = 0.0
        if circular[a]:
            sine = 0.0
            cosine = 0.0
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
            row_b = centred[b]
            total = 0.0
            for i in range(n):
                total += weights[i] * row[i] * row_b[i]
            covariance[a, b] = covariance[b, a] = total
        trace += total
    return trace < np.inf


@njit(**QUICK)
def normalise(log_weights, likelihoods, weights):
    """Add log-likelihoods to log-weights and normalise them; return the log of their sum, NaN if one is or all are -inf."""
    n = len(weights)
    peak = -np.inf
    total = 0.0
    wrong = 0.0  # number of NaN
    for i in range(n):
        log_weights[i] += likelihoods[i]
        peak = max(peak, log_weights[i])
    for i in range(n):
        below = log_weights[i] - peak
        # squares of smaller ones are subnormal, and slow
        weights[i] = exp(below) if below > -300.0 else 0.0
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
    follow: _pointer(float64(SERIES, TOOLS, int64, ANCESTORS, boolean, PARTICLES)),
    from_gaussian: _pointer(GAUSSIAN(SERIES, TOOLS, int64, PARTICLES)),
    weighted_quantiles: _pointer(types.none(*(_row,) * 7)),
}
"""Function that compiled functions call by pointer -> its type."""
SHARED = curve_order, look_ahead, carry
PROPOSALS: dict[str, tuple[Any, ...]] = {
    "bootstrap": (_bootstrap,),
    "ranked": (_ranked, follow),
    "auto": (_auto, follow, from_gaussian),
    "line": (_on_line, from_gaussian, weighted_quantiles),
}
"""Name -> the function of a proposal, and what it calls by pointer; all but bootstrap also call those in `SHARED`."""


@cache
def engine(name: str) -> tuple[Any, ...]:
    """Return the compiled loop, the function of a proposal, the compiled `SHARED`, and what else the proposal calls."""
    function, *callees = PROPOSALS[name]
    tools = GROUP(
        (GROUP(TOOLS.types), *(POINTERS[callee] for callee in callees)) if callees else ()
    )
    rng = typeof(np.random.default_rng())  # type: ignore[no-untyped-call]
    propose = float64(SERIES, tools, rng, int64, boolean, PARTICLES)
    loop = GROUP((int64, boolean))(
        GROUP(SERIES.types), _pointer(propose), tools, rng, PARTICLES, SPAN, TABLE
    )
    shared, called = (
        [compiled(callee, POINTERS[callee].signature) for callee in functions]
        for functions in (SHARED if callees else (), callees)
    )
    return compiled(run, loop), compiled(function, propose), shared, called


@cache
def compiled(function: Any, signature: Any) -> Any:
    """Compile a function of the loop."""
    # Numba's cache notices changes of this file alone: a digest of all files that may be compiled in is put into the name.
    package = Path(__file__).parents[1]
    files = [*package.glob("filters/**/*.py"), *package.glob("samplers/*.py"), Path(__file__)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files)))
    function.__qualname__ = f"{function.__name__}-{digest.hexdigest()[:16]}"
    options = {"no_cfunc_wrapper": False, "no_cpython_wrapper": function is not run}
    loop: Any = njit(function, **CALLED | options, _nrt=function not in (run, _bootstrap, carry))
    loop.compile(signature)
    loop.disable_compile()
    return loop
