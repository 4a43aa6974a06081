"""Kernel herding (Chen, Welling and Smola, "Super-Samples from Kernel Herding", UAI 2010)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from herdfilter import _checks, bandwidths
from herdfilter._checks import Array
from herdfilter.discrepancy import simplex_weights
from herdfilter.kernels import Gaussian, Kernel, KernelMean, as_kernel
from herdfilter.mixture import GaussianMixture, equal_weights
from herdfilter.samplers.base import MixtureSampler
from herdfilter.samplers.herding import frame as frames
from herdfilter.samplers.herding import greedy
from herdfilter.samplers.herding.objective import herding_objective

Climb = Callable[[Array, Array, Array], tuple[Array, float]]
"""(start, points, coefficients) -> position and height of a local maximum of the objective."""


@dataclass(frozen=True)
class KernelHerding(MixtureSampler):
    r"""Deterministic greedy sampling: each point goes where the mixture, smoothed by the kernel, lacks points most.

    The next point, after t of them, is the maximum over x of

    .. math:: \mathrm E[k(x, X)] - \frac{1}{t + 1} \sum_{s=1}^t k(x, x_s)

    with the expectation over the mixture in closed form: the best that climbs reach from a fixed set of candidates, the
    component means and draws from the smoothed mixture. As a Frank-Wolfe method (Bach, Lacoste-Julien and Obozinski 2012) it
    may weight the points: the next one then maximises :math:`\mathrm E[k(x, X)] - \sum_s w_s k(x, x_s)`.

    Parameters
    ----------
    bandwidth : "auto", float, array_like of shape (d,) or (d, d), or rule
        Kernel width sigma_k in state units, widths of the dimensions, kernel covariance, or a rule of
        `herdfilter.bandwidths`. With ``"auto"``, its `Whitened`, components far apart or of very different size are herded
        group by group (docs/samplers.md), and points of equal weight under the Gaussian kernel placed again.
    weights : {"equal", "line-search", "fully-corrective"}
        ``"equal"`` as above. ``"line-search"``: each new point takes the fraction of the weight that lowers the herding
        error most. ``"fully-corrective"``: after each point all weights minimise the error, non-negative and with sum 1;
        time grows as :math:`n^3` and memory as :math:`n^2`. Points of weight 0 are kept.
    kernel : Kernel, optional
        Another kernel of `herdfilter.kernels` than the Gaussian; its search is two to four hundred times slower.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> points = hf.KernelHerding().sample(mixture, 50)
    >>> hf.energy_distance(points, mixture) < 0.2 * hf.expected_energy_distance(mixture, 50)
    True
    """

    bandwidth: bandwidths.Bandwidth = "auto"
    weights: Literal["equal", "line-search", "fully-corrective"] = "equal"
    kernel: Kernel = Gaussian()  # noqa: RUF009  frozen

    def __post_init__(self) -> None:
        _checks.check_fields(self, bandwidth=bandwidths.check_bandwidth, kernel=as_kernel)
        _checks.one_of("weights", self.weights, ("equal", "line-search", "fully-corrective"))
        # Under -r the best position for a point beside weighted ones may be at infinity.
        if self.weights != "equal" and not self.kernel.value(np.zeros(1))[0] > 0:
            raise ValueError(
                f"kernel: expected one with a positive peak for weights {self.weights!r}, got {self.kernel!r}"
            )

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Herd the points, group by group if the bandwidth is "auto"."""
        if self.bandwidth == "auto":
            x, weights = frames.grouped(mixture, n, self._herd, weighted=self.weights != "equal")
        else:
            kernel = bandwidths.kernel_covariance(self.bandwidth, mixture, n)
            frame = frames.KernelFrame.of(mixture, kernel, turn=True)
            z, weights = self._herd(frame, n)
            x = frame.back(z)
        return x, equal_weights(n) if self.weights == "equal" else weights / weights.sum()

    def _herd(self, frame: frames.KernelFrame, n: int) -> tuple[Array, Array]:
        """Return points (n, d) in the coordinates of the frame, and their weights (n,)."""
        if self.kernel != Gaussian() or self.weights != "equal":
            return herd_weighted(frame, self.kernel, n, self.weights)
        if self.bandwidth == "auto":
            # Each point is placed again, so that a short first climb will do.
            z = greedy.place_again(
                frame, greedy.herd_greedily(frame, n, steps=len(frame.origin) + 4)
            )
        else:
            z = greedy.herd_greedily(frame, n)
        return z, equal_weights(n)


