"""The Lorenz-96 system: variables round a circle of latitude, chaotic, of any dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array, check_count
from herdfilter.models import parts


@parts.frozen
class Lorenz96(parts.NoisyFlow):
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

    Notes
    -----
    Lorenz (1996), "Predictability: a problem partly solved", ECMWF Seminar on Predictability, eq. 1. The
    defaults follow Bocquet, Pires and Wu (2010), "Beyond Gaussian statistical modeling in geophysical data
    assimilation", Monthly Weather Review 138, figure 1, as DAPPER (Raanes and others, 2024) has it: ten
    variables, every second one observed every 0.05 time units with standard deviation 1.5. The initial state
    is ours. So is the noise of the transition: without any, resampled particles stay copies of each other.

    Examples
    --------
    Every second variable is observed, and a filter estimates all of them.

    >>> model = hf.models.Lorenz96(dim=6, observed_every=2)
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("dim", self.dim, minimum=4)
        if self.observed_every > self.dim:
            raise ValueError(
                f"observed_every: expected at most dim = {self.dim}, got {self.observed_every}"
            )
        mean = self.initial_mean
        # the start of Lorenz and Emanuel: a perturbed equilibrium, which takes 10 time units to the attractor
        if mean is None:
            start = self.forcing + 0.008 * np.eye(1, self.dim)
            (mean,) = self.transition_mean(start, 10.0, None, 0)
        parts.assign(self, initial_mean=as_array("initial_mean", mean, (self.dim,)))

    @property
    def observed_entries(self) -> slice:  # type: ignore[override]
        """Entries of the state that are observed."""
        return slice(None, None, self.observed_every)

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) after a time `dt` without noise; `control` is not used."""
        steps = parts.substeps(dt, self.integration_step)
        return parts.runge_kutta(self._derivative, x, dt / steps, steps)

    def _derivative(self, x: Array) -> Array:
        # eq. 1: (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F
        after, before, two_before = (np.roll(x, shift, axis=1) for shift in (-1, 1, 2))
        return (after - two_before) * before - x + self.forcing
