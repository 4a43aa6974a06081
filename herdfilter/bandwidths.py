"""Bandwidths: numbers, matrices and rules that set the covariance of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._covariances import regularised_and_rank
from herdfilter._repr import listing_of
from herdfilter.mixture import GaussianMixture, as_mixture

__all__ = ["BandwidthRule", "Scott", "Silverman", "Whitened", "kernel_covariance", "scale_rule"]
__dir__ = listing_of(globals())


@runtime_checkable
class BandwidthRule(Protocol):
    """A rule that chooses a kernel covariance for a number of points from a mixture.

    Examples
    --------
    >>> class TenthOfTheSpread:
    ...     # A kernel a tenth as wide as the mixture, for any number of points
    ...     def covariance(self, mixture, n):
    ...         return 0.01 * mixture.covariance
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[4.0]]])
    >>> print(hf.bandwidths.kernel_covariance(TenthOfTheSpread(), mixture, 50))
    [[0.04]]
    """

    def covariance(self, mixture: GaussianMixture, n: int) -> Array:
        """Return the kernel covariance K, shape (d, d), positive definite, for `n` points from `mixture`."""


Bandwidth = Literal["auto"] | float | ArrayLike | BandwidthRule


def scale_rule(n: int, dim: int) -> float:
    r"""Return the kernel width in whitened coordinates, :math:`c\, n^{-1/(d+1)}`, for `n` points in `dim` dimensions.

    It shrinks nearly with the distance between neighbouring points, faster than the width of a kernel density estimate. The
    constants c = 1.4, 2.2, 2.6, 2.4, 2.1 for d = 1, 2, 4, 8, 16 were found by experiment, on the energy distance of points
    (benchmarks/bench_quality.py --factors scans it) and the error of herded filters. They lie at the upper end of the widths
    that give a small energy distance. Smaller widths leave the tails out and make filters overconfident.

    Examples
    --------
    >>> [round(hf.bandwidths.scale_rule(n, dim=2), 3) for n in (10, 100, 1000)]
    [1.021, 0.474, 0.22]
    """
    if not (n >= 1 and dim >= 1):
        raise ValueError(f"n, dim: expected numbers from 1 on, got {n} and {dim}")
    # linear in the logarithm of the dimension between those of the experiments, constant beyond them
    constant = float(np.interp(np.log2(dim), [0, 1, 2, 3, 4], [1.4, 2.2, 2.6, 2.4, 2.1]))
    return constant * float(n ** (-1.0 / (dim + 1)))


@dataclass(frozen=True)
class Whitened(BandwidthRule):
    r"""Kernel covariance :math:`h^2 C`: the shape from the mixture, the width :math:`h = c\, n^{-1/(d + a)}` with offset a.

    ``bandwidth="auto"`` stands for ``Whitened()``.

    Parameters
    ----------
    constant : float, optional
        Width factor c; with None the width is that of `scale_rule`, for any offset.
    offset : float
        Added to the dimension in the exponent: 1 follows the distance between neighbouring points, 4 the width of a kernel
        density estimate.
    metric : {"mixture", "diagonal", "components"}
        C: the covariance of the whole mixture, its diagonal alone, or the average covariance of the components. A
        rank-deficient one is regularised.

    Examples
    --------
    >>> rule = hf.bandwidths.Whitened(constant=1.0)
    >>> [round(rule.width(n, dim=1), 3) for n in (4, 25, 100)]  # 1 / sqrt(n)
    [0.5, 0.2, 0.1]
    >>> mixture = hf.GaussianMixture([1.0], [[0, 0]], np.diag([100.0, 1.0]))
    >>> print(hf.bandwidths.Whitened(constant=1.0, metric="diagonal").covariance(mixture, 8).round(3))
    [[25.    0.  ]
     [ 0.    0.25]]
    """

    constant: float | None = None
    offset: float = 1.0
    metric: Literal["mixture", "diagonal", "components"] = "mixture"

    def __post_init__(self) -> None:
        if self.constant is not None:
            _checks.check_fields(self, constant=_checks.as_positive)
        _checks.check_fields(self, offset=_checks.as_positive)
        _checks.one_of("metric", self.metric, ("mixture", "diagonal", "components"))

    def width(self, n: int, dim: int) -> float:
        """Return the kernel width h in units of C."""
        if self.constant is None:
            return scale_rule(n, dim)
        exponent = -1.0 / (_checks.check_count("dim", dim) + self.offset)
        return self.constant * float(_checks.check_count("n", n) ** exponent)

    def covariance(self, mixture: GaussianMixture, n: int) -> Array:
        as_mixture("mixture", mixture)
        shape = mixture.average_covariance if self.metric == "components" else mixture.covariance
        if self.metric == "diagonal":
            shape = np.diag(np.diagonal(shape))
        # Directions without spread are none that points have to fill.
        regular, dim = regularised_and_rank(shape)
        return self.width(n, dim) ** 2 * regular


@dataclass(frozen=True)
class Scott(BandwidthRule):
    """Scott's rule (1992) of kernel density estimation: :math:`h = n^{-1/(d+4)}` in whitened coordinates.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[4.0]]])
    >>> print(np.sqrt(hf.bandwidths.Scott().covariance(mixture, 32)))  # 2 * 32 ** (-1 / 5)
    [[1.]]
    """

    def covariance(self, mixture: GaussianMixture, n: int) -> Array:
        return Whitened(constant=1.0, offset=4.0).covariance(mixture, n)


@dataclass(frozen=True)
class Silverman(BandwidthRule):
    """Silverman's rule (1986) of kernel density estimation: :math:`h = (4 / (n (d+2)))^{1/(d+4)}` in whitened coordinates.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[4.0]]])
    >>> print(np.sqrt(hf.bandwidths.Silverman().covariance(mixture, 32)).round(3))
    [[1.059]]
    """

    def covariance(self, mixture: GaussianMixture, n: int) -> Array:
        d = as_mixture("mixture", mixture).dim
        constant = (4.0 / (d + 2.0)) ** (1.0 / (d + 4.0))
        return Whitened(constant, offset=4.0).covariance(mixture, n)


def check_bandwidth(name: str, bandwidth: Bandwidth) -> Bandwidth:
    """Return `bandwidth` as ``"auto"``, a rule, a positive float, a tuple of widths, or nested tuples of a matrix."""
    if isinstance(bandwidth, str) and bandwidth == "auto":
        return bandwidth
    if isinstance(bandwidth, float):
        # before isinstance with a protocol, which is slow
        return _checks.as_positive(name, bandwidth)
    if isinstance(bandwidth, BandwidthRule) and not isinstance(bandwidth, type):
        return bandwidth
    if isinstance(bandwidth, str | type):
        raise ValueError(
            f'{name}: expected "auto", a rule, a number, (d,) or (d, d), got {_checks.short_repr(bandwidth)}'
        )
    # Tuples instead of arrays: samplers with equal bandwidths are equal, and can be hashed.
    if np.ndim(bandwidth) == 0:
        return _checks.as_positive(name, getattr(bandwidth, "item", lambda: bandwidth)())
    if np.ndim(bandwidth) == 1:
        widths = _checks.as_array(name, bandwidth, (None,)).tolist()
        return tuple(_checks.as_positive(name, width) for width in widths)
    return tuple(map(tuple, _checks.as_definite(name, bandwidth, None).tolist()))


def kernel_covariance(bandwidth: Bandwidth, mixture: GaussianMixture, n: int) -> Array:
    r"""Return the kernel covariance K, shape (d, d), of a bandwidth for `n` points from `mixture`.

    ``"auto"`` stands for `Whitened`; a rule computes K itself; a number sigma_k gives :math:`\sigma_k^2 I`; d numbers are
    the widths of the dimensions; a matrix is K.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0, 0]], np.diag([100.0, 1.0]))
    >>> print(hf.bandwidths.kernel_covariance(0.5, mixture, 20).tolist())  # the same width everywhere
    [[0.25, 0.0], [0.0, 0.25]]
    >>> print(hf.bandwidths.kernel_covariance("auto", mixture, 20).round(3).tolist())
    [[65.689, 0.0], [0.0, 0.657]]
    """
    d = as_mixture("mixture", mixture).dim
    bandwidth = check_bandwidth("bandwidth", bandwidth)
    if isinstance(bandwidth, str):
        return Whitened().covariance(mixture, n)
    if isinstance(bandwidth, BandwidthRule):
        return _checks.as_definite(f"bandwidth: {bandwidth!r}", bandwidth.covariance(mixture, n), d)
    if isinstance(bandwidth, float):
        return bandwidth**2 * np.eye(d)
    # An array of widths or a matrix: only here the dimension is known.
    widths = np.asarray(bandwidth)
    if widths.shape not in ((d,), (d, d)):
        raise ValueError(
            f"bandwidth: expected shape ({d},) or ({d}, {d}) for this mixture, got {widths.shape}"
        )
    return np.diag(widths**2) if widths.ndim == 1 else widths
