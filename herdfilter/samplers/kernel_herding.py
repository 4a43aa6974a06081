"""Kernel herding (Chen, Welling and Smola, "Super-Samples from Kernel Herding", UAI 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from herdfilter._checks import as_count, one_of
from herdfilter.bandwidths import Bandwidth, check_bandwidth
from herdfilter.kernels import Gaussian, Kernel, KernelMean, as_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers import _any_kernel
from herdfilter.samplers._frame import KernelFrame
from herdfilter.samplers._frank_wolfe import RULES
from herdfilter.samplers._herding_search import candidates, herd
from herdfilter.samplers._kernel_herding import STARTS
from herdfilter.samplers._passes import passes_meant, place_again


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
    passes : int, optional
        After the last point each is placed again, given all others, so many times: it climbs from where it is, two steps
        of a quasi-Newton method, on

            sum over the widths w = 1/2 and 3/2 of  w (E[k_w(x, X)]  -  1 / n  sum_{r != s} k_w(x, x_r)),

        k_w being w times as wide as the kernel. This is nearly what the energy distance falls by, which is the squared
        herding error integrated over all widths. Greedy choice costs most where points are few: None means, with the
        bandwidth ``"auto"``, equal weights and the Gaussian kernel, 6 passes over fewer than 50 points, 3 in one and two
        dimensions; 1 over more points from 8 dimensions on; else none.

    Raises
    ------
    TypeError, ValueError
        If the bandwidth, the weighting or the kernel is not of the stated kind.

    Notes
    -----
    In one and two dimensions, and in three with at most 16 components, the objective is searched by branch and bound: no
    place is left out at which an upper bound of the expected kernel exceeds the best value found, down to nodes at most
    half a kernel width apart, and every peak that the differences between nodes allow to be the highest is climbed by
    Newton's method. Each point is at least as high as every node. That it is the highest peak is not proved, since a peak
    between nodes is judged by its second differences.

    Otherwise the best of a fixed set of candidates are refined, and a higher maximum may be missed.
    """

    bandwidth: Bandwidth = "auto"
    weights: Literal["equal", "line-search", "fully-corrective"] = "equal"
    kernel: Kernel = Gaussian()  # noqa: RUF009  frozen
    passes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))
        one_of("weights", self.weights, RULES)
        as_kernel("kernel", self.kernel)
        if self.weights != "equal" and not self.kernel.value(np.zeros(1))[0] > 0:
            raise ValueError(
                f"weights: {self.weights!r} needs a kernel with a positive peak, got {self.kernel!r}"
            )
        if self.passes is not None:
            object.__setattr__(self, "passes", as_count("passes", self.passes, 0))
            if self.passes and (self.weights != "equal" or self.kernel != Gaussian()):
                raise ValueError(
                    f"passes: expected 0 or None unless weights are equal and the kernel Gaussian, got {self.passes}"
                )

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Herd `n` points from `mixture`; `rng` is not used."""
        n = as_count("n", n)
        frame = KernelFrame.of(mixture, self.bandwidth, n, turn=True)
        if self.kernel == Gaussian():
            passes = 0
            if self.weights == "equal":
                passes = passes_meant(self.passes, self.bandwidth, n, mixture.dim)
            # Several passes mend what one candidate misses.
            z, weights = herd(frame, n, RULES[self.weights], tries=1 if passes > 1 else STARTS)
            if passes:
                z = place_again(frame, z, passes)
        else:
            mean = KernelMean(self.kernel, np.exp(frame.log_weights), frame.means, frame.covariances)
            starts = np.ascontiguousarray(candidates(frame, n).T)
            z, weights = _any_kernel.herd(self.kernel, mean, starts, n, self.weights)
        return Points(frame.back(z), None if self.weights == "equal" else weights)
