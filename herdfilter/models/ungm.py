"""The univariate nonstationary growth model: one dimension, two modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.compiled import CompiledModel
from herdfilter.models.parts import EqualVariances


@dataclass(frozen=True)
class UNGM(EqualVariances):
    r"""Univariate nonstationary growth model, whose squared observation leaves the sign of the state open.

    .. math::
        x_k &= x_{k-1}/2 + 25 x_{k-1} / (1 + x_{k-1}^2) + 8 \cos(1.2 k) + q_k, \quad q_k \sim N(0, Q), \\
        y_k &= x_k^2 / 20 + r_k, \quad r_k \sim N(0, R), \qquad x_0 \sim N(0, P_0), \quad k = 1, 2, \dots

    All quantities are dimensionless. Time is discrete: `dt` and `control` have no meaning and are not used.

    Parameters
    ----------
    process_variance, observation_variance, initial_variance : float
        Q, R and P_0.

    Notes
    -----
    Gordon, Salmond and Smith (1993), "Novel approach to nonlinear/non-Gaussian Bayesian state estimation",
    IEE Proceedings F 140, have the phase ``cos(1.2 (k - 1))``. Like Andrieu, Doucet and Holenstein (2010),
    "Particle Markov chain Monte Carlo methods", Journal of the Royal Statistical Society B 72, section 3.1,
    we take ``cos(1.2 k)`` with Q = 10, R = 1 and the initial variance 5, which is the variance of the state
    BEFORE step 1. Initial variances of 2 and 10 are found elsewhere.

    Examples
    --------
    Both signs of the state give the same observation.

    >>> hf.models.UNGM().observation_mean(np.array([[-10.0], [10.0]]), step=1).tolist()
    [[5.0], [5.0]]
    """

    process_variance: float = 10.0
    observation_variance: float = 1.0
    initial_variance: float = 5.0

    dim = 1

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Mean of the state at `step` given the states (n, 1) one step before."""
        # the phase of Andrieu and others, see the Notes
        return 0.5 * x + 25.0 * x / (1.0 + x**2) + 8.0 * np.cos(1.2 * step)

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance Q of the transition noise, (1, 1)."""
        return np.array([[self.process_variance]])

    def observation_mean(self, x: Array, step: int) -> Array:
        """Mean of the observation, ``x^2 / 20``, (n, 1)."""
        return x**2 / 20.0

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 1, 1)."""
        return x[:, None] / 10.0

    def compiled(self) -> CompiledModel:
        """Return the same model of compiled functions."""
        Q = [[self.process_variance]]
        R = [[self.observation_variance]]
        return CompiledModel(_growth, _twentieth_square, Q, R, [0.0], [[self.initial_variance]])


def _growth(x: Array, step: int) -> Any:
    return 0.5 * x[0] + 25.0 * x[0] / (1.0 + x[0] ** 2) + 8.0 * np.cos(1.2 * step)


def _twentieth_square(x: Array) -> Any:
    return x[0] ** 2 / 20.0
