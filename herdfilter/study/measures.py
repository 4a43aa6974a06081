"""What one run of one filter gives: the numbers that the columns of the table hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.contract import circular_dims, wrap_angles
from herdfilter.study.metrics import inside_ellipsoid, root_mean
from herdfilter.study.run_record import RunRecord

_LEAST_RATIO = 1e-6
"""Least ratio of variances: particles that all coincide have a variance of 0, whose logarithm would be infinite."""


def reference_sd(run: RunRecord) -> float:
    """Return the standard error of the reference's own posterior mean, taken as `reference_error` is."""
    return np.nan if run.reference is None else run.reference.sd(run.scenario.dims(run.model.dim))


def rmse(run: RunRecord) -> float:
    """Root mean square over time of the error to the truth."""
    return root_mean(run.truth)


def final_rmse(run: RunRecord) -> float:
    """Root mean square of the error to the truth over the final part of the run."""
    bound = run.scenario.divergence
    if bound is None:
        return np.nan
    return root_mean(run.truth[-max(1, round(bound.final_part * len(run.recording))) :])


def diverged(run: RunRecord) -> float:
    """1 where `final_rmse` exceeds the scenario's bound, else 0."""
    bound = run.scenario.divergence
    return float(bound is not None and final_rmse(run) > bound.rmse_above)


def reference_error(run: RunRecord) -> float:
    """Root mean square over time of the error to the reference's posterior mean."""
    return root_mean(run.against_reference)


def reference_error_sd(run: RunRecord) -> float:
    """Root mean square of the error to the reference's posterior mean in posterior standard deviations.

    It is taken over time and the dimensions whose error counts, each in units of its own `RunRecord.posterior_sd`.
    """
    if run.reference is None:
        return np.nan
    errors = wrap_angles(run.means - run.reference.means, circular_dims(run.model))[:, run.dims]
    return _root_mean_square(errors / run.posterior_sd)


def reference_uncertainty(run: RunRecord) -> float:
    """Return the standard error of the reference's own posterior mean, taken as `reference_error_sd` is."""
    if run.reference is None:
        return np.nan
    return _root_mean_square(run.reference.error[:, run.dims] / run.posterior_sd)


def variance_ratio(run: RunRecord) -> float:
    """Geometric mean, over time and the dimensions whose error counts, of the filter's variance over the reference's.

    Half and twice the right variance count alike, and a filter that is sure of itself at some steps is not excused by
    others at which it is too modest.
    """
    if run.covariances is None:
        return np.nan
    own = np.diagonal(run.covariances, axis1=1, axis2=2)[:, run.dims]
    ratios = own / run.posterior_sd**2
    logs = np.log(np.maximum(ratios[np.isfinite(ratios)], _LEAST_RATIO))
    return float(np.exp(logs.mean())) if logs.size else np.nan


def _root_mean_square(values: Array) -> float:
    """Root mean square of the values that are known; NaN without any."""
    known = values[~np.isnan(values)]
    return root_mean(known**2) if known.size else np.nan


def gospa(run: RunRecord) -> float:
    """GOSPA, mean over time."""
    return float(run.of_sets("gospa").mean())


def gospa_part(name: str) -> Callable[[RunRecord], float]:
    """Return the measure of a part of GOSPA: the p-th root of its mean over time."""

    def measure(run: RunRecord) -> float:
        return np.nan if run.sets is None else run.sets.part(name)

    return measure


def ospa(run: RunRecord) -> float:
    """OSPA, mean over time."""
    return float(run.of_sets("ospa").mean())


def label_switches(run: RunRecord) -> float:
    """Count how often a target changed its label."""
    return np.nan if run.sets is None else float(run.sets.label_switches)


def cardinality_error(run: RunRecord) -> float:
    """Absolute difference of the numbers of estimates and targets, mean over time."""
    return float(np.abs(run.of_sets("cardinality")).mean())


def log_likelihood(run: RunRecord) -> float:
    """Log-likelihood that the filter estimates."""
    return np.nan if run.recording.many else float(getattr(run.result, "log_likelihood", np.nan))


def log_likelihood_error(run: RunRecord) -> float:
    """Difference of the log-likelihood from the reference's."""
    return log_likelihood(run) - (np.nan if run.reference is None else run.reference.log_likelihood)


def mean_ess(run: RunRecord) -> float:
    """Effective sample size, mean over time."""
    return float(run.ess.mean())


def anees(run: RunRecord) -> float:
    """Sum over time of NEES over that of its degrees of freedom."""
    return _share(run.nees, run.nees_degrees)


def nees_inside(run: RunRecord) -> float:
    """Share of the steps at which the truth lies in the filter's 95 % ellipsoid."""
    return inside_ellipsoid(run.nees, run.nees_degrees)


def nees_singular(run: RunRecord) -> float:
    """Count the steps whose covariance is singular."""
    return np.nan if run.covariances is None else float(np.isnan(run.nees).sum())


def state_dim(run: RunRecord) -> float:
    """Dimension of the state; NaN of many targets."""
    return np.nan if run.recording.many else float(run.model.dim)


def nis(run: RunRecord) -> float:
    """Sum over time of NIS over the number of entries observed."""
    return _share(run.nis, run.nis_degrees)


def nis_inside(run: RunRecord) -> float:
    """Share of the observations in the 95 % ellipsoid of their prediction."""
    return inside_ellipsoid(run.nis, run.nis_degrees)


def entries_observed(run: RunRecord) -> float:
    """Count the entries observed in the run; NaN of scans."""
    return float(run.nis_degrees.sum()) if run.recording.scans is None else np.nan


def mean_energy_distance(run: RunRecord) -> float:
    """Energy distance to the exact posterior, mean over the steps that keep it."""
    known = run.energy_distances[~np.isnan(run.energy_distances)]
    return float(known.mean()) if len(known) else np.nan


def ms_per_step(run: RunRecord) -> float:
    """Milliseconds per step."""
    return 1e3 * run.seconds / len(run.recording)


def seconds(run: RunRecord) -> float:
    """Seconds for the run."""
    return run.seconds


def _share(squares: Array, degrees: Array) -> float:
    """Sum of normalised squares over the sum of their degrees of freedom."""
    total = degrees.sum()
    return float(np.nansum(squares) / total) if total > 0 else np.nan
