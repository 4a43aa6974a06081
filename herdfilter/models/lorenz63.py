"""The Lorenz-63 system, three chaotic dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array, as_array
from herdfilter._jit import njit
from herdfilter.models import parts


@parts.frozen
class Lorenz63(parts.NoisyFlow):
    r"""Lorenz's convection equations with additive noise, all three components observed.

    .. math::
        \dot x = \sigma (y - x), \quad \dot y = x (\rho - z) - y, \quad \dot z = x y - \beta z, \qquad
        \mathbf{y}_k = \mathbf{x}_k + N(0, R\, I)

    Between two filter steps, a time `dt` apart, the equations are integrated by classical Runge-Kutta steps
    of at most `integration_step`; then noise :math:`N(0, q\, \Delta t\, I)` is added. All quantities are
    dimensionless.

    Parameters
    ----------
    sigma, rho, beta : float
        Prandtl number, Rayleigh number and aspect of the convection cell.
    noise_rate : float
        Variance q of the transition noise for each unit of time, the same in every component.
    observation_variance : float
        Variance R of the noise of an observed component.
    integration_step : float
        Longest step of the integration, in time units.
    initial_mean : array_like, shape (3,)
        Mean of the state at step 0.
    initial_variance : float
        Variance of each component of the state at step 0.

    Notes
    -----
    Lorenz (1963), "Deterministic nonperiodic flow", Journal of the Atmospheric Sciences 20, eqs. 25 to 27.
    The defaults follow Sakov, Oliver and Bertino (2012), "An iterative EnKF for strongly nonlinear systems",
    Monthly Weather Review 140: observation every 25 steps of 0.01, that is ``dt = 0.25``, with R = 2. The
    initial state, near the attractor with variance 2, is taken from the same experiment in DAPPER (Raanes and
    others, 2024). The noise is ours: without any, resampled particles stay copies of each other.

    Examples
    --------
    A filter has a smaller error than the observations.

    >>> model = hf.models.Lorenz63()
    >>> truth, z = hf.simulate(model, steps=40, dt=0.25, rng=1)
    >>> means = hf.UnscentedKalmanFilter(model).run(z, dt=0.25).means
    >>> bool(np.std(means - truth) < np.std(z - truth))
    True
    """

    sigma: float = 10.0
    rho: float = 28.0
    beta: float = 8.0 / 3.0
    noise_rate: float = 1.0
    observation_variance: float = 2.0
    integration_step: float = 0.01
    initial_mean: Array = parts.array_field([1.509, -1.531, 25.46], (3,))
    initial_variance: float = 2.0

    dim = 3

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, 3) after a time `dt` without noise; `control` is not used."""
        steps = parts.substeps(dt, self.integration_step)
        # coordinates first, so that each is contiguous in memory
        columns = np.array(as_array("x", x, (None, 3)).T, order="C")
        _integrate(columns, self.sigma, self.rho, self.beta, dt / steps, steps)
        return np.ascontiguousarray(columns.T)


@njit(cache=True, nogil=True)
def _integrate(columns: Array, sigma: float, rho: float, beta: float, h: float, steps: int) -> None:
    """Advance states (3, n), overwritten, by `steps` classical fourth-order Runge-Kutta steps of length `h`."""
    x = columns[0]
    y = columns[1]
    z = columns[2]
    for _ in range(steps):
        # innermost and free of branches, so that it compiles to vector instructions
        for i in range(x.size):
            x0 = x[i]
            y0 = y[i]
            z0 = z[i]
            # slopes a, b, c, d of the method, by Lorenz's eqs. 25 to 27
            ax = sigma * (y0 - x0)
            ay = x0 * (rho - z0) - y0
            az = x0 * y0 - beta * z0
            x1 = x0 + 0.5 * h * ax
            y1 = y0 + 0.5 * h * ay
            z1 = z0 + 0.5 * h * az
            bx = sigma * (y1 - x1)
            by = x1 * (rho - z1) - y1
            bz = x1 * y1 - beta * z1
            x1 = x0 + 0.5 * h * bx
            y1 = y0 + 0.5 * h * by
            z1 = z0 + 0.5 * h * bz
            cx = sigma * (y1 - x1)
            cy = x1 * (rho - z1) - y1
            cz = x1 * y1 - beta * z1
            x1 = x0 + h * cx
            y1 = y0 + h * cy
            z1 = z0 + h * cz
            dx = sigma * (y1 - x1)
            dy = x1 * (rho - z1) - y1
            dz = x1 * y1 - beta * z1
            # weights 1, 2, 2, 1 over 6
            x[i] = x0 + h / 6.0 * (ax + 2.0 * (bx + cx) + dx)
            y[i] = y0 + h / 6.0 * (ay + 2.0 * (by + cy) + dy)
            z[i] = z0 + h / 6.0 * (az + 2.0 * (bz + cz) + dz)
