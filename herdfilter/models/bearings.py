"""A target in the plane observed by sensors that measure only its direction."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.models import parts
from herdfilter.models.compiled import CompiledModel


@parts.frozen
class BearingsTracking(parts.PlanarSensors):
    r"""Constant-velocity target tracked by the bearings from two or more fixed sensors.

    The state is :math:`(x, y, \dot x, \dot y)`, and moves as in `ConstantVelocity`. For sensor i at
    :math:`(s_x^i, s_y^i)`,

    .. math:: \theta_k^i = \operatorname{atan2}(y_k - s_y^i, x_k - s_x^i) + N(0, \sigma^2).

    Parameters
    ----------
    sensors : array_like, shape (S, 2)
        Sensor positions, S >= 2, in units of length.
    bearing_sd : float
        Standard deviation sigma of a bearing, in radians.
    spectral_density : float
        Spectral density q of the acceleration, in length^2 / time^3.
    initial_mean, initial_covariance : array_like, shapes (4,) and (4, 4)
        Mean and covariance of the state at step 0.

    Notes
    -----
    Hartikainen, Solin and Särkkä (2011), "Optimal filtering with Kalman filters and smoothers: a manual for
    the Matlab toolbox EKF/UKF", section on bearings only tracking. The defaults are the manual's; the
    toolbox's own program ``ekfs_bot_demo`` starts from the covariance 4 I instead. Both use time steps of
    0.01.

    Examples
    --------
    One sensor sees the target at 45 degrees, the other at 135 degrees: the target is where the bearings cross.

    >>> model = hf.models.BearingsTracking(sensors=[[0.0, 0.0], [2.0, 0.0]])
    >>> np.rad2deg(model.observation_mean(np.array([[1.0, 1.0, 0.0, 0.0]]), step=1)).round(6).tolist()
    [[45.0, 135.0]]
    """

    sensors: Array = parts.array_field([[-1.0, -2.0], [1.0, 1.0]], (None, 2))
    bearing_sd: float = 0.05
    spectral_density: float = 0.1
    initial_mean: Array = parts.array_field(np.zeros(4))
    initial_covariance: Array = parts.array_field(np.diag([0.1, 0.1, 10.0, 10.0]))

    sd_fields = ("bearing_sd",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.sensors) < 2:
            raise ValueError(f"sensors: expected at least 2 positions, got {len(self.sensors)}")

    @property
    def observation_circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries of an observation: all of them."""
        return tuple(range(len(self.sensors)))

    def observation_mean(self, x: Array, step: int) -> Array:
        """Bearing of the target from each sensor in radians, (n, 4) -> (n, S)."""
        offset = self._offsets(x)
        return np.arctan2(offset[..., 1], offset[..., 0])

    @parts.undefined_at_sensor
    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, S, 4); NaN at a sensor itself."""
        offset = self._offsets(x)
        # d atan2(y, x) = (x dy - y dx) / (x^2 + y^2)
        normal = np.stack([-offset[..., 1], offset[..., 0]], axis=-1)
        return parts.of_positions(normal, self) / (offset**2).sum(axis=-1)[..., None]

    def compiled(self) -> CompiledModel:
        """Return the same model of compiled functions."""
        return CompiledModel(
            _constant_velocity,
            _bearings,
            # a function of dt alone: steps of equal length share one factor of it
            lambda dt: self.transition_covariance(dt, 1),
            self.observation_covariance(1),
            self.initial_mean,
            self.initial_covariance,
            observation_circular=self.observation_circular,
            # not compiled in, so that other sensors need no compilation
            parameters=self.sensors.ravel(),
        )


def _constant_velocity(x: Array, dt: float, out: Array) -> None:
    for i in range(2):
        out[i] = x[i] + dt * x[i + 2]
        out[i + 2] = x[i + 2]


def _bearings(x: Array, parameters: Array, out: Array) -> None:
    # the parameters are x and y of each sensor in turn
    for i in range(out.size):
        out[i] = np.arctan2(x[1] - parameters[2 * i + 1], x[0] - parameters[2 * i])
