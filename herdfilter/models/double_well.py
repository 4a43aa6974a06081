"""A particle in a double well, observed at every tenth step or so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.parts import NoisyFlow


@dataclass(frozen=True)
class DoubleWell(NoisyFlow):
    r"""Double well with additive noise, whose state is observed only at every tenth step or so.

    .. math::
        \dot x = 4 x - 4 x^3, \qquad x_k = \phi_{\Delta t}(x_{k-1}) + N(0, q \Delta t), \qquad
        y_k = x_k + N(0, R) \quad \text{if } m \text{ divides } k, \qquad x_0 \sim N(0, P_0)

    Between two steps, a time `dt` apart, the equation is solved exactly, by :math:`\phi`; then noise is added. All
    quantities are dimensionless. The wells are at -1 and 1, and the prior is symmetric: the posterior has two modes.

    Parameters
    ----------
    noise_rate : float
        Variance q of the noise for each unit of time.
    observation_variance : float
        Variance R of an observation.
    observed_every : int
        Number m of steps from one observation to the next; simulated observations in between are NaN.
    initial_variance : float
        Variance P_0 of the state at step 0.

    Notes
    -----
    The system of Miller, Ghil and Gauthiez (1994), "Advanced data assimilation in strongly nonlinear dynamical systems",
    Journal of the Atmospheric Sciences 51. The numbers are ours.

    Examples
    --------
    Every tenth step is observed.

    >>> truth, z = hf.simulate(hf.models.DoubleWell(), steps=20, dt=0.1, rng=1)
    >>> np.flatnonzero(np.isfinite(z[:, 0])).tolist()
    [9, 19]
    """

    noise_rate: float = 0.8
    observation_variance: float = 0.5
    observed_every: int = 10
    initial_variance: float = 1.0

    dim = 1

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 1) after a time `dt` without noise; `control` is not used."""
        # u = 1 / x^2 follows the linear equation du/dt = 8 - 8 u, as Bernoulli's substitution shows
        decay = math.exp(-8.0 * dt)
        return x / np.sqrt(decay + (1.0 - decay) * x**2)

    def sample_observation(self, x: Array, rng: np.random.Generator, step: int) -> Array:
        """Draw an observation of each state, (n, 1) -> (n, 1); NaN at a step that is not observed."""
        if step % self.observed_every:
            return np.full(x.shape, np.nan)
        return x + math.sqrt(self.observation_variance) * rng.standard_normal(x.shape)
