"""The record of one filter in one run: its predicted observations, its errors over time, and the numbers of the run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array
from herdfilter.angles import wrap_angles
from herdfilter.filters.kalman import KalmanFilter
from herdfilter.models.contract import circular_dims
from herdfilter.models.evaluations import count_evaluations
from herdfilter.models.resolved import Measurement
from herdfilter.study import metrics, statistics
from herdfilter.study.recording import Recording, feed
from herdfilter.study.reference import Reference
from herdfilter.study.scenario import Scenario


def watch(run: RunRecord, estimator: Any, watched: bool = True) -> RunRecord:
    """Run a filter over the recording of a run; return the run with result and duration.

    Innovations and particles are kept if `watched`. Watching does not change the estimates. It needs a filter whose
    ``run`` takes a `watcher`; scans are not compared with predictions. Where the proposal uses the observation, each step
    costs a whole further prediction, else a fraction of one.
    """
    watcher = _Watcher(run)
    start = time.perf_counter()
    with count_evaluations() as evaluations:
        result = feed(estimator, run.recording, watcher=watcher if watched else None)
    seconds = time.perf_counter() - start - watcher.seconds
    innovations = _normalised_innovations(estimator, run.recording, watcher.predictions)
    return replace(
        run,
        result=result,
        seconds=seconds,
        # None: a filter of the user's own, which calls the functions of its model directly.
        evaluations=evaluations.total - watcher.evaluations or np.nan,
        innovations=innovations,
        particles=watcher.particles,
    )


class _Watcher:
    """Collects predicted observations and particles while a filter runs; `seconds` and `evaluations` are what that costs."""

    def __init__(self, run: RunRecord) -> None:
        # Particles are compared with the reference where that is exact.
        self.steps = [] if run.reference is None else run.reference.steps.tolist()
        self.compares = run.recording.scans is None and run.recording.sensors is None
        self.seconds = 0.0
        self.evaluations = 0
        # Index of a step -> mean (k,), covariance (k, k); and particles (n, d), weights (n,).
        self.predictions: dict[int, tuple[Array, Array]] = {}
        self.particles: dict[int, tuple[Array, Array]] = {}

    def predicted(self, estimator: Any, z: ArrayLike | None) -> None:
        # Without an observation the filter needs the prediction itself, and pays for it.
        if not self.compares or z is None or np.isnan(z).all():
            return
        start = time.perf_counter()
        # the run itself will raise the filter's errors
        with count_evaluations() as evaluations, suppress(Exception):
            prediction = estimator.predicted_observation()
            if prediction is not None:
                self.predictions[estimator.step - 1] = prediction
        self.evaluations += evaluations.total
        self.seconds += time.perf_counter() - start

    def updated(self, estimator: Any) -> None:
        k = estimator.step - 1
        if k in self.steps and hasattr(estimator, "particles"):
            x = estimator.particles
            if len(x) > MOST_COMPARED:
                return
            # An ensemble filter has particles without weights.
            self.particles[k] = x, getattr(estimator, "weights", np.full(len(x), 1 / len(x)))


def _normalised_innovations(
    estimator: Any, recording: Recording, predictions: Mapping[int, tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Return normalised innovations squared and their degrees of freedom, each (T,)."""
    nis = np.full(len(recording), np.nan)
    degrees = np.zeros(len(recording))
    if not predictions:
        return nis, degrees
    observations = np.asarray(recording.observations)
    size = observations.shape[1]
    model = getattr(estimator, "model", None)  # a filter of the user's own need not have one
    measurement = Measurement(model)
    steps = [k for k, (mean, _) in predictions.items() if len(mean) == size]
    means = np.array([predictions[k][0] for k in steps]).reshape(-1, size)
    covariances = np.array([predictions[k][1] for k in steps]).reshape(-1, size, size)
    observed = np.isfinite(observations[steps])
    is_partial = model is not None and measurement.takes_partial
    if not (isinstance(estimator, KalmanFilter) or is_partial):
        observed &= observed.all(axis=1, keepdims=True)
    # An entry that is not observed, or not used, is replaced by an independent one without error.
    pairs = observed[:, :, None] & observed[:, None, :]
    covariances = np.where(pairs, covariances, np.eye(size))
    innovations = wrap_angles(observations[steps] - means, measurement.circular(size))
    squares = metrics.normalised_squares(np.where(observed, innovations, 0.0), covariances)
    counts = np.where(np.isfinite(squares), observed.sum(axis=1), 0)
    nis[steps] = np.where(counts > 0, squares, np.nan)
    degrees[steps] = counts
    return nis, degrees


