"""A filter over a series of observations in one compiled loop, for models made of compiled functions.

The loop does what `ParticleFilter.predict` and `update` do, with the same random numbers in the same order; how particles
are moved stands in `moves`. It stops before a step that is not plain: a likelihood that vanishes, a state that
is not finite, an observation of another shape. The filter takes that step by itself, and raises its errors.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numba import boolean, float64, int64, types

from herdfilter._checks import LARGEST, Array
from herdfilter.compiled import moves
from herdfilter.compiled.moves import BY_ITSELF, MISSING, USED, dot, weigh, wrapped
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import AutomaticProposal, BootstrapProposal, RankedProposal
from herdfilter.filters.proposals.balanced import SETS, balanced_noise
from herdfilter.filters.resampling import SystematicResampling
from herdfilter.filters.results import ALONE, FilterResult, Outcome, StepRecord, warn_if_partial, warn_of_loss
from herdfilter.filters.series import run as run_in_steps
from herdfilter.filters.state import Particles
from herdfilter.models import contract
from herdfilter.models.compiled import CompiledFunction, CompiledModel, plain_array
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.series import Step, as_objects
from herdfilter.samplers.compiled import QUICK, njit

_log = logging.getLogger(__name__)

MOST_PARTICLES = 3_000_000
"""Particles that one call of the loop moves, of all steps: half a second's, within which nothing interrupts it."""

FEWEST_PARTICLES = 11_000
"""Fewer particles of all steps, each with 2,500 more for its own cost, are not worth the call of the loop."""


def takes(online: Any) -> bool:
    """Return True if a series can go through the loop, as far as model, proposal, resampling and generator say."""
    proposal = online.proposal
    if type(proposal) is BootstrapProposal:
        plain = type(online.resampling) is SystematicResampling
    else:
        plain = type(proposal) in (RankedProposal, AutomaticProposal) and proposal.sampler is None
        plain = plain and not getattr(proposal, "randomised", False)
    if type(proposal) is AutomaticProposal:  # points must span state and noise
        plain = plain and online.n_particles > 2 * online.model.dim + 2
    return plain and type(online.model) is CompiledModel and type(online.rng) is np.random.Generator


