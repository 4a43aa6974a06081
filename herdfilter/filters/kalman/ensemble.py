"""The ensemble Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_count, as_generator
from herdfilter.angles import unwrap_angles, wrap_angles
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.innovation import Innovation
from herdfilter.mixture import covariance_factor
from herdfilter.models.contract import (
    ADDITIVE,
    OBSERVED,
    Model,
    circular_dims,
    observation_circular,
    observation_mean,
    require,
    sample_initial,
    sample_transition,
)


class EnsembleKalmanFilter(KalmanFilter):
    """Kalman filter whose covariances are those of a random ensemble (Evensen 1994).

    Each of the n members goes through the transition with noise of its own, and is corrected by the gain of the
    ensemble towards an observation with noise added to it (Burgers, van Leeuwen and Evensen 1998). There is neither
    inflation nor localisation.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial``, a transition of any form, ``observation_mean`` and ``observation_covariance``.
    n_particles : int
        Size n of the ensemble, at least 2.
    rng : numpy.random.Generator or int, optional
        Source of every random draw.

    Raises
    ------
    TypeError
        If the model lacks a function.
    ValueError
        If a number is out of range.

    Notes
    -----
    filterpy's ``EnsembleKalmanFilter`` is not called: it draws from the global generator, loops over members in
    Python, knows no angles, and after an update its covariance is not that of its ensemble.
    """

    _belief: _Ensemble

    def __init__(
        self, model: Model, n_particles: int = 100, rng: np.random.Generator | int | None = None
    ) -> None:
        user = "EnsembleKalmanFilter"
        require(model, user, ("dim", "initial"))
        require(model, user, ADDITIVE, ("transition", "noise_dim"), ("sample_transition",))
        require(model, user, OBSERVED)
        self.n_particles = as_count("n_particles", n_particles, minimum=2)
        self.rng = as_generator(rng)
        members = sample_initial(model, self.n_particles, self.rng)
        if members.shape != (self.n_particles, model.dim):
            raise ValueError(
                f"initial: expected draws of shape ({self.n_particles}, {model.dim}), got {members.shape}"
            )
        super().__init__(model, _Ensemble(members, circular_dims(model), self.rng))

    @property
    def particles(self) -> Array:
        """The members, shape (n, d), of equal weight."""
        return self._belief.members


@dataclass(frozen=True, eq=False)
class _Ensemble:
    """Members (n, d), of equal weight; see `Belief`."""

    members: Array
    circular: tuple[int, ...]
    rng: np.random.Generator

    @property
    def ess(self) -> float:
        return float(len(self.members))

    @property
    def mean(self) -> Array:
        return _unwrapped(self.members, self.circular).mean(axis=0)

    @property
    def covariance(self) -> Array:
        centred = _centred(self.members, self.circular)
        return centred.T @ centred / (len(centred) - 1)

    def predicted(self, model: Model, dt: float, control: Any, step: int) -> _Ensemble:
        members = sample_transition(model, self.members, self.rng, dt, control, step)
        return _Ensemble(members, self.circular, self.rng)

    def updated(self, model: Model, z: Array, step: int) -> tuple[_Ensemble, float]:
        n = len(self.members)
        seen = observation_mean(model, self.members, step)
        seen = _unwrapped(seen, observation_circular(model, seen.shape[1]))
        predicted = seen.mean(axis=0)
        spread = (seen - predicted) / (n - 1)
        cross = _centred(self.members, self.circular).T @ spread
        covariance = (seen - predicted).T @ spread
        innovation = Innovation(model, z, predicted[None], covariance[None], cross[None], step)
        noise = self.rng.standard_normal((n, len(innovation.kept))) @ covariance_factor(innovation.noise).T
        corrections = innovation.corrections((innovation.residuals(seen) + noise)[None])[0]
        members = wrap_angles(self.members + corrections, self.circular)
        return _Ensemble(members, self.circular, self.rng), float(innovation.log_densities[0])


def _unwrapped(x: Array, circular: tuple[int, ...]) -> Array:
    return unwrap_angles(x, np.ones(len(x)), circular)


def _centred(x: Array, circular: tuple[int, ...]) -> Array:
    x = _unwrapped(x, circular)
    return x - x.mean(axis=0)
