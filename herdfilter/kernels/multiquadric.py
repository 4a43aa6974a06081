"""Heavy-tailed kernels: inverse multiquadric and Student."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from herdfilter._checks import Array, as_positive
from herdfilter.kernels.base import ORDERS, exponential_nodes


@dataclass(frozen=True)
class InverseMultiquadric:
    """``k = (1 + r^2)^(-exponent)``, a mixture of Gaussians ``exp(-v r^2)`` over v from a Gamma(exponent) distribution.

    Parameters
    ----------
    exponent : float
        1/2 is the inverse multiquadric proper, 1 the Cauchy kernel.

    Examples
    --------
    >>> print(hf.kernels.InverseMultiquadric().value(np.array([0.0, 3.0, 99.0])))  # a long tail
    [1.  0.5 0.1]
    >>> hf.KernelHerding(kernel=hf.kernels.InverseMultiquadric(exponent=1.0))
    KernelHerding(bandwidth='auto', weights='equal', kernel=InverseMultiquadric(exponent=1.0))
    """

    exponent: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", as_positive("exponent", self.exponent, *ORDERS))

    def value(self, squared: Array) -> Array:
        """Return the kernel at squared distances."""
        return (1 + squared) ** -self.exponent

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance."""
        return -self.exponent * (1 + squared) ** (-self.exponent - 1)

    def scales(self) -> tuple[Array, Array]:
        """Return rates and weights of the Gaussian mixture."""
        return _tail_scales(self.exponent)


@dataclass(frozen=True)
class Student:
    """``k = (1 + r^2 / df)^(-(df + 1) / 2)``, the shape of Student's density with `df` degrees of freedom.

    Examples
    --------
    >>> print(hf.kernels.Student(df=3.0).value(np.array([0.0, 3.0, 9.0])))
    [1.     0.25   0.0625]
    """

    df: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "df", as_positive("df", self.df, *ORDERS))

    def value(self, squared: Array) -> Array:
        """Return the kernel at squared distances."""
        return (1 + squared / self.df) ** (-(self.df + 1) / 2)

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance."""
        return -(self.df + 1) / (2 * self.df) * (1 + squared / self.df) ** (-(self.df + 3) / 2)

    def scales(self) -> tuple[Array, Array]:
        """Return rates and weights of the Gaussian mixture."""
        rates, weights = _tail_scales((self.df + 1) / 2)
        return rates / self.df, weights


@lru_cache(maxsize=16)
def _tail_scales(exponent: float) -> tuple[Array, Array]:
    v = exponential_nodes(np.log(1e-10) / exponent, np.log(60.0 + 5 * exponent), exponent)
    weights = np.exp(exponent * np.log(v) - v)
    return 2 * v, weights / weights.sum()
