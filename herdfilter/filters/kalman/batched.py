"""Kalman filters of many states of one model in arrays (K, d) and (K, d, d)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import LARGEST, Array, as_array, as_covariance, as_numbers
from herdfilter._covariances import covariance_factor
from herdfilter._repr import summary_repr
from herdfilter.filters.kalman.core import KalmanFilter, overflow_error
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.gaussian_filters import ONE_GAUSSIAN
from herdfilter.filters.kalman.rules import Linearisation, MomentRule, moment_rule
from herdfilter.filters.kalman.update import observed_part
from herdfilter.filters.observation import Observation, ObservationRows, outside
from herdfilter.filters.results import FilterResult, Outcome, StepRecord
from herdfilter.filters.series import Controls, TimeSteps
from herdfilter.models import contract, resolved, sensors, series


def _naming_states(method: Callable[..., Any]) -> Callable[..., Any]:
    """Name the failing states in an error of `predict` or `update`, if they are some but not all."""

    @wraps(method)
    def named(self: Any, *args: Any, **options: Any) -> Any:
        # as a positional argument, so that its rows can be taken below
        if "z" in options:
            args = (options.pop("z"),)
        try:
            return method(self, *args, **options)
        except Exception as error:
            # Each state alone, on a copy: this costs time, but only after an error.
            failing = []
            for k in range(len(self)):
                try:
                    row = [rows[k : k + 1] if np.ndim(rows) else rows for rows in args[:1]]
                    method(self.take([k]), *row, *args[1:], **options)
                except Exception:
                    failing.append(k)
            if 0 < len(failing) < len(self):
                error.args = (f"state {failing}: {error}",)
            raise

    return named


class BatchedKalmanFilter(series.Timed):
    """Kalman filters of K independent states of one model, which predict and update in single calls of NumPy.

    Each state is filtered as by `UnscentedKalmanFilter`, `ExtendedKalmanFilter` or `CubatureKalmanFilter`: bit by bit
    if the model has no angles and its functions return the same bits for a state whichever rows are beside it.

    Parameters
    ----------
    model : object
        As for `ExtendedKalmanFilter`; it needs no ``initial``.
    means : array_like, shape (K, d)
        Means of the states at step 0.
    covariances : array_like, shape (K, d, d), or (d, d) if all states share one
    rule : {"unscented", "extended", "cubature"} or MomentRule
        The moments are those of the Kalman filter of that name.

    Attributes
    ----------
    means, covariances : ndarray, shapes (K, d) and (K, d, d)
        Of the states at this step; angles in [-pi, pi).
    log_likelihoods : ndarray, shape (K,)
        Log-densities of all observations of each state so far.
    step : int

    Examples
    --------
    Three targets on a line, of which the second is not seen in the first step:

    >>> walk = hf.models.ConstantVelocity(0.01, 0.5, initial_mean=[0, 1], initial_covariance=np.eye(2))
    >>> kf = hf.BatchedKalmanFilter(walk, means=[[0, 1], [10, 1], [20, -1]], covariances=np.eye(2))
    >>> for z in [[1.1, np.nan, 18.8], [2.1, 12.2, 17.9]]:
    ...     kf.predict()
    ...     log_densities, outcomes = kf.update(z)
    ...
    >>> kf.means[:, 0].round(1).tolist(), kf.covariances.shape
    ([2.1, 12.2, 17.9], (3, 2, 2))
    """

    # one of the filters that the batch replaces, if it was made from some
    _single: Any = None
    _observed_by: Any = KalmanFilter._observed_by
    _predict: Any = KalmanFilter._predict
    _truncated: Any = KalmanFilter._truncated
    _bounds: Any = None
    _log_feasible = 0.0
    predict: Any = _naming_states(KalmanFilter.predict)

    def __init__(
        self,
        model: contract.Model,
        means: ArrayLike,
        covariances: ArrayLike,
        rule: str | MomentRule = "unscented",
    ) -> None:
        contract.require(
            model, "BatchedKalmanFilter", ("dim", *contract.ADDITIVE), ("dim", *contract.FROM_NOISE)
        )
        contract.require(sensors.to_check(model), "BatchedKalmanFilter", contract.OBSERVED)
        contract.refuse_limits(model, "BatchedKalmanFilter")
        if contract.has_scans(model):
            raise TypeError(
                f"model: expected one without scans, got {contract.kind(model)}; see hf.tracking.LMBTracker"
            )
        self.model = model
        self.rule = moment_rule(rule)
        self.step = 0
        x = as_array("means", means, (None, model.dim)).copy()
        matrices = as_covariance("covariances", covariances, model.dim)
        if matrices.ndim == 3 and len(matrices) != len(x):
            raise ValueError(
                f"covariances: expected one, or one for each of {len(x)} means, got {len(matrices)}"
            )
        factors = np.broadcast_to(covariance_factor(matrices), (*x.shape, model.dim)).copy()
        # Independent states have the weight 1 each: they are no mixture.
        self.belief = Gaussians(np.ones(len(x)), x, factors)
        self.log_likelihoods: Array = np.zeros(len(x))

    @classmethod
    def of(cls, filters: Sequence[Any]) -> Self | None:
        """Return a batch with the states of filters; None unless they differ in nothing but their Gaussians."""
        kinds = {*map(type, filters)}
        # subclasses are excluded, as they may override methods
        if len(kinds) != 1 or not kinds <= {*ONE_GAUSSIAN}:
            return None
        first = filters[0]
        if (
            contract.has_scans(first.model)
            or contract.limited(first.model)
            or len({*map(id, filters)}) < len(filters)
            or len({(id(kf.model), kf.rule, kf.step, kf._clock) for kf in filters}) > 1
            # a second observation is an error of its own
            or (not first.step and any(kf._by_model_at_start for kf in filters))
        ):
            return None
        # without `__init__`: all has been checked by the filters
        batch = cls.__new__(cls)
        batch._single = first
        batch.model = first.model
        batch.rule = first.rule
        batch.step = first.step
        batch._clock = first._clock
        batch.belief = Gaussians.join([kf.belief for kf in filters])
        batch.log_likelihoods = np.array([kf.log_likelihood for kf in filters])
        return batch

    def __len__(self) -> int:
        return len(self.belief)

    @property
    def means(self) -> Array:
        """Means of the states, shape (K, d)."""
        return self.belief.means

    @property
    def covariances(self) -> Array:
        """Covariances of the states, shape (K, d, d)."""
        return self.belief.covariances

    def __repr__(self) -> str:
        return summary_repr(
            self, model=self.model, states=len(self), dim=self.means.shape[1], step=self.step
        )

    def take(self, rows: Any) -> Self:
        """Return a batch of the states at an index of NumPy, such as integers (n,), which may be repeated."""
        return self._standing_at(self.belief.take(rows), self.log_likelihoods[rows])

    def join(self, other: Self) -> Self:
        """Return a batch of these states and those of another batch at the same step."""
        log_likelihoods = np.concatenate([self.log_likelihoods, other.log_likelihoods])
        return self._standing_at(Gaussians.join([self.belief, other.belief]), log_likelihoods)

    def _standing_at(self, states: Gaussians, log_likelihoods: Array) -> Self:
        batch = copy.copy(self)
        batch.belief = states
        batch.log_likelihoods = log_likelihoods
        return batch

    @_naming_states
    def update(
        self, z: ArrayLike | None, sensor: sensors.Sensor | None = None, gate: float | None = None
    ) -> tuple[Array, np.ndarray]:
        """Update each state with its own observation of this step.

        Parameters
        ----------
        z : array_like, shape (K, k), or (K,) if k is 1, or None
            The observations. NaN marks missing entries; a state whose row is NaN keeps its prediction.
        sensor, gate
            As in `ParticleFilter.update`; each state has its own gate.

        Returns
        -------
        log_densities : ndarray, shape (K,)
            Increments of `log_likelihoods`, 0 where no observation was used.
        outcomes : ndarray of Outcome, shape (K,)

        Raises
        ------
        IndefiniteCovarianceError, TypeError, ValueError
            As in `KalmanFilter.update`, with the states that have the error; all are then as before.
        """
        count = len(self)
        measurement = resolved.Measurement(self._observed_by(sensor))
        rows = as_numbers(
            "z", np.full(count, np.nan) if z is None else z, (count, None), missing=True
        )
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) != count:
            raise ValueError(
                f"z: expected a row for each of {count} states, got shape {rows.shape} at step {self.step}"
            )
        for row in rows[(np.abs(rows) > LARGEST).any(axis=1)]:
            Observation.read(measurement, row, self.step)  # raises its error
        used: Any = (~np.isnan(rows)).any(axis=1)
        outcomes = np.full(count, Outcome.MISSING)
        outcomes[used] = Outcome.UPDATED
        if not used.any():
            return np.zeros(count), outcomes
        linear = self.belief.observe(measurement, self.rule, self.step)
        observations = ObservationRows(measurement, rows, self.step)
        if gate is not None:
            residuals, slopes, noises = observed_part(observations, linear)
            beyond = used & outside(residuals, slopes @ slopes.mT + noises, gate, self.step)
            outcomes[beyond] = Outcome.GATED
            used &= ~beyond
            # what lies outside must not overflow below
            observations.z = np.where(used[:, None], rows, np.nan)
        states, log_densities = self._corrected(self.belief, observations, linear)
        if not used.all():
            # the others keep their prediction to the last bit
            means = np.where(used[:, None], states.means, self.means)
            factors = np.where(used[:, None, None], states.factors, self.belief.factors)
            states = Gaussians(states.weights, means, factors)
            log_densities = np.where(used, log_densities, 0.0)
        self.belief = states
        self.log_likelihoods = self.log_likelihoods + log_densities
        return log_densities, outcomes

    def _corrected(
        self, prior: Gaussians, observations: ObservationRows, linear: Linearisation
    ) -> tuple[Gaussians, Array]:
        """Update states with an observation each, linearised in `linear`; return them and the log-densities."""
        # overflow raises an error of its own below
        with np.errstate(over="ignore", invalid="ignore"):
            states, log_densities = prior.update(
                observations, self.rule if self.step else None, linear
            )
        finite = np.isfinite(states.means).all(axis=1) & np.isfinite(log_densities)
        finite &= np.isfinite(states.factors).all(axis=(1, 2))
        if not finite.all():
            raise overflow_error(observations.z[int(np.argmin(finite))], self.step)
        return states, log_densities

    def run(
        self,
        observations: ArrayLike,
        dt: TimeSteps | None = None,
        controls: Controls | None = None,
        times: ArrayLike | None = None,
        gate: float | None = None,
    ) -> list[FilterResult]:
        """Predict to each row of observations (T, K, k) in turn, and update with it; return the result of each state.

        The arguments, and errors, are those of `KalmanFilter.run`; after an error all states are as before.
        """
        return self._run(observations, None, gate, dt=dt, controls=controls, times=times)[0]

    def _run(
        self,
        observations: ArrayLike,
        lengths: np.ndarray | None,
        gate: float | None = None,
        **timing: Any,
    ) -> tuple[list[FilterResult], list[Self]]:
        """Do as `run`, for tracks of different length; return also a batch of the states that ended at each step.

        `lengths` (K,), in descending order, are the numbers of steps of the tracks, so that the last states leave first;
        None if all have T. The returned batches are in the order of time, the last one with the states that went on to T.
        """
        z = as_numbers("observations", observations, (None, len(self), None), missing=True)
        z = z[:, :, None] if z.ndim == 2 else z
        if z.ndim != 3 or z.shape[1] != len(self):
            raise ValueError(f"observations: expected shape (T, {len(self)}, k), got {z.shape}")
        steps = series.series(z, **timing, start=self._clock)
        T, count, _ = z.shape
        d = self.means.shape[1]
        # Rows of results are filled for all states at each step, and divided among the states at the end.
        ends = np.full(count, T) if lengths is None else lengths
        numbers = self.step + np.cumsum([step.dt > 0 for step in steps], dtype=int)
        times = series.as_objects([step.time for step in steps])
        means = np.empty((count, T, d))
        covariances = np.empty((count, T, d, d))
        log_densities = np.empty((count, T))
        outcomes = np.empty((count, T), dtype=object)
        # a copy, so that an error leaves this batch as it was
        active = self.take(slice(None))
        ended = []
        for t, step in enumerate(steps):
            # `ends` descends: the states that go on are the first rows.
            alive = np.count_nonzero(ends > t)
            ended.append(active.take(slice(alive, None)))
            active = active.take(slice(alive))
            if step.dt > 0:
                active.predict(step.dt, step.control)
            active._clock = step.clock
            log_densities[:alive, t], outcomes[:alive, t] = active.update(z[t, :alive], None, gate)
            means[:alive, t] = active.means
            covariances[:alive, t] = active.covariances
        # Only now, after all steps have succeeded.
        vars(self).update(vars(active))
        results = [
            FilterResult(
                means[k, :n],
                covariances[k, :n],
                np.full(n, np.nan),
                np.zeros(n, dtype=bool),
                log_densities[k, :n],
                tuple(outcomes[k, :n]),
                steps=numbers[:n].copy(),
                times=times[:n].copy(),
                circular=contract.circular_dims(self.model),
                position_dims=contract.position_dims(self.model),
            )
            for k, n in enumerate(ends.tolist())
        ]
        return results, [*ended, active]

    def hand_back(self, filters: Sequence[Any]) -> None:
        """Write the K states back into K filters."""
        for k, online in enumerate(filters):
            online.step = self.step
            online._clock = self._clock
            online.belief = self.belief.take(slice(k, k + 1))
            online.log_likelihood = float(self.log_likelihoods[k])


def run_together(
    filters: Sequence[Any],
    tracks: Sequence[Any],
    options: Mapping[str, Any],
) -> list[FilterResult] | None:
    """Run Kalman filters on one track each, in one batch; None if filters or tracks cannot share a batch.

    Filters and results are as after runs one by one; after an error the filters are unchanged.
    """
    batch = BatchedKalmanFilter.of(filters)
    # Options of single filters, such as a watcher, and tracks with times of their own need one run each.
    known_options = options.keys() <= {"dt", "controls", "times", "gate"}
    if batch is None or not known_options or any(map(_has_times, tracks)):
        return None
    z = [as_numbers("observations", track, (None, None), missing=True) for track in tracks]
    z = [rows[:, None] if rows.ndim == 1 else rows for rows in z]
    lengths = np.array([len(rows) for rows in z])
    # Time steps or controls given one by one fit tracks of one length only.
    sizes = {rows.shape[1:] for rows in z if len(rows)}
    if len(sizes) != 1 or (np.ptp(lengths) and any(np.ndim(value) for value in options.values())):
        return None
    # Longest tracks first: the tracks that have ended are then always the last rows of the batch.
    order = np.argsort(-lengths, kind="stable")
    padded = np.full((lengths.max(), len(z), *sizes.pop()), np.nan)
    for row, k in enumerate(order):
        padded[: lengths[k], row] = z[k]
    results, ended = batch.take(order)._run(padded, lengths[order], **options)
    # Put the filters where single runs would have left them: record, belief, step and clock.
    in_order = [filters[k] for k in order]
    for online, result in zip(in_order, results, strict=True):
        if len(result):
            steps: Any = result.steps
            online.record = StepRecord(
                int(steps[-1]),
                result.means[-1],
                result.covariances[-1],
                ess=np.nan,
                resampled=False,
                log_likelihood=float(result.log_likelihoods[-1]),
                outcome=result.outcomes[-1],
            )
            online._by_model_at_start |= steps[0] == 0
    for part in ended:  # the last filters first
        part.hand_back([in_order.pop() for _ in part.means][::-1])
    return [results[row] for row in np.argsort(order)]  # back in the order of the tracks


def _has_times(track: Any) -> bool:
    """Return True if a track has times of its own: in its index, in its readings, or beside its observations."""
    if isinstance(track, list | tuple):
        return any(series.is_reading("observations", entry) for entry in track)
    return isinstance(track, Mapping) or series.own_times(track) is not None
