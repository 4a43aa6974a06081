"""Kernel herding with weights (Bach, Lacoste-Julien and Obozinski, ICML 2012) or with any kernel, a point at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from herdfilter._checks import Array
from herdfilter.discrepancy import simplex_weights
from herdfilter.kernels import Gaussian, Kernel, KernelMean
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers.herding.frame import KernelFrame
from herdfilter.samplers.herding.greedy import STEPS, candidates
from herdfilter.samplers.herding.objective import climbing_room, no_samples, smoothed_target
from herdfilter.samplers.herding.search import TIE, search

WEIGHTINGS = ("equal", "line-search", "fully-corrective")

Climb = Callable[[Array, Array, Array], tuple[Array, float]]
"""(start, points, coefficients) -> place and height of a local maximum of the objective."""


def herd_weighted(frame: KernelFrame, kernel: Kernel, n: int, weighting: str) -> tuple[Array, Array]:
    """Return n points (n, d) and weights (n,): each point the maximum found of ``mu(x) - sum_s c_s k(x, x_s)``.

    Seen as a Frank-Wolfe method, the points so far stand for the function ``g = sum_s w_s k(., x_s)``, and each new point x
    is the vertex ``k(., x)`` along which the distance of g from the expected kernel mu falls fastest. The coefficients c of
    t points are ``1 / (t + 1)`` with equal weights, the weights so far with the others. Memory O(n^2 + n C).
    """
    if not (frame.covariances.any() or np.ptp(frame.means, axis=0).any()):
        # A state that is known exactly leaves a second point nothing to mend.
        return np.repeat(frame.means[:1], n, axis=0), np.full(n, 1 / n)
    start = np.ascontiguousarray(candidates(frame, n).T)
    expected, climb_from = _gaussian(frame, start, n) if kernel == Gaussian() else _any(frame, start, kernel)
    x, w = np.empty((n, start.shape[1])), np.zeros(n)
    near, z, gram = np.empty((len(start), n)), np.empty(n), np.empty((n, n))
    for t in range(n):
        c = np.full(t, 1 / (t + 1)) if weighting == "equal" else w[:t]
        gain = expected - near[:, :t] @ c
        x[t], height = climb_from(start[(gain >= gain.max() - TIE * expected.max()).argmax()], x[:t], c)
        near[:, t] = kernel.value(scipy.spatial.distance.cdist(start, x[t : t + 1], "sqeuclidean"))[:, 0]
        gram[t, : t + 1] = gram[: t + 1, t] = kernel.value(((x[: t + 1] - x[t]) ** 2).sum(axis=1))
        z[t] = height + gram[t, :t] @ c
        if weighting == "line-search":
            rho = _line_search(z[: t + 1], gram[: t + 1, : t + 1], w[:t])
            w[:t] *= 1 - rho
            w[t] = rho
        elif weighting == "fully-corrective":
            w[: t + 1] = simplex_weights(gram[: t + 1, : t + 1], z[: t + 1])
    return x, np.full(n, 1 / n) if weighting == "equal" else w / w.sum()


def _gaussian(frame: KernelFrame, start: Array, n: int) -> tuple[Array, Climb]:
    """Return mu at the candidates, and the compiled climb."""
    d = start.shape[1]
    target, samples = smoothed_target(frame, (1.0,), (1.0,)), no_samples(n, d, (1.0,))
    room, table = climbing_room(target, samples), np.empty((3, 1))
    smoothed = GaussianMixture.unchecked(np.exp(frame.log_weights), frame.means, frame.covariances + np.eye(d))

    def climb_from(at: Array, points: Array, c: Array) -> tuple[Array, float]:
        t = len(points)
        # The loop divides by t + 1.
        samples.weight[0, :t], samples.point[:, :t] = (t + 1) * c, points.T
        height = search(target, samples, at[:, None].copy(), table, t, t + 1, 0, STEPS, room)
        return samples.point[:, t].copy(), height

    return np.exp(smoothed.log_density(start) + 0.5 * d * np.log(2 * np.pi)), climb_from


def _any(frame: KernelFrame, start: Array, kernel: Kernel) -> tuple[Array, Climb]:
    """Return mu at the candidates, and a climb by SciPy's optimiser."""
    from scipy.optimize import minimize  # slow to import

    mean = KernelMean(kernel, np.exp(frame.log_weights), frame.means, frame.covariances)

    def climb_from(at: Array, points: Array, c: Array) -> tuple[Array, float]:
        def descent(place: Array) -> tuple[float, Array]:
            value, slope = mean.with_gradient(place[None, :])
            offsets = place - points
            squared = (offsets**2).sum(axis=1)
            pull = 2 * (kernel.slope(squared) * c) @ offsets
            return float(c @ kernel.value(squared) - value[0]), pull - slope[0]

        found = minimize(descent, at, jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-8})
        return found.x, -float(found.fun)

    return mean(start), climb_from


def _line_search(z: Array, gram: Array, w: Array) -> float:
    """Step towards the last point that minimises the error: ``<mu - g, phi - g> / |phi - g|^2`` within [0, 1]."""
    if len(w) == 0:
        return 1.0
    g, own = float(gram[-1, :-1] @ w), float(w @ gram[:-1, :-1] @ w)
    length = gram[-1, -1] - 2 * g + own
    gain = z[-1] - g - z[:-1] @ w + own
    return float(np.clip(gain / length, 0.0, 1.0)) if length > 0 else 1.0
