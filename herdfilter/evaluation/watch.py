"""A filter run under observation: what it predicts of every observation, and its particles at a few steps."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import moments, wrap_angles
from herdfilter.evaluation.metrics import normalised_squares
from herdfilter.evaluation.recording import Recording
from herdfilter.filters._series import run, series
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief, observation_moments
from herdfilter.filters.particle_filter import ParticleFilter
from herdfilter.filters.results import StepRecord
from herdfilter.models.contract import (
    OBSERVED,
    has,
    observation_circular,
    observation_covariance,
    observation_mean,
)


@dataclass(frozen=True, eq=False)
class Watched:
    """What a filter did with a recording.

    Attributes
    ----------
    result : object
        What the filter's ``run`` returns.
    seconds : float
        Time that it took, without the watching.
    nis : ndarray, shape (T,)
        Normalised innovation squared; NaN where nothing was observed, or the filter or the model does not tell.
    nis_degrees : ndarray, shape (T,)
        Number of entries observed, its degrees of freedom; 0 where it is NaN.
    particles : dict
        Place of a step, from 0 -> particles (n, d) and weights (n,), of the steps asked for.
    """

    result: Any
    seconds: float
    nis: Array
    nis_degrees: Array
    particles: Mapping[int, tuple[Array, Array]]


def watch(estimator: Any, recording: Recording, steps: Collection[int] = (), nis: bool = True) -> Watched:
    """Run a filter over a recording, and look at it between prediction and update, and after the update.

    The filter's outcome is the same as without. Only filters of this package are looked into, and only where they
    have not a ``run`` of their own; of others there is no more than what their ``run`` returns.

    Parameters
    ----------
    estimator : object
        With ``run(observations, dt=..., controls=...)``; at its initial state.
    recording : Recording
    steps : collection of int
        Places of the steps, from 0, whose particles are kept.
    nis : bool
        Whether to compare every observation with its prediction. That takes a fraction of a step, but for a
        proposal that looks at the observation a whole prediction, which it does not otherwise make.
    """
    watcher = _Watcher(estimator, recording, frozenset(steps), nis)
    start = time.perf_counter()
    if getattr(estimator.run, "__func__", None) in (ParticleFilter.run, KalmanFilter.run):
        controls: Any = recording.controls
        result = run(watcher, series(recording.observations, recording.dt, controls), estimator.model.dim)
    else:
        result = estimator.run(recording.observations, dt=recording.dt, controls=recording.controls)
    seconds = time.perf_counter() - start - watcher.seconds
    innovations = _normalised_innovations(estimator, recording.observations, watcher.predictions)
    return Watched(result, seconds, *innovations, watcher.particles)


class _Watcher:
    """A filter that goes step by step, under observation; `seconds` is the time spent on looking."""

    def __init__(self, estimator: Any, recording: Recording, steps: frozenset[int], nis: bool) -> None:
        self.estimator, self.steps = estimator, steps
        self.seconds = 0.0
        self.predictions: dict[int, tuple[Array, Array]] = {}
        self.particles: dict[int, tuple[Array, Array]] = {}
        model = getattr(estimator, "model", None)
        self._predicts = nis and has(model, OBSERVED)

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        self.estimator.predict(dt, control)

    def update(self, z: ArrayLike | None) -> StepRecord:
        k = self.estimator.step - 1
        if self._predicts and z is not None:
            start = time.perf_counter()
            # what goes wrong in the filter itself is raised there
            with suppress(Exception):
                self.predictions[k] = _predicted_observation(self.estimator)
            self.seconds += time.perf_counter() - start
        record: StepRecord = self.estimator.update(z)
        if k in self.steps and hasattr(self.estimator, "particles"):
            start = time.perf_counter()
            self.particles[k] = _particles(self.estimator)
            self.seconds += time.perf_counter() - start
        return record


def _particles(estimator: Any) -> tuple[Array, Array]:
    x = estimator.particles
    return x, estimator.weights if hasattr(estimator, "weights") else np.full(len(x), 1 / len(x))


def _predicted_observation(estimator: Any) -> tuple[Array, Array]:
    """Mean (k,) and covariance (k, k) of an observation, after ``predict``.

    Those of a Kalman filter are its own; those of particles are of their mean observations, with the noise added.
    """
    model, step = estimator.model, estimator.step
    kalman = isinstance(estimator, KalmanFilter)
    if kalman and isinstance(estimator._belief, GaussianBelief):
        belief = estimator._belief
        means, covariances, _ = observation_moments(
            model, belief.mean[None], belief.covariance[None], belief.rule, step
        )
        mean, covariance = means[0], covariances[0]
    else:
        x, weights = _particles(estimator)
        seen = observation_mean(model, x, step)
        mean, covariance = moments(seen, weights, observation_circular(model, seen.shape[1]))
        if kalman:
            covariance *= len(x) / (len(x) - 1)  # as in an ensemble's update
    return mean, covariance + observation_covariance(model, len(mean), step)


def _normalised_innovations(
    estimator: Any, observations: Array, predictions: Mapping[int, tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Squares of the innovations in units of their predicted covariances, and their degrees of freedom, each (T,)."""
    nis, degrees = np.full(len(observations), np.nan), np.zeros(len(observations))
    model = getattr(estimator, "model", None)
    partial = isinstance(estimator, KalmanFilter) or getattr(model, "partial_observations", False)
    size = observations.shape[1]
    for seen, places in _patterns(
        observations, [k for k, (mean, _) in predictions.items() if len(mean) == size]
    ):
        if not len(seen) or not (partial or len(seen) == size):
            continue
        means = np.array([predictions[k][0] for k in places])
        covariances = np.array([predictions[k][1] for k in places])
        innovations = wrap_angles(observations[places] - means, observation_circular(model, size))
        part = np.ix_(np.arange(len(places)), seen, seen)
        nis[places] = normalised_squares(innovations[:, seen], covariances[part])
        degrees[places] = np.where(np.isfinite(nis[places]), len(seen), 0)
    return nis, degrees


def _patterns(observations: Array, places: list[int]) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Group places of observations by the entries that are finite."""
    finite = np.isfinite(observations[places])
    for pattern in np.unique(finite, axis=0):
        same = (finite == pattern).all(axis=1)
        yield np.flatnonzero(pattern), [place for place, one in zip(places, same, strict=True) if one]
