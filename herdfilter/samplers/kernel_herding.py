"""Kernel herding (Chen, Welling and Smola, "Super-Samples from Kernel Herding", UAI 2010)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array, as_count
from herdfilter.discrete._herding import herded_labels
from herdfilter.kernels import Bandwidth, check_bandwidth
from herdfilter.mixture import GaussianMixture, covariance_factor
from herdfilter.points import Points
from herdfilter.samplers._frame import KernelFrame
from herdfilter.samplers._kernel_herding import kernel_herding


@dataclass(frozen=True)
class KernelHerding:
    """Deterministic greedy sampling: each point goes where the mixture, smoothed by the kernel, lacks points most.

    The next point, after t of them, is the maximum over x of

        E[k(x, X)]  -  1 / (t + 1)  sum_s k(x, x_s)

    with the expectation over the mixture in closed form. The objective is kept at a fixed set of candidates, and the best
    few are refined by a quasi-Newton ascent. The maximum found is the global one as a rule; with a bandwidth far below the
    automatic one (tens of kernel widths across the mixture) it may be another, high local maximum.

    Parameters
    ----------
    bandwidth : "auto", float or array_like of shape (d, d)
        Kernel width sigma_k in state units, kernel covariance, or the whitened rule `herdfilter.bandwidths.scale_rule`.

    Raises
    ------
    ValueError
        If the bandwidth is not of the stated kind.
    """

    bandwidth: Bandwidth = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Herd `n` points with equal weights from `mixture`; `rng` is not used."""
        n = as_count("n", n)
        frame = KernelFrame.of(mixture, self.bandwidth, n, turn=True)
        precision, log_det = frame.precisions(1.0)
        log_height = frame.log_weights + 0.5 * log_det
        means = np.ascontiguousarray(frame.means.T)
        z = kernel_herding(log_height, means, precision, _candidates(frame, n), n)
        return Points(frame.back(z.T))


def _candidates(frame: KernelFrame, n: int) -> Array:
    """Return starting points: the component means, and draws from the smoothed mixture, the same at every call."""
    d = len(frame.origin)
    total = np.exp(frame.log_weights) @ (frame.means**2 + np.diagonal(frame.covariances, axis1=1, axis2=2))
    kernels = np.sqrt(np.prod(1.0 + total))  # volume of the mixture in kernels
    draws = int(np.clip(kernels, max(200, 4 * n), max(1000, 4 * n)))
    labels = herded_labels(np.exp(frame.log_weights), draws)
    factor = covariance_factor(frame.covariances + np.eye(d))
    noise = np.random.default_rng(0).standard_normal((draws, d))
    spread = noise @ factor[0].T if len(factor) == 1 else np.einsum("nij,nj->ni", factor[labels], noise)
    return np.concatenate([frame.means, frame.means[labels] + spread])
