"""Kalman filters of many states of one model at once, in arrays (K, d) and (K, d, d)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv

from herdfilter._checks import (
    LARGEST,
    Array,
    as_array,
    as_covariance,
    as_number,
    as_numbers,
    check_count,
    short_repr,
    unmasked,
)
from herdfilter._repr import summary_repr
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import (
    GaussianBelief,
    IteratedRule,
    correct_gaussians,
    observation_moments,
    predict_gaussians,
    update_gaussians,
)
from herdfilter.filters.kalman.rules import MomentRule, Moments, moment_rule
from herdfilter.filters.observation import Observation
from herdfilter.filters.results import FilterResult, Outcome, StepRecord
from herdfilter.filters.transition import Transition
from herdfilter.models import contract
from herdfilter.models.sensors import Sensor, sensed, to_check
from herdfilter.models.series import (
    ZERO,
    Clock,
    Step,
    Timed,
    as_control,
    as_duration,
    as_objects,
    is_reading,
    own_times,
    series,
)


class BatchedKalmanFilter(Timed):
    """Kalman filters of K independent states of one model, which predict and update in single calls of NumPy.

    Each state is filtered as by `UnscentedKalmanFilter`, `ExtendedKalmanFilter` or `CubatureKalmanFilter`. The results are
    the same to the last bit if the model's functions give the same bits for one state as for many.

    Parameters
    ----------
    model : object
        As for `ExtendedKalmanFilter`; it needs no ``initial``.
    means : array_like, shape (K, d)
        Means of the states at step 0.
    covariances : array_like, shape (K, d, d) or (1, d, d) or (d, d)
        Their covariances, or the one that all share.
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
    >>> for z in [[[1.1], [np.nan], [18.8]], [[2.1], [12.2], [17.9]]]:
    ...     kf.predict()
    ...     log_densities, outcomes = kf.update(z)
    ...
    >>> kf.means[:, 0].round(1).tolist(), kf.covariances.shape
    ([2.1, 12.2, 17.9], (3, 2, 2))
    """

    def __init__(
        self, model: contract.Model, means: ArrayLike, covariances: ArrayLike, rule: str | MomentRule = "unscented"
    ) -> None:
        user = "BatchedKalmanFilter"
        contract.require(model, user, ("dim",))
        contract.require(model, user, contract.ADDITIVE, contract.FROM_NOISE)
        contract.require(to_check(model), user, contract.OBSERVED)
        if contract.has_scans(model):
            raise TypeError(f"model: {user} needs a model of single observations, got {contract.kind(model)} with scans")
        d = check_count("model.dim", model.dim)
        states = as_array("means", means, (None, d)).copy()
        count, matrices = len(states), as_covariance("covariances", covariances, d)
        if matrices.ndim == 3 and len(matrices) not in (1, count):
            raise ValueError(f"covariances: expected one, or one for each of {count} means, got {len(matrices)}")
        self._stand(model, moment_rule(rule), states, np.broadcast_to(matrices, (count, d, d)).copy())

    def _stand(
        self, model: contract.Model, rule: MomentRule, means: Array, covariances: Array, step: int = 0, clock: Clock = ZERO
    ) -> None:
        self.model, self.rule, self.means, self.covariances = model, rule, means, covariances
        self.step, self._clock = step, clock
        self.log_likelihoods, self._by_model_at_start = np.zeros(len(means)), False

    @classmethod
    def unchecked(cls, *args: Any) -> BatchedKalmanFilter:
        """Return a batch of a model, a moment rule, means, covariances, a step and a clock."""
        batch = cls.__new__(cls)
        batch._stand(*args)
        return batch

    @classmethod
    def of(cls, filters: Sequence[Any]) -> BatchedKalmanFilter | None:
        """Return a batch that stands where Kalman filters stand; None unless they share model, rule and step."""
        if not filters or len(set(map(id, filters))) < len(filters):
            return None
        first, methods = filters[0], ("predict", "update", "run", "predicted_observation", "combine")
        if not isinstance(first, KalmanFilter) or contract.has_scans(first.model):
            return None
        if any(getattr(type(first), name) is not getattr(KalmanFilter, name) for name in methods):
            return None
        for one in filters:
            if not (type(one) is type(first) and one.model is first.model and one.step == first.step):
                return None
            if not (type(one.belief) is GaussianBelief and one.belief.rule == first.belief.rule):
                return None
        means, covariances = (np.array([getattr(one.belief, part) for one in filters]) for part in ("mean", "covariance"))
        batch = cls.unchecked(first.model, first.belief.rule, means, covariances, first.step, first._clock)
        batch.log_likelihoods = np.array([one.log_likelihood for one in filters])
        batch._by_model_at_start = any(one._by_model_at_start for one in filters)
        return batch

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return summary_repr(self, model=self.model, states=len(self), dim=self.means.shape[1], step=self.step)

    def take(self, rows: Any) -> BatchedKalmanFilter:
        """Return a batch of chosen states, by an index of NumPy such as an array of integers (n,)."""
        chosen = copy.copy(self)
        chosen.means, chosen.covariances = self.means[rows], self.covariances[rows]
        chosen.log_likelihoods = self.log_likelihoods[rows]
        return chosen

    def fits(self, other: BatchedKalmanFilter) -> bool:
        """Return True if another batch has the same model and rule, and stands at the same step."""
        return self.model is other.model and self.rule == other.rule and self.step == other.step

    def joined(self, other: BatchedKalmanFilter) -> BatchedKalmanFilter:
        """Return a batch of the states of this one and of another that fits it."""
        both = copy.copy(self)
        for name in ("means", "covariances", "log_likelihoods"):
            setattr(both, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        return both

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        """Carry all states to the next step; arguments and errors are those of `KalmanFilter.predict`."""
        dt, control = as_duration("dt", dt), as_control(unmasked("control", control))
        if len(self):
            transition = Transition(self.model, dt, control, self.step + 1)
            means, covariances, _ = predict_gaussians(transition, self.means, self.covariances, self.rule)
            self.means, self.covariances = transition.wrapped(means), covariances
        self.step, self._clock = self.step + 1, self._clock.later(dt)

    def update(
        self, z: ArrayLike | None, sensor: Sensor | None = None, gate: float | None = None
    ) -> tuple[Array, np.ndarray]:
        """Update each state with its own observation of this step.

        Parameters
        ----------
        z : array_like, shape (K, k), or (K,) if k is 1, or None
            The observations. NaN marks missing entries; a state whose row is NaN keeps its prediction.
        sensor, gate
            As in `ParticleFilter.update`; each state has its gate.

        Returns
        -------
        log_densities : ndarray, shape (K,)
            Increments of `log_likelihoods`, 0 where no observation was used.
        outcomes : ndarray of Outcome, shape (K,)

        Raises
        ------
        IndefiniteCovarianceError, RuntimeError, TypeError, ValueError
            As in `KalmanFilter.update`; all states are then as before.
        """
        if self.step == 0 and sensor is None and self._by_model_at_start:
            raise RuntimeError("update: expected one observation of the initial state, step 0, got a second; call predict")
        model, outcomes = self._observed_by(sensor), np.full(len(self), Outcome.MISSING, dtype=object)
        increments, means, covariances = np.zeros(len(self)), self.means, self.covariances
        rows = self._read(z)
        if rows is not None and not np.isnan(rows).all():
            predicted = self.predicted_observations(sensor)
            means, covariances = means.copy(), covariances.copy()
            for who, entries in _patterns(rows):
                if gate is not None:
                    inside = self._inside(gate, model, predicted, who, rows[who], entries)
                    outcomes[who[~inside]] = Outcome.GATED
                    who = who[inside]
                found = self._corrected(model, predicted, who, rows[who], entries)
                means[who], covariances[who], increments[who] = found
                outcomes[who] = Outcome.UPDATED
        self.means, self.covariances = means, covariances
        self.log_likelihoods = self.log_likelihoods + increments
        self._by_model_at_start |= self.step == 0 and sensor is None
        return increments, outcomes

    def predicted_observations(self, sensor: Sensor | None = None) -> Moments:
        """Return means (K, k) and covariances (K, k, k), noise included, of the observations predicted at this step.

        The third array, (K, d, k), has the covariances of each state with its observation.
        """
        return observation_moments(self._observed_by(sensor), self.means, self.covariances, self.rule, self.step)

    def hypotheses(
        self, rows: np.ndarray, z: Array, sensor: Sensor | None = None, predicted: Moments | None = None
    ) -> Moments:
        """Update chosen states with chosen observations, as a tracker needs it; the filter itself stays as it is.

        Parameters
        ----------
        rows : ndarray of int, shape (P,)
            Index of the state of each hypothesis, from 0.
        z : ndarray, shape (P, k)
            Its observation, finite.
        sensor : Sensor, optional
            As in `update`.
        predicted : tuple, optional
            What `predicted_observations` returned for this sensor at this step.

        Returns
        -------
        means, covariances, log_densities : ndarray, shapes (P, d), (P, d, d) and (P,)

        Examples
        --------
        Two detections are tried on one of two targets, the second detection on the other, too:

        >>> kf = hf.BatchedKalmanFilter(hf.models.linear_chain(1), means=[[0.0], [4.0]], covariances=[[1.0]])
        >>> kf.predict()
        >>> z = np.array([[0.2], [3.0]])
        >>> means, covariances, log_densities = kf.hypotheses(np.array([0, 0, 1]), z[[0, 1, 1]])
        >>> np.exp(log_densities).round(2).tolist()
        [0.26, 0.04, 0.21]
        """
        predicted = self.predicted_observations(sensor) if predicted is None else predicted
        return self._corrected(self._observed_by(sensor), predicted, rows, z, np.arange(z.shape[1]))

    def run(
        self,
        observations: ArrayLike,
        dt: float | Sequence[float] | Array | None = None,
        controls: Sequence[Any] | Array | None = None,
        times: ArrayLike | None = None,
        start: Any = None,
        gate: float | None = None,
    ) -> list[FilterResult]:
        """Predict to each row of observations (T, K, k) in turn, and update with it; return a result for each state.

        The other arguments are those of `KalmanFilter.run`.
        """
        z = as_numbers("observations", observations, (None, len(self), None), missing=True)
        if z.ndim == 2:
            z = z[:, :, None]
        if z.ndim != 3 or z.shape[1] != len(self):
            raise ValueError(f"observations: expected shape (T, {len(self)}, k), got {z.shape}")
        steps = series(z, dt, controls, times, start, clock=self._clock)
        return run_batch(self, z, steps, np.full(len(self), len(z)), gate)

    def _observed_by(self, sensor: Sensor | None) -> contract.Model:
        model = sensed(self.model, sensor)
        if sensor is not None:
            contract.require(model, type(self).__name__, contract.OBSERVED)
        return model

    def _read(self, z: ArrayLike | None) -> Array | None:
        if z is None:
            return None
        rows = as_numbers("z", z, (len(self), None), missing=True)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) != len(self):
            raise ValueError(f"z: expected a row for each of {len(self)} states, got shape {rows.shape} at step {self.step}")
        if (np.abs(rows) > LARGEST).any():
            wrong = rows[(np.abs(rows) > LARGEST).any(axis=1)][0]
            raise ValueError(f"z: expected finite numbers, or NaN where missing, got {wrong} at step {self.step}")
        return rows

    def _residuals(self, model: contract.Model, predicted: Array, z: Array) -> Array:
        size = predicted.shape[1]
        if z.shape[1] != size:
            raise ValueError(f"z: expected shape {(size,)}, as observation_mean has, got {z.shape[1:]}")
        return wrap_angles(z - predicted, contract.observation_circular(model, size))

    def _inside(
        self, gate: float, model: contract.Model, predicted: Moments, who: np.ndarray, z: Array, entries: np.ndarray
    ) -> np.ndarray:
        """Return True for each observation in the ellipsoid that holds its prediction with probability `gate`, (n,)."""
        gate = as_number("gate", gate, "a probability such as 0.999", lambda p: 0 < p < 1)
        residuals = self._residuals(model, predicted[0][who], z)[:, entries]
        covariances = predicted[1][who][:, entries[:, None], entries]
        distances = (residuals * np.linalg.solve(covariances, residuals[:, :, None])[:, :, 0]).sum(axis=1)
        inside: np.ndarray = ~(distances > 2 * gammaincinv(len(entries) / 2, gate))
        return inside

    def _corrected(
        self, model: contract.Model, predicted: Moments, who: np.ndarray, z: Array, entries: np.ndarray
    ) -> Moments:
        """Return means, covariances and log-densities of states given the same entries of their observations (n, k)."""
        means, covariances, (centres, observed, cross) = self.means[who], self.covariances[who], predicted
        with np.errstate(over="ignore", invalid="ignore"):  # named below
            if self.step == 0:  # each with iterations of its own, as in a `GaussianBelief`
                own = [Observation(model, one, 0, None) for one in z]
                found = [
                    update_gaussians(seen, means[i, None], covariances[i, None], IteratedRule(seen))
                    for i, seen in enumerate(own)
                ]
                moved, shrunk, log_densities = (np.concatenate(part) for part in zip(*found, strict=True))
            else:
                residuals = self._residuals(model, centres[who], z)
                observed, cross = observed[who], cross[who]
                if len(entries) < z.shape[1]:
                    residuals, cross = residuals[:, entries], cross[:, :, entries]
                    observed = observed[:, entries[:, None], entries]
                moved, shrunk, log_densities = correct_gaussians(means, covariances, residuals, observed, cross, self.step)
        finite = np.isfinite(moved).all(axis=1) & np.isfinite(shrunk).all(axis=(1, 2)) & np.isfinite(log_densities)
        if not finite.all():
            wrong = short_repr(z[int(np.argmin(finite))])
            raise ValueError(
                f"z: expected an observation that leaves moments and log-likelihood finite, got {wrong} at step "
                f"{self.step}; choose larger units, or leave out the observation"
            )
        return wrap_angles(moved, contract.circular_dims(self.model)), shrunk, log_densities


def _patterns(z: Array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of observations (K, k) that have the same entries, and these entries; none for rows without any."""
    there = ~np.isnan(z)
    if there.all():
        yield np.arange(len(z)), np.arange(z.shape[1])
        return
    patterns, members = np.unique(there, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        if pattern.any():
            yield np.flatnonzero(members.ravel() == i), np.flatnonzero(pattern)


def merge_by_owner(
    means: Array, covariances: Array, weights: Array, owners: np.ndarray, circular: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return mean and covariance of the mixture of each owner's Gaussians: `herdfilter.angles.merged`, for many at once.

    The P Gaussians are sorted by their owners (P,), the weights of each sum to 1. Angles are wrapped.
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    counts = np.diff(starts, append=len(owners))
    place = np.repeat(np.arange(len(starts)), counts)
    x, share = means, weights[:, None]
    if circular:
        angles = means[:, list(circular)]
        sums = [np.add.reduceat(share * part, starts) for part in (np.sin(angles), np.cos(angles))]
        reference = np.arctan2(*sums)[place]
        x = means.copy()
        x[:, list(circular)] = reference + (angles - reference + np.pi) % (2 * np.pi) - np.pi
    merged = np.add.reduceat(share * x, starts)
    centred = x - merged[place]
    spread = covariances + centred[:, :, None] * centred[:, None]
    merged = wrap_angles(merged, circular)
    spread = np.add.reduceat(share[:, :, None] * spread, starts)
    alone = counts == 1
    merged[alone], spread[alone] = means[starts[alone]], covariances[starts[alone]]
    return merged, spread


def run_batch(
    batch: BatchedKalmanFilter, z: Array, steps: Sequence[Step], lengths: np.ndarray, gate: float | None = None
) -> list[FilterResult]:
    """Filter observations (T, K, k) of states that end after `lengths` (K,) steps, the longest first."""
    (count, d), T, model = batch.means.shape, len(z), batch.model
    means, covariances = np.empty((count, T, d)), np.empty((count, T, d, d))
    increments, outcomes = np.empty((count, T)), np.empty((count, T), dtype=object)
    times, numbers, going = as_objects([step.time for step in steps]), [], batch.take(slice(None))
    for t, step in enumerate(steps):
        alive = int(np.count_nonzero(lengths > t))
        if alive < len(going):
            going = going.take(slice(alive))
        if step.dt > 0:
            going.predict(step.dt, step.control)
        going._clock = step.clock
        increments[:alive, t], outcomes[:alive, t] = going.update(z[t, :alive], step.sensor, gate)
        means[:alive, t], covariances[:alive, t] = going.means, going.covariances
        numbers.append(going.step)
    vars(batch).update(vars(going))
    own = {"circular": contract.circular_dims(model), "position_dims": getattr(model, "position_dims", ())}
    return [
        FilterResult(
            means[k, :n].copy(),
            covariances[k, :n].copy(),
            np.full(n, np.nan),
            np.zeros(n, dtype=bool),
            increments[k, :n].copy(),
            tuple(outcomes[k, :n]),
            steps=np.array(numbers[:n], dtype=int),
            times=times[:n].copy(),
            **own,
        )
        for k, n in enumerate(lengths.tolist())
    ]


def run_together(
    filters: Sequence[Any], tracks: Sequence[Any], options: Mapping[str, Any], alone: Callable[[int], Any]
) -> list[Any] | None:
    """Run Kalman filters on tracks in one batch; return (result, None) of each, None if they do not fit together.

    If a step fails, each half of the tracks runs by itself, down to a single one: ``alone(k)`` returns its end. Filters and
    results are as after runs one by one.
    """
    batch, z = BatchedKalmanFilter.of(filters), [_as_rows(track) for track in tracks]
    shared = {name: value for name, value in options.items() if name in ("dt", "controls", "times", "gate")}
    if batch is None or len(shared) < len(options) or any(one._clock != filters[0]._clock for one in filters):
        return None
    if any(rows is None for rows in z) or len({rows.shape[1] for rows in z if len(rows)}) != 1:
        return None
    if len({len(rows) for rows in z}) > 1 and any(np.ndim(shared.get(name)) for name in ("dt", "controls", "times")):
        return None
    order = np.argsort([-len(rows) for rows in z], kind="stable")
    lengths, size = np.array([len(z[k]) for k in order]), next(rows.shape[1] for rows in z if len(rows))
    padded = np.full((lengths[0], len(z), size), np.nan)
    for place, k in enumerate(order):
        padded[: lengths[place], place] = z[k]
    ends: dict[int, Any] = {}
    gate = shared.pop("gate", None)

    def run(places: np.ndarray) -> None:
        longest = lengths[places[0]]
        try:
            steps = series(padded[:longest], **shared, clock=batch._clock)
            results = run_batch(batch.take(order[places]), padded[:longest, places], steps, lengths[places], gate)
        except Exception:
            if len(places) == 1:
                ends[int(order[places[0]])] = alone(int(order[places[0]]))
                return
            for half in np.array_split(places, 2):
                run(half)
            return
        for k, result in zip(order[places].tolist(), results, strict=True):
            ends[k] = result, None
            _stand_at_end(filters[k], result, steps)

    run(np.arange(len(z)))
    return [ends[k] for k in range(len(z))]


def _as_rows(track: Any) -> Array | None:
    """Return the observations of a track as an array (T, k); None if they are not plain numbers, or have times."""
    try:
        if isinstance(track, Mapping | str) or own_times(track) is not None:
            return None
        if isinstance(track, list | tuple) and any(is_reading("observations", entry) for entry in track):
            return None
        rows = as_numbers("observations", track, (None, None), missing=True)
    except (TypeError, ValueError):
        return None
    return rows[:, None] if rows.ndim == 1 else rows if rows.ndim == 2 else None


def _stand_at_end(one: KalmanFilter, result: FilterResult, steps: Sequence[Step]) -> None:
    """Bring a filter to where its run ended."""
    count = len(result)
    if not count:
        return
    mean, covariance, increment = result.means[-1], result.covariances[-1], float(result.log_likelihoods[-1])
    one._by_model_at_start |= one.step == 0 and steps[0].dt == 0
    one.belief = GaussianBelief(mean, covariance, one.belief.rule)
    one.step, one._clock = int(result.steps[-1]), steps[count - 1].clock
    one.log_likelihood = float(sum(result.log_likelihoods.tolist(), one.log_likelihood))
    one.record = StepRecord(one.step, mean, covariance, np.nan, False, increment, result.outcomes[-1])
