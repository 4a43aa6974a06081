"""Base of the filters of one state: the loop over a series, and a state that can be saved as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _repr
from herdfilter._checks import check_flags
from herdfilter.filters import results, saved
from herdfilter.filters.forecast import Forecaster
from herdfilter.filters.inspection import InputWarning, Inspection
from herdfilter.filters.observation import Observation
from herdfilter.filters.series import Controls, TimeSteps, Watcher, run
from herdfilter.models import contract, sensors, series, trial

STATE_VERSION = 1  # of the state of a filter, to be raised when its entries change


class OnlineFilter(Forecaster, series.Timed):
    """Base of the filters that predict and update: `ParticleFilter`, and `KalmanFilter` of all kinds."""

    model: contract.Model
    step: int
    log_likelihood: float
    record: results.StepRecord | None
    rng: Any = None  # the generator of a filter that draws
    predicted_observation: Any
    has_weights = False  # True for a filter of weighted particles, which a run can keep
    # True once the model's own functions have read an observation of the initial state
    _by_model_at_start = False

    _repr_html_ = _repr.html_repr

    @property
    def state(self) -> dict[str, np.ndarray]:
        """The filter's present state as plain arrays: all that `restore` needs to continue with the same bits.

        Particles and weights, or the moments of a Kalman filter; step, time and log-likelihood; the state of the random
        generator; a prediction that waits for its observation; the kinds of filter and proposal, and the version of this
        list. ``np.savez(path, **pf.state)`` writes it to disk. The model and the options of the parts are not in it, nor
        are `record` and the ancestors of particles. ValueError if a prediction waits whose control input is not an array,
        number or text.
        """
        clock = self._clock
        entries = {
            "version": STATE_VERSION,
            "filter": self._kind(),
            **self._own_entries(),
            "step": self.step,
            "log_likelihood": self.log_likelihood,
            "time": clock.since,
            "origin": np.datetime64(clock.origin),
            "zoned": clock.zoned,
            "by_model_at_start": self._by_model_at_start,
        }
        # A filter has one generator, or none.
        for _, numbers in saved.FilterState.of(self).streams:
            entries["generator"] = saved.as_text(numbers)
        # A list of the names, so that `restore` notices arrays that were lost on the way.
        entries["entries"] = " ".join(entries)
        return {name: np.array(value) for name, value in entries.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over the state of a filter of the same kind and size.

        Parameters
        ----------
        state : mapping
            The attribute `state` of that filter, or ``np.load(path)`` of it. The random generator is set as well.

        Raises
        ------
        TypeError, ValueError
            If it is not the state of such a filter, or an array has a wrong type, shape or meaning: weights that do not sum
            to 1, a covariance that is indefinite. This filter is then unchanged.
        """
        stored = saved.SavedState(state, self.model)
        stored.expect("version", STATE_VERSION)
        stored.expect("filter", self._kind())
        now = saved.FilterState.of(self)
        # Everything is read and checked before anything changes.
        changes = self._restored_attributes(stored)
        names = "step", "log_likelihood", "time", "zoned", "by_model_at_start"
        step, total, since, zoned, by_model = (stored.read(name).item() for name in names)
        origin = stored.read("origin")[()]
        clock = series.Clock(None if np.isnat(origin) else origin, since, zoned)
        changes |= {
            "step": step,
            "log_likelihood": total,
            "record": None,
            "_clock": clock,
            "_by_model_at_start": by_model,
        }
        streams = [(stream, stored.generator(stream)) for stream, _ in now.streams]
        saved.FilterState(now.attributes | changes, streams).give_back(self)

    def _kind(self) -> str:
        """Describe what a filter must have in common with one whose state it takes over."""
        n_particles = getattr(self, "n_particles", None)
        proposal = getattr(self, "proposal", None)
        return _repr.summary_repr(
            self, n_particles=n_particles, proposal=proposal, of=getattr(proposal, "proposal", None)
        )

    def reset(self) -> None:
        """Go back to the initial state, step 0 and time 0; the random generator is not set back."""
        self.step = 0
        self.log_likelihood = 0.0
        self.record = None
        self._clock = series.Clock()
        self._inspection = Inspection()
        self._by_model_at_start = False
        self._rewind()

    def run(
        self,
        observations: Iterable[ArrayLike | None] | Iterable[series.Reading],
        dt: TimeSteps | None = None,
        controls: Controls | None = None,
        keep_particles: bool = False,
        times: ArrayLike | None = None,
        watcher: Watcher | None = None,
        start: Any = None,
        late: series.Late = "raise",
        gate: float | None = None,
    ) -> results.FilterResult:
        """Predict to, and update with, each observation in turn.

        Parameters
        ----------
        observations : iterable, length T
            One observation per step; None or NaN where it is missing. Or readings ``(time, sensor, z)`` of any sensors in
            any order; those of the same time are updates at one step, and None for a sensor is the model's own.
        dt : float or sequence of float, length T
            Time from the step before to each observation, 1 unless `times` are given; a `timedelta` counts in seconds. With
            a first entry of 0 the first observation is one of the filter's present state.
        controls : sequence, length T, optional
            Control input on the way to each observation.
        keep_particles : bool
            Keep all particles, weights and ancestors in the result, if the filter has any.
        times : array_like, shape (T,), optional
            In place of `dt`: the time of each observation, increasing. Durations and dates count in seconds. Dates in the
            index of a table of pandas, or in the first coordinate of an array of xarray, are taken unless `dt` is given.
        watcher : Watcher, optional
            Looks at the filter in every step, between prediction and update and after the update.
        start : float or date, optional
            Time of the filter's present state; by default its `time`, 0 at first. It is needed where the first times are
            dates, or numbers with another origin such as seconds since 1970.
        late : {"raise", "replay"}
            What to do with readings that are not in the order of their times: refuse them, or sort them. See `Replay` for
            readings that arrive one by one.
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
        start = self._clock if start is None else start
        steps = series.series(observations, dt, controls, times, start, late)
        with results.hold_warnings(UserWarning) as warnings:
            result: results.FilterResult | None = None
            # A model of compiled functions names the module of a compiled loop; None if the loop cannot run this filter.
            engine = getattr(self.model, "series_engine", "")
            try:
                if engine and watcher is None and gate is None:
                    result = import_module(engine).run(self, steps, keep_particles)
                if result is None:
                    result = run(self, steps, keep_particles, watcher, gate)
            except ValueError as error:
                # as many entries are expected as there are readings
                if str(error).startswith(f"z: expected shape ({len(steps)},)"):
                    error.args = (f"{error}; got {len(steps)} readings: is the array transposed?",)
                raise
        # readings, and the index of a table, have times
        unset = dt is None and {(step.dt, step.sensor) for step in steps} == {(1.0, None)}
        if unset and times is None and getattr(self.model, "takes_dt", False):
            warnings.append(
                InputWarning(
                    "dt: expected one, or times, as the model's f takes dt, got None, which stands for 1; if that is right, "
                    "give dt=1.0"
                )
            )
        results.warn_of_run(warnings)
        return result

    def _check_order(self, sensor: sensors.Sensor | None) -> None:
        """Raise RuntimeError if the model reads a second observation of the initial state: `predict` was forgotten."""
        if self.step == 0 and sensor is None and self._by_model_at_start:
            raise RuntimeError(
                "update: expected one observation of the initial state, step 0, got a second; call predict between them"
            )

    def _read(
        self, model: Any, z: Any, sensor: sensors.Sensor | None, gate: float | None, **options: bool
    ) -> tuple[Observation | None, results.Outcome]:
        """Return the observation, None if it is missing or outside the gate, and the outcome of such an update."""
        observation = Observation.read(model, z, self.step, **options)
        if observation is None:
            return None, results.Outcome.MISSING
        if gate is not None and observation.beyond(gate, self.predicted_observation(sensor)):
            return None, results.Outcome.GATED
        return observation, results.Outcome.UPDATED

    def _observed_by(self, sensor: sensors.Sensor | None) -> contract.Model:
        """Return the model that reads an observation: the filter's own, or the same with the functions of a sensor."""
        return sensors.sensed(self.model, sensor)

    def _checked_model(self, model: contract.Model) -> contract.Model:
        """Check state and likelihood; return the model for a proposal to check, with a stand-in for sensors to come."""
        observed_model = sensors.to_check(model)
        modes = range(len(model.models)) if contract.jumps(model) else ()
        for checked_model in (*(contract.in_mode(model, mode) for mode in modes), model):
            trial.check_state(checked_model, type(self).__name__, "sample")
        contract.require_likelihood(observed_model, type(self).__name__)
        return observed_model

    def _settle(self) -> None:
        """Make a prediction final that waits for its observation."""

    def _own_entries(self) -> dict[str, Any]:
        """Return the entries of `state` that this kind of filter adds."""
        raise NotImplementedError

    def _restored_attributes(self, state: saved.SavedState) -> dict[str, Any]:
        """Return the attributes that these entries of a state stand for; ValueError if they do not fit."""
        raise NotImplementedError

    def _rewind(self) -> None:
        """Go back to the initial distribution."""
        raise NotImplementedError
