"""Both herding samplers as one would first write them: the definitions in numpy, maxima by scipy's BFGS from many starts.

The yardstick of `bench_samplers.py`. The objectives are those of docs/samplers.md with the unit-peak kernel, in closed form,
vectorised over components and samples, with everything that does not depend on the unknown computed outside the optimiser.
Gradients are numerical, as in the public program of Wolf and Baum (Fusion-Goettingen/ContinuousHerdedGibbs on GitHub, file
`Sampling_methods.py`), and so are the starting points:

- kernel herding: every component mean plus and minus every column of its covariance, 2 d M starts for a point;
- herded Gibbs: every component's conditional mean, and that plus and minus once and twice the conditional variance, 5 M
  starts for a coordinate; the first point from the mean of the heaviest component.

Earlier samples are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.optimize import minimize

from herdfilter import GaussianMixture


def kernel_herding(mixture: GaussianMixture, n: int, sigma_k: float) -> np.ndarray:
    """Return n points (n, d), each the best maximum found of ``E[k(x, X)] - sum_s k(x, x_s) / (t + 1)``."""
    expected = expected_kernel(mixture, sigma_k)
    columns = np.swapaxes(mixture.covariances, 1, 2)
    starts = np.concatenate([mixture.means[:, None] + columns, mixture.means[:, None] - columns])
    starts = starts.reshape(-1, mixture.dim)
    # In units of the highest start the gradient has the size that the optimiser's tolerance is made for.
    unit = max(expected(x) for x in starts)
    points = np.empty((n, mixture.dim))
    for t in range(n):
        earlier = points[:t]

        def objective(x: np.ndarray, earlier: np.ndarray = earlier) -> float:
            squared = ((earlier - x) ** 2).sum(1)
            return (
                expected(x) - np.exp(-0.5 / sigma_k**2 * squared).sum() / (len(earlier) + 1)
            ) / unit

        points[t] = best_maximum(objective, starts)
    return points


def herded_gibbs(
    mixture: GaussianMixture, n: int, sigma_k: float, start: np.ndarray | None = None
) -> np.ndarray:
    """Return n points (n, d) of continuous herded Gibbs sampling as published, one sweep a point; the first is `start`."""
    expected = expected_kernel(mixture, sigma_k)
    heaviest = mixture.means[np.argmax(mixture.weights)]
    unit = expected(heaviest)
    conditional = [conditional_density(mixture, i) for i in range(mixture.dim)]
    points = np.empty((n, mixture.dim))
    x = (
        best_maximum(lambda x: expected(x) / unit, [heaviest])
        if start is None
        else np.asarray(start)
    )
    points[0] = x
    for t in range(1, n):
        x = x.copy()
        for i in range(mixture.dim):
            rest = np.arange(mixture.dim) != i
            weights, means, variances = conditional[i](x[rest])
            smoothed = variances + sigma_k**2
            heights = (t + 1) / t * weights * sigma_k / np.sqrt(smoothed)
            earlier = points[:t, i]
            log_slice = -0.5 / sigma_k**2 * ((points[:t, rest] - x[rest]) ** 2).sum(1)
            slices = np.exp(log_slice - log_slice.max())
            slices /= slices.sum()

            def objective(
                v, heights=heights, means=means, smoothed=smoothed, slices=slices, earlier=earlier
            ):
                target = heights @ np.exp(-0.5 * (v - means) ** 2 / smoothed)
                return target - slices @ np.exp(-0.5 / sigma_k**2 * (v - earlier) ** 2)

            starts = [means + k * variances for k in (-2, -1, 0, 1, 2)]
            x[i] = best_maximum(objective, np.concatenate(starts)[:, None])[0]
        points[t] = x
    return points


def best_maximum(
    objective: Callable[[np.ndarray], float], starts: Iterable[np.ndarray]
) -> np.ndarray:
    """Return the highest of the local maxima reached by BFGS from the starts."""
    results = [minimize(lambda x: -objective(x), x0, method="BFGS") for x0 in starts]
    return min(results, key=lambda result: result.fun).x


def expected_kernel(mixture: GaussianMixture, sigma_k: float) -> Callable[[np.ndarray], float]:
    """Return the function ``E[k(x, X)]`` of one x (d,)."""
    covariances = mixture.covariances + sigma_k**2 * np.eye(mixture.dim)
    precisions = np.linalg.inv(covariances)
    heights = mixture.weights * sigma_k**mixture.dim / np.sqrt(np.linalg.det(covariances))
    means = mixture.means

    def expected(x: np.ndarray) -> float:
        u = x - means
        return heights @ np.exp(-0.5 * ((precisions @ u[:, :, None])[:, :, 0] * u).sum(1))

    return expected


def conditional_density(mixture: GaussianMixture, i: int) -> Callable[[np.ndarray], tuple]:
    """Return the function that gives weights, means and variances (M,) of coordinate i given the others (d - 1,)."""
    rest = np.arange(mixture.dim) != i
    inner = mixture.covariances[:, rest][:, :, rest]
    inverse = np.linalg.inv(inner)
    gain = (inverse @ mixture.covariances[:, rest, i, None])[:, :, 0]
    variances = mixture.covariances[:, i, i] - (gain * mixture.covariances[:, rest, i]).sum(1)
    log_heights = np.log(mixture.weights) - 0.5 * np.linalg.slogdet(inner)[1]

    def conditional(values: np.ndarray) -> tuple:
        u = values - mixture.means[:, rest]
        log_weights = log_heights - 0.5 * ((inverse @ u[:, :, None])[:, :, 0] * u).sum(1)
        weights = np.exp(log_weights - log_weights.max())
        return weights / weights.sum(), mixture.means[:, i] + (gain * u).sum(1), variances

    return conditional
