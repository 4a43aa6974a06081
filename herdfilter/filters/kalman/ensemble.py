"""The ensemble Kalman filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from herdfilter import _checks, angles
from herdfilter._checks import Array
from herdfilter.filters.kalman.core import KalmanFilter
from herdfilter.filters.kalman.update import inverse_factor
from herdfilter.filters.observation import Observation
from herdfilter.filters.resampling.base import inverse_cdf
from herdfilter.filters.state import predicted_moments
from herdfilter.models import contract, resolved


class EnsembleKalmanFilter(KalmanFilter):
    """Kalman filter whose covariances are those of a random ensemble (Evensen 1994).

    Each of the n members goes through the transition with independent noise, and is corrected by the ensemble's gain
    towards the observation plus independent noise (Burgers, van Leeuwen and Evensen 1998). There is neither
    inflation nor localisation. filterpy's ``EnsembleKalmanFilter`` draws from the global generator, knows no angles, and
    after an update its covariance is not that of its ensemble.

    Parameters
    ----------
    model : object
        With ``dim``, ``initial``, a transition of any form, ``observation_mean`` and ``observation_covariance``.
    n_particles : int
        Size n of the ensemble, at least 2.
    rng : numpy.random.Generator or int, optional
        Source of every random draw.

    Examples
    --------
    Every second of ten variables of a chaotic system is observed, with noise of standard deviation 1.5.

    >>> model = hf.models.Lorenz96(dim=10)
    >>> truth, z = hf.simulate(model, steps=60, dt=0.05, rng=1)
    >>> result = hf.EnsembleKalmanFilter(model, n_particles=80, rng=0).run(z, dt=0.05)
    >>> bool(np.sqrt(np.mean((result.means[30:] - truth[30:]) ** 2)) < 1.5)
    True
    """

    belief: Ensemble
    _settings: tuple[str, ...] = ()
    _initial_needs: tuple[str, ...] = ("sample",)
    _takes_bounds = False
    _transitions: tuple[tuple[str, ...], ...] = (
        contract.ADDITIVE,
        contract.FROM_NOISE,
        ("sample_transition",),
    )

    @_checks.known_keywords
    def __init__(
        self,
        model: contract.Model,
        n_particles: int = 100,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        self.n_particles = _checks.check_count("n_particles", n_particles, minimum=2)
        self.rng = _checks.as_generator(rng)
        super().__init__(model)

    @property
    def particles(self) -> Array:
        """The members, shape (n, d), of equal weight."""
        return self.belief.members

    def _initial(self) -> Ensemble:
        self._check_model(self.model)
        return Ensemble(resolved.Motion(self.model).sample_initial(self.n_particles, self.rng))

    def _predict(self, transition: resolved.Transition) -> Ensemble:
        return Ensemble(transition.sample(self.particles, self.rng))

    def _moments(self, belief: Ensemble) -> tuple[Array, Array]:
        n = self.n_particles
        mean, covariance = angles.moments(belief.members, np.full(n, 1 / n), self._circular)
        return mean, covariance * n / (n - 1)  # unbiased

    def _ess(self, belief: Ensemble) -> float:
        return float(self.n_particles)

    def _update(self, observation: Observation) -> tuple[Ensemble, float]:
        """Correct each member by the ensemble's gain, towards the observation plus independent noise."""
        n = self.n_particles
        circular = self._circular
        # angles are unwrapped about the circular mean of the ensemble
        equal = np.ones(n)
        members = angles.unwrap(self.particles, equal, circular)
        means = angles.unwrap(observation.mean(self.particles), equal, observation.circular)
        # Sample covariances P_xz and P_zz of the ensemble, the mean noise covariance added to the latter.
        predicted = means.mean(axis=0)
        spread = (means - predicted) / (n - 1)
        cross = (members - members.mean(axis=0)).T @ spread
        noises = observation.measurement.noises(self.particles, len(predicted), observation.step)
        covariance = (means - predicted).T @ spread + noises.mean(axis=0)
        # missing entries do not correct
        cross = cross[:, observation.observed_entries]
        covariance = observation.part(covariance)
        whitening = inverse_factor(covariance, observation.step)
        white = self.rng.standard_normal((n, len(observation.observed_entries)))
        residuals = observation.residuals(means)
        residuals += contract.correlated(white, observation.part(noises))
        # The gain P_xz S^-1 without S^-1: with W = L^-1 and S = L L' it is P_xz W' W.
        corrections = residuals @ whitening.T @ (whitening @ cross.T)
        # by W, which is at hand: `gaussian_log_density` would factorise S again, and fill its cache with them
        white = observation.residuals(predicted[None])[0] @ whitening.T
        log_density = np.log(np.diagonal(whitening)).sum() - 0.5 * (
            white @ white + len(white) * np.log(2 * np.pi)
        )
        return Ensemble(angles.wrap(self.particles + corrections, circular)), float(log_density)

    def _predicted_observation(self, measurement: resolved.Measurement) -> tuple[Array, Array]:
        n = self.n_particles
        mean, covariance, noise = predicted_moments(
            measurement, self.particles, np.full(n, 1 / n), self.step
        )
        # the unbiased covariance, as in the update
        return mean, covariance * (n / (n - 1)) + noise

    def _combine(self, beliefs: Sequence[Ensemble], weights: Array) -> Ensemble:
        """Take n members of all ensembles, at even steps through their weights."""
        n = self.n_particles
        members = np.concatenate([belief.members for belief in beliefs])
        return Ensemble(members[inverse_cdf(np.repeat(weights / n, n), (np.arange(n) + 0.5) / n)])


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Members (n, d) of equal weight."""

    members: Array
