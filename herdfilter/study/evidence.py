"""What is known of one filter in one run, over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.discrepancy import energy_distance
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import circular_dims, wrap_angles
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
from herdfilter.study.watch import Watched

__all__ = ["Evidence"]


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
        What the filter's ``run`` returned: ``means`` (T, d), and what else of `FilterResult` it has; a tracker's has
        ``means`` and ``labels`` for each step.
    seconds : float
        Time that the filter took.
    watched : Watched or None
        What was seen on the way; without it there are no innovations and no energy distance.

    Examples
    --------
    >>> from herdfilter.study.evidence import Evidence
    >>> from herdfilter.study.recording import Recording
    >>> from herdfilter.study.scenario import load_scenario
    >>> scenario = load_scenario("linear_gaussian")
    >>> model = scenario.build_model()
    >>> truth, z = hf.simulate(model, 10, rng=1)
    >>> result = hf.make_filter("ukf", model).run(z)
    >>> run = Evidence(scenario, model, Recording(truth, z), result=result)
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
