"""A filter over a series of observations in one compiled loop, for models made of compiled functions.

The loop does what `ParticleFilter.predict` and `update` do, with the same random numbers in the same order; how particles
are moved stands in `moves`. It stops before a step that is not plain: a likelihood that vanishes, a state that
is not finite, an observation of another shape. The filter takes that step by itself, and raises its errors.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from herdfilter._checks import LARGEST, Array
from herdfilter.compiled import moves
from herdfilter.compiled.moves import BY_ITSELF, MISSING, USED
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import AutomaticProposal, BootstrapProposal, RankedProposal
from herdfilter.filters.proposals.balanced import SETS, balanced_noise
from herdfilter.filters.resampling import SystematicResampling
from herdfilter.filters.results import FilterResult, Outcome, StepRecord, warn_if_partial, warn_of_loss
from herdfilter.filters.series import run as run_in_steps
from herdfilter.filters.state import ALONE, Particles
from herdfilter.models import contract
from herdfilter.models.compiled import CompiledFunction, CompiledModel, plain_array
from herdfilter.models.resolved import Measurement, Transition
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.series import Step, as_objects

_log = logging.getLogger(__name__)

MOST_PARTICLES = 3_000_000
"""Particles that one call of the loop moves, of all steps: half a second's, within which nothing interrupts it."""

FEWEST_PARTICLES = 11_000
"""Fewer particles of all steps, each with 2,500 more for its own cost, are not worth the call of the loop."""


def move_of(online: Any) -> str | None:
    """Return the name of a filter's function in `MOVES`; None if its parts do not let a series go through the loop."""
    proposal, model = online.proposal, online.model
    if type(model) is not CompiledModel or type(online.rng) is not np.random.Generator:
        return None
    if type(proposal) is BootstrapProposal and type(online.resampling) is SystematicResampling:
        return "bootstrap"
    if type(proposal) is RankedProposal and proposal.sampler is None and not proposal.randomised:
        return "ranked"
    if type(proposal) is AutomaticProposal and proposal.sampler is None and online.n_particles > 2 * model.dim + 2:
        return "line" if model.dim == 1 else "auto"  # points span state and noise
    return None


