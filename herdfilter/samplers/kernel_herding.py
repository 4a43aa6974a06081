"""Kernel herding (Chen, Welling and Smola, "Super-Samples from Kernel Herding", UAI 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from herdfilter._checks import one_of
from herdfilter.bandwidths import Bandwidth, check_bandwidth
from herdfilter.kernels import Gaussian, Kernel, as_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import asked
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.greedy import herd
from herdfilter.samplers.herding.groups import grouped
from herdfilter.samplers.herding.placing import place_again
from herdfilter.samplers.herding.weighted import WEIGHTINGS, herd_weighted


@dataclass(frozen=True)
class KernelHerding:
    """Deterministic greedy sampling: each point goes where the mixture, smoothed by the kernel, lacks points most.

    The next point, after t of them, is the maximum over x of

        E[k(x, X)]  -  1 / (t + 1)  sum_s k(x, x_s)

    with the expectation over the mixture in closed form. Seen as a Frank-Wolfe method (Bach, Lacoste-Julien and Obozinski
    2012), the points may be weighted: with ``g = sum_s w_s k(., x_s)`` the next point is then the maximum of
    ``E[k(x, X)] - g(x)``.

    Parameters
    ----------
    bandwidth : "auto", float, array_like of shape (d,) or (d, d), or rule
        Kernel width sigma_k in state units, widths of the dimensions, kernel covariance, or a rule of
        `herdfilter.bandwidths`; ``"auto"`` is its `Whitened`.
    weights : {"equal", "line-search", "fully-corrective"}
        ``"equal"`` as above. ``"line-search"``: each new point takes the share of the weight that lowers the herding error
        most. ``"fully-corrective"``: after each point all weights are those, non-negative and of sum 1, that make the
        error least; time grows as n^3 and memory as n^2. Points may come to have weight 0; they are kept, and n points are
        returned.
    kernel : Kernel, optional
        Another kernel of `herdfilter.kernels` than the Gaussian; its search is not compiled, and two to
        four hundred times slower.

    Raises
    ------
    TypeError, ValueError
        If the bandwidth, the weighting or the kernel is not of the stated kind.

    Notes
    -----
    With the bandwidth ``"auto"``, components far apart or of very different size are herded group by group, each in a kernel
    of its own width (docs/samplers.md). Points of equal weight under the Gaussian kernel are then placed again once, and 120
    moves are made in all where the points are fewer (`PlacedAgain`).

    The maximum is the best that climbs from a fixed set of candidates reach: the component means and draws from the
    smoothed mixture. A higher one may be missed; docs/samplers.md says how often, and what it costs.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> points = hf.KernelHerding().sample(mixture, 50)
    >>> random = hf.RandomSampling().sample(mixture, 50, rng=0)
    >>> hf.energy_distance(points, mixture) < 0.2 * hf.energy_distance(random, mixture)
    True
    >>> print(points.mean.round(1))  # of the mixture: 1 and 1
    [1. 1.]
    """

    bandwidth: Bandwidth = "auto"
    weights: Literal["equal", "line-search", "fully-corrective"] = "equal"
    kernel: Kernel = Gaussian()  # noqa: RUF009  frozen

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))
        one_of("weights", self.weights, WEIGHTINGS)
        as_kernel("kernel", self.kernel)
        if self.weights != "equal" and not self.kernel.value(np.zeros(1))[0] > 0:
            raise ValueError(f"weights: {self.weights!r} needs a kernel with a positive peak, got {self.kernel!r}")

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Herd `n` points from `mixture`; `rng` is not used."""
        n = asked(mixture, n, rng)
        if self.bandwidth == "auto":
            return grouped(mixture, n, self._herd, weighted=self.weights != "equal")
        return self._herd(mixture, n)

    def _herd(self, mixture: GaussianMixture, n: int) -> Points:
        frame = KernelFrame.of(mixture, self.bandwidth, n, turn=True)
        if self.kernel != Gaussian() or self.weights != "equal":
            z, weights = herd_weighted(frame, self.kernel, n, self.weights)
            return Points(frame.back(z), None if self.weights == "equal" else weights)
        if self.bandwidth == "auto":
            # Where a point moves again, its first climb may be short: one step per dimension, and a few.
            return Points(frame.back(place_again(frame, herd(frame, n, steps=mixture.dim + 4))))
        return Points(frame.back(herd(frame, n)))
