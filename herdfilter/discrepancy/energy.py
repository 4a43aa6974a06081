"""Energy distance between points and a mixture, free of any bandwidth."""

from __future__ import annotations

import numpy as np
import scipy

from herdfilter._checks import Array, check_count
from herdfilter.discrepancy._common import BLOCK, check_pair
from herdfilter.discrepancy._norms import expected_norms
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.points import Points


def energy_distance(points: Points, mixture: GaussianMixture | Points) -> float:
    """Energy distance ``2 E|x - X| - E|X - X'| - E|x - x'|``, free of any bandwidth (Szekely and Rizzo 2013).

    The expectations over the mixture are exact in one dimension (folded normal), else exact up to quadrature error (relative
    1e-9): for Gaussian Z, ``E|Z| = (1 / 2 sqrt(pi)) int_0^inf (1 - E exp(-s |Z|^2)) s^(-3/2) ds``. In state units; scale the
    state first where its dimensions differ in unit. Memory stays bounded: pairs are summed in blocks.

    In place of the mixture, a sample as `Points`, of which `points` may be members: the distance between the two, exactly.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> round(hf.energy_distance(hf.Points([[0.0]]), mixture), 4)
    0.4674
    >>> round(hf.energy_distance(hf.Points([[-0.7], [0.7]]), mixture), 4)
    0.1431
    """
    check_pair(points, mixture, samples=True)
    if isinstance(mixture, Points):
        own = _mean_distance(points) + _mean_distance(mixture)
        return float(max(2 * _cross_distance(points, mixture) - own, 0.0))
    x, means, cov = points.x, mixture.means, mixture.distinct_covariances
    if mixture.shared:  # in the principal axes of the one covariance
        values, axes = np.linalg.eigh(cov[0])
        x, means = (x - mixture.mean) @ axes, (means - mixture.mean) @ axes
        cov = np.diag(np.maximum(values, 0.0))[None]
    cross = 0.0
    for m in range(len(mixture)):
        norms = expected_norms(x - means[m], cov if mixture.shared else cov[m : m + 1])
        cross += mixture.weights[m] * float(points.weights @ norms)
    own = _component_distance(mixture.weights, means, cov) + _mean_distance(points)
    return float(max(2 * cross - own, 0.0))


def expected_energy_distance(mixture: GaussianMixture, n: int) -> float:
    """Mean of the `energy_distance` of `n` independent draws, ``E|X - X'| / n``: what other points are measured against.

    Raises
    ------
    ValueError
        If `n` is not a positive integer.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> round(hf.expected_energy_distance(mixture, 10), 4)  # 2 / sqrt(pi) / 10
    0.1128
    >>> herded = hf.KernelHerding().sample(mixture, 10)
    >>> hf.energy_distance(herded, mixture) < 0.1 * hf.expected_energy_distance(mixture, 10)
    True
    """
    n = check_count("n", n)
    cov = as_mixture("mixture", mixture).distinct_covariances
    return _component_distance(mixture.weights, mixture.means, cov) / n


def _component_distance(weights: Array, means: Array, covariances: Array) -> float:
    """``E|X - X'|`` of two independent draws from a mixture."""
    count, dim = means.shape
    rows = max(1, BLOCK // 8 // (count * dim * dim))
    total = 0.0
    for start in range(0, count, rows):
        first, second = np.triu_indices(min(rows, count - start), start, count)
        first += start
        cov = 2 * covariances if len(covariances) == 1 else covariances[first] + covariances[second]
        twice = np.where(first == second, 1.0, 2.0)  # pairs of different components count in either order
        norms = expected_norms(means[first] - means[second], cov)
        total += float((twice * weights[first] * weights[second]) @ norms)
    return total


def _cross_distance(first: Points, second: Points) -> float:
    """Weighted sum of the distances between the points of two sets."""
    rows = max(1, BLOCK // 8 // len(second))
    total = 0.0
    for start in range(0, len(first), rows):
        part = slice(start, start + rows)
        distances = scipy.spatial.distance.cdist(first.x[part], second.x)
        total += float(first.weights[part] @ distances @ second.weights)
    return total


def _mean_distance(points: Points) -> float:
    """Weighted sum of the distances of all ordered pairs of points."""
    x, w = points.x, points.weights
    rows = max(1, BLOCK // 8 // len(x))
    total = 0.0
    for start in range(0, len(x), rows):
        stop = start + rows
        total += (
            2 * float(w[start:stop] @ scipy.spatial.distance.cdist(x[start:stop], x[stop:]) @ w[stop:])
            if stop < len(x)
            else 0.0
        )
        total += float(w[start:stop] @ scipy.spatial.distance.cdist(x[start:stop], x[start:stop]) @ w[start:stop])
    return total
