"""A target of nearly constant velocity whose position is observed."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.models.parts import EntriesObserved, WhiteAcceleration, assign, frozen, repeated


@frozen
class ConstantVelocity(EntriesObserved, WhiteAcceleration):
    r"""Target of nearly constant velocity in a space of any dimension m, whose position is observed.

    The state is position and velocity, (p, v), d = 2 m. The acceleration is white noise:

    .. math:: p_k = p_{k-1} + \Delta v_{k-1} + w_p, \quad v_k = v_{k-1} + w_v, \quad y_k = p_k + N(0, \sigma^2 I)

    with noise of the covariance :math:`q \begin{pmatrix} \Delta^3 / 3 & \Delta^2 / 2 \\ \Delta^2 / 2 & \Delta \end{pmatrix}`
    in each direction, for any time :math:`\Delta` between two steps.

    Parameters
    ----------
    spectral_density : float
        q of the acceleration, in m^2/s^3: the velocity changes by :math:`\sqrt{q \Delta}` in each direction.
    position_sd : float
        Standard deviation of an observed position in each direction; a `herdfilter.Sensor` has its own.
    initial_mean, initial_covariance : array_like, shapes (d,) and (d, d)
        Mean and covariance of the state at step 0.

    Notes
    -----
    Bar-Shalom, Li and Kirubarajan (2001), "Estimation with applications to tracking and navigation", section 6.2.2.

    Examples
    --------
    A target in a plane, with about 1 m/s along x, whose position is observed at uneven times.

    >>> model = hf.models.ConstantVelocity(0.01, position_sd=0.1, initial_mean=[0, 0, 1, 0], initial_covariance=np.eye(4))
    >>> z, times = [[1.0, 0.0], [1.5, 0.1], [4.0, 0.1]], [1.0, 1.5, 4.0]
    >>> result = hf.ExtendedKalmanFilter(model).run(z, times=times)
    >>> np.round(result.means[-1], 1).tolist()
    [4.0, 0.1, 1.0, 0.0]
    """

    spectral_density: float
    position_sd: float
    initial_mean: Array
    initial_covariance: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim < 2 or self.dim % 2:
            raise ValueError(
                f"initial_mean: expected positions and as many velocities, got {self.dim} numbers"
            )
        m = self.dim // 2
        assign(self, position_dims=tuple(range(m)), observed_entries=slice(m))

    def transition_jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Jacobian of `transition_mean`, (n, d, d), the same at all states."""
        # [[I, dt I], [0, I]]: all positions come before all velocities
        return repeated(np.kron([[1.0, dt], [0.0, 1.0]], np.eye(self.dim // 2)), x)

    @property
    def _observation_sd(self) -> Array:
        return np.full(self.dim // 2, self.position_sd)
