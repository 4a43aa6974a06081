"""A target in space observed by a radar: range, azimuth and elevation."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter.models import parts


@parts.frozen
class RadarTracking(parts.IndependentNoise, parts.WhiteAcceleration):
    r"""Target of nearly constant velocity in space, tracked by range, azimuth and elevation from one radar.

    The state is :math:`(x, y, z, \dot x, \dot y, \dot z)`, in metres and metres per second, z upwards. It
    moves as in `ConstantVelocity`. With :math:`(\delta_x, \delta_y, \delta_z)` the position relative to the radar,

    .. math::
        r_k &= \sqrt{\delta_x^2 + \delta_y^2 + \delta_z^2} + N(0, \sigma_r^2), \\
        a_k &= \operatorname{atan2}(\delta_y, \delta_x) + N(0, \sigma_a^2), \\
        e_k &= \operatorname{atan2}\left(\delta_z, \sqrt{\delta_x^2 + \delta_y^2}\right) + N(0, \sigma_e^2).

    Parameters
    ----------
    radar : array_like, shape (3,)
        Position of the radar, in metres.
    range_sd : float
        Standard deviation of a range, in metres.
    azimuth_sd, elevation_sd : float
        Standard deviations of the angles, in radians.
    spectral_density : float
        Spectral density q of the acceleration of each axis, in m^2 / s^3.
    initial_mean, initial_covariance : array_like, shapes (6,) and (6, 6)
        Mean and covariance of the state at step 0.

    Notes
    -----
    Motion: Bar-Shalom, Li and Kirubarajan (2001), "Estimation with applications to tracking and navigation",
    section 6.2.2. The noise levels are those of the demonstration "UAV tracking" of Stone Soup (Defence
    Science and Technology Laboratory), with its radar a few kilometres from an unmanned aircraft: a fine
    range, a fair azimuth, a coarse elevation.

    Examples
    --------
    The height of a single reading is coarse; a filter estimates it better.

    >>> model = hf.models.RadarTracking(radar=[0, 0, 0])
    >>> truth, z = hf.simulate(model, steps=30, rng=1)
    >>> heights, means = z[:, 0] * np.sin(z[:, 2]), hf.UnscentedKalmanFilter(model).run(z).means
    >>> bool(np.std(means[:, 2] - truth[:, 2]) < np.std(heights - truth[:, 2]))
    True
    """

    radar: Array = parts.array_field(np.zeros(3), (3,))
    range_sd: float = 3.14
    azimuth_sd: float = float(np.radians(0.6))
    elevation_sd: float = float(np.radians(np.sqrt(10.0)))
    spectral_density: float = 1.0
    initial_mean: Array = parts.array_field([4000.0, 0.0, 700.0, 0.0, 0.0, 0.0])
    initial_covariance: Array = parts.array_field(np.diag([50.0, 50.0, 50.0, 5.0, 5.0, 5.0]) ** 2)

    dim = 6
    sd_fields = ("range_sd", "azimuth_sd", "elevation_sd")
    observation_circular = (1, 2)
    position_dims = (0, 1, 2)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Range (m), azimuth and elevation (rad) of the target from the radar, (n, 6) -> (n, 3)."""
        east, north, up = (x[:, :3] - self.radar).T
        ground = np.hypot(east, north)  # distance along the ground
        distance = np.hypot(ground, up)
        return np.column_stack([distance, np.arctan2(north, east), np.arctan2(up, ground)])

    @parts.undefined_at_sensor
    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 3, 6); infinite or NaN right above the radar."""
        east, north, up = (x[:, :3] - self.radar).T
        ground = np.hypot(east, north)
        # rows: range; azimuth atan2(north, east); elevation atan2(up, ground)
        square = ground**2 + up**2
        distance = np.sqrt(square)
        rows = [
            [east / distance, north / distance, up / distance],
            [-north / ground**2, east / ground**2, 0 * up],
            [-up * east / (ground * square), -up * north / (ground * square), ground / square],
        ]
        return parts.of_positions(np.moveaxis(np.array(rows), -1, 0), self)
