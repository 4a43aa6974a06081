"""A filter run under observation: what it predicts of every observation, and its particles at a few steps."""

from __future__ import annotations

import inspect
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman import KalmanFilter
from herdfilter.models.contract import observation_circular, takes_partial
from herdfilter.study.metrics import normalised_squares
from herdfilter.study.recording import Recording

__all__ = ["Watched", "watch"]


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

    Examples
    --------
    >>> from herdfilter.study.recording import Recording
    >>> from herdfilter.study.watch import watch
    >>> model = hf.models.UNGM()
    >>> truth, z = hf.simulate(model, 10, rng=1)
    >>> watched = watch(hf.make_filter("bootstrap", model, 50, rng=0), Recording(truth, z), steps=[4])
    >>> watched.result.means.shape, watched.nis.shape, watched.particles[4][0].shape
    ((10, 1), (10,), (50, 1))
    """

    result: Any
    seconds: float
    nis: Array
    nis_degrees: Array
    particles: Mapping[int, tuple[Array, Array]]


def watch(estimator: Any, recording: Recording, steps: Collection[int] = (), nis: bool = True) -> Watched:
    """Run a filter over a recording, and look at it between prediction and update, and after the update.

    The filter's outcome is the same as without. Only filters of this package are looked into, and only where they
    have not a ``run`` of their own that takes no `watcher`; of others there is no more than what their ``run`` returns.

    Parameters
    ----------
    estimator : object
        With ``run(observations, dt=..., controls=...)``; at its initial state.
    recording : Recording
    steps : collection of int
        Places of the steps, from 0, whose particles are kept.
    nis : bool
        Whether to compare every observation, unless it is a scan, with its prediction. That takes a fraction of a step,
        but for a proposal that looks at the observation a whole prediction, which it does not otherwise make.

    Examples
    --------
    >>> from herdfilter.study.recording import Recording
    >>> from herdfilter.study.watch import watch
    >>> model = hf.models.UNGM()
    >>> truth, z = hf.simulate(model, 10, rng=1)
    >>> watched = watch(hf.make_filter("bootstrap", model, 50, rng=0), Recording(truth, z))
    >>> alone = hf.make_filter("bootstrap", model, 50, rng=0).run(z)
    >>> np.array_equal(watched.result.means, alone.means)  # looking changes nothing
    True
    """
    watcher = _Watcher(frozenset(steps), nis and recording.scans is None and recording.sensors is None)
    options = {"watcher": watcher} if "watcher" in inspect.signature(estimator.run).parameters else {}
    observations, told = recording.input
    start = time.perf_counter()
    result = estimator.run(observations, **told, **options)
    seconds = time.perf_counter() - start - watcher.seconds
    innovations = _normalised_innovations(estimator, recording, watcher.predictions)
    return Watched(result, seconds, *innovations, watcher.particles)


class _Watcher:
    """Looks at a filter of this package; `seconds` is the time spent on that."""

    def __init__(self, steps: frozenset[int], nis: bool) -> None:
        self.steps, self.nis = steps, nis
        self.seconds = 0.0
        self.predictions: dict[int, tuple[Array, Array]] = {}
        self.particles: dict[int, tuple[Array, Array]] = {}

    def predicted(self, estimator: Any, z: ArrayLike | None) -> None:
        if not self.nis or z is None:
            return
        start = time.perf_counter()
        # what goes wrong in the filter itself is raised there
        with suppress(Exception):
            prediction = estimator.predicted_observation()
            if prediction is not None:
                self.predictions[estimator.step - 1] = prediction
        self.seconds += time.perf_counter() - start

    def updated(self, estimator: Any) -> None:
        k = estimator.step - 1
        if k in self.steps and hasattr(estimator, "particles"):
            start = time.perf_counter()
            self.particles[k] = _particles(estimator)
            self.seconds += time.perf_counter() - start


def _particles(estimator: Any) -> tuple[Array, Array]:
    x = estimator.particles
    return x, estimator.weights if hasattr(estimator, "weights") else np.full(len(x), 1 / len(x))


def _normalised_innovations(
    estimator: Any, recording: Recording, predictions: Mapping[int, tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Squares of the innovations in units of their predicted covariances, and their degrees of freedom, each (T,)."""
    nis, degrees = np.full(len(recording), np.nan), np.zeros(len(recording))
    if recording.scans is not None:
        return nis, degrees
    observations = np.asarray(recording.observations)
    model = getattr(estimator, "model", None)
    partial = isinstance(estimator, KalmanFilter) or (model is not None and takes_partial(model))
    size = observations.shape[1]
    for seen, places in _patterns(observations, [k for k, (mean, _) in predictions.items() if len(mean) == size]):
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
