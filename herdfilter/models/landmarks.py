"""Localisation of a robot in the plane by range and bearing to known landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter.angles import wrap_angles
from herdfilter.models import parts


@parts.frozen
class LandmarkLocalisation(parts.IndependentNoise, parts.PlanarRobot, parts.GaussianStart):
    r"""Planar robot (x m, y m, heading rad) driven by speed and turn rate, localised by known landmarks.

    The control is :math:`(v, \omega)`, in m/s and rad/s; None means standing still. The observation is range
    and bearing of every landmark in turn, :math:`(r^1, \varphi^1, r^2, \varphi^2, \dots)`, the bearing relative
    to the heading h:

    .. math::
        \begin{pmatrix} x_k \\ y_k \\ h_k \end{pmatrix} &= \begin{pmatrix} x_{k-1} \\ y_{k-1} \\ h_{k-1}
        \end{pmatrix} + \begin{pmatrix} \frac{v}{\omega} (\sin(h_{k-1} + \omega \Delta t) - \sin h_{k-1}) \\
        \frac{v}{\omega} (\cos h_{k-1} - \cos(h_{k-1} + \omega \Delta t)) \\ \omega \Delta t \end{pmatrix} +
        N\left(0, \Delta t \operatorname{diag}(\sigma_p^2, \sigma_p^2, \sigma_h^2)\right), \\
        r_k^i &= \left\| (x_k, y_k) - l^i \right\| + N(0, \sigma_r^2), \quad
        \varphi_k^i = \operatorname{atan2}(l_y^i - y_k, l_x^i - x_k) - h_k + N(0, \sigma_\varphi^2).

    Simulated, the robot drives a figure of eight: at one speed, turning one way and then the other.

    Parameters
    ----------
    landmarks : array_like, shape (L, 2)
        Positions of the landmarks, L >= 1, in metres.
    range_sd : float
        Standard deviation of a range, in metres.
    bearing_sd : float
        Standard deviation of a bearing, in radians.
    position_noise, heading_noise : float
        Noise of the motion, sigma_p, in m / sqrt(s), and sigma_h, in rad / sqrt(s).
    initial_mean, initial_covariance : array_like, shapes (3,) and (3, 3)
        Mean and covariance of the pose at step 0.
    speed : float
        Speed of the simulated drive, in m/s.
    turn_rate : float
        Turn rate of the simulated drive, in rad/s, to the left at first.
    reverse_every : int
        Number of steps after which the simulated drive turns the other way.

    Notes
    -----
    Thrun, Burgard and Fox (2005), "Probabilistic robotics": the motion is the velocity motion model, section
    5.3, eq. 5.9, and the observation that of feature-based maps with known correspondence, section 6.6, without
    the signature. The book puts noise on speed and turn rate; here noise of one spread is added to the pose. All numbers
    are ours.

    Examples
    --------
    A filter gets the inputs of the simulated drive, and locates the robot to within half a metre.

    >>> model = hf.models.LandmarkLocalisation()
    >>> truth, z = hf.simulate(model, steps=50, rng=1)
    >>> controls = [model.control(step) for step in range(1, 51)]
    >>> result = hf.ExtendedKalmanFilter(model).run(z, controls=controls)
    >>> bool(np.hypot(*(result.means - truth)[:, :2].T).mean() < 0.5)
    True
    """

    landmarks: Array = parts.array_field([[-6.0, 8.0], [7.0, 6.0], [2.0, -9.0]], (None, 2))
    range_sd: float = 0.5
    bearing_sd: float = 0.1
    position_noise: float = 0.1
    heading_noise: float = 0.05
    initial_mean: Array = parts.array_field(np.zeros(3))
    initial_covariance: Array = parts.array_field(np.diag([4.0, 4.0, 1.0]))
    speed: float = 1.0
    turn_rate: float = 0.25
    reverse_every: int = 50

    sd_fields = ("range_sd", "bearing_sd")

    @property
    def observation_circular(self) -> tuple[int, ...]:
        """Indices of the angle-valued entries of an observation: every second one."""
        return tuple(range(1, 2 * len(self.landmarks), 2))

    def control(self, step: int) -> Array:
        """Speed and turn rate (2,) of the simulated drive to `step`."""
        side = (-1) ** ((step - 1) // self.reverse_every)
        return np.array([self.speed, side * self.turn_rate])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Poses (n, 3) after driving with `control`, speed and turn rate, for a time `dt`."""
        speed, rate = (0.0, 0.0) if control is None else as_array("control", control, (2,))
        half = 0.5 * rate * dt
        # eq. 5.9 as a chord, right for a rate of 0, too
        chord = speed * dt * np.sinc(half / np.pi)
        heading = x[:, 2] + half
        turn = np.full(len(x), rate * dt)
        return x + np.column_stack([chord * np.cos(heading), chord * np.sin(heading), turn])

    def observation_mean(self, x: Array, step: int) -> Array:
        """Range (m) and relative bearing (rad, wrapped) of every landmark in turn, (n, 3) -> (n, 2 L)."""
        mean = parts.range_and_bearing(self.landmarks - x[:, None, :2]).reshape(len(x), -1)
        mean[:, 1::2] -= x[:, 2:]  # bearings are relative to the heading
        return wrap_angles(mean, self.observation_circular)

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 2 L, 3); infinite or NaN at a landmark itself."""
        by_offset = parts.range_and_bearing_jacobian(self.landmarks - x[:, None, :2])
        by_landmark = parts.of_positions(-by_offset, self)
        by_landmark[..., 1, 2] = -1.0  # of the bearing by the heading
        return by_landmark.reshape(len(x), -1, 3)

    @property
    def _observation_sd(self) -> Array:
        return np.tile(super()._observation_sd, len(self.landmarks))
