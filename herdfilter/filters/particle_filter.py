"""The particle filter core: predict, update, estimate; everything else is a part that is plugged in."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import (
    SUM_ERROR,
    Array,
    as_any,
    as_fraction,
    as_generator,
    check_count,
    check_flags,
    one_of,
    short_repr,
    unmasked,
)
from herdfilter._repr import summary_repr
from herdfilter.filters.kalman.rules import UNSCENTED_RULE
from herdfilter.filters.observation import Observation, predicted_observation
from herdfilter.filters.online import OnlineFilter, SavedState
from herdfilter.filters.particles import Particles, check_particles
from herdfilter.filters.proposals import BootstrapProposal, Proposal, histories
from herdfilter.filters.proposals.base import check_part
from herdfilter.filters.proposals.guided import initial_given
from herdfilter.filters.proposals.rao_blackwellised import weigh
from herdfilter.filters.proposals.scans import propose_from_scan
from herdfilter.filters.resampling import Resampling, SystematicResampling
from herdfilter.filters.results import (
    WARN,
    DegeneracyWarning,
    DegenerateWeightsError,
    FilterResult,
    Outcome,
    StepRecord,
    warn_of_partial,
)
from herdfilter.filters.series import Watcher, run
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
from herdfilter.models.sensors import Sensor, sensed, to_check
from herdfilter.models.series import Late, Reading, as_control, as_duration, series

_log = logging.getLogger(__name__)

ALONE = 1.1  # effective sample size below which one particle has all the weight
FEWEST_TO_WARN = 10  # particles below which that is nothing to warn of
STATE = {name: name for name in ("weights", "log_weights", "modes", "covariances", "gaussian")} | {"particles": "x"}
NEGLIGIBLE_SET = 0.01  # sets lighter than this fraction of one particle's weight are dropped when sets are merged


class ParticleFilter(OnlineFilter):
    """A particle filter whose prediction and resampling steps can be swapped for deterministic ones.

    Parameters
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.
    n_particles : int
        Number of particles n.
    proposal : Proposal
        How particles are carried through the transition; `BootstrapProposal` by default.
    resampling : Resampling
        How uneven weights are evened out; `SystematicResampling` by default. Not used by proposals that draw from the
        weighted particles as a whole (`HerdedProposal`, `AugmentedProposal`).
    resample_below : float
        Resample, before the next prediction, when the effective sample size is below this fraction of n; from 0 (never)
        to 1 (whenever weights are uneven).
    rng : numpy.random.Generator or int, optional
        Source of every random draw. Filters of deterministic parts do not use it.
    on_degeneracy : {"raise", "predict"}
        What to do when the likelihood vanishes at every particle: raise `DegenerateWeightsError`, or discard the observation
        and record `Outcome.DEGENERATE`.

    Attributes
    ----------
    step : int
        Time index of the particles; 0 at the start.
    log_likelihood : float
        Estimate of the log-likelihood of all observations so far.
    record : StepRecord or None
        The last completed step.

    Raises
    ------
    TypeError, ValueError
        If the model lacks a function that the proposal or the update needs, a part is not of its kind, or a number is out
        of range. The particles are drawn when they are first needed: what only a draw can show is raised then.

    Examples
    --------
    A filter in a loop, on a model whose exact answer a grid gives. With 500 random particles the mean is off by far less
    than the posterior is wide.

    >>> model = hf.models.UNGM()
    >>> truth, z = hf.simulate(model, steps=10, rng=1)
    >>> pf = hf.ParticleFilter(model, n_particles=500, rng=0)
    >>> for observation in z:
    ...     pf.predict()
    ...     record = pf.update(observation)
    ...
    >>> exact = hf.GridFilter(model, lower=-60, upper=60, points=601).run(z)
    >>> pf.step, pf.particles.shape, np.allclose(pf.weights.sum(), 1)
    (10, (500, 1), True)
    >>> bool(abs(pf.mean[0] - exact.means[-1, 0]) < 0.5 * exact.covariances[-1, 0, 0] ** 0.5)
    True
    """

    def __init__(
        self,
        model: contract.Model,
        n_particles: int = 100,
        proposal: Proposal | None = None,
        resampling: Resampling | None = None,
        resample_below: float = 0.5,
        rng: np.random.Generator | int | None = None,
        on_degeneracy: Literal["raise", "predict"] = "raise",
    ) -> None:
        self.model = model = contract.only_mode(model)
        self.n_particles = check_count("n_particles", n_particles)
        self.proposal = BootstrapProposal() if proposal is None else proposal
        self.resampling = SystematicResampling() if resampling is None else resampling
        check_part("proposal", self.proposal, Proposal, "a proposal such as BootstrapProposal()")
        check_part("resampling", self.resampling, Resampling, "a scheme such as SystematicResampling()")
        self.resample_below = as_fraction("resample_below", resample_below)
        self.on_degeneracy = one_of("on_degeneracy", on_degeneracy, ("raise", "predict"))
        self.rng = as_generator(rng)
        self.proposal = histories.for_model(self.proposal, model, self.resampling)
        observed_model = to_check(model)
        modes = len(model.models) if contract.jumps(model) else 0
        for one in (*(contract.in_mode(model, mode) for mode in range(modes)), model):
            contract.check_state(one, "ParticleFilter", "sample")
        contract.require_likelihood(observed_model, "ParticleFilter")
        self.proposal.check(observed_model)
        self._needs_sensor = observed_model is not model
        self._circular = contract.circular_dims(model)
        self.reset()

    def _rewind(self) -> None:
        self._particles: Particles | None = None  # drawn when first needed
        self._pending: Any = None  # the transition on from there, of a proposal that waits for the observation
        self._predicted: Any = None  # the particles at its end without one, and the generator's state after their draw
        self._resampled, self._untouched = False, True

    @property
    def particles(self) -> Array:
        """The particles, shape (n, d); where each carries a Gaussian (`RaoBlackwellisedProposal`), the means of these.

        A proposal that looks at the observation has none between `predict` and `update`: its prediction is drawn when
        it is asked for, and asking does not change what follows.
        """
        return self._points().x

    @property
    def weights(self) -> Array:
        """Weights of the particles, shape (n,), summing to 1."""
        return self._points().weights

    @property
    def mean(self) -> Array:
        """Mean of the weighted particles, shape (d,); circular in angle-valued dimensions."""
        return self._current().moments(self._circular)[0]

    @property
    def covariance(self) -> Array:
        """Covariance of the weighted particles, shape (d, d)."""
        return self._current().moments(self._circular)[1]

    @property
    def ess(self) -> float:
        r"""Effective sample size :math:`1 / \sum_i w_i^2`."""
        return float(self._current().ess)

    @property
    def mode_probabilities(self) -> Array:
        """Probability of each mode of a model that jumps between J of them, shape (J,); of any other, of its one mode."""
        particles = self._current()
        if particles.modes is None:
            return np.ones(1)
        return np.bincount(particles.modes, particles.weights, len(self.model.models)).astype(np.float64)

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Carry the particles over a time `dt` to the next step, resampled before where their weights are too uneven."""
        self._advance(as_duration("dt", dt), as_control(unmasked("control", control)))
        if self._pending is not None:
            self._pending = self._pending.snapshot()

    def _advance(self, dt: float, control: Any) -> None:
        """Predict; a model that is changed before the observation comes is not kept as it was."""
        self._settle()
        particles = self._current()
        least = (1 - 1e-9) * self.resample_below * self.n_particles
        uneven = not self.proposal.uses.weights and (particles.ess < least or len(particles) != particles.n_next)
        if uneven:
            resampled = self.resampling.resample(particles, self.rng, self._circular)
            _log.debug("step %d: resampled, effective sample size %.1f", self.step, particles.ess)
            particles = check_particles(resampled, self.resampling, "resample", (self.n_particles, self.model.dim))
        transition = Transition(self.model, dt, control, self.step + 1)
        if self.proposal.uses.observation:
            self._particles, self._pending, self._predicted = particles, transition, None
        else:
            moved = self.proposal.propose(transition, particles, self.rng)
            self._particles = check_particles(moved, self.proposal, "propose", (self.n_particles, self.model.dim))
        self._resampled, self.step, self._clock, self._untouched = uneven, self.step + 1, self._clock.later(dt), False

    def update(self, z: ArrayLike | None, sensor: Sensor | None = None, gate: float | None = None) -> StepRecord:
        """Weight the particles by the likelihood of an observation of this step: before the first `predict`, of step 0.

        There may be several updates at one step, by one sensor after the other. The first of a Gaussian prior draws the
        particles anew, with a look at the observation: it may be wide, so that a track starts from its first measurement.

        Parameters
        ----------
        z : array_like or None
            The observation in the form that the model's `log_likelihood` takes. None means missing, and so does NaN in
            any entry, unless the model says ``partial_observations = True`` or its likelihood is derived: then only NaN in
            all entries does. Entries that are masked or ``pandas.NA`` count as NaN.
        sensor : Sensor, optional
            What the observation is of, in place of the model's own observation functions.
        gate : float, optional
            Leave out, with `Outcome.GATED`, an observation outside the ellipsoid that holds a Gaussian with the predicted
            mean and covariance with this probability, such as 0.999.

        Warns
        -----
        DegeneracyWarning
            If one particle has all the weight afterwards. `run` warns once for all its steps.
        PartialObservationWarning
            If the observation has NaN in some entries and is left out whole.

        Raises
        ------
        DegenerateWeightsError
            If the likelihood vanishes at every particle, unless ``on_degeneracy="predict"``; the prediction is kept.
        RuntimeError
            If the model reads a second observation of the initial state: `predict` was forgotten.
        TypeError
            If there is neither a sensor nor an observation function of the model's, or the proposal needs more of it.
        ValueError
            If the model returns a log-likelihood of the wrong shape, or one that is NaN or +inf.
        """
        record = self._update(z, sensor, gate)
        if record.ess < ALONE:
            self._warn_if_alone([record.step], [record.ess], [record.outcome])
        if record.outcome is Outcome.MISSING:
            warn_of_partial([z])
        return record

    def _update(self, z: ArrayLike | None, sensor: Sensor | None = None, gate: float | None = None) -> StepRecord:
        """Update without a warning."""
        self._check_order(sensor)
        increment, outcome, model = 0.0, Outcome.MISSING, self.model
        if sensor is not None or self._needs_sensor:
            model = sensed(model, sensor)
            self.proposal.check(model)
        observation = Observation.read(model, z, self.step)
        if observation is not None and gate is not None and observation.beyond(gate, self.predicted_observation(sensor)):
            observation, outcome = None, Outcome.GATED
        if observation is not None:
            weighed = None if self._pending is None else self._propose(observation)
            if self.step == 0 and self._untouched and not contract.jumps(model) and self._current().covariances is None:
                weighed = initial_given(observation, self.proposal, self.n_particles, self.rng, self.model.initial)
            if weighed is None:
                particles = self._current()
                weighed = (weigh if particles.gaussian is None else histories.weigh)(observation, particles)
            updated, total = weighed.normalised()
            if total > -np.inf:
                self._particles, self._pending = updated, None
                increment, outcome = total + (observation.log_offset or 0.0), Outcome.UPDATED
            elif self.on_degeneracy == "raise":
                raise DegenerateWeightsError(self.step, self.n_particles)
            else:
                outcome = Outcome.DEGENERATE
                problem = "step %d: the likelihood vanishes at all %d particles; the prediction is kept"
                _log.warning(problem, self.step, self.n_particles)
        self._settle()
        self._untouched &= outcome is not Outcome.UPDATED
        self._by_model_at_start |= self.step == 0 and sensor is None
        self.log_likelihood += increment
        particles = self._current()
        mean, covariance = particles.moments(self._circular)
        modes = None if particles.modes is None else self.mode_probabilities
        self.record = StepRecord(self.step, mean, covariance, particles.ess, self._resampled, increment, outcome, modes)
        return self.record

    def run(
        self,
        observations: Iterable[ArrayLike | None] | Iterable[Reading],
        dt: float | Sequence[float] | Array | None = None,
        controls: Sequence[Any] | Array | None = None,
        keep_particles: bool = False,
        times: ArrayLike | None = None,
        watcher: Watcher | None = None,
        start: Any = None,
        late: Late = "raise",
        gate: float | None = None,
    ) -> FilterResult:
        """Predict to, and update with, each observation in turn.

        Parameters
        ----------
        observations : iterable, length T
            One observation per step; None or NaN where it is missing. Or readings ``(time, sensor, z)`` of any sensors in
            any order; those of the same time are updates at one step, and None for a sensor is the model's own.
        dt : float or sequence of float, length T
            Time from the step before to each observation, 1 unless `times` are given; a `timedelta` counts in seconds. A
            first entry of 0 makes the first observation one of the state where the filter stands.
        controls : sequence, length T, optional
            Control input on the way to each observation.
        keep_particles : bool
            Keep all particles and weights in the result.
        times : array_like, shape (T,), optional
            In place of `dt`: the time of each observation, increasing. Durations and dates count in seconds. Dates in the
            index of a table of pandas, or in the first coordinate of an array of xarray, are taken unless `dt` is given.
        watcher : Watcher, optional
            Looks at the filter between prediction and update, and after the update, of every step.
        start : float or date, optional
            Time of the state where the filter now stands: its own `time` unless given, which is 0 at first, so that the
            first dates need it, and numbers that count from elsewhere, such as seconds since 1970.
        late : {"raise", "replay"}
            What to do with a reading whose time is before that of the one that came ahead of it: refuse it, or take it up in
            its place. See `Replay` for readings that come one by one.
        gate : float, optional
            As in `update`, for all observations.

        Raises
        ------
        DegenerateWeightsError, ValueError
            As in `update`, with the steps completed as ``result``; ValueError before the first step if lengths differ, a
            time step is not positive, times do not increase or are the same number though they differ, a reading is late, or
            the first step is over 1,000 times the median of the others and `start` is None.

        Warns
        -----
        DegeneracyWarning
            If at some steps one particle has all the weight.
        PartialObservationWarning
            If observations with NaN in some entries are left out whole.
        """
        check_flags(keep_particles=keep_particles)
        steps = series(observations, dt, controls, times, start, late, clock=self._clock)
        kept: list[tuple[Array, Array]] | None = [] if keep_particles else None
        engine: str = getattr(self.model, "series_engine", "")
        taken = engine and watcher is None and gate is None and type(self) is ParticleFilter
        result: FilterResult | None = import_module(engine).run(self, steps, kept) if taken else None
        if result is None:
            # nothing comes between a prediction and its update that could change the model
            plain = watcher is None and type(self).predict is ParticleFilter.predict
            ways = self._advance if plain else None, self._update if type(self).update is ParticleFilter.update else None
            result = run(self, steps, self.model.dim, kept, watcher, None, *ways, gate)
        self._warn_if_alone(result.steps, result.ess, result.outcomes)
        warn_of_partial(step.z for step, outcome in zip(steps, result.outcomes, strict=True) if outcome is Outcome.MISSING)
        return result

    def _warn_if_alone(self, steps: Any, ess: Any, outcomes: Sequence[Outcome]) -> None:
        """Warn of the steps whose effective sample size is about 1."""
        rows = zip(steps, ess, outcomes, strict=True)
        alone = [int(step) for step, size, outcome in rows if size < ALONE and outcome is Outcome.UPDATED]
        if alone and self.n_particles >= FEWEST_TO_WARN:
            other = "" if self.proposal.uses.observation else ", a filter that looks at the observation, such as auto"
            warning = DegeneracyWarning(
                f"one of {self.n_particles} particles has all the weight after an update; what helps: gate=0.999 against "
                f"outliers, heavier tails, more particles{other}"
            )
            warning.steps = alone
            WARN.get()(warning, stacklevel=3)

    def _held(self) -> dict[str, Any]:
        waiting = self._pending
        particles = self._current() if waiting is None else self._particles
        held = {name: getattr(particles, attribute) for name, attribute in STATE.items()}
        held |= {"resampled": self._resampled, "untouched": self._untouched}
        if waiting is not None:
            control = waiting.control
            held |= {"pending_dt": waiting.dt, "pending_control": None if control is None else kept(control)}
        return {name: value for name, value in held.items() if value is not None}

    def _taken_up(self, state: SavedState) -> dict[str, Any]:
        given, d = state.entries, self.model.dim
        rows = np.size(given["weights"])
        shapes = dict.fromkeys(STATE, (rows,)) | {"particles": (rows, d), "covariances": (rows, d, d)}
        if "gaussian" not in given and np.shape(given.get("covariances", 0)) == (1, d, d):
            shapes["covariances"] = (1, d, d)  # of all
        arrays = {STATE[name]: state.read(name, shape) for name, shape in shapes.items() if name in given}
        particles = Particles.unchecked(arrays["x"], arrays["log_weights"], n_next=self.n_particles)
        vars(particles).update(arrays)
        if not (np.abs(np.exp(particles.log_weights) - particles.weights) <= SUM_ERROR).all():
            raise ValueError("state: expected log_weights that are the logarithms of weights, got others")
        pending = None
        if "pending_dt" in given:
            control = kept(given["pending_control"])[()] if "pending_control" in given else None
            dt = as_duration("state: pending_dt", state.read("pending_dt").item())
            pending = Transition(self.model, dt, control, state.read("step").item()).snapshot()
        flags = {f"_{name}": state.read(name).item() for name in ("resampled", "untouched")}
        return {"_particles": particles, "_pending": pending, "_predicted": None, **flags}

    def predicted_observation(self, sensor: Sensor | None = None) -> tuple[Array, Array] | None:
        """Mean (k,) and covariance (k, k) of the observation at this step, noise included, between `predict` and `update`.

        None where the model, or the sensor, has no mean and covariance of the observation.
        """
        model = self.model if sensor is None else sensed(self.model, sensor)
        particles = self._current()
        one = model if particles.modes is None else contract.in_mode(model, 0)
        if not contract.has(one, contract.OBSERVED):
            return None
        if particles.gaussian is None:
            return predicted_observation(model, particles, self.step)
        belief = histories.belief_about(particles, particles.weights)
        return belief.predicted_observation(model, UNSCENTED_RULE, self.step)

    def combine(self, others: Sequence[ParticleFilter], weights: Array) -> ParticleFilter:
        """Return a filter with the union of the particles of others at the same step, each set with its weight (H,).

        The next step makes as many particles of the union as one filter has.
        """
        kept = np.flatnonzero(weights >= min(NEGLIGIBLE_SET / self.n_particles, weights.max())).tolist()
        log_weights = np.log(weights[kept] / weights[kept].sum())
        parts = [others[i]._current().reweighted(w) for i, w in zip(kept, log_weights, strict=True)]
        union = copy.copy(self)
        union._particles, union._pending, union.record = Particles.join(parts, self.n_particles), None, None
        return union

    def __repr__(self) -> str:
        shown = ("n_particles", "proposal", "resampling", "step", "log_likelihood")
        return summary_repr(self, model=self.model, dim=self.model.dim, **{name: getattr(self, name) for name in shown})

    def _current(self) -> Particles:
        """Return the particles where the filter stands: of a step that waits for the observation, those without it.

        These are drawn from where the generator stands, which is then put back: asking does not change what follows.
        """
        if self._pending is not None:
            if self._predicted is None:
                stream = self.rng.bit_generator
                before, moved = stream.state, self._propose()
                self._predicted, stream.state = (moved, stream.state), before
            predicted: Particles = self._predicted[0]
            return predicted
        if self._particles is None:
            drawn = self.proposal.initial(self.model, self.n_particles, self.rng)
            self._particles = check_particles(drawn, self.proposal, "initial", (self.n_particles, self.model.dim))
        return self._particles

    def _points(self) -> Particles:
        """Return the particles, with points in place of the Gaussians of histories."""
        particles = self._current()
        return particles if particles.gaussian is None else histories.as_points(particles, self._circular, self.step)

    def _propose(self, observation: Observation | None = None) -> Particles:
        """Return the particles of the step that waits, their weights times the likelihood, not normalised."""
        start: Any = self._particles
        proposal = histories.at_step(self.proposal, start, observation)
        particles = propose_from_scan(proposal, self._pending, start, self.rng, observation)
        return check_particles(particles, self.proposal, "propose", (self.n_particles, self.model.dim))

    def _settle(self) -> None:
        """Let a prediction that no observation has followed stand."""
        if self._pending is not None:
            self._current()
            self._particles, self.rng.bit_generator.state = self._predicted
            self._pending = None


def kept(control: Any) -> np.ndarray:
    """Return a control input as an array for a state; ValueError if it is no array, number or text."""
    array = np.array(as_any("control", control))
    if array.dtype.hasobject or hasattr(control, "to_numpy"):
        raise ValueError(f"control: expected an array, a number or a text, as a state keeps them, got {short_repr(control)}")
    return array
