"""Samplers that improve another sampler's points: polished together, or given optimal weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from herdfilter import _checks, bandwidths
from herdfilter._checks import Array
from herdfilter.discrepancy import optimal_weights
from herdfilter.kernels import Gaussian, Kernel, KernelMean, as_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.base import MixtureSampler, Sampler, draw_points
from herdfilter.samplers.herding.frame import KernelFrame, move_groups

DISTANCES_AT_ONCE = 2**21  # numbers in memory


@dataclass(frozen=True)
class Polished(MixtureSampler):
    """Another sampler's points, moved together until the herding error no longer falls.

    All points move at once, by L-BFGS on the squared herding error with its analytic gradient; the weights stay. The first
    local minimum is taken, which is never worse than the start. Costs O(n^2 + n M) an iteration, and O(n) memory.

    Parameters
    ----------
    sampler : Sampler
        Draws the points to start from.
    bandwidth : "auto", float, array_like or rule
        Of the kernel in which the error is measured, as for `KernelHerding`; with ``"auto"`` points near far groups of
        components are moved group by group.
    kernel : Kernel, optional
        Gaussian by default; `herdfilter.kernels.Energy` gives support points (Mak and Joseph 2018).
    iterations : int
        The most steps; most of the gain comes in the first 30. Minima are flat along some directions: a change of unit or
        origin keeps the quality of the points, but rounding may move them by up to 1e-2 bandwidths.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> herded = hf.KernelHerding(0.8).sample(mixture, 20)
    >>> polished = hf.Polished(hf.KernelHerding(0.8), bandwidth=0.8).sample(mixture, 20)
    >>> hf.herding_error(polished, mixture, 0.8) < 0.7 * hf.herding_error(herded, mixture, 0.8)
    True
    """

    sampler: Sampler
    bandwidth: bandwidths.Bandwidth = "auto"
    kernel: Kernel = Gaussian()  # noqa: RUF009  frozen
    iterations: int = 50

    def __post_init__(self) -> None:
        _checks.check_methods("sampler", self.sampler, "sample")
        _checks.check_fields(
            self,
            bandwidth=bandwidths.check_bandwidth,
            kernel=as_kernel,
            iterations=_checks.check_count,
        )

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Draw points with the sampler, which may use `rng`, and move them."""
        points = draw_points(self.sampler, mixture, n, rng)
        if self.bandwidth == "auto":
            x = move_groups(mixture, points.x, points.weights, self._polish)
        else:
            x = self._polish(mixture, points.x, points.weights)
        return x, points.weights.copy()

    def _polish(self, mixture: GaussianMixture, x: Array, weights: Array) -> Array:
        kernel = bandwidths.kernel_covariance(self.bandwidth, mixture, len(x))
        frame = KernelFrame.of(mixture, kernel, turn=False)
        mean = KernelMean(self.kernel, frame.weights, frame.means, frame.covariances)
        # Points of a group may weigh nothing.
        share = weights / max(weights.sum(), _checks.UNDERFLOW)
        return frame.back(descend(frame.forward(x), share, self.kernel, mean, self.iterations))


@dataclass(frozen=True)
class Reweighted(MixtureSampler):
    """Another sampler's points, with the weights that minimise their herding error.

    Parameters
    ----------
    sampler : Sampler
        Draws the points; its own weights are dropped.
    constraint : {"simplex", "sum"}
        ``"simplex"``: non-negative weights that sum to 1. ``"sum"``: the weights of Bayesian quadrature (O'Hagan 1991;
        Huszar and Duvenaud 2012) that sum to 1; some may be negative, which filters cannot use.
    bandwidth, kernel
        Of the kernel in which the error is measured, as for `Polished`.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> random = hf.RandomSampling().sample(mixture, 20, rng=0)
    >>> weighted = hf.Reweighted(hf.RandomSampling()).sample(mixture, 20, rng=0)  # the same points, with other weights
    >>> hf.energy_distance(weighted, mixture) < 0.5 * hf.energy_distance(random, mixture)
    True
    """

    sampler: Sampler
    constraint: Literal["simplex", "sum"] = "simplex"
    bandwidth: bandwidths.Bandwidth = "auto"
    kernel: Kernel = Gaussian()  # noqa: RUF009  frozen

    def __post_init__(self) -> None:
        _checks.check_methods("sampler", self.sampler, "sample")
        _checks.check_fields(self, bandwidth=bandwidths.check_bandwidth, kernel=as_kernel)
        _checks.one_of("constraint", self.constraint, ("simplex", "sum"))

    def draw(
        self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None
    ) -> tuple[Array, Array]:
        """Draw points with the sampler, which may use `rng`, and weight them anew."""
        points = draw_points(self.sampler, mixture, n, rng)
        covariance = bandwidths.kernel_covariance(self.bandwidth, mixture, len(points))
        weights = optimal_weights(points.x, mixture, covariance, self.constraint, self.kernel)
        return points.x, weights / weights.sum()


def descend(
    x: Array,
    weights: Array,
    kernel: Kernel,
    mean: KernelMean,
    iterations: int,
    symmetric: bool = False,
) -> Array:
    """Move points (n, d) down the squared herding error, by L-BFGS with the analytic gradient; weights stay.

    In coordinates in which the kernel has bandwidth 1. With `symmetric` the set is point-symmetric and only one half, `x`,
    is moved and returned; the weights are those of the half, of its mirror image and, if there is one more, of the origin.
    """
    from scipy.optimize import minimize  # slow to import

    n, d = x.shape
    origin = np.zeros((len(weights) - 2 * n if symmetric else 0, d))

    def objective(flat: Array) -> tuple[float, Array]:
        y = flat.reshape(n, d)
        points = np.concatenate([y, -y, origin]) if symmetric else y
        value, gradient = herding_loss(points, weights, kernel, mean)
        if symmetric:
            gradient = gradient[:n] - gradient[n : 2 * n]
        # Times n, so that the tolerances of the gradient fit any number of points.
        return value * len(weights), gradient.ravel() * len(weights)

    minimum = minimize(
        objective, x.ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-12, "gtol": 1e-9, "maxcor": 20}
    )  # fmt: skip
    return minimum.x.reshape(n, d)


def herding_loss(x: Array, weights: Array, kernel: Kernel, mean: KernelMean) -> tuple[float, Array]:
    """Return the squared herding error without its constant, ``sum w w k - 2 sum w mu``, and its gradient (n, d)."""
    target, slope = mean.with_gradient(x)
    value = -2 * float(weights @ target)
    gradient = -2 * weights[:, None] * slope
    # The gradient of sum_st w_s w_t v(|x_s - x_t|^2) by x_s is 4 w_s sum_t w_t v' (x_s - x_t).
    rows = max(1, DISTANCES_AT_ONCE // len(x))
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        squared = scipy.spatial.distance.cdist(x[part], x, "sqeuclidean")
        value += float(weights[part] @ kernel.value(squared) @ weights)
        pull = kernel.slope(squared) * weights
        drift = pull.sum(axis=1)[:, None] * x[part] - pull @ x
        gradient[part] += 4 * weights[part, None] * drift
    return value, gradient
