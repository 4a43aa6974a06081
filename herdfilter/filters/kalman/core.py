"""The loop that all Kalman filters share: predict, update, record."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _repr
from herdfilter._checks import Array, short_repr
from herdfilter.angles import wrap
from herdfilter.filters import results
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.rules import MomentRule
from herdfilter.filters.observation import Observation
from herdfilter.filters.online import OnlineFilter
from herdfilter.filters.saved import SavedState
from herdfilter.models import contract, resolved, sensors, series, trial

# hypotheses of less weight do not change the moments of a mixture, and are dropped
VANISHING_SHARE = 1e-16


class KalmanFilter(OnlineFilter):
    """Base class of the Kalman filters. It keeps `Gaussians`, whose moments go through functions by a moment rule.

    An ensemble, and filters of models that jump, replace private methods at the end of this class. Scans are used by
    probabilistic data association without a gate (Bar-Shalom and Tse 1975): the Gaussian gets the moments of the mixture
    over all hypotheses.

    Parameters
    ----------
    model : object
        A state-space model; see `herdfilter.models.contract`.

    Attributes
    ----------
    step, record
        As in `ParticleFilter`.
    log_likelihood : float
        Log-density of all observations so far, each taken as Gaussian about its prediction.
    belief : Gaussians or Ensemble
        Distribution of the state at this step. It is never changed, but replaced.

    Examples
    --------
    >>> kf = hf.ExtendedKalmanFilter(hf.models.linear_chain(2))
    >>> for z in [[0.5, -0.2], None, [1.0, 0.3]]:
    ...     kf.predict()
    ...     record = kf.update(z)
    ...
    >>> isinstance(kf, hf.filters.kalman.KalmanFilter), kf.step, kf.mean.shape, kf.covariance.shape
    (True, 3, (2,), (2, 2))
    """

    belief: Any
    rule: MomentRule
    # A model's initial distribution needs these methods, and its transition all functions of one of these sets.
    _initial_needs: tuple[str, ...] = ("mean", "covariance")
    _transitions: tuple[tuple[str, ...], ...] = (contract.ADDITIVE, contract.FROM_NOISE)
    # one Gaussian can be truncated at bounds of the state
    _takes_bounds = True
    # those of the model, and their log-probability that no increment holds yet
    _bounds: Any = None
    _log_feasible = 0.0
    # attributes that a filter must share with one whose state it takes over
    _settings: tuple[str, ...] = ("rule",)

    def __init__(self, model: contract.Model) -> None:
        self.model = model
        self._initial_belief = self._initial()
        self.reset()

    def _check_model(self, model: contract.Model) -> None:
        user = type(self).__name__
        trial.check_state(model, user, *self._initial_needs)
        contract.require(model, user, *self._transitions)
        if not self._takes_bounds or getattr(model, "feasible", None) is not None:
            contract.refuse_limits(model, user)
        contract.require(sensors.to_check(model), user, contract.OBSERVED)

    @property
    def _circular(self) -> tuple[int, ...]:
        # the model may be replaced at any step
        return contract.circular_dims(self.model)

    @property
    def mean(self) -> Array:
        """Mean of the state, shape (d,); angles in [-pi, pi)."""
        return wrap(self._moments(self.belief)[0], self._circular)

    @property
    def covariance(self) -> Array:
        """Covariance of the state, shape (d, d)."""
        return self._moments(self.belief)[1]

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Carry the estimate to the next step, a time `dt` away in the model's unit; `control` is passed on to the model.

        Raises
        ------
        IndefiniteCovarianceError
            If the predicted covariance is not positive semi-definite; the filter stays at the step before.
        """
        dt = series.as_duration("dt", dt)
        control = series.as_control(control)
        self.belief = self._predict(resolved.Transition(self.model, dt, control, self.step + 1))
        self._bounds = getattr(self.model, "bounds", None)  # it may be another model
        self._log_feasible += self._truncated(self.belief)[1]
        self.step += 1
        self._clock = self._clock.later(dt)

    def update(
        self,
        z: ArrayLike | None,
        sensor: sensors.Sensor | None = None,
        gate: float | None = None,
    ) -> results.StepRecord:
        """Update with an observation of this step: before the first `predict`, of the initial state.

        Several updates may follow at one step, by one sensor after the other.

        Parameters
        ----------
        z : array_like of shape (k,), or None
            The observation. NaN marks missing entries; the others are used. With None, or NaN alone, the prediction stays.
        sensor, gate
            As in `ParticleFilter.update`.

        Returns
        -------
        StepRecord
            With the effective sample size NaN, except in an ensemble.

        Raises
        ------
        IndefiniteCovarianceError
            If the updated covariance, or that of the observation, is indefinite; the prediction is kept.
        RuntimeError
            If the model reads a second observation of the initial state.
        ValueError
            If moments or log-likelihood overflow; the prediction is kept.
        """
        self._check_order(sensor)
        # Everything is computed before anything is stored, so that an error leaves the prediction.
        belief = self.belief
        increment = 0.0
        observed = self._observed_by(sensor)
        observation, outcome = self._read(observed, z, sensor, gate, partial=True)
        # overflow raises an error of its own below
        with np.errstate(over="ignore", invalid="ignore"):
            if observation is not None:
                belief, increment = self._update(observation)
                self._inspection = self._inspection.after(observation)
                # that of the prediction has been counted
                increment += self._truncated(belief)[1] - self._truncated(self.belief)[1]
            increment += self._log_feasible
            mean, covariance = self._moments(belief)
            record = results.StepRecord(
                self.step,
                wrap(mean, self._circular),
                covariance,
                ess=self._ess(belief),
                resampled=False,
                log_likelihood=increment,
                outcome=outcome,
                mode_probabilities=self._probabilities(belief),
            )
        # With P_D = 1 every hypothesis needs a detection; an empty scan, or one out of reach, has the density 0.
        if observation is not None and observation.measurement.scans and increment == -np.inf:
            raise ValueError(
                f"z: expected a scan with a detection of the target, which cannot be missed, got {short_repr(z)} at step "
                f"{self.step}; give the model a detection_probability below 1"
            )
        if not all(np.isfinite(part).all() for part in (mean, covariance, increment)):
            raise overflow_error(z, self.step)
        self.belief = belief
        self._log_feasible = 0.0
        self.record = record
        self.log_likelihood += increment
        self._by_model_at_start |= self.step == 0 and sensor is None
        return record

    def predicted_observation(
        self, sensor: sensors.Sensor | None = None
    ) -> tuple[Array, Array] | None:
        """Return mean (k,) and covariance (k, k), noise included, of the observation predicted at this step.

        Call it between `predict` and `update`. It is None if neither the model nor a sensor observes.
        """
        if sensor is None and sensors.unobserved(self.model):
            return None
        return self._predicted_observation(resolved.Measurement(self._observed_by(sensor)))

    def combine(self, others: Sequence[KalmanFilter], weights: Array) -> KalmanFilter:
        """Return a filter for the mixture of others at the same step, with weights (H,).

        A Gaussian has the mean and the covariance of the mixture; an ensemble has its share of the members of each.
        """
        combined = copy.copy(self)  # shallow: beliefs are replaced, never changed
        combined.belief = self._combine([component.belief for component in others], weights)
        combined.record = None
        return combined

    def _observed_by(self, sensor: sensors.Sensor | None) -> contract.Model:
        model = sensors.sensed(self.model, sensor)
        # the model's own functions were checked when the filter was built
        if sensor is not None:
            contract.require(model, type(self).__name__, contract.OBSERVED)
        return model

    def _own_entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = {
            name: _repr.brief(getattr(self, name)) for name in self._settings
        }
        _exchange_arrays(self.belief, entries.setdefault)
        return entries | {"log_feasible": self._log_feasible}

    def _restored_attributes(self, state: SavedState) -> dict[str, Any]:
        for name in self._settings:
            state.expect(name, _repr.brief(getattr(self, name)))

        def read(name: str, value: Array) -> Array:
            # a mixture may have any number of components
            rows = np.shape(state.entries.get("weights", value))[:1]
            return state.read(name, (*rows, *value.shape[1:]))

        log_feasible = state.read("log_feasible").item()
        return {"belief": _exchange_arrays(self.belief, read), "_log_feasible": log_feasible}

    def _rewind(self) -> None:
        self.belief = self._initial_belief
        self._bounds = getattr(self.model, "bounds", None)
        self._log_feasible = self._truncated(self.belief)[1]

    def _truncated(self, belief: Any) -> tuple[Any, float]:
        """Return a belief within the bounds of the state, if there are some, and the log-probability of these."""
        return (belief, 0.0) if self._bounds is None else belief.truncated(self._bounds)

    # An ensemble, and filters of several modes, replace some of the methods below.

    def _initial(self) -> Any:
        """Check the model; return the belief at step 0."""
        self._check_model(self.model)
        return Gaussians.initial([self.model])

    def _predict(self, transition: resolved.Transition) -> Any:
        """Return the belief at the step that `transition` leads to."""
        return self._truncated(self.belief)[0].predict(transition, self.rule)

    def _update(self, observation: Observation) -> tuple[Any, float]:
        """Return the belief after an observation, and the log-density of the observation."""
        scan = observation.measurement.scans
        # A prior may be wide, and the rule's points far from the posterior: the first update is iterated (rule None).
        rule = self.rule if scan or observation.step else None
        updated, log_density, *_ = self.belief.branch(observation, rule, negligible=VANISHING_SHARE)
        return updated.merged(self._circular) if scan else updated, log_density

    def _moments(self, belief: Any) -> tuple[Array, Array]:
        """Return mean (d,) and covariance (d, d) of a belief."""
        mean, covariance = self._truncated(belief)[0].moments(self._circular)
        return mean, covariance

    def _predicted_observation(self, measurement: resolved.Measurement) -> tuple[Array, Array]:
        """Return mean (k,) and covariance (k, k) of the observation at this step, its noise included."""
        belief = self._truncated(self.belief)[0]
        mean, covariance = belief.predicted_observation(measurement, self.rule, self.step)
        return mean, covariance

    def _combine(self, beliefs: Sequence[Any], weights: Array) -> Any:
        """Return one belief for the mixture of beliefs with weights (H,) that sum to 1."""
        return Gaussians.join(beliefs, weights).merged(self._circular)

    def _ess(self, belief: Any) -> float:
        return np.nan

    def _probabilities(self, belief: Any) -> Array | None:
        """Return the probabilities of the modes, (J,), or None."""
        return None

    def __repr__(self) -> str:
        return _repr.summary_repr(
            self,
            model=self.model,
            dim=self.model.dim,
            step=self.step,
            log_likelihood=self.log_likelihood,
        )


def _exchange_arrays(
    belief: Any,
    exchange: Callable[[str, Array], Array],
    prefix: str = "",
) -> Any:
    """Return a belief with each array replaced by ``exchange(name, array)``; nested beliefs are included."""
    changes: dict[str, Any] = {}
    for field in fields(belief):
        value = getattr(belief, field.name)
        if is_dataclass(value):
            changes[field.name] = _exchange_arrays(value, exchange, f"{field.name}.")
        elif value is not None:
            changes[field.name] = exchange(prefix + field.name, value)
    return replace(belief, **changes)


def overflow_error(z: ArrayLike | None, step: int) -> ValueError:
    """Return the error for an observation after which moments or log-likelihood are not finite."""
    return ValueError(
        f"z: expected an observation that leaves moments and log-likelihood finite, got {short_repr(z)} at step {step}; "
        "choose larger units, or leave out the observation"
    )