def _movement(online: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the name of the filter's mover, and its tables."""
    proposal, n, dim = online.proposal, online.n_particles, online.model.dim
    if type(proposal) is BootstrapProposal:
        return "bootstrap", ()
    name, ranked = ("ranked", proposal) if type(proposal) is RankedProposal else ("auto", proposal._ranked)
    shares = ranked.guided, ranked.defensive_share
    if name == "auto" and dim == 1:
        name, shares = "line", (proposal._quantiles.defensive_share, proposal._guided_quantiles.defensive_share)
    noises = _noise(n, dim), _noise(n, dim if name == "ranked" else 2 * dim)
    return name, (*noises, (np.arange(n) + 0.5) / n, np.array(shares, dtype=np.float64))


@lru_cache(maxsize=4)
def _noise(n: int, dim: int) -> Any:
    """Return balanced points (S, n, dim), and sigma points (p, dim) with their weights."""
    points, weights = UNSCENTED_RULE.points(dim)
    sets = np.array([balanced_noise(n, dim, k) for k in range(SETS)])
    return moves.Noise(sets, plain_array(points), plain_array(weights))


def run(online: Any, steps: Sequence[Step], keep_particles: bool) -> FilterResult | None:
    """Do as `herdfilter.filters.series.run`, with as many steps as possible at a time in the compiled loop.

    None if the filter has no steps for the loop.
    """
    if not takes(online):
        return None
    parts: list[FilterResult] = []
    kept: list[Any] | None = [] if keep_particles else None
    times = [step.time for step in steps]
    try:
        for sensor, group in groupby(steps, key=lambda step: step.sensor):
            left = list(group)
            segment = _segment(online, left, sensor)
            while left:
                done = 0 if segment is None else segment.run(online, len(left), parts, kept)
                if not done:
                    done = len(left) if segment is None else 1
                    part = run_in_steps(online, left[:done], keep_particles)
                    parts.append(part)
                    if kept is not None:
                        kept.extend(zip(part.particles, part.weights, strict=True))
                online._clock, left = left[done - 1].clock, left[done:]
    except (Exception, KeyboardInterrupt) as error:
        parts += [error.result] if hasattr(error, "result") else []
        error.result = _joined(parts, times, online, kept)  # type: ignore[union-attr]
        raise
    return _joined(parts, times, online, kept)


def _joined(parts: list[FilterResult], times: list[Any], online: Any, kept: Any) -> FilterResult:
    """Return one result of consecutive parts."""
    parts = parts or [FilterResult.collect([], online.model)]
    columns = ("means", "covariances", "ess", "resampled", "log_likelihoods", "steps")
    values: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    outcomes = tuple(outcome for part in parts for outcome in part.outcomes)
    if kept is not None:
        values |= {"particles": np.array([x for x, _ in kept]), "weights": np.array([weights for _, weights in kept])}
    values |= {"outcomes": outcomes, "times": as_objects(times[: len(outcomes)])}
    positions = getattr(online.model, "position_dims", ())
    return FilterResult(**values, circular=contract.circular_dims(online.model), position_dims=positions)


def _segment(online: Any, steps: list[Step], sensor: Sensor | None) -> Segment | None:
    """Return steps that the same sensor observes, for the loop; None if it cannot take them."""
    model, proposal = online.model, online.proposal
    if len(steps) * (2500 + online.n_particles) < FEWEST_PARTICLES:
        return None
    try:
        if sensor is None:
            # a likelihood of its own is weighed in the loop, but not looked ahead with
            asked = type(proposal) is AutomaticProposal or getattr(proposal, "guided", False)
            observe = model.h if model.likelihood is None else None if asked else model.likelihood
            return None if observe is None else Segment(online, steps, observe, model)
        others = sensor.log_likelihood, sensor.detection_probability, sensor.clutter_density
        plain = isinstance(sensor.mean, CompiledFunction) and not callable(sensor.covariance) and others == (None,) * 3
        return Segment(online, steps, sensor.mean, sensed(model, sensor)) if plain else None  # type: ignore[arg-type]
    except Exception as error:  # the filter raises it, at the step that it belongs to
        _log.info("steps are taken one by one, as the compiled loop raises %r", error)
        return None


class Segment:
    """Steps that are observed by the same function, as arrays for the compiled loop."""

    def __init__(self, online: Any, steps: list[Step], observe: CompiledFunction, model: Any) -> None:
        self.model: CompiledModel = online.model
        self.observe, self.observed_model = observe, model
        self.derived = observe is not self.model.likelihood
        self.dts = np.array([step.dt for step in steps])
        self.indices = online.step + np.cumsum(self.dts > 0)
        self.controls = np.array([self.model.f.inputs(step.control) for step in steps])
        self.kinds = np.full(len(steps), USED)
        self.given = [step.z for step in steps]
        self.z = self._observations(self.given)
        self.kinds[self.indices == 0] = BY_ITSELF
        Q, ways = self.model.Q, zip(self.dts.tolist(), self.indices.tolist(), strict=True)
        constant = not callable(Q.given) or (Q.names == ("dt",) and (self.dts == self.dts[0]).all())
        noises = (contract.transition_noise(self.model, *way) for way in ways)
        factors = [next(noises).factor] if constant else [noise.factor for noise in noises]
        self.factors = np.repeat(factors, len(steps), 0) if constant else np.array(factors)
        k = self.z.shape[1]
        self.whitening, self.log_peaks, self.noises = np.zeros((1, k, k)), np.zeros(1), np.zeros((1, k, k))
        self.which = np.zeros(len(steps), dtype=np.int64)
        if self.derived:
            observe(online.particles)  # the first call checks a sensor's function
            self._set_noise()
        self.circular = np.isin(np.arange(self.model.dim), self.model.circular)
        self.angles = np.isin(np.arange(k), contract.observation_circular(model, k) if self.derived else ())
        self.name, self.tables = _movement(online)

    def _observations(self, given: list[Any]) -> Array:
        """Return observations (T, k), NaN where there is none, and say what becomes of each."""
        k = self.observe.size if self.derived else next((np.size(z) for z in given if z is not None), 1)
        if all(type(z) is np.ndarray and z.dtype == np.float64 and z.shape == (k,) for z in given):
            rows = np.array(given)
            if (np.abs(rows) <= LARGEST).all():
                return rows
        rows = np.full((len(given), k), np.nan)
        for t, z in enumerate(given):
            try:
                observation = Observation.read(self.observed_model, z, int(self.indices[t]))
            except ValueError:  # raised again by the filter
                self.kinds[t] = BY_ITSELF
                continue
            vector = rows[t] if observation is None else np.atleast_1d(observation.z)
            self.kinds[t] = MISSING if observation is None else USED if vector.shape == (k,) else BY_ITSELF
            rows[t] = vector if self.kinds[t] == USED else np.nan
        return rows

    def _set_noise(self) -> None:
        """Set the noise covariances, W with ``W.T @ W`` the inverse of each, the log-density at 0, and which a step has."""
        k, missing, known = self.z.shape[1], np.isnan(self.z), {}
        constant = self.observed_model is not self.model or not callable(self.model.R.given)
        whitening, log_peaks, noises = list[Array](), list[float](), list[Array]()
        for t, step in enumerate(self.indices if missing.any() or not constant else self.indices[:1]):
            key = missing[t].tobytes(), 0 if constant else step
            if key not in known:
                part = np.ix_(~missing[t], ~missing[t])
                noises.append(contract.observation_noise(self.observed_model, k, int(step)).matrix)
                matrix = noises[-1][part]
                root, log_root = contract.inverse_root(matrix.tobytes(), len(matrix))
                known[key] = len(whitening)
                whitening.append(np.zeros((k, k)))
                whitening[-1][part] = root
                log_peaks.append(log_root - 0.5 * len(matrix) * math.log(2 * math.pi))
            self.which[t] = known[key]
        self.whitening, self.log_peaks, self.noises = np.array(whitening), np.array(log_peaks), np.array(noises)

    def run(self, online: Any, left: int, parts: list[FilterResult], kept: Any) -> int:
        """Take as many of the last `left` steps as go through one call, append their result, and return their number."""
        online._settle()
        particles = online._current()
        if particles.modes is not None or not len(particles) == particles.n_next == online.n_particles:
            return 0
        count = min(left, 1 + MOST_PARTICLES // len(particles))
        part = slice(len(self.dts) - left, len(self.dts) - left + count)
        stream = online.rng.bit_generator
        before = stream.state
        done, spoilt, out = self._call(online, particles, part, kept is not None)
        if spoilt:  # the step at which it stopped has drawn random numbers: go up to it again
            stream.state = before
            if done:
                done, _, out = self._call(online, particles, slice(part.start, part.start + done), kept is not None)
        if not done:
            return 0
        (means, covariances, numbers, resampled, sets, kept_weights), x, log_weights, weights = out
        part, last = slice(part.start, part.start + done), done - 1
        steps, resampled = self.indices[part], resampled[:done]
        outcomes = tuple(Outcome.UPDATED if kind == USED else Outcome.MISSING for kind in self.kinds[part].tolist())
        ess, increments = numbers[:done].T.copy()
        parts.append(FilterResult(means[:done], covariances[:done], ess, resampled, increments, outcomes, steps=steps))
        online._particles, online.step = Particles.unchecked(x, log_weights), int(steps[last])
        online._particles.weights, online._resampled = weights, bool(resampled[last])
        for t in range(done):
            if outcomes[t] is Outcome.MISSING:
                warn_if_partial(self.given[part][t])
            elif ess[t] < ALONE:
                warn_of_loss(int(steps[t]), len(x), alone=True)
        online.log_likelihood += float(increments.sum())
        figures = float(ess[last]), online._resampled, float(increments[last])
        online.record = StepRecord(online.step, means[last], covariances[last], *figures, outcomes[last])
        if kept is not None:
            kept.extend(zip(sets[:done], kept_weights[:done], strict=True))
        return done

    def _call(self, online: Any, particles: Particles, part: slice, keep: bool) -> tuple[int, bool, Any]:
        """Return how many steps went through, whether another one has drawn random numbers, and what they gave."""
        n, d = particles.x.shape
        count = part.stop - part.start
        moments = np.empty((count, d)), np.empty((count, d, d))
        figures = np.empty((count, 2)), np.empty(count, dtype=np.bool_)
        out = *moments, *figures, np.empty((count * keep, n, d)), np.empty((count * keep, n))
        given = particles.x, particles.log_weights, particles.weights, np.empty((n, d))
        start = moves.Particles(*(np.array(part, dtype=np.float64, order="C") for part in given))
        k = self.z.shape[1] if self.derived else 1
        room = np.empty((n, d)), np.empty((n, k)), np.empty(n), np.empty(n)
        f, observe = self.model.f, self.observe
        way = f.parameters, f.compiled, self.dts[part], self.indices[part], self.controls[part], self.factors[part]
        seen = observe.compiled, observe.parameters, self.derived, self.z[part, None], self.kinds[part], self.which[part]
        series = *way, *seen, self.whitening, self.log_peaks, self.noises, self.circular, self.angles, *room
        share = 0.0 if online.proposal.uses.weights else online.resample_below
        threshold = (1 - 1e-9) * share * n, bool(online._resampled)
        _, move, tools = moves.mover(self.name)
        tools = ((*self.tables, *tools[:3]), *tools[3:]) if tools else ()
        done, spoilt = _loop(self.name)(series, move, tools, online.rng, start, threshold, np.empty((d, n)), out)
        return done, spoilt, (out, *start[:3])


@cache
def _loop(name: str) -> Any:
    """Return the compiled loop of a proposal; kept on the disk."""
    group, rows, sets = moves.GROUP, *(types.Array(float64, k, "C") for k in (2, 3))
    out, move = group((rows, sets, rows, types.Array(boolean, 1, "C"), sets, rows)), moves.mover(name)[0]
    given = group(moves.SERIES.types), move, move.signature.args[1], moves.GENERATOR, moves.PARTICLES
    return moves.compiled(_run, group((int64, boolean))(*given, group((float64, boolean)), rows, out), _nrt=False)


def _run(given, move, tools, rng, start, threshold, centred, out):
    """Take T steps with the particles; return how many were taken, and whether another one was begun.

    It makes no array, and counts no references: compiled code that is given arrays from here does not, either.
    """
    series, particles, (least, resampled) = moves.Series(*given), start, threshold
    means, covariances, numbers, was_resampled, kept_x, kept_weights = out
    _, log_weights, weights, _ = particles
    (n, d), size, done, spoilt = particles.x.shape, 1.0 / dot(weights, weights), 0, False
    for t in range(len(series.dts)):
        if series.kinds[t] == BY_ITSELF:
            break
        there = moves.Particles(particles.moved, log_weights, weights, particles.x)
        if series.dts[t] > 0:
            resampled = size < least
            increment = move(series, tools, rng, t, resampled, particles)
            particles = there
        else:
            increment = weigh(series, t, there)
        x = particles.x
        size = 1.0 / dot(weights, weights)
        if not (increment == increment and _moments(x, weights, series.circular, centred, means[t], covariances[t])):
            spoilt = True
            break
        numbers[t, 0], numbers[t, 1], was_resampled[t] = size, increment, resampled
        if len(kept_x):
            for i in range(n):
                kept_weights[t, i] = weights[i]
                for a in range(d):
                    kept_x[t, i, a] = x[i, a]
        done = t + 1
    for i in range(n):
        for a in range(d):
            start.x[i, a] = particles.x[i, a]
    return done, spoilt


@njit(**QUICK)
def _moments(x, weights, circular, centred, mean, covariance):
    """Write mean, its angles wrapped, and covariance; return False if that is not finite. Angles are unwrapped before."""
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
        mean[a] = reference + total
        for b in range(a + 1):
            other, total = centred[b], 0.0
            for i in range(n):
                total += weights[i] * row[i] * other[i]
            covariance[a, b] = covariance[b, a] = total
    total = 0.0
    for a in range(d):
        total += covariance[a, a]
        if circular[a]:
            mean[a] = wrapped(mean[a])
    return total < np.inf
