"""Sliced Wasserstein distance, against quadrature, sorted samples and closed forms."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import refuses
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf
from scipy.stats import norm, ortho_group

from herdfilter.discrepancy import sliced_wasserstein
from herdfilter.discrepancy.sliced import unit_vectors
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

LINE = GaussianMixture([0.2, 0.5, 0.3], [[-3.0], [0.0], [2.5]], [[[0.4]], [[1.5]], [[0.2]]])
PLANE = GaussianMixture([0.6, 0.4], [[0.0, 1.0], [2.0, -1.0]], [[[1.0, 0.6], [0.6, 0.8]], [[0.5, -0.2], [-0.2, 0.9]]])
SPACE = GaussianMixture([0.7, 0.3], [[0.0, 0.0, 0.0], [3.0, 1.0, -1.0]], [np.diag([1.0, 0.2, 2.0]), np.eye(3) + 0.5])
DIRECTIONS_3 = 0.02  # relative error stated for the default set in three dimensions
orders = pytest.mark.parametrize("order", [1, 2])


def some_points(d, n=7, seed=0):
    rng = np.random.default_rng(seed)
    return Points(2 * rng.standard_normal((n, d)), rng.dirichlet(np.ones(n)))


def cdf(mixture, x):
    sds = np.sqrt(mixture.covariances[:, 0, 0])
    return float(mixture.weights @ norm.cdf((x - mixture.means[:, 0]) / sds))


def by_quadrature(points, mixture, order):
    """int |x(u) - Q(u)|^p du for p = 1, 2, step by step of the points, in the state space: u = F(y)."""
    at = np.argsort(points.x[:, 0])
    x, levels = points.x[at, 0], np.concatenate([[0.0], np.cumsum(points.weights[at])])
    ends = [brentq(lambda y, c=c: cdf(mixture, y) - c, -60, 60, xtol=1e-13) for c in levels[1:-1]]
    edges = [-60.0, *ends, 60.0]

    def density(y):
        return np.exp(mixture.log_density([[y]])[0])

    total = 0.0
    for i, value in enumerate(x):
        cuts = np.unique(np.clip([value, *mixture.means[:, 0], -12, 12], edges[i], edges[i + 1]))
        cuts = np.unique([edges[i], *cuts, edges[i + 1]])
        for a, b in pairwise(cuts):
            total += quad(lambda y, v=value: abs(y - v) ** order * density(y), a, b, epsabs=1e-13, epsrel=1e-12)[0]
    return total ** (1 / order)


@orders
@pytest.mark.parametrize("n", [1, 7])
def test_one_dimension_is_the_transport_integral(order, n):
    points = some_points(1, n)
    expected = by_quadrature(points, LINE, order)
    assert sliced_wasserstein(points, LINE, order) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("z", [-2.0, 40.0])
def test_a_single_point_and_a_gaussian(z):
    """W_2^2 = (x - mu)^2 + s^2, and W_1 the mean of a folded normal."""
    s, mu = 3.0, 5.0
    gaussian, point = GaussianMixture([1.0], [[mu]], [[s**2]]), Points([[mu + z * s]])
    folded = s * (np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + z * erf(z / np.sqrt(2)))
    assert sliced_wasserstein(point, gaussian, 2) == pytest.approx(s * np.sqrt(1 + z**2), rel=1e-13)
    assert sliced_wasserstein(point, gaussian, 1) == pytest.approx(folded, rel=1e-13)


@pytest.mark.parametrize("d", [2, 5])
def test_a_single_point_in_space(d):
    """The average of W_2^2 over directions is (|x - mean|^2 + trace C) / d, and over whole bases exactly so."""
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, d))
    mixture = GaussianMixture([0.3, 0.7], rng.standard_normal((2, d)), root @ root.T)
    x = rng.standard_normal(d)
    expected = (((x - mixture.mean) ** 2).sum() + np.trace(mixture.covariance)) / d
    for directions in (1, 10, 128):
        assert sliced_wasserstein(Points(x[None]), mixture, 2, directions) ** 2 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("mixture", "order", "error"), [(PLANE, 1, 5e-4), (SPACE, 2, DIRECTIONS_3)])
def test_turning_both_changes_no_more_than_the_directions_miss(order, mixture, error):
    d = mixture.dim
    points = some_points(d, 30)
    expected = sliced_wasserstein(points, mixture, order)
    for seed in range(3):
        R = ortho_group.rvs(d, random_state=seed)
        turned = GaussianMixture(mixture.weights, mixture.means @ R.T, R @ mixture.covariances @ R.T)
        measured = sliced_wasserstein(Points(points.x @ R.T, points.weights), turned, order)
        assert measured == pytest.approx(expected, rel=2 * error)  # either side may err
        same = sliced_wasserstein(Points(points.x @ R.T, points.weights), turned, order, unit_vectors(128, d) @ R.T)
        assert same == pytest.approx(expected, rel=1e-9)


@orders
def test_components_without_extent_are_points(order):
    """Moved along by themselves; one component has extent but no weight."""
    b = some_points(1, 5, seed=2)
    masses = GaussianMixture([*b.weights, 0.0], [*b.x, [7.0]], np.array([0.0] * 5 + [4.0])[:, None, None])
    assert sliced_wasserstein(Points(b.x - 2.5, b.weights), masses, order) == pytest.approx(2.5, rel=1e-9)
    assert sliced_wasserstein(b, masses, order) < 1e-7


@pytest.mark.parametrize(("order", "share"), [(1, 0.25), (2, 0.5)])
def test_far_modes_with_the_right_shares_cost_what_each_costs(order, share):
    """F is flat between the modes, at the level of a step of the points: any quantile there will do."""
    n, x = 4, norm.ppf((np.arange(4) + 0.5) / 4)[:, None]
    near = GaussianMixture([1.0], [[0.0]], [[1.0]])
    expected = sliced_wasserstein(Points(x), near, order) ** order
    for gap in (1e3, 1e8):
        far = GaussianMixture([share, 1 - share], [[0.0], [gap]], [[1.0]])
        points = Points(np.concatenate([x, x + gap]), np.repeat([share / n, (1 - share) / n], n))
        rounding = 1e-15 * gap**order  # weight of 1e-16, carried across
        assert abs(sliced_wasserstein(points, far, order) ** order - expected) < rounding + 1e-12


@orders
def test_a_light_far_mode_without_points_must_be_carried(order):
    """Mass 1e-9 over the distance 1e6."""
    far = GaussianMixture([1 - 1e-9, 1e-9], [[0.0], [1e6]], [[[1.0]], [[1e-8]]])
    points = Points(norm.ppf((np.arange(500) + 0.5) / 500)[:, None])
    near = sliced_wasserstein(points, GaussianMixture([1.0], [[0.0]], [[1.0]]), order)
    carried = 1e-9 * 1e6**order
    assert sliced_wasserstein(points, far, order) ** order == pytest.approx(near**order + carried, rel=1e-2)


test_bad_arguments_are_named = refuses(
    lambda arguments: sliced_wasserstein(some_points(2), PLANE, **arguments),
    ({"order": 3}, "order: expected 1 or 2, got 3"),
    ({"directions": [[0.0, 0.0]]}, "directions: expected vectors of positive length"),
    ({"directions": np.eye(3)}, r"directions: expected shape \(\*, 2\), got \(3, 3\)"),
)
