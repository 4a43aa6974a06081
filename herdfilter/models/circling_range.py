"""A target that circles in the plane, observed by its distance from one sensor, almost without noise."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.models import parts


@parts.frozen
class CirclingRange(parts.IndependentNoise, parts.LinearMotion, parts.Parameters):
    r"""Target that circles about the origin under random pushes, observed by its distance from one sensor.

    .. math::
        x_k = \rho \begin{pmatrix} \cos \alpha & -\sin \alpha \\ \sin \alpha & \cos \alpha \end{pmatrix} x_{k-1} +
        N(0, q^2 I), \qquad r_k = \left\| x_k - s \right\| + N(0, \sigma^2), \qquad x_0 \sim N(m_0, p^2 I)

    With a sigma far below the spread of the predicted distance the posterior is a thin arc about the sensor, on which hardly
    any particle lies that was drawn without the observation. All quantities are dimensionless; time is discrete: `dt` and
    `control` are not used.

    Parameters
    ----------
    sensor : array_like, shape (2,)
        Position s of the sensor.
    range_sd : float
        Standard deviation sigma of a range.
    turn : float
        Angle alpha of one step, in radians.
    damping : float
        Factor rho of the distance from the origin, above 0 and below 1.
    process_sd : float
        Standard deviation q of the noise of a step, in each coordinate.
    initial_mean, initial_sd : array_like, shape (2,), and float
        Mean m_0 of the state at step 0, and its standard deviation p in each coordinate.

    Notes
    -----
    Our own test.

    Examples
    --------
    A step turns the state by a right angle and halves its distance from the origin.

    >>> model = hf.models.CirclingRange(turn=np.pi / 2, damping=0.5)
    >>> np.allclose(model.transition_mean(np.array([[2.0, 0.0]]), dt=1.0, control=None, step=1), [[0.0, 1.0]])
    True
    """

    sensor: Array = parts.array_field([2.0, 0.0], (2,))
    range_sd: float = 0.0033
    turn: float = 0.3
    damping: float = 0.95
    process_sd: float = 0.3
    initial_mean: Array = parts.array_field(np.zeros(2), (2,))
    initial_sd: float = 1.0

    dim = 2
    position_dims = (0, 1)
    sd_fields = ("range_sd",)
    signed = ("turn",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.damping >= 1:
            raise ValueError(f"damping: expected a number between 0 and 1, got {self.damping!r}")

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0."""
        return GaussianMixture([1.0], self.initial_mean[None], self.initial_sd**2 * np.eye(2))

    def motion_matrix(self, dt: float) -> Array:
        """Matrix (2, 2) that turns a state about the origin and draws it towards it."""
        # a rotation, shrunk: the eigenvalues are rho exp(+-i alpha)
        cos = self.damping * math.cos(self.turn)
        sin = self.damping * math.sin(self.turn)
        return np.array([[cos, -sin], [sin, cos]])

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the transition noise, (2, 2)."""
        return self.process_sd**2 * np.eye(2)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Distance from the sensor, (n, 2) -> (n, 1)."""
        offset = x - self.sensor
        return np.hypot(offset[:, :1], offset[:, 1:])

    @parts.undefined_at_sensor
    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 1, 2); NaN at the sensor itself."""
        # the gradient of a distance is the unit vector away from the sensor
        return ((x - self.sensor) / self.observation_mean(x, step))[:, None]
