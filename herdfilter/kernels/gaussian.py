"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array


@dataclass(frozen=True)
class Gaussian:
    """``k = exp(-r^2 / 2)``: the kernel of the samplers' compiled loops."""

    def value(self, squared: Array) -> Array:
        """Kernel at squared distances."""
        return np.exp(-0.5 * squared)

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance."""
        return -0.5 * np.exp(-0.5 * squared)

    def scales(self) -> tuple[Array, Array]:
        """One Gaussian of width 1."""
        return np.ones(1), np.ones(1)
