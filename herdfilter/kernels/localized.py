"""The kernel behind localized cumulative distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from herdfilter._checks import Array, as_positive


@dataclass(frozen=True)
class LocalizedCumulative:
    """The kernel whose discrepancy is the modified Cramer-von Mises distance of localized cumulative distributions.

    That distance is ``int_0^b w(s) int (F(m, s) - G(m, s))^2 dm ds`` with ``F(m, s) = E exp(-|X - m|^2 / (2 s^2))`` and
    ``w(s) = s^(1-d)`` (Hanebeck, Huber and Klumpp 2009). The inner integral belongs to a Gaussian kernel of variance
    ``2 s^2``, so that up to a constant ``k = (2 / b^2) int_0^b s exp(-r^2 / (4 s^2)) ds``, which is
    ``exp(-z) - z E_1(z)`` at ``z = r^2 / (4 b^2)``, in every dimension.

    Parameters
    ----------
    largest : float
        The upper limit b of the widths, in bandwidths; 10 is usual for standard normal targets.

    Examples
    --------
    >>> kernel = hf.kernels.LocalizedCumulative(largest=1.0)
    >>> print(kernel.value(np.array([0.0, 1.0, 4.0])).round(3))
    [1.    0.518 0.148]
    """

    largest: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", as_positive("largest", self.largest))

    def value(self, squared: Array) -> Array:
        """Return the kernel at squared distances."""
        z = np.maximum(squared / (4 * self.largest**2), 1e-300)
        return np.exp(-z) - z * scipy.special.exp1(z)

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance."""
        z = np.maximum(squared / (4 * self.largest**2), 1e-300)
        return -scipy.special.exp1(z) / (4 * self.largest**2)

    def scales(self) -> tuple[Array, Array]:
        """Return Gauss-Legendre nodes in the logarithm of the width, over six decades."""
        nodes, weights = scipy.special.roots_legendre(80)
        half = 0.5 * np.log(1e6)
        s = self.largest * np.exp(half * (nodes - 1))
        weights = weights * (s / self.largest) ** 2
        return 1 / (2 * s * s), weights / weights.sum()
