"""A target in the plane observed by one fixed sensor that measures only its direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.parts import LinearMotion, RangeAndBearing, array_field, frozen


@frozen
class BearingsOnly(LinearMotion, RangeAndBearing):
    r"""Target of nearly constant velocity observed from the origin by its bearing alone: the distance comes from the prior.

    The state is :math:`(x, \dot x, y, \dot y)`. Both axes follow the same equation, each with its own noise w,

    .. math::
        \begin{pmatrix} x_k \\ \dot x_k \end{pmatrix} &= \begin{pmatrix} 1 & \Delta t \\ 0 & 1 \end{pmatrix}
        \begin{pmatrix} x_{k-1} \\ \dot x_{k-1} \end{pmatrix} +
        \begin{pmatrix} \Delta t^2 / 2 \\ \Delta t \end{pmatrix} w_k, \quad w_k \sim N(0, \sigma_w^2), \\
        \theta_k &= \operatorname{atan2}(y_k, x_k) + N(0, \sigma_\theta^2).

    The noise has two dimensions, the state four: the covariance of the transition has rank 2. Filters that propagate noise
    through the transition draw those two; filters that need a transition density cannot be used.

    Parameters
    ----------
    acceleration_sd : float
        Standard deviation sigma_w of the acceleration, constant over a step, in length / time^2.
    bearing_sd : float
        Standard deviation sigma_theta of the bearing, in radians.
    initial_mean, initial_covariance : array_like, shapes (4,) and (4, 4)
        Mean and covariance of the state at step 0.

    Notes
    -----
    Gordon, Salmond and Smith (1993), "Novel approach to nonlinear/non-Gaussian Bayesian state estimation", IEE
    Proceedings F 140, the bearings-only tracking example, with time steps of 1. The defaults are the paper's; its prior
    holds here for the state one step before the first bearing.

    Examples
    --------
    A target twice as far away, and twice as fast, has the same bearing.

    >>> model = hf.models.BearingsOnly()
    >>> x = model.initial.sample(3, np.random.default_rng(0))
    >>> np.allclose(model.observation_mean(x, step=1), model.observation_mean(2 * x, step=1))
    True
    """

    acceleration_sd: float = 0.001
    bearing_sd: float = 0.005
    initial_mean: Array = array_field([0.0, 0.0, 0.4, -0.05])
    initial_covariance: Array = array_field(np.diag([0.5, 0.005, 0.3, 0.01]) ** 2)

    dim = 4
    position_dims = (0, 2)
    noise_dim = 2  # one acceleration for each axis
    sd_fields = ("bearing_sd",)
    observation_circular = (0,)

    def transition(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 4) moved on for a time `dt` under accelerations from standard normal noise (n, 2)."""
        return self.transition_mean(x, dt, control, step) + noise @ self._noise_matrix(dt).T

    def motion_matrix(self, dt: float) -> Array:
        """Matrix of the motion at constant velocity for a time `dt`, (4, 4)."""
        return np.kron(np.eye(2), [[1.0, dt], [0.0, 1.0]])

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise added over a time `dt`, (4, 4), of rank 2."""
        matrix = self._noise_matrix(dt)
        return matrix @ matrix.T

    def observation_mean(self, x: Array, step: int) -> Array:
        """Bearing of the target in radians, (n, 4) -> (n, 1)."""
        return super().observation_mean(x, step)[:, 1:]  # without the range

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 1, 4)."""
        return super().observation_jacobian(x, step)[:, 1:]

    def _noise_matrix(self, dt: float) -> Array:
        """Gamma of the paper times sigma_w, (4, 2)."""
        return self.acceleration_sd * np.kron(np.eye(2), [[dt**2 / 2], [dt]])
