"""Kernel herding with any kernel, in plain numpy: the algorithm of the compiled loop, without its speed."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from herdfilter._checks import Array
from herdfilter.kernels import Kernel, KernelMean
from herdfilter.quadrature import simplex_weights

STARTS = 3  # candidates refined for each point, at least one kernel width apart


def herd(kernel: Kernel, mean: KernelMean, candidates: Array, n: int, weights: str) -> tuple[Array, Array]:
    """Return n points (n, d) and weights (n,): each point the maximum found of ``mu(x) - sum_s c_s k(x, x_s)``.

    In coordinates in which the kernel has bandwidth 1; `candidates` (C, d) are possible starts. The coefficients c of t
    points are ``1 / (t + 1)`` with equal weights (Chen, Welling and Smola 2010), the weights so far with the others (Bach,
    Lacoste-Julien and Obozinski 2012). Memory O(n^2 + n C).
    """
    x, w = np.empty((n, candidates.shape[1])), np.zeros(n)
    expected, near = mean(candidates), np.empty((len(candidates), n))
    z, gram = np.empty(n), np.empty((n, n))
    for t in range(n):
        c = np.full(t, 1 / (t + 1)) if weights == "equal" else w[:t]
        x[t] = _highest(kernel, mean, x[:t], c, candidates, expected - near[:, :t] @ c)
        near[:, t] = kernel.value(cdist(candidates, x[t : t + 1], "sqeuclidean"))[:, 0]
        z[t] = mean(x[t : t + 1])[0]
        gram[t, : t + 1] = gram[: t + 1, t] = kernel.value(((x[: t + 1] - x[t]) ** 2).sum(axis=1))
        if weights == "line-search":
            rho = _line_search(z[: t + 1], gram[: t + 1, : t + 1], w[:t])
            w[:t] *= 1 - rho
            w[t] = rho
        elif weights == "fully-corrective":
            w[: t + 1] = simplex_weights(gram[: t + 1, : t + 1], z[: t + 1])
    return x, np.full(n, 1 / n) if weights == "equal" else w / w.sum()


def _highest(
    kernel: Kernel, mean: KernelMean, points: Array, c: Array, candidates: Array, objective: Array
) -> Array:
    """Highest local maximum reached from the best candidates that are a kernel width apart."""
    from scipy.optimize import minimize  # slow to import

    def descent(at: Array) -> tuple[float, Array]:
        value, slope = mean.with_gradient(at[None, :])
        offsets = at - points
        squared = (offsets**2).sum(axis=1)
        pull = 2 * (kernel.slope(squared) * c) @ offsets
        return float(c @ kernel.value(squared) - value[0]), pull - slope[0]

    best, least = candidates[np.argmax(objective)], np.inf
    for _ in range(STARTS):
        start = candidates[np.argmax(objective)]
        objective = np.where(((candidates - start) ** 2).sum(axis=1) <= 1.0, -np.inf, objective)
        found = minimize(descent, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-12, "gtol": 1e-8})
        if found.fun < least:
            best, least = found.x, found.fun
        if np.isneginf(objective).all():
            break
    return best


def _line_search(z: Array, gram: Array, w: Array) -> float:
    """Step towards the last point that minimises the error: ``<mu - g, phi - g> / |phi - g|^2`` within [0, 1]."""
    if len(w) == 0:
        return 1.0
    g, own = float(gram[-1, :-1] @ w), float(w @ gram[:-1, :-1] @ w)
    length = gram[-1, -1] - 2 * g + own
    gain = z[-1] - g - z[:-1] @ w + own
    return float(np.clip(gain / length, 0.0, 1.0)) if length > 0 else 1.0
