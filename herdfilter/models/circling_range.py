"""A target that circles in the plane, its distance from one sensor measured almost without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array, as_number, as_positive
from herdfilter.models.parts import GaussianStart, IndependentNoise, assign, assign_positive


@dataclass(frozen=True, eq=False, repr=False)
class CirclingRange(IndependentNoise, GaussianStart):
    r"""Target that circles about the origin, pushed by noise, and its distance from one sensor.

    .. math::
        x_k = \rho \begin{pmatrix} \cos \alpha & -\sin \alpha \\ \sin \alpha & \cos \alpha \end{pmatrix} x_{k-1} +
        N(0, q^2 I), \qquad r_k = \left\| x_k - s \right\| + N(0, \sigma^2), \qquad x_0 \sim N(m_0, p^2 I)

    With a sigma far below the spread of the predicted distance the posterior is a thin arc about the sensor, and hardly any
    particle that is drawn without the observation lies on it. All quantities are dimensionless; time is discrete: `dt` and
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

    sensor: Array = field(default_factory=lambda: np.array([2.0, 0.0]))
    range_sd: float = 0.0033
    turn: float = 0.3
    damping: float = 0.95
    process_sd: float = 0.3
    initial_mean: Array = field(default_factory=lambda: np.zeros(2))
    initial_sd: float = 1.0

    dim = 2
    position_dims = (0, 1)
    sd_fields = ("range_sd",)

    def __post_init__(self) -> None:
        assign(self, sensor=as_array("sensor", self.sensor, (2,)), turn=as_number("turn", self.turn))
        assign_positive(self, "range_sd", "process_sd", "initial_sd")
        assign(self, initial_covariance=self.initial_sd**2 * np.eye(2))
        self._assign_start(2)
        if not as_positive("damping", self.damping) < 1:
            raise ValueError(f"damping: expected a number between 0 and 1, got {self.damping!r}")

    @property
    def _matrix(self) -> Array:
        cos, sin = self.damping * math.cos(self.turn), self.damping * math.sin(self.turn)
        return np.array([[cos, -sin], [sin, cos]])

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 2) turned about the origin and drawn towards it."""
        return x @ self._matrix.T

    def transition_jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Jacobian of `transition_mean`, (n, 2, 2)."""
        return np.broadcast_to(self._matrix, (len(x), 2, 2))

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the transition noise, (2, 2)."""
        return self.process_sd**2 * np.eye(2)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Distance from the sensor, (n, 2) -> (n, 1)."""
        offset = x - self.sensor
        return np.hypot(offset[:, :1], offset[:, 1:])

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 1, 2); NaN at the sensor itself."""
        offset = x - self.sensor
        with np.errstate(invalid="ignore"):
            return (offset / np.hypot(offset[:, :1], offset[:, 1:]))[:, None]
