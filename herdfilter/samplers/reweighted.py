"""Optimal weights for another sampler's points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from herdfilter._checks import one_of
from herdfilter.bandwidths import Bandwidth, check_bandwidth, kernel_covariance
from herdfilter.discrepancy import optimal_weights
from herdfilter.kernels import Gaussian, Kernel, as_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler, as_sampler, asked


@dataclass(frozen=True)
class Reweighted:
    """Another sampler's points, with the weights that make their herding error least.

    Parameters
    ----------
    sampler : Sampler
        Draws the points; its own weights are dropped.
    constraint : {"simplex", "sum"}
        ``"simplex"``: non-negative weights that sum to 1. ``"sum"``: the weights of Bayesian quadrature (O'Hagan 1991;
        Huszar and Duvenaud 2012) that integrate constants exactly: they sum to 1, and some may be negative, for which
        filters have no use.
    bandwidth : "auto", float, array_like or rule
        Of the kernel in which the error is measured, as for `KernelHerding`.
    kernel : Kernel, optional
        Gaussian by default.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> random = hf.RandomSampling().sample(mixture, 20, rng=0)
    >>> weighted = hf.Reweighted(hf.RandomSampling()).sample(mixture, 20, rng=0)
    >>> np.array_equal(weighted.x, random.x)  # the same points, with other weights
    True
    >>> hf.energy_distance(weighted, mixture) < 0.5 * hf.energy_distance(random, mixture)
    True
    """

    sampler: Sampler
    constraint: Literal["simplex", "sum"] = "simplex"
    bandwidth: Bandwidth = "auto"
    kernel: Kernel = Gaussian()  # noqa: RUF009  frozen

    def __post_init__(self) -> None:
        as_sampler("sampler", self.sampler)
        one_of("constraint", self.constraint, ("simplex", "sum"))
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))
        as_kernel("kernel", self.kernel)

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Draw `n` points with the sampler, which may use `rng`, and weigh them."""
        x = self.sampler.sample(mixture, asked(mixture, n, rng), rng).x
        covariance = kernel_covariance(self.bandwidth, mixture, n)
        weights = optimal_weights(x, mixture, covariance, self.constraint, self.kernel)
        return Points(x, weights, signed=self.constraint == "sum")
