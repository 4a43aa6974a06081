"""The kernel contract, and the radial kernels: mixtures of Gaussian kernels of different widths.

Kernels with a Gamma distribution of widths are computed by quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import scipy

from herdfilter._checks import Array, as_positive, check_fields

SMALLEST_ORDER = 1e-3  # below, quadrature over the widths takes too many nodes
LARGEST_ORDER = 30.0  # beyond, the kernel is Gaussian for all purposes


@runtime_checkable
class Kernel(Protocol):
    r"""A radial kernel :math:`k(x, y) = v(|x - y|^2)` in coordinates in which its bandwidth is 1.

    Gaussian, Laplace and Matern kernels are all mixtures of Gaussians,
    :math:`v(r^2) = \sum_j w_j e^{-s_j r^2 / 2}` with weights and rates, a finite sum or the quadrature of an integral.
    Under a Gaussian mixture each term has its expectation in closed form (`herdfilter.kernels.KernelMean`).

    Examples
    --------
    >>> class TwoWidths:
    ...     # The average of Gaussian kernels of widths 1 and 2
    ...     def value(self, squared):
    ...         return 0.5 * np.exp(-squared / 2) + 0.5 * np.exp(-squared / 8)
    ...
    ...     def slope(self, squared):
    ...         return -0.25 * np.exp(-squared / 2) - 0.0625 * np.exp(-squared / 8)
    ...
    ...     def scales(self):
    ...         return np.array([1.0, 0.25]), np.array([0.5, 0.5])
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> points = hf.Points([[-1.0], [0.0], [1.0]])
    >>> round(hf.herding_error(points, mixture, 0.5, kernel=TwoWidths()), 3)
    0.13
    """

    def value(self, squared: Array) -> Array:
        """Return the kernel at squared distances of any shape."""

    def slope(self, squared: Array) -> Array:
        """Return the derivative of `value` with respect to the squared distance; finite everywhere, zero included."""

    def scales(self) -> tuple[Array, Array]:
        """Return rates and weights, shapes (J,) and (J,), of the Gaussian mixture that stands for the kernel."""


def exponential_nodes(low: float, high: float, power: float = 1.0) -> Array:
    """Return nodes ``v = exp(u)`` of the trapezoidal rule in u, from ``exp(low)`` to ``exp(high)``.

    For integrands ``v^(power - 1) exp(-v) f(v)``, or with 1/v in the exponential, the rule converges exponentially: they are
    analytic for ``|Im u| < pi / 2``, and at a step of 0.5 the error is about ``exp(-pi^2 / 0.5) = 3e-9``. Their width in u
    falls as ``power^(-1/2)``, and the step with it.
    """
    return np.exp(np.arange(low, high, 0.5 / np.sqrt(max(1.0, power))))


@dataclass(frozen=True)
class Gaussian(Kernel):
    """:math:`k = e^{-r^2 / 2}`: the kernel of the samplers' compiled loops.

    Examples
    --------
    >>> print(hf.kernels.Gaussian().value(np.array([0.0, 1.0, 4.0])).round(3))  # at distances 0, 1, 2
    [1.    0.607 0.135]
    >>> print(hf.kernel_matrix(np.array([[0.0], [2.0]]), np.array([[4.0]])).round(3))  # of width 2
    [[1.    0.607]
     [0.607 1.   ]]
    """

    def value(self, squared: Array) -> Array:
        return np.exp(-squared / 2)

    def slope(self, squared: Array) -> Array:
        return -0.5 * self.value(squared)

    def scales(self) -> tuple[Array, Array]:
        """Return one Gaussian of width 1."""
        return np.ones(1), np.ones(1)


@dataclass(frozen=True)
class Matern(Kernel):
    r"""The Matern kernel (Rasmussen and Williams 2006, eq. 4.14).

    .. math:: k = \frac{2^{1 - \nu}}{\Gamma(\nu)} z^\nu K_\nu(z) , \qquad z = \sqrt{2 \nu}\, r

    A mixture of Gaussians :math:`e^{-z^2 / (4 v)}` over v from a Gamma(nu) distribution. Its narrowest part is cut at 1e-6
    of the kernel's peak: expectations are exact to that.

    Parameters
    ----------
    nu : float
        Smoothness, at most 30: 0.5 is the Laplace kernel :math:`e^{-r}`, the limit of large nu the Gaussian.

    Examples
    --------
    >>> print(hf.kernels.Matern(nu=1.5).value(np.array([0.0, 1.0, 4.0])).round(3))
    [1.    0.483 0.14 ]
    >>> hf.kernels.Matern(nu=0.5) == hf.kernels.Laplace()
    True
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        nu = as_positive("nu", self.nu, SMALLEST_ORDER, LARGEST_ORDER)
        object.__setattr__(self, "nu", nu)

    def value(self, squared: Array) -> Array:
        z: Array = np.sqrt(2 * self.nu * squared)
        # Half-integer orders have elementary forms (Rasmussen and Williams 2006, eq. 4.17).
        if self.nu == 0.5:
            return np.exp(-z)
        if self.nu == 1.5:
            return (1 + z) * np.exp(-z)
        if self.nu == 2.5:
            return (1 + z + z * z / 3) * np.exp(-z)
        z = np.maximum(z, 1e-8)  # K_nu is infinite at 0
        constant = 2 ** (1 - self.nu) / scipy.special.gamma(self.nu)
        return constant * z**self.nu * scipy.special.kv(self.nu, z)

    def slope(self, squared: Array) -> Array:
        """Return the derivative with respect to the squared distance: a kernel of order nu - 1."""
        z: Array = np.maximum(np.sqrt(2 * self.nu * squared), 1e-8)
        if self.nu == 0.5:
            return -0.5 * np.exp(-z) / z
        if self.nu == 1.5:
            return -1.5 * np.exp(-z)
        if self.nu == 2.5:
            return -5 / 6 * (1 + z) * np.exp(-z)
        constant = 2 ** (1 - self.nu) / scipy.special.gamma(self.nu)
        return -self.nu * constant * z ** (self.nu - 1) * scipy.special.kv(self.nu - 1, z)

    def scales(self) -> tuple[Array, Array]:
        # A Gamma(nu) distribution without a share of about 1e-6 near zero
        low = np.log(1e-6) / self.nu
        v = exponential_nodes(low, np.log(60.0 + 5 * self.nu), self.nu)
        weights = np.exp(self.nu * np.log(v) - v)
        # exp(-z^2 / (4 v)) = exp(-s r^2 / 2) with z^2 = 2 nu r^2
        return self.nu / v, weights / weights.sum()


