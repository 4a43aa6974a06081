"""A target in the plane seen by sensors that measure only its direction."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array
from herdfilter.models.parts import WhiteAcceleration, as_partial_observation, assign, assign_positive


@dataclass(frozen=True, eq=False, repr=False)
class BearingsTracking(WhiteAcceleration):
    r"""Constant-velocity target tracked by the bearings from two or more fixed sensors.

    The state is :math:`(x, y, \dot x, \dot y)`. Per axis, and for sensor i at :math:`(s_x^i, s_y^i)`,

    .. math::
        \begin{pmatrix} x_k \\ \dot x_k \end{pmatrix} &= \begin{pmatrix} 1 & \Delta t \\ 0 & 1 \end{pmatrix}
        \begin{pmatrix} x_{k-1} \\ \dot x_{k-1} \end{pmatrix} + N\left(0, q \begin{pmatrix} \Delta t^3 / 3 &
        \Delta t^2 / 2 \\ \Delta t^2 / 2 & \Delta t \end{pmatrix}\right), \\
        \theta_k^i &= \operatorname{atan2}(y_k - s_y^i, x_k - s_x^i) + N(0, \sigma^2).

    Parameters
    ----------
    sensors : array_like, shape (S, 2)
        Sensor positions, S >= 2, in units of length.
    bearing_sd : float
        Standard deviation sigma of a bearing, in radians.
    spectral_density : float
        Spectral density q of the acceleration, in length^2 / time^3.
    initial_mean : array_like, shape (4,)
        Mean of the state at step 0.
    initial_covariance : array_like, shape (4, 4)
        Covariance of the state at step 0.

    Raises
    ------
    ValueError
        If a shape does not fit, there are fewer than two sensors, or a number is not positive.

    Notes
    -----
    Hartikainen, Solin and Särkkä (2011), "Optimal filtering with Kalman filters and smoothers: a manual for
    the Matlab toolbox EKF/UKF", section on bearings only tracking. The defaults are the manual's; the
    toolbox's own program ``ekfs_bot_demo`` starts from the covariance 4 I instead. Both use time steps of
    0.01.

    Examples
    --------
    One sensor sees the target at 45 degrees and the other at 135: it is where the bearings cross.

    >>> model = hf.models.BearingsTracking(sensors=[[0.0, 0.0], [2.0, 0.0]])
    >>> np.rad2deg(model.observation_mean(np.array([[1.0, 1.0, 0.0, 0.0]]), step=1)).round(6).tolist()
    [[45.0, 135.0]]

    A filter of 200 such pairs: most of its errors are below three of the standard deviations that it tells.

    >>> truth, z = hf.simulate(model, steps=200, dt=0.01, rng=1)
    >>> result = hf.UnscentedKalmanFilter(model).run(z, dt=0.01)
    >>> sds = np.sqrt(np.diagonal(result.covariances, axis1=1, axis2=2))
    >>> bool(np.mean(abs(result.means - truth) < 3 * sds) > 0.8)
    True
    """

    sensors: Array = field(default_factory=lambda: np.array([[-1.0, -2.0], [1.0, 1.0]]))
    bearing_sd: float = 0.05
    spectral_density: float = 0.1
    initial_mean: Array = field(default_factory=lambda: np.zeros(4))
    initial_covariance: Array = field(default_factory=lambda: np.diag([0.1, 0.1, 10.0, 10.0]))

    dim = 4
    partial_observations = True

    def __post_init__(self) -> None:
        assign(self, sensors=as_array("sensors", self.sensors, (None, 2)))
        self._assign_start(4)
        assign_positive(self, "bearing_sd", "spectral_density")
        if len(self.sensors) < 2:
            raise ValueError(f"sensors: expected at least two positions, got {len(self.sensors)}")

    @property
    def observation_circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries of an observation: all of them."""
        return tuple(range(len(self.sensors)))

    def observation_mean(self, x: Array, step: int) -> Array:
        """Bearing of the target from each sensor in radians, (n, 4) -> (n, S)."""
        offset = x[:, None, :2] - self.sensors
        return np.arctan2(offset[..., 1], offset[..., 0])

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, S, 4); NaN at a sensor itself."""
        offset = x[:, None, :2] - self.sensors
        jacobian = np.zeros((len(x), len(self.sensors), 4))
        jacobian[..., :2] = np.stack([-offset[..., 1], offset[..., 0]], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return jacobian / (offset**2).sum(axis=-1)[..., None]

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the bearings, (S, S)."""
        return self.bearing_sd**2 * np.eye(len(self.sensors))

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the finite ones of bearings `z`, shape (S,), by the wrapped residual; (n, 4) -> (n,)."""
        z, kept = as_partial_observation(z, len(self.sensors))
        residual = z - self.observation_mean(x, step)
        residual -= 2 * np.pi * np.rint(residual / (2 * np.pi))
        scaled = residual / self.bearing_sd
        if len(kept) < len(z):
            scaled = scaled[:, kept]
        log_peak = -len(kept) * math.log(self.bearing_sd * math.sqrt(2 * math.pi))
        return log_peak - 0.5 * np.einsum("ij,ij->i", scaled, scaled)
