"""Numbers of one run of one filter that take more than a line: functions of its `RunRecord`, which the columns name."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.contract import circular_dims, wrap_angles
from herdfilter.study.metrics import root_mean
from herdfilter.study.run_record import RunRecord

SMALLEST_RATIO = 1e-6
"""Ratios of variances are clipped below here: particles that all coincide have a variance of 0, without a logarithm."""


def final_rmse(run: RunRecord) -> float:
    """Root mean square of the error to the truth over the final part of the run, which the scenario's bound names."""
    bound = run.scenario.divergence
    if bound is None:
        return np.nan
    return root_mean(run.truth[-max(1, round(bound.final_part * len(run.recording))) :])


def diverged(run: RunRecord) -> float:
    """1 where `final_rmse` exceeds the scenario's bound, else 0."""
    bound = run.scenario.divergence
    return float(bound is not None and final_rmse(run) > bound.rmse_above)


def reference_sd(run: RunRecord) -> float:
    """Return the standard error of the reference's own posterior mean, RMS over time."""
    return np.nan if run.reference is None else run.reference.sd(run.dims)


def reference_error_sd(run: RunRecord) -> float:
    """Root mean square, over time and the dimensions that count, of the error to the reference in `posterior_sd`."""
    if run.reference is None:
        return np.nan
    errors = wrap_angles(run.means - run.reference.means, circular_dims(run.model))[:, run.dims]
    return _root_mean_square(errors / run.posterior_sd)


def reference_uncertainty(run: RunRecord) -> float:
    """Return the standard error of the reference's own posterior mean, taken as `reference_error_sd` is."""
    if run.reference is None:
        return np.nan
    return _root_mean_square(run.reference.error[:, run.dims] / run.posterior_sd)


def log_likelihood_of(run: RunRecord) -> float:
    """Log-likelihood that the filter estimates; NaN with many targets."""
    return np.nan if run.recording.many else float(getattr(run.result, "log_likelihood", np.nan))


def log_likelihood_error(run: RunRecord) -> float:
    """Log-likelihood minus that of the reference."""
    return log_likelihood_of(run) - (np.nan if run.reference is None else run.reference.log_likelihood)


def variance_ratio(run: RunRecord) -> float:
    """Geometric mean, over time and the dimensions whose error counts, of the filter's variance over the reference's.

    Half and twice the right variance count alike, and a filter that is sure of itself at some steps is not excused by
    others at which it is too modest.
    """
    if run.covariances is None:
        return np.nan
    own = np.diagonal(run.covariances, axis1=1, axis2=2)[:, run.dims]
    ratios = own / run.posterior_sd**2
    logs = np.log(np.maximum(ratios[np.isfinite(ratios)], SMALLEST_RATIO))
    return float(np.exp(logs.mean())) if logs.size else np.nan


def mean_energy_distance(run: RunRecord) -> float:
    """Energy distance to the exact posterior, mean over the steps that keep it."""
    known = run.energy_distances[~np.isnan(run.energy_distances)]
    return float(known.mean()) if len(known) else np.nan


def gospa_part(run: RunRecord, name: str) -> float:
    """Part of GOSPA, the p-th root of its mean over time; NaN with one target."""
    return np.nan if run.sets is None else run.sets.part(name)


def normalised_mean(squares: Array, degrees: Array) -> float:
    """Sum of normalised squares over the sum of their degrees of freedom; NaN without any."""
    total = degrees.sum()
    return float(np.nansum(squares) / total) if total > 0 else np.nan


def _root_mean_square(values: Array) -> float:
    known = values[~np.isnan(values)]
    return root_mean(known**2) if known.size else np.nan
