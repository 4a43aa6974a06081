"""Joint descent of the herding error over all points."""

from __future__ import annotations

import numpy as np
import scipy

from herdfilter._checks import Array
from herdfilter.kernels import Kernel, KernelMean

_BLOCK = 2**21  # numbers held at once


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
    rows = max(1, _BLOCK // len(x))
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        squared = scipy.spatial.distance.cdist(x[part], x, "sqeuclidean")
        value += float(weights[part] @ kernel.value(squared) @ weights)
        pull = kernel.slope(squared) * weights
        moved = pull.sum(axis=1)[:, None] * x[part] - pull @ x
        gradient[part] += 4 * weights[part, None] * moved
    return value, gradient
