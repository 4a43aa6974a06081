"""What one run of one filter gives: series over time, and the numbers that the columns of the table hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.discrepancy import energy_distance
from herdfilter.evaluation.metrics import (
    energy_distance_on_line,
    inside_ellipsoid,
    normalised_squares,
    root_mean,
    squared_error,
)
from herdfilter.evaluation.recording import Recording
from herdfilter.evaluation.reference import LineDensity, Reference
from herdfilter.evaluation.scenario import Scenario
from herdfilter.evaluation.watch import Watched
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import circular_dims, wrap_angles
from herdfilter.points import Points


@dataclass(frozen=True, eq=False)
class Evidence:
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
        What the filter's ``run`` returned: ``means`` (T, d), and what else of `FilterResult` it has.
    seconds : float
        Time that the filter took.
    watched : Watched or None
        What was seen on the way; without it there are no innovations and no energy distance.
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

    @cached_property
    def truth(self) -> Array:
        """Squared distance of the mean to the truth, over the dimensions whose error counts; over time."""
        return self._squared_error(self.recording.truth)

    @cached_property
    def against_reference(self) -> Array:
        """Squared distance of the mean to the reference's mean, over the dimensions whose error counts; over time."""
        return self._nothing if self.reference is None else self._squared_error(self.reference.means)

    @cached_property
    def nees(self) -> Array:
        """Normalised estimation error squared over the full state; over time, NaN where the covariance is singular."""
        covariances = getattr(self.result, "covariances", None)
        if covariances is None:
            return self._nothing
        errors = wrap_angles(self.recording.truth - self.means, circular_dims(self.model))
        return normalised_squares(errors, np.asarray(covariances, dtype=np.float64))

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
        return squared_error(
            self.means, target, self.scenario.dims(self.model.dim), circular_dims(self.model)
        )


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
    centred = Points.trusted((x - posterior.mean) / sd, weights)
    normal = GaussianMixture.trusted(np.ones(1), np.zeros((1, len(sd))), covariance / np.outer(sd, sd))
    return energy_distance(centred, normal)


def reference_sd(run: Evidence) -> float:
    """Return the standard error of the reference's own posterior mean, taken as `reference_error` is."""
    return np.nan if run.reference is None else run.reference.sd(run.scenario.dims(run.model.dim))


def rmse(run: Evidence) -> float:
    """Root mean square over time of the error to the truth."""
    return root_mean(run.truth)


def final_rmse(run: Evidence) -> float:
    """Root mean square of the error to the truth over the final part of the run."""
    bound = run.scenario.divergence
    if bound is None:
        return np.nan
    return root_mean(run.truth[-max(1, round(bound.final_part * len(run.recording))) :])


def diverged(run: Evidence) -> float:
    """1 where `final_rmse` exceeds the scenario's bound, else 0."""
    bound = run.scenario.divergence
    return float(bound is not None and final_rmse(run) > bound.rmse_above)


def reference_error(run: Evidence) -> float:
    """Root mean square over time of the error to the reference's posterior mean."""
    return root_mean(run.against_reference)


def log_likelihood(run: Evidence) -> float:
    """Log-likelihood that the filter estimates."""
    return float(getattr(run.result, "log_likelihood", np.nan))


def log_likelihood_error(run: Evidence) -> float:
    """Difference of the log-likelihood from the reference's."""
    return log_likelihood(run) - (np.nan if run.reference is None else run.reference.log_likelihood)


def mean_ess(run: Evidence) -> float:
    """Effective sample size, mean over time."""
    return float(run.ess.mean())


def anees(run: Evidence) -> float:
    """Sum over time of NEES over that of its degrees of freedom."""
    return _share(run.nees, run.nees_degrees)


def nees_inside(run: Evidence) -> float:
    """Share of the steps at which the truth lies in the filter's 95 % ellipsoid."""
    return inside_ellipsoid(run.nees, run.nees_degrees)


def nees_singular(run: Evidence) -> float:
    """Count the steps whose covariance is singular."""
    known = getattr(run.result, "covariances", None) is not None
    return float(np.isnan(run.nees).sum()) if known else np.nan


def state_dim(run: Evidence) -> float:
    """Dimension of the state."""
    return float(run.model.dim)


def nis(run: Evidence) -> float:
    """Sum over time of NIS over the number of entries observed."""
    return _share(run.nis, run.nis_degrees)


def nis_inside(run: Evidence) -> float:
    """Share of the observations in the 95 % ellipsoid of their prediction."""
    return inside_ellipsoid(run.nis, run.nis_degrees)


def entries_observed(run: Evidence) -> float:
    """Count the entries observed in the run."""
    return float(run.nis_degrees.sum())


def mean_energy_distance(run: Evidence) -> float:
    """Energy distance to the exact posterior, mean over the steps that keep it."""
    known = run.energy_distances[~np.isnan(run.energy_distances)]
    return float(known.mean()) if len(known) else np.nan


def ms_per_step(run: Evidence) -> float:
    """Milliseconds per step."""
    return 1e3 * run.seconds / len(run.recording)


def seconds(run: Evidence) -> float:
    """Seconds for the run."""
    return run.seconds


def _share(squares: Array, degrees: Array) -> float:
    """Sum of normalised squares over the sum of their degrees of freedom."""
    total = degrees.sum()
    return float(np.nansum(squares) / total) if total > 0 else np.nan
