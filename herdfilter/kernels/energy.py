"""The kernel of the energy distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter.kernels.base import exponential_nodes


@dataclass(frozen=True)
class Energy:
    """``k = -r``, conditionally positive definite: its squared discrepancy is the energy distance.

    Points that minimise it are the support points of Mak and Joseph (2018). It has no width: the bandwidth sets only the
    metric. As a mixture of Gaussians, ``-r = (2 pi)^(-1/2) int_0^inf (exp(-s r^2 / 2) - 1) s^(-3/2) ds``, with the range
    of s cut to 28 decades: an expected distance r is good to 1e-6 + 4e-9 r^2.

    Examples
    --------
    >>> points = hf.Points([[-0.7], [0.7]])
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> squared = hf.herding_error(points, mixture, 1.0, kernel=hf.kernels.Energy()) ** 2
    >>> round(squared, 4), round(hf.energy_distance(points, mixture), 4)
    (0.1431, 0.1431)
    """

    def value(self, squared: Array) -> Array:
        """Return the kernel at squared distances."""
        return -np.sqrt(squared)

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance."""
        return -0.5 / np.sqrt(np.maximum(squared, 1e-16))

    def scales(self) -> tuple[Array, Array]:
        """Return rates and weights of the Gaussian mixture; a negative weight at rate 0 makes them sum to 0."""
        s = exponential_nodes(np.log(1e-16), np.log(1e12))
        weights = 0.5 / np.sqrt(2 * np.pi * s)
        return np.append(0.0, s), np.append(-weights.sum(), weights)