def Laplace() -> Matern:  # noqa: N802  a kernel by name, as the others
    """Return the Laplace kernel :math:`k = e^{-r}`: `Matern` of order 1/2.

    Examples
    --------
    >>> hf.kernels.Laplace()
    Matern(nu=0.5)
    """
    return Matern(0.5)


@dataclass(frozen=True)
class Energy(Kernel):
    r""":math:`k = -r`, conditionally positive definite: its squared discrepancy is the energy distance.

    Points that minimise it are the support points of Mak and Joseph (2018). It has no width: the bandwidth sets only the
    metric. As a mixture of Gaussians, with the range of s cut to 28 decades, an expected distance r is good to
    1e-6 + 4e-9 r^2:

    .. math:: -r = (2 \pi)^{-1/2} \int_0^\infty (e^{-s r^2 / 2} - 1) s^{-3/2} ds

    Examples
    --------
    >>> points = hf.Points([[-0.7], [0.7]])
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> squared = hf.herding_error(points, mixture, 1.0, kernel=hf.kernels.Energy()) ** 2
    >>> round(squared, 4), round(hf.energy_distance(points, mixture), 4)
    (0.1431, 0.1431)
    """

    def value(self, squared: Array) -> Array:
        return -np.sqrt(squared)

    def slope(self, squared: Array) -> Array:
        return -0.5 / np.sqrt(np.maximum(squared, 1e-16))

    def scales(self) -> tuple[Array, Array]:
        """Return rates and weights of the Gaussian mixture; a negative weight at rate 0 makes them sum to 0."""
        s = exponential_nodes(np.log(1e-16), np.log(1e12))
        # ds = s du turns s^(-3/2) into s^(-1/2); the step in u is 1/2.
        weights = 0.5 / np.sqrt(2 * np.pi * s)
        return np.append(0.0, s), np.append(-weights.sum(), weights)


@dataclass(frozen=True)
class LocalizedCumulative(Kernel):
    r"""The kernel of the modified Cramer-von Mises distance between localized cumulative distributions.

    That distance (Hanebeck, Huber and Klumpp 2009) is

    .. math:: \int_0^b w(s) \int (F(m, s) - G(m, s))^2 dm\, ds , \qquad F(m, s) = \mathrm E\, e^{-|X - m|^2 / (2 s^2)}

    with :math:`w(s) = s^{1-d}`. The inner integral belongs to a Gaussian kernel of variance :math:`2 s^2`, so that up to
    a constant :math:`k = \frac{2}{b^2} \int_0^b s\, e^{-r^2 / (4 s^2)} ds`, which is :math:`e^{-z} - z E_1(z)` at
    :math:`z = r^2 / (4 b^2)`, in every dimension.

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
        check_fields(self, largest=as_positive)

    def value(self, squared: Array) -> Array:
        z: Array = np.maximum(squared / (4 * self.largest**2), 1e-300)
        return np.exp(-z) - z * scipy.special.exp1(z)

    def slope(self, squared: Array) -> Array:
        z: Array = np.maximum(squared / (4 * self.largest**2), 1e-300)
        return -scipy.special.exp1(z) / (4 * self.largest**2)

    def scales(self) -> tuple[Array, Array]:
        """Return Gauss-Legendre nodes in the logarithm of the width, over six decades."""
        nodes, weights = scipy.special.roots_legendre(80)
        half = 0.5 * np.log(1e6)
        s = self.largest * np.exp(half * (nodes - 1))
        # s ds = s^2 d(log s)
        weights = weights * (s / self.largest) ** 2
        return 1 / (2 * s * s), weights / weights.sum()
