"""An aircraft in a turn of unknown rate, observed by a radar."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.parts import RangeAndBearing, acceleration_block, array_field, frozen


@frozen
class CoordinatedTurn(RangeAndBearing):
    r"""Aircraft in a horizontal turn of unknown, slowly varying rate; a radar at the origin gives range and bearing.

    The state is :math:`(x, \dot x, y, \dot y, \omega)`. With :math:`a = \omega_{k-1} \Delta t`,

    .. math::
        x_k &= x_{k-1} + \frac{\sin a}{\omega} \dot x_{k-1} - \frac{1 - \cos a}{\omega} \dot y_{k-1} + q_x, &
        \dot x_k &= \cos a \, \dot x_{k-1} - \sin a \, \dot y_{k-1} + q_{\dot x}, \\
        y_k &= y_{k-1} + \frac{1 - \cos a}{\omega} \dot x_{k-1} + \frac{\sin a}{\omega} \dot y_{k-1} + q_y, &
        \dot y_k &= \sin a \, \dot x_{k-1} + \cos a \, \dot y_{k-1} + q_{\dot y}, \\
        \omega_k &= \omega_{k-1} + q_\omega, &
        z_k &= \begin{pmatrix} \sqrt{x_k^2 + y_k^2} \\ \operatorname{atan2}(y_k, x_k) \end{pmatrix}
        + N\left(0, \begin{pmatrix} \sigma_r^2 & 0 \\ 0 & \sigma_\theta^2 \end{pmatrix}\right), \\
        Q &= \operatorname{diag}(q_1 M, q_1 M, q_2 \Delta t), &
        M &= \begin{pmatrix} \Delta t^3 / 3 & \Delta t^2 / 2 \\ \Delta t^2 / 2 & \Delta t \end{pmatrix}.

    The quotients by the rate are computed without dividing by it, so that straight flight is no special case.

    Parameters
    ----------
    acceleration_density : float
        Spectral density q_1 of the acceleration, in m^2 / s^3.
    turn_density : float
        Variance q_2 of the turn rate for each second, in rad^2 / s^3.
    range_sd : float
        Standard deviation sigma_r of the range, in metres.
    bearing_sd : float
        Standard deviation sigma_theta of the bearing, in radians.
    initial_mean : array_like, shape (5,)
        Mean of the state at step 0, in m, m/s and rad/s.
    initial_covariance : array_like, shape (5, 5)
        Covariance of the state at step 0.

    Notes
    -----
    Arasaratnam and Haykin (2009), "Cubature Kalman filters", IEEE Transactions on Automatic Control 54, the example of
    tracking a manoeuvring aircraft, with time steps of 1 s. The defaults are the paper's.

    Examples
    --------
    A full turn leads back to the same position and velocity; a turn rate of 0 gives straight flight.

    >>> model = hf.models.CoordinatedTurn()
    >>> x = np.array([[1000.0, 300.0, 1000.0, 0.0, 0.1], [1000.0, 300.0, 1000.0, 0.0, 0.0]])
    >>> after = model.transition_mean(x, dt=2 * np.pi / 0.1, control=None, step=1)
    >>> np.allclose(after[0], x[0]), np.allclose(after[1, 0], 1000 + 300 * 2 * np.pi / 0.1)
    (True, True)
    """

    acceleration_density: float = 0.1
    turn_density: float = 1.75e-4
    range_sd: float = 10.0
    bearing_sd: float = np.sqrt(10.0) * 1e-3
    initial_mean: Array = array_field([1000.0, 300.0, 1000.0, 0.0, np.deg2rad(-3.0)])
    initial_covariance: Array = array_field(np.diag([100.0, 10.0, 100.0, 10.0, 1e-4]))

    dim = 5
    position_dims = (0, 2)

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 5) after a turn at constant rate for a time `dt`; `control` is not used."""
        east, vx, north, vy, turn_rate = x.T
        # sin(a) / omega = dt sin(a) / a, and (1 - cos(a)) / omega likewise, which have limits for omega = 0
        sin, cos, along, across = _turn(turn_rate * dt)
        # several times as fast as stacking columns
        after = np.empty(x.shape)
        after[:, 0] = east + dt * (along * vx - across * vy)
        after[:, 1] = cos * vx - sin * vy
        after[:, 2] = north + dt * (across * vx + along * vy)
        after[:, 3] = sin * vx + cos * vy
        after[:, 4] = turn_rate
        return after

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance Q of the noise added over a time `dt`, (5, 5)."""
        covariance = np.zeros((5, 5))
        block = self.acceleration_density * np.array(acceleration_block(float(dt)))
        covariance[:2, :2] = block
        covariance[2:4, 2:4] = block
        covariance[4, 4] = self.turn_density * dt
        return covariance

    def transition_jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Jacobian of `transition_mean`, (n, 5, 5)."""
        _, vx, _, vy, turn_rate = x.T
        angle = turn_rate * dt
        sin, cos, along, across = _turn(angle)
        along_slope, across_slope = _chord_slopes(angle)
        # the last column: the slopes by omega are dt times those by the angle
        zeros = np.zeros(len(x))
        ones = np.ones(len(x))
        x_by_turn = dt**2 * (along_slope * vx - across_slope * vy)
        y_by_turn = dt**2 * (across_slope * vx + along_slope * vy)
        rows = [
            [ones, dt * along, zeros, -dt * across, x_by_turn],
            [zeros, cos, zeros, -sin, dt * (-sin * vx - cos * vy)],
            [zeros, dt * across, ones, dt * along, y_by_turn],
            [zeros, sin, zeros, cos, dt * (cos * vx - sin * vy)],
            [zeros, zeros, zeros, zeros, ones],
        ]
        return np.ascontiguousarray(np.moveaxis(np.array(rows), -1, 0))


def _turn(angle: Array) -> tuple[Array, ...]:
    """Return ``sin(a)``, ``cos(a)``, ``sin(a) / a`` and ``(1 - cos(a)) / a``."""
    # without cancellation: 1 - cos(a) = 2 sin(a / 2)^2
    half = angle / 2
    across = np.sin(half) * np.sinc(half / np.pi)
    return np.sin(angle), np.cos(angle), np.sinc(angle / np.pi), across


def _chord_slopes(angle: Array) -> tuple[Array, Array]:
    """Return the derivatives of the quotients of `_turn`: closed forms, or Taylor series where those suffer cancellation."""
    small = np.abs(angle) < 1e-2
    # the value of 1 avoids a division by zero where the series are used
    a = np.where(small, 1.0, angle)
    along = (a * np.cos(a) - np.sin(a)) / a**2
    across = (a * np.sin(a) + np.cos(a) - 1) / a**2
    along_series = -angle / 3 + angle**3 / 30
    across_series = 0.5 - angle**2 / 8 + angle**4 / 144
    return np.where(small, along_series, along), np.where(small, across_series, across)
