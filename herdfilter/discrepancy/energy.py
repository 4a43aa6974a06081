"""Energy distance between points and a mixture, free of any bandwidth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from herdfilter._checks import Array, check_count
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.points import Points, check_pair

PAIRS_AT_ONCE = 2**19
# E|Z| = (1 / 2 sqrt(pi)) int (1 - phi(s)) s^(-3/2) ds with phi(s) = E exp(-s |Z|^2). With s = exp(u) / E|Z|^2 the
# integrand is analytic in a strip of half-width pi / 2 around the real u, so that the trapezoidal rule errs by about
# exp(-pi^2 / NODE_STEP). Beyond the ends the sum over nodes is geometric: below, 1 - phi is two terms of its series in s;
# above, phi is negligible.
NODE_STEP = 0.45
LOWEST_NODE = -9.0
HIGHEST_NODE = 24.0
NEGLIGIBLE_PHI = 1e-12
NODE_SPAN = 4.0  # one set of nodes serves norms whose E|Z|^2 differ by up to a factor exp(NODE_SPAN)
NODES_AT_ONCE = 2**16  # numbers held at once: fits in the cache


def energy_distance(points: Points, mixture: GaussianMixture | Points) -> float:
    r"""Return the energy distance of points and mixture, free of any bandwidth (Szekely and Rizzo 2013).

    .. math:: 2 \mathrm E|x - X| - \mathrm E|X - X'| - \mathrm E|x - x'|

    The expectations over the mixture are exact in one dimension (folded normal), else exact up to quadrature error
    (relative 1e-9): for Gaussian Z,
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
    x = points.x
    means = mixture.means
    cov = mixture.distinct_covariances
    if mixture.shared:  # in the principal axes of the one covariance
        values, axes = np.linalg.eigh(cov[0])
        x = (x - mixture.mean) @ axes
        means = (means - mixture.mean) @ axes
        cov = np.diag(np.maximum(values, 0.0))[None]
    cross = 0.0
    for m in range(len(mixture)):
        norms = expected_norms(x - means[m], cov if mixture.shared else cov[m : m + 1])
        cross += mixture.weights[m] * float(points.weights @ norms)
    within_mixture = _component_distance(mixture.weights, means, cov)
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
    cov = as_mixture("mixture", mixture).distinct_covariances
    return _component_distance(mixture.weights, mixture.means, cov) / n


