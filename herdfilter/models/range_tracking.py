"""A target in the plane observed by sensors that measure only its distance."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.parts import (
    PlanarSensors,
    array_field,
    frozen,
    of_positions,
    undefined_at_sensor,
)


@frozen
class RangeTracking(PlanarSensors):
    r"""Constant-velocity target tracked by its distances from fixed sensors.

    The state is :math:`(x, y, \dot x, \dot y)`, and moves as in `ConstantVelocity`. For sensor i at
    :math:`(s_x^i, s_y^i)`,

    .. math:: r_k^i = \sqrt{(x_k - s_x^i)^2 + (y_k - s_y^i)^2} + N(0, \sigma^2).

    Sensors on one line cannot distinguish a target from its mirror image. The defaults have two sensors on the x axis and a
    symmetric prior: each of the two modes has half of the probability, and the posterior mean lies between them.

    Parameters
    ----------
    sensors : array_like, shape (S, 2)
        Sensor positions, S >= 1, in units of length.
    range_sd : float
        Standard deviation sigma of a range.
    spectral_density, initial_mean, initial_covariance
        As for `BearingsTracking`.

    Notes
    -----
    Motion as in `BearingsTracking`; sensors and numbers are our own test.

    Examples
    --------
    The sensors are on the x axis: mirror images on either side of it have the same ranges.

    >>> x = np.array([[1.0, 2.0, 0.0, 0.0], [1.0, -2.0, 0.0, 0.0]])
    >>> hf.models.RangeTracking().observation_mean(x, step=1).round(3).tolist()
    [[2.828, 2.0], [2.828, 2.0]]
    """

    sensors: Array = array_field([[-1.0, 0.0], [1.0, 0.0]], (None, 2))
    range_sd: float = 0.3
    spectral_density: float = 1e-3
    initial_mean: Array = array_field([-1.5, 0.0, 0.08, 0.0])
    initial_covariance: Array = array_field(np.diag([0.25, 9.0, 0.0025, 0.0025]))

    sd_fields = ("range_sd",)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Distance of the target from each sensor, (n, 4) -> (n, S)."""
        offset = self._offsets(x)
        return np.hypot(offset[..., 0], offset[..., 1])

    @undefined_at_sensor
    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, S, 4); NaN at a sensor itself."""
        # the gradient of a distance is the unit vector away from the sensor
        return of_positions(self._offsets(x) / self.observation_mean(x, step)[..., None], self)
