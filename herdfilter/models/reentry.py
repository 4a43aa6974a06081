"""A vehicle that enters the atmosphere on a ballistic path, observed by a radar."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.parts import RangeAndBearing, array_field, frozen, substeps

EARTH_RADIUS = 6374.0  # R_0, in km


@frozen
class BallisticReentry(RangeAndBearing):
    r"""Re-entering vehicle of unknown ballistic coefficient; a radar on the ground gives range and bearing.

    The state is :math:`(x, y, \dot x, \dot y, c)`, in km and km/s from the centre of the Earth in the plane of the
    path; c is the logarithm of the ballistic coefficient relative to a usual one.

    .. math::
        \ddot x &= D \dot x + G x + v_x, \qquad \ddot y = D \dot y + G y + v_y, \qquad \dot c = v_c, \\
        D &= -\beta_0 e^c \exp\left(\frac{R_0 - R}{H_0}\right) V, \qquad G = -\frac{\mu}{R^3}, \qquad
        R = \sqrt{x^2 + y^2}, \quad V = \sqrt{\dot x^2 + \dot y^2}, \\
        z_k &= \begin{pmatrix} \sqrt{(x - x_r)^2 + (y - y_r)^2} \\ \operatorname{atan2}(y - y_r, x - x_r)
        \end{pmatrix} + N\left(0, \begin{pmatrix} \sigma_r^2 & 0 \\ 0 & \sigma_\theta^2 \end{pmatrix}\right)

    Between two filter steps, a time `dt` apart, the equations are integrated by Euler steps of at most
    `integration_step`; then noise :math:`N(0, q \Delta t)` is added to both velocities and :math:`N(0, q_c \Delta t)`
    to c. The covariance of the transition has rank 3: positions have no noise of their own.

    Parameters
    ----------
    acceleration_density : float
        Spectral density q of the acceleration in each direction, in km^2 / s^3.
    ballistic_density : float
        Variance q_c of c for each second.
    range_sd : float
        Standard deviation sigma_r of the range, in km.
    bearing_sd : float
        Standard deviation sigma_theta of the bearing, in radians.
    radar : array_like, shape (2,)
        Position of the radar, in km.
    drag : float
        Usual ballistic coefficient beta_0, in 1 / km.
    scale_height : float
        Height H_0 over which the density of the air falls by a factor e, in km.
    gravity : float
        Gravitational parameter mu of the Earth, in km^3 / s^2.
    integration_step : float
        Longest Euler step, in seconds.
    initial_mean, initial_covariance : array_like, shapes (5,) and (5, 5)
        Mean and covariance of the state at step 0.

    Notes
    -----
    Julier and Uhlmann (2004), "Unscented filtering and nonlinear estimation", Proceedings of the IEEE 92, the example of
    re-entry, with R_0 = 6374 km. We follow the program ``reentry_demo`` of the Matlab toolbox EKF/UKF (Hartikainen,
    Solin and Särkkä 2011), with time steps of 0.1 s. A bearing noise of 17 mrad is found in print, the program has 0.17
    mrad. Its constant beta_0 is -0.59783; here the minus sign stands in the equation. Its simulated vehicle has no noise of
    c, which only its filters assume.

    Examples
    --------
    With hardly any drag the vehicle keeps its energy, in MJ/kg, for 20 seconds; the usual drag takes some of it.

    >>> for drag in [1e-9, 0.59783]:
    ...     model = hf.models.BallisticReentry(drag=drag)
    ...     before = model.initial.means
    ...     after = model.transition_mean(before, dt=20.0, control=None, step=1)
    ...     print(*[round(x[0, 2:4] @ x[0, 2:4] / 2 - model.gravity / np.hypot(*x[0, :2]), 2) for x in (before, after)])
    ...
    -36.5 -36.5
    -36.5 -37.74
    """

    acceleration_density: float = 2.4064e-4
    ballistic_density: float = 1e-5
    range_sd: float = 1e-3
    bearing_sd: float = 0.17e-3
    radar: Array = array_field([EARTH_RADIUS, 0.0])
    drag: float = 0.59783
    scale_height: float = 13.406
    gravity: float = 3.986e5
    integration_step: float = 0.1
    initial_mean: Array = array_field([6500.4, 349.14, -1.8093, -6.7967, 0.0])
    initial_covariance: Array = array_field(np.diag([1e-6, 1e-6, 1e-6, 1e-6, 1.0]))

    dim = 5
    noise_dim = 3
    position_dims = (0, 1)
    shapes: ClassVar = {"radar": (2,)}

    def transition(self, x: Array, noise: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 5) after a time `dt`, with standard normal noise (n, 3) scaled and added to the last three."""
        next_x = self.transition_mean(x, dt, control, step)
        next_x[:, 2:] += np.sqrt(self._noise_variances(dt)) * noise
        return next_x

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 5) after a time `dt` without noise; `control` is not used."""
        steps = substeps(dt, self.integration_step)
        x = x.copy()
        for _ in range(steps):
            # explicit Euler: the acceleration is that at the old position, although x changes in place
            position = x[:, :2].copy()
            velocity = x[:, 2:4]
            x[:, :2] += dt / steps * velocity
            x[:, 2:4] += dt / steps * self._acceleration(position, velocity, x[:, 4])
        return x

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise added over a time `dt`, (5, 5), of rank 3."""
        return np.diag([0.0, 0.0, *self._noise_variances(dt)])

    def _acceleration(self, position: Array, velocity: Array, coefficient: Array) -> Array:
        """Drag and gravity, (n, 2)."""
        distance = np.hypot(*position.T)
        speed = np.hypot(*velocity.T)
        # density of the air, relative to that at the ground
        density = np.exp((EARTH_RADIUS - distance) / self.scale_height)
        drag = -self.drag * np.exp(coefficient) * density * speed
        return drag[:, None] * velocity - (self.gravity / distance**3)[:, None] * position

    def _noise_variances(self, dt: float) -> Array:
        return dt * np.array(
            [self.acceleration_density, self.acceleration_density, self.ballistic_density]
        )
