"""One filter in one run: what it predicted of every observation on the way, and its errors over time."""

from __future__ import annotations

import inspect
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array
from herdfilter.discrepancy import energy_distance
from herdfilter.filters.kalman import KalmanFilter
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import circular_dims, observation_circular, takes_partial, wrap_angles
from herdfilter.points import Points
from herdfilter.study.metrics import (
    SetErrors,
    energy_distance_on_line,
    labelled_estimates,
    normalised_squares,
    set_errors,
    squared_error,
)
from herdfilter.study.recording import Recording
from herdfilter.study.reference import LineDensity, Reference
from herdfilter.study.scenario import Scenario

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
    >>> from herdfilter.study.run_record import watch
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
    >>> from herdfilter.study.run_record import watch
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


__all__ = ["RunRecord"]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What is known of one filter in one run; columns and series are functions of it.

    The attributes that end in "over time" have one value for each step, shape (T,), NaN where there is none.

    Attributes
    ----------
    scenario : Scenario
        Says which dimensions count, and when a run diverged.
    model : object
    recording : Recording
    reference : Reference or None
    result : object
        What the filter's ``run`` returned: ``means`` (T, d), and what else of `FilterResult` it has; a tracker's has
        ``means`` and ``labels`` for each step.
    seconds : float
        Time that the filter took.
    watched : Watched or None
        What was seen on the way; without it there are no innovations and no energy distance.

    Examples
    --------
    >>> from herdfilter.study.run_record import RunRecord
    >>> from herdfilter.study.recording import Recording
    >>> from herdfilter.study.scenario import load_scenario
    >>> scenario = load_scenario("linear_gaussian")
    >>> model = scenario.build_model()
    >>> truth, z = hf.simulate(model, 10, rng=1)
    >>> result = hf.make_filter("ukf", model).run(z)
    >>> run = RunRecord(scenario, model, Recording(truth, z), result=result)
    >>> print(run.truth.shape, np.allclose(run.truth, ((result.means - truth) ** 2).sum(axis=1)))
    (10,) True
    """

    scenario: Scenario
    model: Any
    recording: Recording
    reference: Reference | None = None
    result: Any = None
    seconds: float = np.nan
    watched: Watched | None = None

    @cached_property
    def means(self) -> Array:
        """Estimates (T, d); a ValueError if they are of another shape or not finite."""
        return as_array("estimates", self.result.means, self.recording.truth.shape)

    @property
    def covariances(self) -> Array | None:
        """Covariances of the estimates (T, d, d), if the result has any; none of many targets."""
        given = None if self.recording.many else getattr(self.result, "covariances", None)
        return None if given is None else np.asarray(given, dtype=np.float64)

    @cached_property
    def sets(self) -> SetErrors | None:
        """How far the estimates are from many targets; None with one target."""
        targets, truth = self.scenario.targets, self.recording.truth
        if targets is None:
            return None
        estimates = labelled_estimates(self.result, len(truth), truth.shape[2])
        return set_errors(truth, estimates, targets, self.dims)

    def of_sets(self, name: str) -> Array:
        """Attribute of `sets` over time; NaN with one target."""
        return self._nothing if self.sets is None else np.asarray(getattr(self.sets, name))

    @cached_property
    def truth(self) -> Array:
        """Squared distance of the mean to the truth, over the dimensions whose error counts; over time, of one target."""
        return self._nothing if self.recording.many else self._squared_error(self.recording.truth)

    @cached_property
    def against_reference(self) -> Array:
        """Squared distance of the mean to the reference's mean, over the dimensions whose error counts; over time."""
        return self._nothing if self.reference is None else self._squared_error(self.reference.means)

    @cached_property
    def posterior_sd(self) -> Array:
        """Standard deviations of the reference, (T, k), in the k dimensions whose error counts; NaN where there are none.

        None is taken for less than a thousandth of its root mean square over time, so that no step at which a dimension
        is all but known outweighs the others. A dimension that is known throughout is NaN, and counts for nothing.
        """
        dims = self.dims
        if self.reference is None or self.reference.covariances is None:
            return np.full((len(self.recording), len(dims)), np.nan)
        variances = np.diagonal(self.reference.covariances, axis1=1, axis2=2)[:, dims]
        floor = _LEAST_SD**2 * variances.mean(axis=0)
        return np.sqrt(np.where(floor > 0, np.maximum(variances, floor), np.nan))

    @property
    def dims(self) -> list[int]:
        """Dimensions whose error counts."""
        return list(self.scenario.dims(self.model.dim))

    @cached_property
    def nees(self) -> Array:
        """Normalised estimation error squared over the full state; over time, NaN where the covariance is singular."""
        if self.covariances is None:
            return self._nothing
        errors = wrap_angles(self.recording.truth - self.means, circular_dims(self.model))
        return normalised_squares(errors, self.covariances)

    @cached_property
    def nees_degrees(self) -> Array:
        """Degrees of freedom of `nees`: d, and 0 where there is none; over time."""
        return np.where(np.isfinite(self.nees), float(self.model.dim), 0.0)

    @property
    def nis(self) -> Array:
        """Normalised innovation squared; over time."""
        return self._nothing if self.watched is None else self.watched.nis

    @property
    def nis_degrees(self) -> Array:
        """Degrees of freedom of `nis`: the number of entries observed, and 0 where there is none; over time."""
        return np.zeros(len(self.recording)) if self.watched is None else self.watched.nis_degrees

    @cached_property
    def ess(self) -> Array:
        """Effective sample size; over time."""
        ess = np.asarray(getattr(self.result, "ess", np.nan), dtype=np.float64)
        return np.broadcast_to(ess, len(self.recording)).copy()

    @cached_property
    def energy_distances(self) -> Array:
        """Energy distance of the particles to the exact posterior, at the steps that keep it; over time.

        It is in units of the posterior's standard deviation in each dimension.
        """
        distances = self._nothing
        if self.reference is not None and self.watched is not None:
            for k, posterior in self.reference.posteriors.items():
                if k in self.watched.particles:
                    distances[k] = energy_distance_to(posterior, *self.watched.particles[k])
        return distances

    @property
    def _nothing(self) -> Array:
        return np.full(len(self.recording), np.nan)

    def _squared_error(self, target: Array) -> Array:
        return squared_error(self.means, target, self.dims, circular_dims(self.model))


_LEAST_SD = 1e-3
"""Least standard deviation of the posterior at a step, as a share of its root mean square over time."""


def energy_distance_to(posterior: GaussianMixture | LineDensity, x: Array, weights: Array) -> float:
    """Energy distance of particles to a posterior, both in units of its standard deviation in each dimension."""
    if isinstance(posterior, LineDensity):
        centres = 0.5 * (posterior.edges[1:] + posterior.edges[:-1])
        mean = centres @ posterior.masses
        sd = np.sqrt((centres - mean) ** 2 @ posterior.masses)
        return energy_distance_on_line(x[:, 0], weights, posterior.edges, posterior.masses) / float(sd)
    covariance = posterior.covariance
    sd = np.sqrt(np.diagonal(covariance))
    sd = np.where(sd > 0, sd, 1.0)
    centred = Points.unchecked((x - posterior.mean) / sd, weights)
    normal = GaussianMixture.unchecked(np.ones(1), np.zeros((1, len(sd))), covariance / np.outer(sd, sd))
    return energy_distance(centred, normal)