def _component_distance(weights: Array, means: Array, covariances: Array) -> float:
    """Return ``E|X - X'|`` of two independent draws from a mixture."""
    count, dim = means.shape
    rows = max(1, PAIRS_AT_ONCE // (count * dim * dim))
    total = 0.0
    for start in range(0, count, rows):
        first, second = np.triu_indices(min(rows, count - start), start, count)
        first += start
        cov = 2 * covariances if len(covariances) == 1 else covariances[first] + covariances[second]
        norms = expected_norms(means[first] - means[second], cov)
        # Pairs of different components count in either order.
        orders = np.where(first == second, 1.0, 2.0)
        total += float((orders * weights[first] * weights[second]) @ norms)
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
    if (covariances * (1 - np.eye(means.shape[1]))).any():
        values, vectors = np.linalg.eigh(covariances)
        values = np.maximum(values, 0.0)
        rotated = (
            means @ vectors[0] if len(vectors) == 1 else (means[:, None, :] @ vectors)[:, 0, :]
        )
        squared = rotated**2
    else:
        values = np.diagonal(covariances, axis1=1, axis2=2)
        squared = means**2
    moment = squared.sum(1) + values.sum(1)
    result = np.zeros(len(means))
    spread_out = np.flatnonzero(moment > 0)
    if len(values) == 1 and spread_out.size:
        log_moment = np.log(moment[spread_out])
        group = np.floor((log_moment - log_moment.min()) / NODE_SPAN)
        for g in np.unique(group):
            rows = spread_out[group == g]
            unit = moment[rows].max()  # the square of a moment may overflow
            norms = _norms_at_common_nodes(
                squared[rows] / unit, values[0] / unit, moment[rows] / unit
            )
            result[rows] = norms * np.sqrt(unit)
    elif len(values) > 1:
        rows_at_once = max(1, NODES_AT_ONCE // means.shape[1])
        for start in range(0, len(spread_out), rows_at_once):
            rows = spread_out[start : start + rows_at_once]
            result[rows] = _norms_at_own_nodes(squared[rows], values[rows], moment[rows])
    return result


def _norms_at_common_nodes(squared: Array, values: Array, moment: Array) -> Array:
    """Return norms with one covariance: the exponents at all nodes are a matrix product."""
    low = LOWEST_NODE - np.log(moment.max())
    high = HIGHEST_NODE - np.log(moment.min())
    u = low + NODE_STEP * np.arange(np.ceil((high - low) / NODE_STEP) + 1)
    s = np.exp(u)
    # phi(s) = prod_i (1 + 2 s l_i)^(-1/2) exp(-s m_i^2 / (1 + 2 s l_i))
    spread = 1 + 2 * np.multiply.outer(values, s)
    log_root = 0.5 * np.log(spread).sum(0)
    # The bound on phi falls with u.
    bound = -squared.sum(1).min() * s / spread.max(0) - log_root - 0.5 * (u + np.log(moment.min()))
    last = int(np.argmax(bound < np.log(NEGLIGIBLE_PHI))) or len(u)
    u = u[:last]
    slope = s[:last] / spread[:, :last]
    weight = np.exp(-0.5 * u)
    total = np.empty(len(squared))
    rows = max(1, NODES_AT_ONCE // len(u))
    for start in range(0, len(squared), rows):
        part = slice(start, start + rows)
        exponent = squared[part] @ slope
        exponent += log_root[:last]
        np.negative(exponent, out=exponent)
        total[part] = weight.sum() - np.exp(exponent, out=exponent) @ weight
    return _with_tails(total, u[0], u[-1], squared, values, moment)


def _norms_at_own_nodes(squared: Array, values: Array, moment: Array) -> Array:
    """Return norms with a covariance each; every row has nodes of its own."""
    values = values / moment[:, None]
    squared = squared / moment[:, None]
    u = np.arange(LOWEST_NODE, HIGHEST_NODE, NODE_STEP)
    total = np.zeros(len(squared))
    # The product of d factors may overflow; its phi is then 0, as it should be.
    with np.errstate(over="ignore"):
        for node in u:
            s = np.exp(node)
            spread = 1 + 2 * s * values
            phi = np.exp(-s * (squared / spread).sum(1)) / np.sqrt(spread.prod(1))
            total += (1 - phi) * np.exp(-0.5 * node)
            if phi.max() * np.exp(-0.5 * node) < NEGLIGIBLE_PHI:
                break
    return _with_tails(total, u[0], node, squared, values, np.ones(len(squared))) * np.sqrt(moment)


def _with_tails(
    total: Array, first: float, last: float, squared: Array, values: Array, moment: Array
) -> Array:
    """Add the two tails beyond the nodes between `first` and `last` to their sum."""
    fourth: Array = moment**2 + 2 * (values**2).sum(-1) + 4 * (values * squared).sum(-1)  # E|Z|^4

    def below(power: float) -> float:
        """Return the geometric sum of exp(power u) over the nodes below the first."""
        return float(np.exp(power * (first - NODE_STEP)) / -np.expm1(-power * NODE_STEP))

    above: float = np.exp(-0.5 * (last + NODE_STEP)) / -np.expm1(-0.5 * NODE_STEP)
    total = total + moment * below(0.5)
    return (total - 0.5 * fourth * below(1.5) + above) * NODE_STEP / (2 * float(np.sqrt(np.pi)))
