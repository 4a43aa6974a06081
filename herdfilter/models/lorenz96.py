"""The Lorenz-96 system: variables round a circle of latitude, chaotic, of any dimension."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array, check_count
from herdfilter._repr import fields_in_line
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import as_partial_observation, assign, assign_positive, substeps


@dataclass(frozen=True, eq=False)
class Lorenz96:
    r"""Lorenz-96 system, every variable or some of them observed.

    .. math::
        \dot x_i = (x_{i+1} - x_{i-2})\, x_{i-1} - x_i + F, \quad i \bmod d, \qquad
        y_j = x_{sj} + N(0, R), \quad j = 0, 1, \dots

    Between observations the equations are integrated by the classical fourth-order Runge-Kutta method; the
    transition adds :math:`N(0, q\, \Delta t\, I)`, and is additive. All quantities are dimensionless; a time
    unit stands for about five days.

    Parameters
    ----------
    dim : int
        Number of variables d, at least 4.
    forcing : float
        Forcing F; from about 8 on the system is chaotic in every dimension used here.
    observed_every : int
        Stride s: variables 0, s, 2s and so on are observed.
    noise_rate : float
        Variance q of the transition noise for each unit of time.
    observation_variance : float
        Variance R of the noise of an observed variable.
    integration_step : float
        Longest step of the integration, in time units.
    initial_mean : array_like, shape (d,), optional
        Mean of the state at step 0. By default a state of the attractor: where the system is 10 time units
        after the start of Lorenz and Emanuel (1998), F everywhere but F + 0.008 in one variable.
    initial_variance : float
        Variance of each variable at step 0.

    Raises
    ------
    ValueError
        If a number is out of range or a shape does not fit.

    Notes
    -----
    Lorenz (1996), "Predictability: a problem partly solved", ECMWF Seminar on Predictability, eq. 1. The
    defaults follow Bocquet, Pires and Wu (2010), "Beyond Gaussian statistical modeling in geophysical data
    assimilation", Monthly Weather Review 138, figure 1, as DAPPER (Raanes and others, 2024) has it: ten
    variables, every second one observed every 0.05 time units with standard deviation 1.5. The initial state
    is ours. So is the noise of the transition: without any, resampled particles stay copies of each other.

    Examples
    --------
    The state that equals the forcing everywhere stays as it is, but the least disturbance leads away from it.

    >>> model = hf.models.Lorenz96(dim=6, observed_every=2)
    >>> rest = np.full((1, 6), 8.0)
    >>> np.allclose(model.transition_mean(rest, dt=5.0, control=None, step=1), rest)
    True
    >>> disturbed = rest + [0.001, 0, 0, 0, 0, 0]
    >>> np.allclose(model.transition_mean(disturbed, dt=5.0, control=None, step=1), rest, atol=0.1)
    False

    Every second variable is seen, and a filter tells of all.

    >>> truth, z = hf.simulate(model, steps=10, dt=0.05, rng=1)
    >>> result = hf.EnsembleKalmanFilter(model, n_particles=40, rng=0).run(z, dt=0.05)
    >>> z.shape, result.means.shape
    ((10, 3), (10, 6))
    """

    dim: int = 10
    forcing: float = 8.0
    observed_every: int = 2
    noise_rate: float = 0.1
    observation_variance: float = 2.25
    integration_step: float = 0.05
    initial_mean: Array | None = None
    initial_variance: float = 1.0

    partial_observations = True

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        assign(
            self,
            dim=check_count("dim", self.dim, minimum=4),
            observed_every=check_count("observed_every", self.observed_every),
        )
        assign_positive(self, "forcing", "noise_rate", "observation_variance")
        assign_positive(self, "integration_step", "initial_variance")
        if self.observed_every > self.dim:
            raise ValueError(f"observed_every: expected at most dim = {self.dim}, got {self.observed_every}")
        mean = self._on_the_attractor() if self.initial_mean is None else self.initial_mean
        assign(self, initial_mean=as_array("initial_mean", mean, (self.dim,)))

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0."""
        mean = np.asarray(self.initial_mean)
        return GaussianMixture([1.0], mean[None], self.initial_variance * np.eye(self.dim))

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) after a time `dt` without noise; `control` is not used."""
        steps = substeps(dt, self.integration_step)
        h = dt / steps
        for _ in range(steps):
            a = self._derivative(x)
            b = self._derivative(x + 0.5 * h * a)
            c = self._derivative(x + 0.5 * h * b)
            x = x + h / 6.0 * (a + 2.0 * (b + c) + self._derivative(x + h * c))
        return x

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise added over a time `dt`, (d, d)."""
        return self.noise_rate * dt * np.eye(self.dim)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Mean of the observation: every s-th variable, (n, k)."""
        return x[:, :: self.observed_every]

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, k, d)."""
        rows = np.eye(self.dim)[:: self.observed_every]
        return np.broadcast_to(rows, (len(x), *rows.shape))

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the observation noise, (k, k)."""
        return self.observation_variance * np.eye(len(range(0, self.dim, self.observed_every)))

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the finite part of observation `z`, shape (k,), at each state; (n, d) -> (n,)."""
        mean = self.observation_mean(x, step)
        z, kept = as_partial_observation(z, mean.shape[1])
        residual = (z - mean)[:, kept]
        variance = self.observation_variance
        return -0.5 * ((residual**2).sum(axis=1) / variance + len(kept) * np.log(2 * np.pi * variance))

    def _on_the_attractor(self) -> Array:
        start = self.forcing + 0.008 * np.eye(1, self.dim)
        return self.transition_mean(start, 10.0, None, 0)[0]

    def _derivative(self, x: Array) -> Array:
        after, before, two_before = (np.roll(x, shift, axis=1) for shift in (-1, 1, 2))
        return (after - two_before) * before - x + self.forcing
