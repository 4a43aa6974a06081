"""A filter over a series of observations in one compiled loop, for models made of compiled functions.

The loop does what `ParticleFilter.predict` and `update` do, with the same random numbers in the same order; `proposals` has
the compiled proposals. It stops before a step that is not plain: a likelihood that vanishes, a state that is not finite, an
observation of another shape. The filter takes that step by itself, and raises its errors.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from herdfilter._checks import LARGEST, Array
from herdfilter.compiled import proposals
from herdfilter.compiled.proposals import BY_ITSELF, MISSING, USED
from herdfilter.filters.filter import ParticleFilter
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation
from herdfilter.filters.proposals import (
    AutomaticProposal,
    BootstrapProposal,
    HerdedProposal,
    KalmanMixtureProposal,
    RankedProposal,
    SequentialQuasiMonteCarlo,
)
from herdfilter.filters.resampling import SystematicResampling
from herdfilter.filters.results import (
    FilterResult,
    Outcome,
    StepRecord,
    warn_if_partial,
    warn_of_loss,
)
from herdfilter.filters.series import run as run_in_steps
from herdfilter.filters.state import ALONE, Particles
from herdfilter.models import contract
from herdfilter.models.compiled import CompiledFunction, CompiledModel, plain_array
from herdfilter.models.evaluations import THREAD
from herdfilter.models.resolved import Measurement, Transition
from herdfilter.models.sensors import Sensor, sensed
from herdfilter.models.series import Step, as_objects
from herdfilter.samplers.balanced import SETS, balanced_noise, scrambled_sobol

_log = logging.getLogger(__name__)

MOST_PARTICLES = 3_000_000
"""Particles of all steps that one call of the loop propagates: about half a second, as nothing can interrupt a call."""

MOST_STORED = 300_000
"""Particles of all steps whose random points are stored for one call."""

FEWEST_PARTICLES = 11_000
"""Fewer particles of all steps, plus 2,500 a step for its fixed cost, are not worth a call of the loop."""


def proposal_name(online: Any) -> str | None:
    """Return the name in `PROPOSALS` of a filter's proposal; None if the loop does not support the filter's parts."""
    if type(online) is not ParticleFilter or type(online.model) is not CompiledModel:
        return None  # a subclass may have methods of its own
    proposal = online.proposal
    model = online.model
    if type(online.rng) is not np.random.Generator or online._motion.limited:
        return None
    if type(proposal) is BootstrapProposal and type(online.resampling) is SystematicResampling:
        return "bootstrap"
    if type(proposal) is RankedProposal and proposal.sampler is None and not proposal.randomised:
        return "ranked"
    if type(proposal) is SequentialQuasiMonteCarlo:
        return "ranked"  # with other points
    if (
        type(proposal) is AutomaticProposal
        and proposal.sampler is None
        and online.n_particles > 2 * model.dim + 2
    ):
        return "line" if model.dim == 1 else "auto"  # points span state and noise
    return None


def run(online: Any, steps: Sequence[Step], keep_particles: bool) -> FilterResult | None:
    """Do as `herdfilter.filters.series.run`, with as many steps as possible at a time in the compiled loop.

    Returns None if the loop does not support the filter.
    """
    name = proposal_name(online)
    if name is None:
        return None
    count = len(steps)
    n = online.n_particles
    d = online.model.dim
    sets = count if keep_particles else 0
    table = proposals.Table(
        means=np.empty((count, d)),
        covariances=np.empty((count, d, d)),
        ess=np.empty(count),
        log_likelihoods=np.empty(count),
        resampled=np.empty(count, np.bool_),
        steps=np.empty(count, np.int64),
        distinct_ancestors=np.empty(count),
        particles=np.empty((sets, n, d)),
        weights=np.empty((sets, n)),
        ancestors=np.empty((sets, n), np.int64),
    )
    outcomes: list[Outcome] = []
    begun = online.particles
    try:
        for sensor, group in groupby(steps, key=lambda step: step.sensor):
            part = list(group)
            start = len(outcomes)
            rows = proposals.Table(*(column[start : start + len(part)] for column in table))
            segment = _segment(online, name, part, sensor)
            while (first := len(outcomes) - start) < len(part):
                looped = (
                    []
                    if segment is None
                    else segment.run(online, first, rows, 1 + MOST_PARTICLES // n)
                )
                outcomes += looped or [_take_step(online, part[first], first, rows)]
                online._clock = part[len(outcomes) - start - 1].clock
    except (Exception, KeyboardInterrupt) as error:
        # the steps so far are not lost
        error.result = _result(online, steps, table, outcomes)  # type: ignore[union-attr]
        raise
    # The loop does not trace lineages, but the noise of its models is continuous: equal values are of one.
    for before, after in zip(begun.T, online.particles.T, strict=True):
        if len(np.unique(after)) < math.sqrt(n) <= len(np.unique(before)):
            warn_of_loss(online.step, n, alone=False)
    return _result(online, steps, table, outcomes)


def _take_step(online: Any, step: Step, t: int, rows: Any) -> Outcome:
    """Let the filter take a step by itself; write row t of the table, and return the outcome of the observation."""
    run_in_steps(online, [step])
    record: StepRecord = online.record
    ancestors = -1 if online.ancestors is None else online.ancestors
    # in the order of `Table`
    moments = record.mean, record.covariance, record.ess, record.log_likelihood
    counts = record.resampled, record.step, record.distinct_ancestors
    values = *moments, *counts, online.particles, online.weights, ancestors
    for column, value in zip(rows, values, strict=True):
        if len(column):
            column[t] = value
    return record.outcome


def _result(
    online: Any, steps: Sequence[Step], table: Any, outcomes: list[Outcome]
) -> FilterResult:
    """Return the result of the steps that have outcomes, which are the first ones if an error ended the run."""
    columns = {name: column[: len(outcomes)] for name, column in table._asdict().items()}
    if not len(table.particles):
        columns |= dict.fromkeys(("particles", "weights", "ancestors"))
    elif (columns["ancestors"] < 0).any():
        columns["ancestors"] = None
    columns["times"] = as_objects([step.time for step in steps[: len(outcomes)]])
    return FilterResult(
        **columns,
        outcomes=tuple(outcomes),
        circular=contract.circular_dims(online.model),
        position_dims=contract.position_dims(online.model),
    )


def _segment(online: Any, name: str, steps: list[Step], sensor: Sensor | None) -> Segment | None:
    """Prepare steps with the same sensor for the loop; None if it cannot take them."""
    model = online.model
    if len(steps) * (2500 + online.n_particles) < FEWEST_PARTICLES:
        return None
    try:
        if sensor is None:
            # the loop can weight particles by the model's own likelihood, but looking ahead needs the mean observation
            looks_ahead = name in ("auto", "line") or (name == "ranked" and online.proposal.guided)
            if looks_ahead and model.likelihood is not None:
                return None
            observe = model.h if model.likelihood is None else model.likelihood
            return None if observe is None else Segment(online, name, steps, observe, model)
        unsupported = sensor.log_likelihood, sensor.detection_probability, sensor.clutter_density
        plain = (
            isinstance(sensor.mean, CompiledFunction)
            and not callable(sensor.covariance)
            and unsupported == (None,) * 3
        )
        return Segment(online, name, steps, sensor.mean, sensed(model, sensor)) if plain else None  # type: ignore[arg-type]
    except Exception as error:  # the filter raises it again, at the step where it belongs
        _log.info("steps are taken one by one, as the compiled loop raises %r", error)
        return None


class Segment:
    """Steps that are observed by the same function, as arrays for the compiled loop."""

    def __init__(
        self,
        online: Any,
        name: str,
        steps: list[Step],
        observe: CompiledFunction,
        observed_model: Any,
    ) -> None:
        model: CompiledModel = online.model
        n = online.n_particles
        d = model.dim
        derived = observe is not model.likelihood
        dts = np.array([step.dt for step in steps])
        indices = online.step + np.cumsum(dts > 0)
        z, self.kinds = _observations(
            steps, indices, observe.size if derived else None, observed_model
        )
        self.readings = [step.z for step in steps]
        self.kinds[indices == 0] = BY_ITSELF  # an observation of the initial state
        # One factor of the transition noise serves all steps if Q is constant, or depends on equal time steps alone.
        constant = not callable(model.Q.value) or (
            model.Q.names == ("dt",) and (dts == dts[0]).all()
        )
        times = zip(dts.tolist(), indices.tolist(), strict=True)
        factors = [
            Transition(model, dt, None, t).factor
            for dt, t in ([next(times)] if constant else times)
        ]
        if derived:
            k = z.shape[1]
            observe(online.particles)  # the first call checks a sensor's function
            noises = _observation_noises(observed_model, np.isnan(z), indices)
            angles = Measurement(observed_model).circular(k)
        else:
            k = 1  # the log-likelihood
            unused = np.zeros((1, 1, 1))
            noises = ObservationNoises(np.zeros(len(z), np.int64), unused, unused[0, 0], unused)
            angles = ()
        self.series = proposals.Series(
            parameters=model.f.parameters,
            f=model.f.compiled,
            dts=dts,
            steps=indices,
            controls=np.array([model.f.inputs(step.control) for step in steps]),
            factors=np.array(factors * (len(z) // len(factors))),
            observe=observe.compiled,
            observed_parameters=observe.parameters,
            derived=derived,
            z=z[:, None],
            kinds=self.kinds,
            **noises._asdict(),
            circular=np.isin(np.arange(d), model.circular),
            observation_circular=np.isin(np.arange(k), angles),
            states=np.empty((n, d)),
            values=np.empty((n, k)),
            workspace=np.empty((d + 2, n)),
            indices=np.empty(n, dtype=np.int64),
            evaluations=np.zeros(2, dtype=np.int64),
        )
        self.loop, self.propose, shared, called = proposals.engine(name)
        self.tools: tuple[Any, ...] = ()
        self.randomised = False
        if called:
            shares: tuple[float, ...]
            if name == "line":
                shares = HerdedProposal.defensive_share, KalmanMixtureProposal.defensive_share
            else:
                ranked = online.proposal if name == "ranked" else online.proposal._ranked
                self.randomised = type(ranked) is SequentialQuasiMonteCarlo
                shares = float(ranked.guided), ranked.defensive_share, float(not self.randomised)
            narrow = _noise(n, d, 0 if self.randomised else SETS)
            # noise of kernels has d more entries, which spread the start; ranked particles have no kernels
            wide = narrow if name == "ranked" else _noise(n, 2 * d, SETS)
            levels = (np.arange(n) + 0.5)[None] / n
            self.tools = ((narrow, wide, levels, np.array(shares), *shared), *called)

    def run(self, online: Any, first: int, rows: Any, max_steps: int) -> list[Outcome]:
        """Take as many steps as one call of the loop can, fill in their rows, and return the outcomes of observations."""
        online._settle()
        particles = online._current()
        n = online.n_particles
        if particles.modes is not None or not n == particles.n_next == len(particles):
            return []
        resample_below = 0.0 if online.proposal.uses.weights else online.resample_below
        if self.randomised:
            max_steps = min(max_steps, 1 + MOST_STORED // n)
        last = min(len(self.kinds), first + max_steps)
        # a little lower: equal weights, whose ESS may round to just below n, are not resampled
        span = proposals.Span(first, last, (1 - 1e-9) * resample_below * n, bool(online._resampled))
        # copies: the loop overwrites them, and the last one is only workspace for the next states
        arrays = particles.x, particles.log_weights, particles.weights, particles.x
        ancestors = np.full(n, -1) if particles.ancestors is None else particles.ancestors.copy()
        state = proposals.Particles(
            *(np.array(array, dtype=np.float64, order="C") for array in arrays), ancestors
        )
        before = online.rng.bit_generator.state
        if self.randomised:
            self._draw_points(online.rng, first, last)
        self.series.evaluations[:] = 0
        end, spoilt = self.loop(
            tuple(self.series), self.propose, self.tools, online.rng, state, span, rows
        )
        if spoilt:
            # the unfinished step has drawn random numbers: run again, up to that step only
            online.rng.bit_generator.state = before
            return self.run(online, first, rows, end - first)
        if end == first:
            return []
        if self.randomised and end < last:
            online.rng.bit_generator.state = before
            self._draw_points(online.rng, first, end)
        THREAD.evaluations.add(*self.series.evaluations.tolist())
        outcomes = [
            Outcome.UPDATED if kind == USED else Outcome.MISSING
            for kind in self.kinds[first:end].tolist()
        ]
        # x and next_x swap roles at every step of time
        swapped = np.count_nonzero(self.series.dts[first:end]) % 2
        ancestors = None if ancestors.min() < 0 else ancestors
        x = state.next_x if swapped else state.x
        online._particles = Particles.unchecked(x, state.log_weights, ancestors=ancestors)
        online._particles.weights = state.weights
        online._origins = None
        rows.steps[first:end] = self.series.steps[first:end]
        t = end - 1
        online.step = int(rows.steps[t])
        online._resampled = bool(rows.resampled[t])
        online.log_likelihood += float(rows.log_likelihoods[first:end].sum())
        figures = float(rows.ess[t]), online._resampled, float(rows.log_likelihoods[t])
        distinct = float(rows.distinct_ancestors[t])
        online.record = StepRecord(
            online.step, rows.means[t], rows.covariances[t], *figures, outcomes[-1], None, distinct
        )
        # whether families have collapsed is judged after the last step only, whose ancestors are at hand
        collapsed = online._particles.counts(rows.means[t], rows.covariances[t], online._circular)[
            2
        ]
        for row, outcome in enumerate(outcomes, first):
            if outcome is Outcome.MISSING:
                warn_if_partial(self.readings[row])
            elif rows.ess[row] < ALONE or (collapsed and row == t):
                warn_of_loss(int(rows.steps[row]), n, alone=bool(rows.ess[row] < ALONE))
        return outcomes

    def _draw_points(self, rng: np.random.Generator, first: int, last: int) -> None:
        """Draw the points of sequential quasi-Monte Carlo for some steps, as its `propose` would one after the other."""
        (narrow, wide, levels, *others), *called = self.tools
        n = levels.shape[1]
        indices = self.series.steps[first:last][self.series.dts[first:last] > 0]
        points = np.empty((max(len(indices), 1), n, 1 + len(self.series.factors[0])))
        for index in indices:
            points[index % len(points)] = scrambled_sobol(n, points.shape[2], rng, ordered=True)
        noise = narrow._replace(sets=ndtri(points[:, :, 1:]))
        self.tools = ((noise, wide, points[:, :, 0].copy(), *others), *called)


def _observations(
    steps: list[Step], indices: Array, size: int | None, model: Any
) -> tuple[Array, Array]:
    """Return observations (T, k), NaN where there is none, and the kind of each, (T,); k is `size` unless that is None."""
    readings = [step.z for step in steps]
    k = next((np.size(z) for z in readings if z is not None), 1) if size is None else size
    if all(type(z) is np.ndarray and z.dtype == np.float64 and z.shape == (k,) for z in readings):
        rows = np.array(readings)
        if (np.abs(rows) <= LARGEST).all():
            return rows, np.full(len(rows), USED)
    rows = np.full((len(readings), k), np.nan)
    kinds = np.full(len(readings), BY_ITSELF)
    for t, z in enumerate(readings):
        with suppress(ValueError):  # raised again by the filter
            observation = Observation.read(model, z, int(indices[t]))
            if observation is None:
                kinds[t] = MISSING
            elif np.atleast_1d(observation.z).shape == (k,):
                kinds[t] = USED
                rows[t] = observation.z
    return rows, kinds


class ObservationNoises(NamedTuple):
    """The distinct noises of T observations, and which of them each observation has."""

    noise_indices: Array  # (T,)
    whitening: Array  # (K, k, k), W with W'W the inverse covariance of the present entries
    log_peaks: Array  # (K,), log-densities at 0
    noises: Array  # (K, k, k), covariances


def _observation_noises(model: Any, missing: Array, indices: Array) -> ObservationNoises:
    """Return the noises of observations with `missing` entries, (T, k), at steps of these indices, (T,).

    Missing entries have the covariance 1, and zeros in W.
    """
    k = missing.shape[1]
    varying = isinstance(model, CompiledModel) and callable(model.R.value)
    kinds = np.column_stack([missing, indices]) if varying else missing
    _, first_steps, noise_indices = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
    whitening = np.zeros((len(first_steps), k, k))
    log_peaks = np.zeros(len(first_steps))
    noises = np.tile(np.eye(k), (len(first_steps), 1, 1))
    for i, t in enumerate(first_steps):
        part = np.ix_(~missing[t], ~missing[t])
        matrix = Measurement(model).noise(k, int(indices[t])).matrix[part]
        root, log_root = contract.inverse_root(matrix.tobytes(), len(matrix))
        noises[i][part] = matrix
        whitening[i][part] = root
        log_peaks[i] = log_root - 0.5 * len(matrix) * math.log(2 * math.pi)
    return ObservationNoises(noise_indices.reshape(-1), whitening, log_peaks, noises)


@lru_cache(maxsize=4)
def _noise(n: int, dim: int, count: int) -> Any:
    """Return sets of balanced points (count, n, dim), and sigma points (p, dim) with their weights."""
    points, weights = UNSCENTED_RULE.points(dim)
    sets = np.array([balanced_noise(n, dim, k) for k in range(count)]).reshape(count, n, dim)
    return proposals.Noise(sets, plain_array(points), plain_array(weights))
