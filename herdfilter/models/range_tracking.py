"""A target in the plane seen by sensors that measure only its distance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.models.parts import PlanarSensors, as_partial_observation


@dataclass(frozen=True, eq=False, repr=False)
class RangeTracking(PlanarSensors):
    r"""Constant-velocity target tracked by its distances from fixed sensors.

    The state is :math:`(x, y, \dot x, \dot y)`. Per axis, and for sensor i at :math:`(s_x^i, s_y^i)`,

    .. math::
        \begin{pmatrix} x_k \\ \dot x_k \end{pmatrix} &= \begin{pmatrix} 1 & \Delta t \\ 0 & 1 \end{pmatrix}
        \begin{pmatrix} x_{k-1} \\ \dot x_{k-1} \end{pmatrix} + N\left(0, q \begin{pmatrix} \Delta t^3 / 3 &
        \Delta t^2 / 2 \\ \Delta t^2 / 2 & \Delta t \end{pmatrix}\right), \\
        r_k^i &= \sqrt{(x_k - s_x^i)^2 + (y_k - s_y^i)^2} + N(0, \sigma^2).

    Sensors on one line cannot distinguish a target from its mirror image. The defaults have two sensors on the x axis and a
    symmetric prior: each of the two modes has half of the probability, and the posterior mean lies between them.

    Parameters
    ----------
    sensors : array_like, shape (S, 2)
        Sensor positions, in units of length.
    range_sd : float
        Standard deviation sigma of a range.
    spectral_density : float
        Spectral density q of the acceleration, in length^2 / time^3.
    initial_mean, initial_covariance : array_like, shapes (4,) and (4, 4)
        Mean and covariance of the state at step 0.

    Raises
    ------
    ValueError
        If a shape does not fit, there is no sensor, or a number is not positive.

    Notes
    -----
    The motion is that of `BearingsTracking`; sensors and numbers are our own test.

    Examples
    --------
    Particles are on both sides of the x axis, on which the sensors are.

    >>> model = hf.models.RangeTracking()
    >>> truth, z = hf.simulate(model, steps=5, rng=1)
    >>> pf = hf.ParticleFilter(model, n_particles=1000, rng=0)
    >>> result = pf.run(z)
    >>> bool(0.1 < pf.weights[pf.particles[:, 1] > 0].sum() < 0.9)
    True
    """

    sensors: Array = field(default_factory=lambda: np.array([[-1.0, 0.0], [1.0, 0.0]]))
    range_sd: float = 0.3
    spectral_density: float = 1e-3
    initial_mean: Array = field(default_factory=lambda: np.array([-1.5, 0.0, 0.08, 0.0]))
    initial_covariance: Array = field(default_factory=lambda: np.diag([0.25, 9.0, 0.0025, 0.0025]))

    def __post_init__(self) -> None:
        self._assign_target(1, "range_sd")

    def observation_mean(self, x: Array, step: int) -> Array:
        """Distance of the target from each sensor, (n, 4) -> (n, S)."""
        offset = self._offsets(x)
        return np.hypot(offset[..., 0], offset[..., 1])

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, S, 4); NaN at a sensor itself."""
        offset = self._offsets(x)
        jacobian = np.zeros((len(x), len(self.sensors), 4))
        with np.errstate(invalid="ignore"):
            jacobian[..., :2] = offset / np.hypot(offset[..., 0], offset[..., 1])[..., None]
        return jacobian

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the ranges, (S, S)."""
        return self.range_sd**2 * np.eye(len(self.sensors))

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the finite ones of ranges `z`, shape (S,), at each state; (n, 4) -> (n,)."""
        z, observed = as_partial_observation(z, len(self.sensors))
        scaled = ((z - self.observation_mean(x, step)) / self.range_sd)[:, observed]
        log_peak = -len(observed) * math.log(self.range_sd * math.sqrt(2 * math.pi))
        return np.asarray(log_peak - 0.5 * np.einsum("ij,ij->i", scaled, scaled))
