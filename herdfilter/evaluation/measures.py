"""What is measured of one filter in one run: numbers for the table of runs, and series over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from herdfilter.evaluation.watch import Watched
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import circular_dims, wrap_angles
from herdfilter.points import Points

if TYPE_CHECKING:
    from herdfilter.evaluation.study import Study

SCALARS = (
    "rmse",
    "final_rmse",
    "reference_error",
    "log_likelihood",
    "log_likelihood_error",
    "ess",
    "anees",
    "nees_inside",
    "nees_singular",
    "nees_degrees",
    "nis",
    "nis_inside",
    "nis_degrees",
    "energy_distance",
    "ms_per_step",
    "seconds",
    "diverged",
)
"""Numbers measured of each run; columns of the table."""

TIMES = ("ms_per_step", "seconds")
"""Those that differ from one machine, and one hour, to the next."""

SERIES = (
    "truth",
    "reference",
    "nees",
    "nees_degrees",
    "nis",
    "nis_degrees",
    "ess",
    "energy_distance",
)
"""Series measured of each run, each of shape (T,), where they can be had."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What is measured of one filter in one run.

    Attributes
    ----------
    scalars : dict
        `SCALARS`; NaN where a number cannot be had.

        ``rmse``, ``reference_error``
            Root mean square over time of the errors below.
        ``final_rmse``, ``diverged``
            ``rmse`` over the final part of the run, and 1 where it exceeds the scenario's bound, else 0.
        ``log_likelihood``, ``log_likelihood_error``
            The filter's, and its difference from the reference's.
        ``ess``
            Mean over time.
        ``anees``, ``nees_inside``, ``nees_singular``, ``nees_degrees``
            Mean over time of NEES / d; share of steps at which the truth lies in the filter's 95 % ellipsoid; number of
            steps left out because the covariance is singular; d, the degrees of freedom of one step.
        ``nis``, ``nis_inside``, ``nis_degrees``
            Sum of NIS over the number of all entries observed, which is the last; share of observations in the 95 %
            ellipsoid of their prediction.
        ``energy_distance``
            Mean over the steps at which the exact posterior is kept.
        ``ms_per_step``, ``seconds``
            A step, and the whole run.
    series : dict
        Those of `SERIES` that have a value at some step, each (T,), with NaN where they have none.

        ``truth``, ``reference``
            Squared distance of the mean to the truth, and to the reference's mean, over the dimensions whose error counts.
        ``nees``, ``nees_degrees``
            Normalised estimation error squared over the full state, and d; NaN and 0 where the covariance is singular.
        ``nis``, ``nis_degrees``
            Normalised innovation squared, and the number of entries observed; NaN and 0 where there is none.
        ``ess``
            Effective sample size.
        ``energy_distance``
            Of the particles to the exact posterior, in units of that posterior's standard deviation in each dimension.
    """

    scalars: dict[str, float]
    series: dict[str, Array]


def measure(
    study: Study,
    model: Any,
    recording: Recording,
    reference: Reference | None,
    result: Any,
    ms_per_step: float,
    watched: Watched | None = None,
) -> Measured:
    """Measure a filter's result against the truth of a recording and its reference.

    Parameters
    ----------
    study : Study
        Says which dimensions count and when a run diverged.
    model : object
    recording : Recording
    reference : Reference or None
    result : object
        With ``means`` (T, d), and what else of `FilterResult` it has.
    ms_per_step : float
        Time that the filter took.
    watched : Watched, optional
        What was seen on the way; without it there are no innovations and no energy distance.

    Raises
    ------
    ValueError
        If the means are not (T, d) finite numbers.
    """
    T, dims, circular = len(recording), study.dims(model), circular_dims(model)
    nothing = np.full(T, np.nan)
    means = as_array("estimates", result.means, recording.truth.shape)
    truth = squared_error(means, recording.truth, dims, circular)
    against = nothing if reference is None else squared_error(means, reference.means, dims, circular)
    covariances = getattr(result, "covariances", None)
    nees = nothing
    if covariances is not None:
        errors = wrap_angles(recording.truth - means, circular)
        nees = normalised_squares(errors, np.asarray(covariances, dtype=np.float64))
    series = {
        "truth": truth,
        "reference": against,
        "nees": nees,
        "nees_degrees": np.where(np.isfinite(nees), float(model.dim), 0.0),
        "nis": nothing if watched is None else watched.nis,
        "nis_degrees": np.zeros(T) if watched is None else watched.nis_degrees,
        "ess": np.broadcast_to(np.asarray(getattr(result, "ess", np.nan), dtype=np.float64), T).copy(),
        "energy_distance": nothing if watched is None else _energy_distances(T, reference, watched),
    }
    bound = study.scenario.divergence
    final = np.nan if bound is None else root_mean(truth[-max(1, round(bound.final_part * T)) :])
    log_likelihood = float(getattr(result, "log_likelihood", np.nan))
    expected = np.nan if reference is None else reference.log_likelihood
    values = (
        root_mean(truth),
        final,
        root_mean(against),
        log_likelihood,
        log_likelihood - expected,
        float(series["ess"].mean()),
        _share(nees, series["nees_degrees"]),
        inside_ellipsoid(nees, series["nees_degrees"]),
        np.nan if covariances is None else float(np.isnan(nees).sum()),
        float(model.dim),
        _share(series["nis"], series["nis_degrees"]),
        inside_ellipsoid(series["nis"], series["nis_degrees"]),
        float(series["nis_degrees"].sum()),
        _mean(series["energy_distance"]),
        ms_per_step,
        1e-3 * ms_per_step * T,
        float(bound is not None and final > bound.rmse_above),
    )
    had = {name for name, of in series.items() if np.isfinite(of).any()}
    return Measured(
        dict(zip(SCALARS, values, strict=True)),
        {name: of for name, of in series.items() if name.removesuffix("_degrees") in had},
    )


def _energy_distances(T: int, reference: Reference | None, watched: Watched) -> Array:
    distances = np.full(T, np.nan)
    for k, posterior in ({} if reference is None else reference.posteriors).items():
        if k in watched.particles:
            distances[k] = _energy_distance(*watched.particles[k], posterior)
    return distances


def _energy_distance(x: Array, weights: Array, posterior: GaussianMixture | LineDensity) -> float:
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


def _share(squares: Array, degrees: Array) -> float:
    """Sum of normalised squares over the sum of their degrees of freedom."""
    total = degrees.sum()
    return float(np.nansum(squares) / total) if total > 0 else np.nan


def _mean(values: Array) -> float:
    """Mean of the values that are not NaN."""
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else np.nan
