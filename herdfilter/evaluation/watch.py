"""A filter run under observation: what it predicts of every observation, and its particles at a few steps."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import moments
from herdfilter.evaluation.recording import Recording
from herdfilter.filters._series import run, series
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.gaussian import GaussianBelief, innovation
from herdfilter.filters.kalman.innovation import Innovation
from herdfilter.filters.particle_filter import ParticleFilter
from herdfilter.filters.results import StepRecord
from herdfilter.models.contract import observation_circular, observation_mean, observed


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
    if type(estimator).run in (ParticleFilter.run, KalmanFilter.run):
        controls: Any = recording.controls
        result = run(watcher, series(recording.observations, recording.dt, controls), estimator.model.dim)
    else:
        result = estimator.run(recording.observations, dt=recording.dt, controls=recording.controls)
    seconds = time.perf_counter() - start - watcher.seconds
    return Watched(result, seconds, watcher.nis, watcher.degrees, watcher.particles)


class _Watcher:
    """A filter that goes step by step, under observation; `seconds` is the time spent on looking."""

    def __init__(self, estimator: Any, recording: Recording, steps: frozenset[int], nis: bool) -> None:
        self.estimator, self.steps = estimator, steps
        self.seconds = 0.0
        self.nis, self.degrees = np.full(len(recording), np.nan), np.zeros(len(recording))
        self.particles: dict[int, tuple[Array, Array]] = {}
        model = getattr(estimator, "model", None)
        self._innovations = nis and all(
            hasattr(model, name) for name in ("observation_mean", "observation_covariance")
        )

    def predict(self, dt: float = 1.0, control: Any = None) -> None:
        self.estimator.predict(dt, control)

    def update(self, z: ArrayLike | None) -> StepRecord:
        k = self.estimator.step - 1
        start = time.perf_counter()
        if self._innovations:
            try:
                self.nis[k], self.degrees[k] = _normalised_innovation(self.estimator, z)
            except Exception:  # what goes wrong in the filter itself is raised there
                self.nis[k], self.degrees[k] = np.nan, 0
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


def _normalised_innovation(estimator: Any, z: ArrayLike | None) -> tuple[float, int]:
    """Square of the innovation in units of its predicted covariance, and its degrees of freedom, after ``predict``.

    For a Kalman filter the moments of the observation are its own; for particles those of the predicted particles' mean
    observations, with the covariance of the observation noise added.
    """
    model, step = estimator.model, estimator.step
    kalman = isinstance(estimator, KalmanFilter)
    observation = np.atleast_1d(np.asarray(np.nan if z is None else z, dtype=np.float64))
    if np.isnan(observation).all() or not (kalman or observed(model, observation) is not None):
        return np.nan, 0
    if kalman and isinstance(estimator._belief, GaussianBelief):
        belief = estimator._belief
        told = innovation(model, belief.mean[None], belief.covariance[None], belief.rule, observation, step)
    else:
        x, weights = _particles(estimator)
        seen = observation_mean(model, x, step)
        mean, covariance = moments(seen, weights, observation_circular(model, seen.shape[1]))
        if kalman:  # an ensemble's covariance has n - 1
            covariance = covariance * (len(x) / (len(x) - 1))
        told = Innovation(
            model, observation, mean[None], covariance[None], np.zeros((1, x.shape[1], len(mean))), step
        )
    return float(told.squares[0]), len(told.kept)
