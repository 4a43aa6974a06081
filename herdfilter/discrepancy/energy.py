"""Energy distance between points and a mixture, free of any bandwidth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from herdfilter._checks import Array, check_count
from herdfilter._jit import njit
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.points import Points, check_pair

PAIRS_AT_ONCE = 2**19
# E|Z| = (1 / 2 sqrt(pi)) int (1 - phi(s)) s^(-3/2) ds with phi(s) = E exp(-s |Z|^2). With s = exp(u) / E|Z|^2 the
# integrand is analytic in a strip of half-width pi / 2 around the real u, so that the trapezoidal rule errs by about
# exp(-pi^2 / NODE_STEP). Beyond the ends the sum over nodes is geometric: below, 1 - phi is two terms of its series in s;
# above, phi is negligible.
NODE_STEP = 0.45
NODES = np.arange(-9.0, 24.0, NODE_STEP)
NODE_SCALES = np.exp(NODES)
NODE_WEIGHTS = np.exp(-0.5 * NODES)
NEGLIGIBLE_PHI = 1e-12


def energy_distance(points: Points, mixture: GaussianMixture | Points) -> float:
    r"""Return the energy distance of points and mixture, free of any bandwidth (Szekely and Rizzo 2013).

    .. math:: 2 \mathrm E|x - X| - \mathrm E|X - X'| - \mathrm E|x - x'|

    The expectations over the mixture are exact in one dimension (folded normal), otherwise up to quadrature error (relative
    1e-9): for Gaussian Z,
    :math:`\mathrm E|Z| = \frac{1}{2 \sqrt \pi} \int_0^\infty (1 - \mathrm E\, e^{-s |Z|^2}) s^{-3/2} ds`. In state units;
    scale the state first if its dimensions differ in unit. Memory stays bounded: pairs are summed in blocks.

    In place of the mixture, a sample as `Points`, which may contain `points`: the distance between the two, exactly.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> round(hf.energy_distance(hf.Points([[0.0]]), mixture), 4)
    0.4674
    >>> round(hf.energy_distance(hf.Points([[-0.7], [0.7]]), mixture), 4)
    0.1431
    """
    check_pair(points, mixture, samples=True)
    within_points = pair_sum(np.sqrt, points, points)
    if isinstance(mixture, Points):
        cross = pair_sum(np.sqrt, points, mixture)
        return float(max(2 * cross - (within_points + pair_sum(np.sqrt, mixture, mixture)), 0.0))
    cross = 0.0
    for weight, mean, cov in zip(mixture.weights, mixture.means, mixture.covariances, strict=True):
        cross += weight * float(points.weights @ expected_norms(points.x - mean, cov[None]))
    within_mixture = _component_distance(mixture)
    return float(max(2 * cross - (within_mixture + within_points), 0.0))


def expected_energy_distance(mixture: GaussianMixture, n: int) -> float:
    """Return the mean `energy_distance` of `n` independent draws, ``E|X - X'| / n``: the yardstick for other points.

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
    return _component_distance(as_mixture("mixture", mixture)) / n


def _component_distance(mixture: GaussianMixture) -> float:
    """Return ``E|X - X'|`` of two independent draws from a mixture."""
    weights = mixture.weights
    means = mixture.means
    cov = mixture.distinct_covariances
    total = 0.0
    for m in range(len(mixture)):
        pair = 2 * cov if mixture.shared else cov[m:] + cov[m]
        norms = expected_norms(means[m:] - means[m], pair)
        norms[1:] *= 2  # pairs of different components count in either order
        total += float(weights[m] * (weights[m:] @ norms))
    return total


def pair_sum(function: Callable[[Array], Array], points: Points, others: Points) -> float:
    """Return ``sum_st w_s v_t function(|x_s - y_t|^2)`` over two weighted sets of points, in blocks of bounded memory."""
    rows = max(1, PAIRS_AT_ONCE // len(others))
    total = 0.0
    for start in range(0, len(points), rows):
        part = slice(start, start + rows)
        squared = scipy.spatial.distance.cdist(points.x[part], others.x, "sqeuclidean")
        total += float(points.weights[part] @ function(squared) @ others.weights)
    return total


def expected_norms(means: Array, covariances: Array) -> Array:
    """Return ``E|Z|`` for Z from N(means[i], covariances[i]), with a relative error below 1e-9.

    Means (n, d), covariances (n, d, d), or (1, d, d) if all have the same; the result is (n,).
    """
    if means.shape[1] == 1:
        # The folded normal distribution
        mean = means[:, 0]
        sd = np.sqrt(covariances[:, 0, 0])
        z = np.divide(mean, sd, out=np.zeros(len(mean)), where=sd > 0)
        z = np.clip(z, -40.0, 40.0)  # beyond, nothing changes
        spread: Array = np.sqrt(2 / np.pi) * sd * np.exp(-0.5 * z * z)
        return spread + np.where(sd > 0, mean * scipy.special.erf(z / np.sqrt(2)), np.abs(mean))
    values, vectors = np.linalg.eigh(covariances)
    rotated = means @ vectors[0] if len(vectors) == 1 else (means[:, None, :] @ vectors)[:, 0, :]
    norms = np.zeros(len(means))
    _fill_norms(rotated, np.maximum(values, 0.0), norms)
    return norms


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_norms(means, values, norms):
    """Fill in E|Z| for independent entries of Z with means (n, d) and variances (n, d), or (1, d) if all have the same."""
    n, d = means.shape
    first = np.exp(NODES[0] - NODE_STEP)
    for i in range(n):
        k = i if len(values) > 1 else 0
        largest = 0.0
        for a in range(d):
            largest = max(largest, abs(means[i, a]), np.sqrt(values[k, a]))
        if largest == 0.0:
            continue
        # E|Z|^2, and Var |Z|^2, in units that no square overflows
        moment = 0.0
        variance = 0.0
        for a in range(d):
            squared = (means[i, a] / largest) ** 2
            value = values[k, a] / largest**2
            moment += squared + value
            variance += 2.0 * value * value + 4.0 * value * squared
        unit = largest * np.sqrt(moment)
        inverse = 1.0 / unit
        total = 0.0
        # The trapezoidal rule in u, with s = exp(u) / E|Z|^2
        for j in range(len(NODES)):
            # phi(s) = prod_a (1 + 2 s v_a)^(-1/2) exp(-s m_a^2 / (1 + 2 s v_a))
            exponent = 0.0
            product = 1.0
            for a in range(d):
                spread = 1.0 + 2.0 * NODE_SCALES[j] * (values[k, a] * inverse * inverse)
                exponent -= NODE_SCALES[j] * (means[i, a] * inverse) ** 2 / spread
                product *= spread
            phi = np.exp(exponent) / np.sqrt(product)  # 0 where the product overflows
            total += (1.0 - phi) * NODE_WEIGHTS[j]
            if phi * NODE_WEIGHTS[j] < NEGLIGIBLE_PHI:
                break
        # The tails: sums over the nodes beyond of s^(1/2) - E|Z|^4 s^(3/2) / 2, and of s^(-1/2)
        fourth = 1.0 + variance / (moment * moment)
        below = first**0.5 / -np.expm1(-0.5 * NODE_STEP)
        below -= 0.5 * fourth * first**1.5 / -np.expm1(-1.5 * NODE_STEP)
        above = np.exp(-0.5 * (NODES[j] + NODE_STEP)) / -np.expm1(-0.5 * NODE_STEP)
        norms[i] = unit * (total + below + above) * NODE_STEP / (2.0 * np.sqrt(np.pi))
