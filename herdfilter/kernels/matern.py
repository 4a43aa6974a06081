"""Matern kernels, the Laplace kernel among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from herdfilter._checks import Array, as_positive
from herdfilter.kernels.base import ORDERS, exponential_nodes


@dataclass(frozen=True)
class Matern:
    """``k = 2^(1-nu) / Gamma(nu) z^nu K_nu(z)`` with ``z = sqrt(2 nu) r`` (Rasmussen and Williams 2006, eq. 4.14).

    A mixture of Gaussians ``exp(-z^2 / (4 v))`` over v from a Gamma(nu) distribution. Its narrowest part is cut at 1e-6 of
    the kernel's peak: expectations are exact to that.

    Parameters
    ----------
    nu : float
        Smoothness, at most 30: 0.5 is the Laplace kernel ``exp(-r)``, the limit of large nu the Gaussian.

    Examples
    --------
    >>> print(hf.kernels.Matern(nu=1.5).value(np.array([0.0, 1.0, 4.0])).round(3))
    [1.    0.483 0.14 ]
    >>> hf.kernels.Matern(nu=0.5) == hf.kernels.Laplace()
    True
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", as_positive("nu", self.nu, *ORDERS))
        if self.nu > 30:
            raise ValueError(f"nu: expected at most 30, beyond which the kernel is Gaussian, got {self.nu:g}")

    def value(self, squared: Array) -> Array:
        """Return the kernel at squared distances."""
        z = np.sqrt(2 * self.nu * squared)
        if self.nu == 0.5:
            return np.exp(-z)
        if self.nu == 1.5:
            return (1 + z) * np.exp(-z)
        if self.nu == 2.5:
            return (1 + z + z * z / 3) * np.exp(-z)
        z = np.maximum(z, 1e-8)
        return 2 ** (1 - self.nu) / scipy.special.gamma(self.nu) * z**self.nu * scipy.special.kv(self.nu, z)

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance: a kernel of order nu - 1."""
        z = np.maximum(np.sqrt(2 * self.nu * squared), 1e-8)
        if self.nu == 0.5:
            return -0.5 * np.exp(-z) / z
        if self.nu == 1.5:
            return -1.5 * np.exp(-z)
        if self.nu == 2.5:
            return -5 / 6 * (1 + z) * np.exp(-z)
        constant = 2 ** (1 - self.nu) / scipy.special.gamma(self.nu)
        return -self.nu * constant * z ** (self.nu - 1) * scipy.special.kv(self.nu - 1, z)

    def scales(self) -> tuple[Array, Array]:
        """Return rates and weights of the Gaussian mixture."""
        return _gamma_scales(self.nu)


@lru_cache(maxsize=16)
def _gamma_scales(nu: float) -> tuple[Array, Array]:
    v = exponential_nodes(np.log(1e-6) / nu, np.log(60.0 + 5 * nu), nu)
    weights = np.exp(nu * np.log(v) - v)
    return nu / v, weights / weights.sum()


def Laplace() -> Matern:  # noqa: N802  a kernel by name, as the others
    """Return the Laplace kernel ``k = exp(-r)``: `Matern` of order 1/2.

    Examples
    --------
    >>> hf.kernels.Laplace()
    Matern(nu=0.5)
    """
    return Matern(0.5)
