"""Samplers that improve another sampler's points: placed again one by one, polished together, or given optimal weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from herdfilter._checks import UNDERFLOW, Array, check_count, one_of
from herdfilter.bandwidths import Bandwidth, check_bandwidth, kernel_covariance
from herdfilter.discrepancy import optimal_weights
from herdfilter.kernels import Gaussian, Kernel, KernelMean, as_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers.base import Sampler, as_sampler, asked, drawn
from herdfilter.samplers.herding.frame import KernelFrame, moved
from herdfilter.samplers.herding.greedy import place_points
from herdfilter.samplers.herding.objective import climb_workspace, no_samples, smoothed_target

PLACING_STEPS = 2  # of a climb: what it leaves to rise, the next pass finds
MOVES = 120  # in all, where the points are fewer: greedy choice costs most there, and moves cost least
TOGETHER = 1e-6  # kernel widths between points that coincide
NUDGE = 0.1  # kernel widths by which they are parted
WIDE = 0.01  # variance, in units of the kernel's, from which on components are wide enough for that
DISTANCES_AT_ONCE = 2**21  # numbers held at once


@dataclass(frozen=True)
class PlacedAgain:
    """Another sampler's points, moved one at a time: each climbs from where it is to a better place given all others.

    A climb is two steps of a quasi-Newton method on

        sum over two widths w of  w (E[k_w(x, X)]  -  1 / n  sum_{r != s} k_w(x, x_r)),

    k_w being w times as wide as the kernel: 1/2 and 3/2 for up to twenty points, growing to 1 and 2 for forty and more.
    This is nearly what the energy distance falls by, which is the squared herding error integrated over all widths. Herding
    is greedy, and this mends what greedy choice costs; `KernelHerding` and `ContinuousHerdedGibbs` do so by themselves where
    their bandwidth is ``"auto"``. A pass costs O(n (n + M)), compiled: about half of what herding the points costs.
    `Polished` moves all points at once to a minimum, under any kernel.

    Parameters
    ----------
    sampler : Sampler
        Draws the points to start from, of equal weight.
    passes : int
        How often each point is moved.
    bandwidth : "auto", float, array_like or rule
        Of the kernel, as for `KernelHerding`; with ``"auto"`` points near far groups of components are
        placed group by group.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind; later, if the sampler's points have unequal weights.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-1, 0], [3, 2]], np.eye(2))
    >>> herding = hf.KernelHerding()
    >>> once, again = herding.sample(mixture, 20), hf.PlacedAgain(herding).sample(mixture, 20)
    >>> hf.energy_distance(again, mixture) < hf.energy_distance(once, mixture)
    True
    """

    sampler: Sampler
    passes: int = 1
    bandwidth: Bandwidth = "auto"

    def __post_init__(self) -> None:
        as_sampler("sampler", self.sampler)
        object.__setattr__(self, "passes", check_count("passes", self.passes))
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))

    def sample(self, mixture: GaussianMixture, n: int, rng: np.random.Generator | None = None) -> Points:
        """Draw `n` points with the sampler, which may use `rng`, and place them again."""
        points = drawn(self.sampler, mixture, asked(mixture, n, rng), rng)
        if np.ptp(points.weights) > 1e-12 / n:
            raise ValueError(
                f"sampler: expected points of equal weight from {type(self.sampler).__name__}, got weights from "
                f"{points.weights.min():.3g} to {points.weights.max():.3g}; Polished takes them"
            )
        if self.bandwidth == "auto":
            return Points(moved(mixture, points.x, points.weights, self._place))
        return Points(self._place(mixture, points.x, points.weights))

    def _place(self, mixture: GaussianMixture, x: Array, _: Array) -> Array:
        frame = KernelFrame.of(mixture, self.bandwidth, len(x), turn=True)
        return frame.back(place_again(frame, frame.forward(x), self.passes * len(x)))


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


def widths(n: int) -> tuple[float, float]:
    """Return the widths of the two kernels in which n points are placed again, in kernel widths of the frame.

    The energy distance is the squared herding error integrated over all kernel widths. Two, with heights in proportion, come
    close to it: a narrow one keeps neighbours apart, a wide one fills the tails. From 1/2 and 3/2 for few points they grow
    to 1 and 2 for forty and more: narrower ones bring the points closer to the mixture still, but filters of several
    dimensions, which go on from them, lose their target more often.
    """
    narrow = min(max(n / 40, 0.5), 1.0)
    return narrow, narrow + 1.0


def place_again(frame: KernelFrame, z: Array, moves: int | None = None) -> Array:
    """Move the points z (n, d) of a turned frame, one after the other, `moves` times in all; (n, d).

    Each once, and 120 times in all where they are fewer, unless told otherwise. No move lowers the objective, the sum over
    both widths w of ``w (E[k_w(x, X)] - 1 / n sum_r k_w(x, x_r))``. The squared herding errors, weighed alike, are twice
    minus it over n and a constant, and so never rise.
    """
    n, d = z.shape
    moves = max(n, MOVES) if moves is None else moves
    both = widths(n)
    target, samples = smoothed_target(frame, both, both), no_samples(n, d, both)
    samples.point[:, :n] = _parted(frame, z).T
    samples.weight[:, :n] = np.array(both)[:, None]
    room, nothing, table = climb_workspace(target, samples), np.empty((d, 0)), np.empty((3, 0))
    place_points(target, samples, nothing, table, n, n, moves, PLACING_STEPS, room)
    return np.ascontiguousarray(samples.point[:, :n].T)


def _parted(frame: KernelFrame, z: Array) -> Array:
    """Move points that coincide with an earlier one a little apart: where they are, no slope would part them.

    Along one axis after the other, those first along which components are longest, to within rounding, and none along which
    they are narrow: there the points may well belong together.
    """
    if len(z) < 2 or np.diff(np.sort(z[:, 0])).min() > TOGETHER:
        return z
    variances = np.diagonal(frame.covariances, axis1=1, axis2=2)
    extent = variances[0] if len(variances) == 1 else np.exp(frame.log_weights) @ variances
    axes = np.flatnonzero(extent > WIDE)
    axes = axes[np.argsort(-np.round(extent[axes] / extent.max(), 9), kind="stable")]
    if not len(axes):
        return z
    distances, z = scipy.spatial.distance.cdist(z, z, "chebyshev"), z.copy()
    for k, s in enumerate(np.flatnonzero(np.tril(distances < TOGETHER, -1).any(axis=1))):
        z[s, axes[k % len(axes)]] += NUDGE if k // len(axes) % 2 == 0 else -NUDGE
    return z


def descend(x: Array, weights: Array, kernel: Kernel, mean: KernelMean, iterations: int, symmetric: bool = False) -> Array:
    """Move points (n, d) down the squared herding error, by L-BFGS with the analytic gradient; weights stay.

    In coordinates in which the kernel has bandwidth 1. With `symmetric` the points are mirrored through the origin: `x`
    holds one half, and the weights are those of the half, its mirror image and, if there is one more, of the origin.
    """
    from scipy.optimize import minimize  # slow to import

    n, d = x.shape
    origin = np.zeros((len(weights) - 2 * n if symmetric else 0, d))

    def objective(flat: Array) -> tuple[float, Array]:
        y = flat.reshape(n, d)
        value, gradient = squared_error(np.concatenate([y, -y, origin]) if symmetric else y, weights, kernel, mean)
        if symmetric:
            gradient = gradient[:n] - gradient[n : 2 * n]
        return value * len(weights), gradient.ravel() * len(weights)

    found = minimize(
        objective, x.ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-12, "gtol": 1e-9, "maxcor": 20},
    )  # fmt: skip
    return found.x.reshape(n, d)


def squared_error(x: Array, weights: Array, kernel: Kernel, mean: KernelMean) -> tuple[float, Array]:
    """Squared herding error without its constant, ``sum w w k - 2 sum w mu``, and its gradient (n, d)."""
    target, slope = mean.with_gradient(x)
    value = -2 * float(weights @ target)
    gradient = -2 * weights[:, None] * slope
    rows = max(1, DISTANCES_AT_ONCE // len(x))
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        squared = scipy.spatial.distance.cdist(x[part], x, "sqeuclidean")
        value += float(weights[part] @ kernel.value(squared) @ weights)
        pull = kernel.slope(squared) * weights
        moved = pull.sum(axis=1)[:, None] * x[part] - pull @ x
        gradient[part] += 4 * weights[part, None] * moved
    return value, gradient