def run(online: Any, steps: Sequence[Step], keep_particles: bool) -> FilterResult | None:
    """Do as `herdfilter.filters.series.run`, with as many steps as possible at a time in the compiled loop.

    None if the filter has no steps for the loop.
    """
    move = move_of(online)
    if move is None:
        return None
    count, n, d = len(steps), online.n_particles, online.model.dim
    sets = count if keep_particles else 0
    numbers = np.empty(count), np.empty(count), np.empty(count, np.bool_), np.empty(count, np.int64), np.empty(count)
    moments = np.empty((count, d)), np.empty((count, d, d))
    particles = np.empty((sets, n, d)), np.empty((sets, n)), np.empty((sets, n), np.int64)
    table = moves.Table(*moments, *numbers, *particles)
    outcomes: list[Outcome] = []
    try:
        for sensor, group in groupby(steps, key=lambda step: step.sensor):
            part = list(group)
            start = len(outcomes)
            rows = moves.Table(*(column[start : start + len(part)] for column in table))
            segment = _segment(online, move, part, sensor)
            while (first := len(outcomes) - start) < len(part):
                done = [] if segment is None else segment.run(online, first, rows, 1 + MOST_PARTICLES // n)
                outcomes += done or [_take_step(online, part[first], first, rows)]
                online._clock = part[len(outcomes) - start - 1].clock
    except (Exception, KeyboardInterrupt) as error:
        error.result = _result(online, steps, table, outcomes)  # type: ignore[union-attr]
        raise
    return _result(online, steps, table, outcomes)


def _take_step(online: Any, step: Step, t: int, rows: Any) -> Outcome:
    """Let the filter take a step by itself; write row t of the table, and return what became of the observation."""
    run_in_steps(online, [step])
    record: StepRecord = online.record
    numbers = record.ess, record.log_likelihood, record.resampled, record.step, record.distinct_ancestors
    ancestors = -1 if online.ancestors is None else online.ancestors
    columns = record.mean, record.covariance, *numbers, online.particles, online.weights, ancestors
    for rows_of_column, value in zip(rows, columns, strict=True):
        if len(rows_of_column):
            rows_of_column[t] = value
    return record.outcome


def _result(online: Any, steps: Sequence[Step], table: Any, outcomes: list[Outcome]) -> FilterResult:
    """Return the result of the first steps, those that have outcomes."""
    columns: dict[str, Any] = {name: column[: len(outcomes)] for name, column in table._asdict().items()}
    if not len(table.particles):
        columns |= {"particles": None, "weights": None}
    if not len(table.particles) or (columns["ancestors"] < 0).any():
        columns["ancestors"] = None
    columns["times"] = as_objects([step.time for step in steps[: len(outcomes)]])
    positions = contract.position_dims(online.model)
    circular = contract.circular_dims(online.model)
    return FilterResult(**columns, outcomes=tuple(outcomes), circular=circular, position_dims=positions)


def _segment(online: Any, move: str, steps: list[Step], sensor: Sensor | None) -> Segment | None:
    """Return steps that the same sensor observes, for the loop; None if it cannot take them."""
    model = online.model
    if len(steps) * (2500 + online.n_particles) < FEWEST_PARTICLES:
        return None
    try:
        if sensor is None:
            # a likelihood of its own is weighed in the loop, but not looked ahead with
            looks_ahead = move in ("auto", "line") or (move == "ranked" and online.proposal.guided)
            observe = model.h if model.likelihood is None else None if looks_ahead else model.likelihood
            return None if observe is None else Segment(online, move, steps, observe, model)
        others = sensor.log_likelihood, sensor.detection_probability, sensor.clutter_density
        plain = isinstance(sensor.mean, CompiledFunction) and not callable(sensor.covariance) and others == (None,) * 3
        return Segment(online, move, steps, sensor.mean, sensed(model, sensor)) if plain else None  # type: ignore[arg-type]
    except Exception as error:  # the filter raises it, at the step that it belongs to
        _log.info("steps are taken one by one, as the compiled loop raises %r", error)
        return None


class Segment:
    """Steps that are observed by the same function, as arrays for the compiled loop."""

    def __init__(self, online: Any, move: str, steps: list[Step], observe: CompiledFunction, observed_model: Any) -> None:
        model: CompiledModel = online.model
        n, d = online.n_particles, model.dim
        derived = observe is not model.likelihood
        dts = np.array([step.dt for step in steps])
        indices = online.step + np.cumsum(dts > 0)
        z, self.kinds = _observations(steps, indices, observe.size if derived else None, observed_model)
        self.readings = [step.z for step in steps]
        self.kinds[indices == 0] = BY_ITSELF
        constant = not callable(model.Q.given) or (model.Q.names == ("dt",) and (dts == dts[0]).all())
        times = zip(dts.tolist(), indices.tolist(), strict=True)
        factors = [Transition(model, dt, None, t).noise.factor for dt, t in ([next(times)] if constant else times)]
        k = z.shape[1] if derived else 1
        noises: tuple[Any, ...] = np.zeros(len(z), dtype=np.int64), np.zeros((1, k, k)), np.zeros(1), np.zeros((1, k, k))
        if derived:
            observe(online.particles)  # the first call checks a sensor's function
            noises = _observation_noises(observed_model, np.isnan(z), indices)
        angles = Measurement(observed_model).circular(k) if derived else ()
        self.series = moves.Series(
            model.f.parameters,
            model.f.compiled,
            dts,
            indices,
            np.array([model.f.inputs(step.control) for step in steps]),
            np.array(factors * (len(z) // len(factors))),
            observe.compiled,
            observe.parameters,
            derived,
            z[:, None],
            self.kinds,
            *noises,
            np.isin(np.arange(d), model.circular),
            np.isin(np.arange(k), angles),
            np.empty((n, d)),
            np.empty((n, k)),
            np.empty((d + 2, n)),
            np.empty(n, dtype=np.int64),
        )
        self.loop, self.move, shared, called = moves.engine(move)
        self.tools = ((*_tables(move, online.proposal, n, d), *shared), *called) if called else ()

    def run(self, online: Any, first: int, rows: Any, most: int) -> list[Outcome]:
        """Take as many steps as go through one call, fill in their rows, and return what became of observations."""
        online._settle()
        particles = online._current()
        n = online.n_particles
        if particles.modes is not None or not n == particles.n_next == len(particles):
            return []
        least = 0.0 if online.proposal.uses.weights else online.resample_below
        last = min(len(self.kinds), first + most)
        span = moves.Span(first, last, (1 - 1e-9) * least * n, bool(online._resampled))
        arrays = particles.x, particles.log_weights, particles.weights, particles.x
        ancestors = np.full(n, -1) if particles.ancestors is None else particles.ancestors.copy()
        state = moves.Particles(*(np.array(array, dtype=np.float64, order="C") for array in arrays), ancestors)
        before = online.rng.bit_generator.state
        end, spoilt = self.loop(tuple(self.series), self.move, self.tools, online.rng, state, span, rows)
        if spoilt:  # the step at which it stopped has drawn random numbers: go up to it again
            online.rng.bit_generator.state = before
            return self.run(online, first, rows, end - first)
        if end == first:
            return []
        outcomes = [Outcome.UPDATED if kind == USED else Outcome.MISSING for kind in self.kinds[first:end].tolist()]
        moved = np.count_nonzero(self.series.dts[first:end]) % 2  # x and the room for its successors take turns
        ancestors = None if ancestors.min() < 0 else ancestors
        x = state.moved if moved else state.x
        online._particles = Particles.unchecked(x, state.log_weights, ancestors=ancestors)
        online._particles.weights = state.weights
        rows.steps[first:end] = self.series.steps[first:end]
        t = end - 1
        online.step = int(rows.steps[t])
        online._resampled = bool(rows.resampled[t])
        online.log_likelihood += float(rows.log_likelihoods[first:end].sum())
        figures = float(rows.ess[t]), online._resampled, float(rows.log_likelihoods[t])
        distinct = float(rows.distinct_ancestors[t])
        online.record = StepRecord(online.step, rows.means[t], rows.covariances[t], *figures, outcomes[-1], None, distinct)
        collapsed = online._particles.counts(online._circular)[2]  # told of the last step only
        for row, outcome in enumerate(outcomes, first):
            if outcome is Outcome.MISSING:
                warn_if_partial(self.readings[row])
            elif rows.ess[row] < ALONE or (collapsed and row == t):
                warn_of_loss(int(rows.steps[row]), n, alone=bool(rows.ess[row] < ALONE))
        return outcomes


def _observations(steps: list[Step], indices: Array, size: int | None, model: Any) -> tuple[Array, Array]:
    """Return observations (T, k), NaN where there is none, and what becomes of each, (T,); k is `size` if that is known."""
    readings: list[Any] = [step.z for step in steps]
    k = next((np.size(z) for z in readings if z is not None), 1) if size is None else size
    if all(type(z) is np.ndarray and z.dtype == np.float64 and z.shape == (k,) for z in readings):
        rows = np.array(readings)
        if (np.abs(rows) <= LARGEST).all():
            return rows, np.full(len(rows), USED)
    rows, kinds = np.full((len(readings), k), np.nan), np.full(len(readings), BY_ITSELF)
    for t, z in enumerate(readings):
        with suppress(ValueError):  # raised again by the filter
            observation = Observation.read(model, z, int(indices[t]))
            if observation is None:
                kinds[t] = MISSING
            elif np.atleast_1d(observation.z).shape == (k,):
                kinds[t] = USED
                rows[t] = observation.z
    return rows, kinds


def _observation_noises(model: Any, missing: Array, indices: Array) -> tuple[Array, Array, Array, Array]:
    """Return the noise of each step (T,), an index of: matrices W, log-densities at 0, and covariances.

    ``W.T @ W`` is the inverse of the covariance of the entries that are not `missing`, (T, k). Those that are have the
    covariance 1, and no W.
    """
    k = missing.shape[1]
    varying = isinstance(model, CompiledModel) and callable(model.R.given)
    kinds = np.column_stack([missing, indices]) if varying else missing
    _, first, which = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
    whitening, log_peaks, noises = list[Array](), list[float](), list[Array]()
    for t in first:
        part = np.ix_(~missing[t], ~missing[t])
        noises.append(np.eye(k))
        noises[-1][part] = matrix = Measurement(model).noise(k, int(indices[t])).matrix[part]
        root, log_root = contract.inverse_root(matrix.tobytes(), len(matrix))
        whitening.append(np.zeros((k, k)))
        whitening[-1][part] = root
        log_peaks.append(log_root - 0.5 * len(matrix) * math.log(2 * math.pi))
    return which.reshape(-1), np.array(whitening), np.array(log_peaks), np.array(noises)


def _tables(move: str, proposal: Any, n: int, d: int) -> tuple[Any, ...]:
    """Return the first fields of a proposal's `Tools`."""
    if move == "line":
        shares = proposal._quantiles.defensive_share, proposal._guided_quantiles.defensive_share
    else:
        ranked = proposal if move == "ranked" else proposal._ranked
        shares = float(ranked.guided), ranked.defensive_share
    wide = _noise(n, d if move == "ranked" else 2 * d)
    return _noise(n, d), wide, (np.arange(n) + 0.5) / n, np.array(shares)


@lru_cache(maxsize=4)
def _noise(n: int, dim: int) -> Any:
    """Return balanced points (S, n, dim), and sigma points (p, dim) with their weights."""
    points, weights = UNSCENTED_RULE.points(dim)
    sets = np.array([balanced_noise(n, dim, k) for k in range(SETS)])
    return moves.Noise(sets, plain_array(points), plain_array(weights))