def herd_weighted(
    frame: frames.KernelFrame, kernel: Kernel, n: int, weighting: str
) -> tuple[Array, Array]:
    """Return n points (n, d) and weights (n,): each point the maximum found of ``mu(x) - sum_s c_s k(x, x_s)``.

    In terms of Frank-Wolfe each new point x is the vertex ``k(., x)`` along which the distance of ``sum_s w_s k(., x_s)``
    from the expected kernel mu falls fastest. The coefficients c of t points are ``1 / (t + 1)`` with equal weights, the
    weights so far with the others. Memory O(n^2 + n C).
    """
    # All mass may be in one point, where no climb is needed.
    if not (frame.covariances.any() or np.ptp(frame.means, axis=0).any()):
        return np.repeat(frame.means[:1], n, axis=0), equal_weights(n)
    start = np.ascontiguousarray(greedy.candidates(frame, n).T)
    if kernel == Gaussian():
        expected, climb_from = _gaussian_climb(frame, start, n)
    else:
        expected, climb_from = _scipy_climb(frame, start, kernel)
    x = np.empty((n, start.shape[1]))
    w = np.zeros(n)
    near = np.empty((len(start), n))  # kernels between candidates and points
    z = np.empty(n)  # mu at the points
    gram = np.empty((n, n))
    for t in range(n):
        c = np.full(t, 1 / (t + 1)) if weighting == "equal" else w[:t]
        gain = expected - near[:, :t] @ c
        # The first of the candidates where the gain is highest to within rounding
        leading = (gain >= gain.max() - greedy.TIED_HEIGHTS * expected.max()).argmax()
        x[t], height = climb_from(start[leading], x[:t], c)
        squared = scipy.spatial.distance.cdist(start, x[t : t + 1], "sqeuclidean")
        near[:, t] = kernel.value(squared)[:, 0]
        gram[t, : t + 1] = kernel.value(((x[: t + 1] - x[t]) ** 2).sum(axis=1))
        gram[: t + 1, t] = gram[t, : t + 1]
        z[t] = height + gram[t, :t] @ c
        if weighting == "line-search":
            _search_line(z[: t + 1], gram[: t + 1, : t + 1], w[: t + 1])
        elif weighting == "fully-corrective":
            w[: t + 1] = simplex_weights(gram[: t + 1, : t + 1], z[: t + 1])
    return x, equal_weights(n) if weighting == "equal" else w / w.sum()


def _gaussian_climb(frame: frames.KernelFrame, start: Array, n: int) -> tuple[Array, Climb]:
    """Return mu at the candidates, and the compiled climb."""
    objective = herding_objective(frame, n, (1.0,))
    samples = objective.samples

    def climb_from(at: Array, points: Array, c: Array) -> tuple[Array, float]:
        t = len(points)
        # The loop divides the sum by t + 1.
        samples.height[0, :t] = (t + 1) * c
        samples.centre[:, :t] = points.T
        climbed = greedy.place_points(
            objective, at[:, None].copy(), t, t + 1, 0, greedy.CLIMB_STEPS
        )
        return samples.centre[:, t].copy(), climbed[1]

    return greedy.place_points(objective, start.T.copy(), 1, 1, 0, 0)[0], climb_from


def _scipy_climb(frame: frames.KernelFrame, start: Array, kernel: Kernel) -> tuple[Array, Climb]:
    """Return mu at the candidates, and a climb by SciPy's optimiser."""
    from scipy.optimize import minimize  # slow to import

    mean = KernelMean(kernel, frame.weights, frame.means, frame.covariances)

    def climb_from(at: Array, points: Array, c: Array) -> tuple[Array, float]:
        def descent(x: Array) -> tuple[float, Array]:
            value, slope = mean.with_gradient(x[None, :])
            offsets = x - points
            squared = (offsets**2).sum(axis=1)
            pull = 2 * (kernel.slope(squared) * c) @ offsets
            return float(c @ kernel.value(squared) - value[0]), pull - slope[0]

        minimum = minimize(
            descent, at, jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-8}
        )
        return minimum.x, -float(minimum.fun)

    return mean(start), climb_from


def _search_line(z: Array, gram: Array, w: Array) -> None:
    """Move weights towards the last point by the step of least error, ``<mu - g, phi - g> / |phi - g|^2`` within [0, 1]."""
    direction = -w
    direction[-1] = 1.0
    gain = direction @ (z - gram @ w)
    length = direction @ gram @ direction
    # Of length 0 is the step to a point that the others already represent.
    w += direction * (np.clip(gain / length, 0.0, 1.0) if len(w) > 1 and length > 0 else 1.0)
