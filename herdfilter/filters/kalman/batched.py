"""Kalman filters of many states of one model at once, in arrays (K, d) and (K, d, d)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import LARGEST, Array, as_array, as_covariance, as_number, as_numbers
from herdfilter._covariances import covariance_factor
from herdfilter._repr import summary_repr
from herdfilter.angles import wrap
from herdfilter.filters.kalman import gaussian_filters
from herdfilter.filters.kalman.core import KalmanFilter, overflow_error
from herdfilter.filters.kalman.gaussian import GaussianBelief, linear_observation, predict_gaussians
from herdfilter.filters.kalman.rules import Linearisation, MomentRule, moment_rule
from herdfilter.filters.kalman.update import correct_gaussians
from herdfilter.filters.observation import Observation, outside
from herdfilter.filters.results import FilterResult, Outcome, StepRecord
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
from herdfilter.models.sensors import Sensor, to_check
from herdfilter.models.series import Timed, as_control, as_duration, as_objects, is_reading, own_times, series

KINDS = {one for one in vars(gaussian_filters).values() if getattr(one, "__module__", "") == gaussian_filters.__name__}
"""Filters that a batch can stand for: not subclasses, which may have methods of their own."""


def _naming_states(method: Callable[..., Any]) -> Callable[..., Any]:
    """Name the states in an error of `predict` or `update` that some have alone, and others do not."""

    @wraps(method)
    def named(self: Any, *given: Any, **options: Any) -> Any:
        if "z" in options:
            given = (options.pop("z"),)
        try:
            return method(self, *given, **options)
        except Exception as error:
            wrong = []
            for k in range(len(self)):
                try:
                    row = [rows[k : k + 1] if np.ndim(rows) else rows for rows in given[:1]]
                    method(self.take([k]), *row, *given[1:], **options)
                except Exception:
                    wrong.append(k)
            if 0 < len(wrong) < len(self):
                error.args = (f"state {wrong}: {error}",)
            raise

    return named


class BatchedKalmanFilter(Timed):
    """Kalman filters of K independent states of one model, which predict and update in single calls of NumPy.

    Each state is filtered as by `UnscentedKalmanFilter`, `ExtendedKalmanFilter` or `CubatureKalmanFilter`: to the last bit
    if the model has no angles and its functions give a state the same bits, whichever others stand beside it.

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

    _single: Any = None  # a filter of one state, if the batch stands for such
    _observed_by: Any = KalmanFilter._observed_by

    def __init__(
        self, model: contract.Model, means: ArrayLike, covariances: ArrayLike, rule: str | MomentRule = "unscented"
    ) -> None:
        contract.require(model, "BatchedKalmanFilter", ("dim", *contract.ADDITIVE), ("dim", *contract.FROM_NOISE))
        contract.require(to_check(model), "BatchedKalmanFilter", contract.OBSERVED)
        if contract.has_scans(model):
            raise TypeError(f"model: expected one without scans, got {contract.kind(model)}; see hf.tracking.LMBTracker")
        self.model, self.rule, self.step = model, moment_rule(rule), 0
        self.means = as_array("means", means, (None, model.dim)).copy()
        matrices, shape = as_covariance("covariances", covariances, model.dim), (*self.means.shape, model.dim)
        if matrices.ndim == 3 and len(matrices) != shape[0]:
            raise ValueError(f"covariances: expected one, or one for each of {shape[0]} means, got {len(matrices)}")
        self.factors = np.broadcast_to(covariance_factor(matrices), shape).copy()
        self.log_likelihoods = np.zeros(shape[0])

    @classmethod
    def of(cls, filters: Sequence[Any]) -> Self | None:
        """Return a batch that stands where filters stand; None unless they differ in nothing but their Gaussians."""
        first: Any = next(iter(filters), None)
        if type(first) not in KINDS or contract.has_scans(first.model) or len({*map(id, filters)}) < len(filters):
            return None
        alike = all(
            type(one) is type(first)
            and one.model is first.model
            and (one.step, one._clock, one.belief.rule) == (first.step, first._clock, first.belief.rule)
            for one in filters
        )
        if not alike or (not first.step and any(one._by_model_at_start for one in filters)):
            return None
        batch = cls.__new__(cls)
        batch._single = first
        batch.model, batch.rule, batch.step, batch._clock = first.model, first.belief.rule, first.step, first._clock
        batch.means = np.array([one.belief.mean for one in filters])
        batch.factors = np.array([one.belief.factor for one in filters])
        batch.log_likelihoods = np.array([one.log_likelihood for one in filters])
        return batch

    def __len__(self) -> int:
        return len(self.means)

    @property
    def covariances(self) -> Array:
        """Covariances of the states, shape (K, d, d)."""
        return self.factors @ self.factors.mT

    def __repr__(self) -> str:
        return summary_repr(self, model=self.model, states=len(self), dim=self.means.shape[1], step=self.step)

    def take(self, rows: Any) -> Self:
        """Return a batch of chosen states, by an index of NumPy such as integers (n,), which may be repeated."""
        chosen = copy.copy(self)
        for name in ("means", "factors", "log_likelihoods"):
            setattr(chosen, name, getattr(self, name)[rows])
        return chosen

    def join(self, other: Self) -> Self:
        """Return a batch of these states and those of another batch at the same step."""
        both = copy.copy(self)
        for name in ("means", "factors", "log_likelihoods"):
            setattr(both, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        return both

    @_naming_states
    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Carry all states to the next step; arguments and errors are those of `KalmanFilter.predict`."""
        dt, control = as_duration("dt", dt), as_control(control)
        transition = Transition(self.model, dt, control, self.step + 1)
        means, self.factors = predict_gaussians(transition, self.means, self.factors, self.rule)
        self.means, self.step, self._clock = transition.wrapped(means), self.step + 1, self._clock.later(dt)

    @_naming_states
    def update(
        self, z: ArrayLike | None, sensor: Sensor | None = None, gate: float | None = None
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
        outcomes, log_densities, model = np.full(len(self), Outcome.MISSING), np.zeros(len(self)), self._observed_by(sensor)
        rows = as_numbers("z", np.full(len(self), np.nan) if z is None else z, (len(self), None), missing=True)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) != len(self):
            raise ValueError(f"z: expected a row for each of {len(self)} states, got shape {rows.shape} at step {self.step}")
        for row in rows[(np.abs(rows) > LARGEST).any(axis=1)]:
            Observation.read(model, row, self.step)  # raises its error
        there = ~np.isnan(rows)
        if not there.any():
            return log_densities, outcomes
        predicted = self._linear_observations(sensor)
        Observation(model, rows[0], self.step).expect(predicted[0].shape[1:], "observation_mean")
        means, factors = self.means.copy(), self.factors.copy()
        for pattern in there[:1] if there.all() else np.unique(there[there.any(axis=1)], axis=0):
            who = np.flatnonzero((there == pattern).all(axis=1))  # all lack the same entries
            if gate is not None:
                share = as_number("gate", gate, "a probability such as 0.999", lambda p: 0 < p < 1)
                residuals, slopes, noises = self._seen(model, who, rows[who], predicted)
                beyond = outside(residuals, slopes @ slopes.mT + noises, share, self.step)
                outcomes[who[beyond]] = Outcome.GATED
                who = who[~beyond]
            if len(who):
                means[who], factors[who], log_densities[who] = self.corrected(model, who, rows[who], predicted)
                outcomes[who] = Outcome.UPDATED
        self.means, self.factors, self.log_likelihoods = means, factors, self.log_likelihoods + log_densities
        return log_densities, outcomes

    def predicted_observations(self, sensor: Sensor | None = None) -> tuple[Array, Array]:
        """Return means (K, k) and covariances (K, k, k), noise included, of the observations predicted at this step."""
        means, slopes, noises = self._linear_observations(sensor)
        return means, slopes @ slopes.mT + noises

    def _linear_observations(self, sensor: Sensor | None) -> Linearisation:
        return linear_observation(self._observed_by(sensor), self.means, self.factors, self.rule, self.step)

    def corrected(self, model: contract.Model, who: np.ndarray, z: Array, predicted: Any) -> tuple[Array, Array, Array]:
        """Return means, factors and log-densities (n,) of states `who` (n,), each given its row of z (n, k).

        All rows lack the same entries. `predicted` is what the rule takes the observations of all states by `model` for.
        """
        means, factors = self.means[who], self.factors[who]
        with np.errstate(over="ignore", invalid="ignore"):  # named below
            if self.step == 0:  # iterated, each until its own end
                given = zip(means, factors, z, strict=True)
                ends = [GaussianBelief(m, F, self.rule).update(Observation(model, row, 0, None)) for m, F, row in given]
                ended = zip(*((one.mean, one.factor, log_density) for one, log_density in ends), strict=True)
                means, factors, log_densities = map(np.array, ended)
            else:
                seen = self._seen(model, who, z, predicted)
                means, factors, log_densities = correct_gaussians(means, factors, *seen, self.step)
        finite = np.isfinite(means).all(axis=1) & np.isfinite(factors).all(axis=(1, 2)) & np.isfinite(log_densities)
        if not finite.all():
            raise overflow_error(z[int(np.argmin(finite))], self.step)
        return wrap(means, contract.circular_dims(self.model)), factors, log_densities

    def _seen(self, model: contract.Model, who: np.ndarray, z: Array, predicted: Any) -> tuple[Array, Array, Array]:
        """Return residuals, slopes and noises of the entries that are there."""
        residuals = wrap(z - predicted[0][who], contract.observation_circular(model, z.shape[1]))
        slopes, noises = predicted[1][who], predicted[2] if len(predicted[2]) == 1 else predicted[2][who]
        there = ~np.isnan(z).any(axis=0)
        if there.all():
            return residuals, slopes, noises
        return residuals[:, there], slopes[:, there], noises[:, there][:, :, there]

    def run(
        self,
        observations: ArrayLike,
        dt: float | Sequence[float] | Array | None = None,
        controls: Sequence[Any] | Array | None = None,
        times: ArrayLike | None = None,
        gate: float | None = None,
        lengths: ArrayLike | None = None,
    ) -> list[FilterResult]:
        """Predict to each row of observations (T, K, k) in turn, and update with it; return the result of each state.

        With `lengths` (K,), in descending order, each state stops after as many steps, and then leaves the batch. The other
        arguments, and errors, are those of `KalmanFilter.run`; after an error all states are as before.
        """
        return self._run(observations, lengths, gate, dt=dt, controls=controls, times=times)[0]

    def _run(
        self, observations: ArrayLike, lengths: ArrayLike | None, gate: float | None = None, **timing: Any
    ) -> tuple[list[FilterResult], Array]:
        """Do as `run`; return also the factors (K, T, d, d)."""
        z = as_numbers("observations", observations, (None, len(self), None), missing=True)
        z = z[:, :, None] if z.ndim == 2 else z
        if z.ndim != 3 or z.shape[1] != len(self):
            raise ValueError(f"observations: expected shape (T, {len(self)}, k), got {z.shape}")
        (T, count), d, steps = z.shape[:2], self.means.shape[1], series(z, **timing, clock=self._clock)
        ends = as_array("lengths", np.full(count, T) if lengths is None else lengths, (count,)).astype(int)
        if (np.diff(ends, prepend=T) > 0).any():
            raise ValueError(f"lengths: expected numbers up to {T} in descending order, got {ends.tolist()}")
        means, factors = np.empty((count, T, d)), np.empty((count, T, d, d))
        log_densities, outcomes = np.empty((count, T)), np.empty((count, T), dtype=object)
        numbers, times, going = np.empty(T, dtype=int), as_objects([step.time for step in steps]), self.take(slice(None))
        for t, step in enumerate(steps):
            going = going.take(slice(np.count_nonzero(ends > t)))
            if step.dt > 0:
                going.predict(step.dt, step.control)
            going._clock, numbers[t], alive = step.clock, going.step, slice(len(going))
            log_densities[alive, t], outcomes[alive, t] = going.update(z[t, alive], None, gate)
            means[alive, t], factors[alive, t] = going.means, going.factors
        vars(self).update(vars(going))
        circular, positions = contract.circular_dims(self.model), getattr(self.model, "position_dims", ())
        results = []
        for k, n in enumerate(ends.tolist()):
            own = means[k, :n].copy(), factors[k, :n] @ factors[k, :n].mT, np.full(n, np.nan), np.zeros(n, dtype=bool)
            rest = log_densities[k, :n].copy(), tuple(outcomes[k, :n]), None, None, numbers[:n].copy(), times[:n].copy()
            results.append(FilterResult(*own, *rest, circular=circular, position_dims=positions))  # type: ignore[arg-type]
        return results, factors


def run_together(filters: Sequence[Any], tracks: Sequence[Any], options: Mapping[str, Any]) -> list[FilterResult] | None:
    """Run Kalman filters on a track each, in one batch; None if filters or tracks do not fit together.

    Filters and results are as after runs one by one; after an error the filters are as before.
    """
    batch = BatchedKalmanFilter.of(filters)
    timing = {name: value for name, value in options.items() if name in ("dt", "controls", "times")}
    if batch is None or {*options} - {*timing, "gate"} or not all(map(_is_plain, tracks)):
        return None
    z = [as_numbers("observations", track, (None, None), missing=True) for track in tracks]
    z = [rows[:, None] if rows.ndim == 1 else rows for rows in z]
    lengths, sizes = np.array([len(rows) for rows in z]), {rows.shape[1:] for rows in z if len(rows)}
    ragged = len(set(lengths.tolist())) > 1
    if len(sizes) != 1 or (ragged and any(np.ndim(value) for value in timing.values())):
        return None
    order = np.argsort(-lengths, kind="stable")
    padded = np.full((lengths.max(), len(z), *sizes.pop()), np.nan)
    for place, k in enumerate(order):
        padded[: lengths[k], place] = z[k]
    found, factors = batch.take(order)._run(padded, lengths[order], **options)
    places = np.argsort(order)
    results = [found[place] for place in places]
    clocks = [step.clock for step in series(padded, **timing, clock=batch._clock)]
    for one, result, place in zip(filters, results, places, strict=True):
        if len(result):
            mean, covariance, increments = result.means[-1], result.covariances[-1], result.log_likelihoods.tolist()
            one._by_model_at_start |= result.steps[0] == 0
            one.step, one._clock = int(result.steps[-1]), clocks[len(result) - 1]
            one.belief = GaussianBelief(mean, factors[place, len(result) - 1], batch.rule)
            one.log_likelihood = sum(increments, one.log_likelihood)
            one.record = StepRecord(one.step, mean, covariance, np.nan, False, increments[-1], result.outcomes[-1])
    return results


def _is_plain(track: Any) -> bool:
    """Return True if the observations of a track have no times of their own."""
    readings = isinstance(track, list | tuple) and any(is_reading("observations", entry) for entry in track)
    return not (readings or isinstance(track, Mapping) or own_times(track) is not None)


def merge_by_owner(
    means: Array, factors: Array, weights: Array, owners: np.ndarray, circular: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return mean and factor of the mixture of each owner's Gaussians: `merged_gaussian`, for many at once.

    The P Gaussians are sorted by their owners (P,), and the weights of each owner's sum to 1.
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    counts = np.diff(starts, append=len(owners))
    place, share, x = np.repeat(np.arange(len(starts)), counts), weights[:, None], means.copy()
    for i in circular:
        sine, cosine = (np.add.reduceat(weights * wave(means[:, i]), starts) for wave in (np.sin, np.cos))
        reference = np.arctan2(sine, cosine)[place]
        x[:, i] = reference + (x[:, i] - reference + np.pi) % (2 * np.pi) - np.pi
    merged = np.add.reduceat(share * x, starts)
    centred = x - merged[place]
    spread = np.add.reduceat(share[:, :, None] * (factors @ factors.mT + centred[:, :, None] * centred[:, None]), starts)
    merged, factor, alone = wrap(merged, circular), covariance_factor(spread), counts == 1
    merged[alone], factor[alone] = means[starts[alone]], factors[starts[alone]]
    return merged, factor
