"""A Gaussian belief, carried through nonlinear functions by a plugged-in rule for moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.angles import unwrap_angles, wrap_angles
from herdfilter.filters.kalman.core import IndefiniteCovarianceError
from herdfilter.filters.kalman.innovation import Innovation
from herdfilter.mixture import GaussianMixture
from herdfilter.models.contract import (
    ADDITIVE,
    Model,
    circular_dims,
    noise_dim,
    observation_circular,
    observation_mean,
    propagate,
    require,
    transition_covariance,
    transition_mean,
)

TOLERANCE = 1e-8
"""Negative eigenvalues that are put down to rounding and raised to zero, as a share of the variances."""


@dataclass(frozen=True, eq=False)
class VectorFunction:
    """A function (n, m) -> (n, k) of a Gaussian variable; some of its values may be angles.

    Attributes
    ----------
    values : callable
        (n, m) -> (n, k).
    circular : callable
        k -> indices of the angle-valued ones of k values.
    jacobian : callable or None
        (n, m) -> (n, k, m), where the model gives it.
    """

    values: Callable[[Array], Array]
    circular: Callable[[int], tuple[int, ...]]
    jacobian: Callable[[Array], Any] | None = None


class MomentRule(Protocol):
    """How the moments of a function of a Gaussian variable are computed; exact where it is linear."""

    def __call__(
        self, function: VectorFunction, mean: Array, covariance: Array
    ) -> tuple[Array, Array, Array]:
        """Return mean (k,), covariance (k, k) and cross-covariance (m, k) of the values, given those of N(m)."""
        ...


@dataclass(frozen=True, eq=False)
class GaussianBelief:
    """The state is N(mean, covariance); see `Belief`."""

    mean: Array
    covariance: Array
    rule: MomentRule
    ess: float = np.nan

    @classmethod
    def initial(cls, model: Model, user: str, rule: MomentRule) -> GaussianBelief:
        """Start from the moments of the model's initial distribution, after checking what the model has."""
        require(model, user, ("dim", "initial"))
        require(model, user, ADDITIVE, ("transition", "noise_dim"))
        require(model, user, ("observation_mean", "observation_covariance"))
        require(model.initial, f"{user}'s initial distribution", ("mean", "covariance"))
        start, circular = model.initial, circular_dims(model)
        if circular and isinstance(start, GaussianMixture):
            means = unwrap_angles(start.means, start.weights, circular)
            start = GaussianMixture.trusted(start.weights, means, start.distinct_covariances)
        mean = as_array("initial.mean", start.mean, (model.dim,))
        return cls(mean, as_array("initial.covariance", start.covariance, (model.dim, model.dim)), rule)

    def predicted(self, model: Model, dt: float, control: Any, step: int) -> GaussianBelief:
        """Additive noise adds its covariance; other noise is a part of the Gaussian that goes through the transition."""
        d, circular = model.dim, circular_dims(model)
        if all(hasattr(model, name) for name in ADDITIVE):
            jacobian = getattr(model, "transition_jacobian", None)
            function = VectorFunction(
                lambda x: transition_mean(model, wrap_angles(x, circular), dt, control, step),
                lambda _: circular,
                jacobian and (lambda x: jacobian(wrap_angles(x, circular), dt, control, step)),
            )
            mean, covariance, _ = self.rule(function, self.mean, self.covariance)
            covariance = covariance + transition_covariance(model, dt, step)
        else:
            function = VectorFunction(
                lambda x: propagate(model, wrap_angles(x[:, :d], circular), x[:, d:], dt, control, step),
                lambda _: circular,
            )
            joint = np.eye(d + noise_dim(model))
            joint[:d, :d] = self.covariance
            mean, covariance, _ = self.rule(function, np.append(self.mean, np.zeros(len(joint) - d)), joint)
        covariance = definite(covariance, np.diagonal(covariance), step, "predicted")
        return GaussianBelief(wrap_angles(mean, circular), covariance, self.rule)

    def updated(self, model: Model, z: Array, step: int) -> tuple[GaussianBelief, float]:
        """Kalman's update with the moments of state and observation."""
        circular = circular_dims(model)
        jacobian = getattr(model, "observation_jacobian", None)
        function = VectorFunction(
            lambda x: observation_mean(model, wrap_angles(x, circular), step),
            lambda size: observation_circular(model, size),
            jacobian and (lambda x: jacobian(wrap_angles(x, circular), step)),
        )
        predicted, covariance, cross = self.rule(function, self.mean, self.covariance)
        innovation = Innovation(model, z, predicted, covariance, cross, step)
        mean = self.mean + innovation.corrections(innovation.residuals(predicted)[None])[0]
        shrunk = definite(
            self.covariance - innovation.reduction, np.diagonal(self.covariance), step, "updated"
        )
        return GaussianBelief(wrap_angles(mean, circular), shrunk, self.rule), innovation.log_density


def definite(covariance: Array, variances: Array, step: int, what: str) -> Array:
    """Return a covariance made symmetric and, where rounding took that away, positive semi-definite.

    Eigenvalues, relative to the `variances` (d,) that it was computed from, are raised to zero if they are above minus
    `TOLERANCE`; if one is below, IndefiniteCovarianceError names the step and which covariance it is.
    """
    covariance = 0.5 * (covariance + covariance.T)
    if not np.isfinite(covariance).all():
        raise IndefiniteCovarianceError(step, what)
    try:
        np.linalg.cholesky(covariance)
        return covariance
    except np.linalg.LinAlgError:
        pass
    scale = np.sqrt(np.maximum(variances, np.abs(np.diagonal(covariance))))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    if values[0] < -TOLERANCE:
        raise IndefiniteCovarianceError(step, what)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) * scale[:, None]
    return root @ root.T