MOST_COMPARED = 5000
"""Most particles whose energy distance is measured: its time grows with their square."""

SMALLEST_RATIO = 1e-6
"""Ratios of variances are clipped below at this: particles that all coincide have variance 0, which has no logarithm."""

# Least standard deviation of the posterior at a step, as a share of its RMS over time.
SD_FLOOR = 1e-3


@dataclass(frozen=True, eq=False)
class RunRecord:
    """All data of one filter in one run; columns and series are functions of it.

    Attributes "over time" have one value for each step, shape (T,). Unknown values are NaN.
    """

    scenario: Scenario  # says in which dimensions errors count, and when a run diverged
    model: Any
    recording: Recording
    reference: Reference | None = None
    result: Any = None  # of the filter's `run`: like a `FilterResult`; a tracker's has means and labels for each step
    seconds: float = np.nan  # duration of the filter's run, without that of the watching
    innovations: tuple[Array, Array] | None = None  # `nis` and `nis_degrees`
    # Index of a step, from the `steps` of the reference -> particles (n, d) and weights (n,).
    particles: Mapping[int, tuple[Array, Array]] = field(default_factory=dict)
    evaluations: float = np.nan  # of the model in the filter's run, without those of the watching

    @cached_property
    def means(self) -> Array:
        """Estimates (T, d), of many targets (T, labels, d); a ValueError if they are of another shape or not finite."""
        truth = self.recording.truth
        if self.recording.many:
            return metrics.labelled_estimates(self.result, len(truth), truth.shape[2])
        return as_array("estimates", self.result.means, truth.shape)

    @property
    def covariances(self) -> Array | None:
        """Covariances of the estimates (T, d, d); None for many targets, or if the result has none."""
        covariances = None if self.recording.many else getattr(self.result, "covariances", None)
        return None if covariances is None else np.asarray(covariances, dtype=np.float64)

    @cached_property
    def sets(self) -> dict[str, Array]:
        """Distances of the estimates to many targets (`metrics.set_errors`); empty with one target."""
        if self.scenario.targets is None:
            return {}
        return metrics.set_errors(
            self.recording.truth, self.means, self.scenario.targets, self.dims
        )

    def of_sets(self, name: str) -> Array:
        """Entry of `sets`, most of which are over time; NaN with one target."""
        return self.sets.get(name, self._all_nan)

    @cached_property
    def truth(self) -> Array:
        """Squared distance of the mean to the truth, over the dimensions whose error counts; over time, of one target."""
        return self._all_nan if self.recording.many else self._squared_error(self.recording.truth)

    @cached_property
    def against_reference(self) -> Array:
        """Squared distance of the mean to the reference's mean, over the same dimensions; over time."""
        reference = self.reference
        return self._all_nan if reference is None else self._squared_error(reference.means)

    @cached_property
    def posterior_sd(self) -> Array:
        """Standard deviations of the reference (T, k) in the k dimensions whose error counts; NaN where they are unknown.

        They are clipped below at 1/1000 of their RMS over time, so that no single step dominates. A dimension without
        uncertainty at any step is NaN, and does not count.
        """
        dims = self.dims
        if self.reference is None or self.reference.covariances is None:
            return np.full((len(self.recording), len(dims)), np.nan)
        variances = np.diagonal(self.reference.covariances, axis1=1, axis2=2)[:, dims]
        floor = SD_FLOOR**2 * variances.mean(axis=0)
        return np.sqrt(np.where(floor > 0, np.maximum(variances, floor), np.nan))

    @property
    def dims(self) -> list[int]:
        """Dimensions whose error counts."""
        return list(self.scenario.dims(self.model.dim))

    @cached_property
    def nees(self) -> Array:
        """Normalised estimation error squared over the full state; over time, NaN where the covariance is singular."""
        if self.covariances is None:
            return self._all_nan
        errors = wrap_angles(self.recording.truth - self.means, circular_dims(self.model))
        return metrics.normalised_squares(errors, self.covariances)

    @cached_property
    def nees_degrees(self) -> Array:
        """Degrees of freedom of `nees`: d, and 0 where it is NaN; over time."""
        return np.where(np.isfinite(self.nees), float(self.model.dim), 0.0)

    @property
    def nis(self) -> Array:
        """Normalised innovation squared; over time, NaN where nothing was observed or the filter predicts no observation."""
        return self._all_nan if self.innovations is None else self.innovations[0]

    @property
    def nis_degrees(self) -> Array:
        """Degrees of freedom of `nis`: the number of entries observed, and 0 where it is NaN; over time."""
        return np.zeros(len(self.recording)) if self.innovations is None else self.innovations[1]

    @cached_property
    def ess(self) -> Array:
        """Effective sample size; over time."""
        # NaN for a filter without particles; a single number holds for all steps.
        ess = np.asarray(getattr(self.result, "ess", np.nan), dtype=np.float64)
        return np.broadcast_to(ess, len(self.recording)).copy()

    @cached_property
    def energy_distances(self) -> Array:
        """Energy distance of the particles to the exact posterior, at the steps where the reference has it; over time.

        It is in units of the posterior's standard deviation in each dimension.
        """
        distances = self._all_nan
        if self.reference is not None:
            for k, particles in self.particles.items():
                distances[k] = self.reference.energy_distance(k, *particles)
        return distances

    @property
    def final_rmse(self) -> float:
        """Root mean square of the error to the truth over the final part of the run, as in the scenario's `divergence`."""
        bound = self.scenario.divergence
        if bound is None:
            return np.nan
        squares = self.truth
        if bound.in_spreads:  # models of a family differ in units
            errors = wrap_angles(self.means - self.recording.truth, circular_dims(self.model))
            squares = ((errors / self.model.spread)[:, self.dims] ** 2).mean(axis=1)
        return metrics.root_mean(squares[-max(1, round(bound.final_part * len(self.recording))) :])

    @property
    def diverged(self) -> bool:
        """True if `final_rmse` exceeds the scenario's bound."""
        bound = self.scenario.divergence
        return bound is not None and self.final_rmse > bound.rmse_above

    @property
    def reference_sd(self) -> float:
        """Standard error of the reference's own posterior mean, RMS over time."""
        if self.reference is None:
            return np.nan
        return metrics.root_mean((self.reference.error[:, self.dims] ** 2).sum(axis=1))

    @property
    def reference_error_sd(self) -> float:
        """RMS error to the reference in units of `posterior_sd`, over time and the dimensions whose error counts."""
        if self.reference is None:
            return np.nan
        errors = wrap_angles(self.means - self.reference.means, circular_dims(self.model))
        return self._in_sds(errors)

    @property
    def reference_uncertainty(self) -> float:
        """Standard error of the reference's own posterior mean, in the unit and averages of `reference_error_sd`."""
        return np.nan if self.reference is None else self._in_sds(self.reference.error)

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood that the filter estimates; NaN with many targets."""
        log_likelihood = getattr(self.result, "log_likelihood", np.nan)
        return np.nan if self.recording.many else float(log_likelihood)

    @property
    def variance_ratio(self) -> float:
        """Geometric mean, over time and the dimensions whose error counts, of the filter's variance over the reference's.

        Half and twice the right variance are equally wrong. Variances too small at some steps cannot make up in a sum for
        those too large at others.
        """
        if self.covariances is None:
            return np.nan
        variances = np.diagonal(self.covariances, axis1=1, axis2=2)[:, self.dims]
        logs = np.log(
            np.maximum(statistics.finite(variances / self.posterior_sd**2), SMALLEST_RATIO)
        )
        return float(np.exp(statistics.of(np.mean, logs)))

    def _in_sds(self, errors: Array) -> float:
        ratios = statistics.finite(errors[:, self.dims] / self.posterior_sd)
        return statistics.of(statistics.root_mean_square, ratios)

    @property
    def _all_nan(self) -> Array:
        return np.full(len(self.recording), np.nan)

    def _squared_error(self, target: Array) -> Array:
        return metrics.squared_error(self.means, target, self.dims, circular_dims(self.model))


def normalised_mean(squares: Array, degrees: Array) -> float:
    """Return the sum of normalised squares over the sum of their degrees of freedom; NaN without any."""
    total = degrees.sum()
    return float(np.nansum(squares) / total) if total > 0 else np.nan
