"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array


@dataclass(frozen=True)
class Gaussian:
    """``k = exp(-r^2 / 2)``: the kernel of the samplers' compiled loops.

    Examples
    --------
    >>> print(hf.kernels.Gaussian().value(np.array([0.0, 1.0, 4.0])).round(3))  # at distances 0, 1, 2
    [1.    0.607 0.135]
    >>> print(hf.kernel_matrix(np.array([[0.0], [2.0]]), np.array([[4.0]])).round(3))  # of width 2
    [[1.    0.607]
     [0.607 1.   ]]
    """

    def value(self, squared: Array) -> Array:
        """Return the kernel at squared distances."""
        return np.exp(-0.5 * squared)

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance."""
        return -0.5 * np.exp(-0.5 * squared)

    def scales(self) -> tuple[Array, Array]:
        """Return one Gaussian of width 1."""
        return np.ones(1), np.ones(1)
