"""Stochastic volatility: the state is the log-variance of the observation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_number
from herdfilter.mixture import GaussianMixture
from herdfilter.models.parts import Parameters, as_observation


@dataclass(frozen=True)
class StochasticVolatility(Parameters):
    r"""Returns of mean zero, whose log-variance is an autoregressive process.

    .. math::
        x_k &= \mu + \rho (x_{k-1} - \mu) + N(0, \sigma^2), \qquad
        x_0 \sim N\left(\mu, \frac{\sigma^2}{1 - \rho^2}\right), \\
        y_k &= e^{x_k / 2} \epsilon_k, \qquad \epsilon_k \sim N(0, 1)

    The process is stationary from the start. All quantities are dimensionless, x a logarithm. Time is discrete:
    `dt` and `control` have no meaning and are not used.

    The mean of an observation is zero whatever the state. Therefore the model has no `observation_mean`: Kalman filters
    would learn nothing, and refuse it.

    Parameters
    ----------
    mu : float
        Mean of the log-variance.
    rho : float
        Persistence of the log-variance, above -1 and below 1.
    sigma : float
        Standard deviation of its noise.

    Notes
    -----
    Pitt and Shephard (1999), "Filtering via simulation: auxiliary particle filters", Journal of the American Statistical
    Association 94. Their form is :math:`y = \beta e^{x / 2} \epsilon` with x of mean zero; :math:`\mu = 2 \log \beta`.

    Examples
    --------
    A return of 0 makes a low volatility more likely, a large one a high volatility.

    >>> model = hf.models.StochasticVolatility()
    >>> quiet, wild = (hf.make_filter("auto", model, 50).run([y, y, y]).means[-1, 0] for y in (0.0, 3.0))
    >>> bool(quiet < model.mu < wild)
    True
    """

    mu: float = -1.02
    rho: float = 0.9702
    sigma: float = 0.178

    dim = 1
    signed = ("mu", "rho")

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number("rho", self.rho, "a number above -1 and below 1", lambda rho: -1 < rho < 1)

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0: the stationary one."""
        # the variance v that the recursion keeps: v = rho^2 v + sigma^2
        return GaussianMixture([1.0], [[self.mu]], [[self.sigma**2 / (1 - self.rho**2)]])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Mean of the state given the states (n, 1) one step before."""
        return self.mu + self.rho * (x - self.mu)

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the transition noise, (1, 1)."""
        return np.array([[self.sigma**2]])

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of observation `z`, shape (1,), at each state; (n, 1) -> (n,)."""
        # log N(z; 0, e^x)
        scaled = as_observation(z, 1) * np.exp(-0.5 * x[:, 0])
        return -0.5 * (scaled**2 + x[:, 0] + np.log(2 * np.pi))

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw a return at each state, (n, 1) -> (n, 1)."""
        return np.exp(0.5 * x) * rng.standard_normal(x.shape)
