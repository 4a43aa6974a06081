"""The kernel contract: radial kernels that are mixtures of Gaussian kernels of different widths."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import Array

ORDERS = 1e-3, 1e6
"""Least and largest order of a kernel: beyond them quadrature over its widths takes too many nodes."""


@runtime_checkable
class Kernel(Protocol):
    """A radial kernel ``k(x, y) = value(|x - y|^2)`` in coordinates in which its bandwidth is 1.

    Gaussian, Laplace, Matern, Student and inverse multiquadric kernels are all mixtures of Gaussians,
    ``value(r^2) = sum_j weights_j exp(-rates_j r^2 / 2)``, a finite sum or the quadrature of an integral. Under a
    Gaussian mixture each term has its expectation in closed form, so the expectation of the kernel is a sum of as many
    terms as the quadrature has nodes (`herdfilter.kernels.KernelMean`).

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
        """Kernel at squared distances of any shape."""
        ...

    def slope(self, squared: Array) -> Array:
        """Return the derivative of `value` with respect to the squared distance; finite everywhere, zero included."""
        ...

    def scales(self) -> tuple[Array, Array]:
        """Rates and weights, shapes (J,) and (J,), of the Gaussian mixture that stands for the kernel."""
        ...


def as_kernel(name: str, kernel: Any) -> Kernel:
    """Return `kernel` if it follows the contract.

    Raises
    ------
    TypeError
        If it is a class, or lacks a method: a kernel without `scales` has no expectation to herd from.

    Examples
    --------
    >>> hf.kernels.as_kernel("kernel", hf.kernels.Matern())
    Matern(nu=1.5)
    >>> try:
    ...     hf.kernels.as_kernel("kernel", "gaussian")
    ... except TypeError as error:
    ...     print(error)
    kernel: expected a kernel with value, slope and scales, got 'gaussian' without value, slope, scales
    """
    if isinstance(kernel, type):
        raise TypeError(f"{name}: expected an instance, got the class {kernel.__name__}")
    missing = [m for m in ("value", "slope", "scales") if not callable(getattr(kernel, m, None))]
    if missing:
        raise TypeError(
            f"{name}: expected a kernel with value, slope and scales, got {kernel!r} without {', '.join(missing)}"
        )
    return kernel


def exponential_nodes(low: float, high: float, power: float = 1.0) -> Array:
    """Nodes ``v = exp(u)`` of the trapezoidal rule in u, from ``exp(low)`` to ``exp(high)``.

    For integrands ``v^(power - 1) exp(-v) f(v)``, or with 1/v in the exponential, the rule converges exponentially: they are
    analytic for ``|Im u| < pi / 2``, and at a step of 0.5 the error is about ``exp(-pi^2 / 0.5) = 3e-9``. Their width in u
    falls as ``power^(-1/2)``, and the step with it.
    """
    return np.exp(np.arange(low, high, 0.5 / np.sqrt(max(1.0, power))))
