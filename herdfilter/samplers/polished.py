"""Polishing: a joint descent that improves a finished set of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import UNDERFLOW, Array, check_count
from herdfilter.bandwidths import Bandwidth, check_bandwidth
from herdfilter.kernels import Gaussian, Kernel, KernelMean, as_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler, as_sampler, asked, drawn
from herdfilter.samplers.herding.descent import descend
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.groups import moved


@dataclass(frozen=True)
class Polished:
    """Another sampler's points, moved together until the herding error no longer falls.

    Herding is greedy: a point once placed stays. Here all points move at once, by L-BFGS on the squared herding error with
    its analytic gradient, from where `sampler` put them; the weights stay. The first local minimum is taken, which is never
    worse than the start. Costs O(n^2 + n M) an iteration, and O(n) memory.

    Parameters
    ----------
    sampler : Sampler
        Draws the points to start from.
    bandwidth : "auto", float, array_like or rule
        Of the kernel in which the error is measured, as for `KernelHerding`; with ``"auto"`` points near far groups of
        components are polished group by group.
    kernel : Kernel, optional
        Gaussian by default; with `herdfilter.kernels.Energy` the result are support points (Mak and Joseph 2018).
    iterations : int
        At most so many steps; most of the gain comes in the first 30. Minima are flat along some directions, and there
        rounding decides where points come to rest: a change of unit or origin leaves their quality as it is, but moves them
        by up to 1e-2 bandwidths.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> herded = hf.KernelHerding(0.8).sample(mixture, 20)
    >>> polished = hf.Polished(hf.KernelHerding(0.8), bandwidth=0.8).sample(mixture, 20)
    >>> hf.herding_error(polished, mixture, 0.8) < 0.7 * hf.herding_error(herded, mixture, 0.8)
    True
    """

    sampler: Sampler
    bandwidth: Bandwidth = "auto"
    kernel: Kernel = Gaussian()  # noqa: RUF009  frozen
    iterations: int = 50

    def __post_init__(self) -> None:
        as_sampler("sampler", self.sampler)
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))
        as_kernel("kernel", self.kernel)
        object.__setattr__(self, "iterations", check_count("iterations", self.iterations))

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Draw `n` points with the sampler, which may use `rng`, and polish them."""
        points = drawn(self.sampler, mixture, asked(mixture, n, rng), rng)
        if self.bandwidth == "auto":
            return Points.unchecked(moved(mixture, points.x, points.weights, self._polish), points.weights.copy())
        return Points.unchecked(self._polish(mixture, points.x, points.weights), points.weights.copy())

    def _polish(self, mixture: GaussianMixture, x: Array, weights: Array) -> Array:
        frame = KernelFrame.of(mixture, self.bandwidth, len(x), turn=False)
        mean = KernelMean(self.kernel, np.exp(frame.log_weights), frame.means, frame.covariances)
        share = weights / max(weights.sum(), UNDERFLOW)
        return frame.back(descend(frame.forward(x), share, self.kernel, mean, self.iterations))
