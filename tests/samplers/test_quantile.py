"""Quantiles of mixtures on a line: exactness, hostile mixtures, gaps, atoms."""

import numpy as np
from helpers import cases, normal, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import QuantileSampling
from herdfilter.samplers.line import condense
from herdfilter.samplers.quantile import quantiles

QUANTILES = QuantileSampling()


def levels(n):
    return (np.arange(n) + 0.5) / n


def cdf_and_density(mixture, x):
    deviations = np.sqrt(mixture.covariances[:, 0, 0])
    u = (x - mixture.means[:, 0]) / deviations
    density = np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi) / deviations
    return ndtr(u) @ mixture.weights, density @ mixture.weights


def test_points_of_a_normal_are_its_quantiles():
    for n in (1, 2, 1000):
        x = QUANTILES.sample(normal([3.0], 4.0), n).x[:, 0]
        assert_allclose(x, 3 + 2 * ndtri(levels(n)), atol=1e-12)


def test_the_distribution_function_has_the_levels_at_the_points_of_hostile_mixtures(
    hostile_mixture,
):
    """To its rounding, and to what a step to the next number makes of it."""
    mixtures = map(hostile_mixture, range(500))
    for mixture in (mixture for mixture in mixtures if mixture.dim == 1):
        n = 1 + 7 * len(mixture)
        x = QUANTILES.sample(mixture, n).x
        assert (np.diff(x[:, 0]) >= 0).all()
        reached, density = cdf_and_density(mixture, x)
        largest = np.abs(mixture.means).max() + np.abs(x)[:, 0]
        assert (np.abs(reached - levels(n)) <= 1e-13 + 4 * np.spacing(largest) * density).all()


def test_a_level_kept_across_a_gap_is_reached_at_the_lower_end():
    """Between two far modes of equal weight lies the middle one of an odd number of points."""
    mixture = GaussianMixture([0.5, 0.5], [[-100.0], [100.0]], [[1.0]])
    x = QUANTILES.sample(mixture, 9).x[:, 0]
    assert_allclose(x[:4], -100 + ndtri(levels(9)[:4] * 2), atol=1e-12)
    assert -93 < x[4] < -90
    assert_allclose(x[5:], 100 + ndtri(levels(9)[5:] * 2 - 1), atol=1e-12)


def test_quantiles_in_the_tails_keep_their_digits():
    """Half the weight of a far light mode is reached at its mean, from either side; further out the nearest mode decides."""
    modes = GaussianMixture([2.0**-50, 1.0, 2.0**-50], [[-50.0], [0.0], [50.0]], [[4.0]])
    weight = modes.weights[0]
    x = quantiles(modes, np.array([1e-300, 2.0**-52 * weight, weight / 2, 1 - 2.0**-51]))[0]
    expected = [ndtri(1e-300 / weight), ndtri(2.0**-52), 0.0, ndtri(1 - 2.0**-51 / weight)]
    assert_allclose(x, [*(-50 + 2 * np.array(expected[:3])), 50 + 2 * expected[3]], rtol=1e-12)


def test_a_far_mode_gets_no_point_until_its_weight_is_half_a_share():
    for weight, points in ((0.049, 0), (0.051, 1)):
        mixture = GaussianMixture([1 - weight, weight], [[0.0], [1e9]], [[1.0]])
        assert (QUANTILES.sample(mixture, 10).x > 1e6).sum() == points


def test_components_without_extent_hold_the_levels_of_their_jump():
    mixture = GaussianMixture(
        [0.25, 0.5, 0.25], [[-2.0], [0.0], [5.0]], [[[0.0]], [[1.0]], [[0.0]]]
    )
    x = QUANTILES.sample(mixture, 40).x[:, 0]
    p = levels(40)
    before = 0.5 * ndtr(-2.0)
    at_the_first = (before < p) & (p < before + 0.25)
    at_the_last = p > 0.75
    assert_allclose(x[at_the_first], -2.0, rtol=1e-13)
    assert_allclose(x[at_the_last], 5.0, rtol=1e-13)
    between = (p > before + 0.25) & (p < 0.75)
    assert_allclose(x[between], ndtri(2 * p[between] - 0.5), atol=1e-12)


def test_more_dimensions_are_refused_in_one_line():
    mixture = normal([0.0, 0.0])
    with refusal(r"^mixture: QuantileSampling expected dimension 1, got 2; [^\n]+$"):
        QUANTILES.sample(mixture, 5)


def targets(size, kind):
    """Weights of a target: even, of one component or all but of one, or falling over hundreds of orders of magnitude."""
    weights = np.full(size, {"even": 1.0, "one": 0.0, "nearly one": 1e-17, "steep": 0.0}[kind])
    weights[size // 2] = 1.0
    if kind == "steep":
        weights = default_rng(1).permutation(np.exp(-np.linspace(0, 800, size)))
    return weights / weights.sum()


MEANS = {
    "one": np.array([[3.0]]),
    "far": np.array([[-10.1], [-0.5], [0.0], [10.3], [1e6]]),
    "spread": 300 * default_rng(2).standard_normal((500, 1)),
    "crowd": np.linspace(-20, 20, 9000)[:, None],
}


@cases(
    "kind place widths",
    ("even", "one", "one"),
    ("one", "far", "two"),
    ("nearly one", "far", "one"),
    ("steep", "spread", "many"),
    ("steep", "crowd", "one"),
    ("nearly one", "crowd", "many"),
)
def test_the_ratio_of_densities_at_the_quantiles_is_that_of_the_mixtures(kind, place, widths):
    """Also far from all components that have weight in the target, in a crowd of them, and at a single point."""
    means = MEANS[place]
    rng = default_rng(4)
    size = len(means)
    variances = {
        "one": np.ones(size),
        "two": 1.0 + (np.arange(size) % 2),
        "many": 10.0 ** rng.uniform(-3, 1, size),
    }[widths]
    target = GaussianMixture(targets(size, kind), means, variances if widths != "one" else [[1.0]])
    weights = 0.7 * target.weights + 0.3 / size
    mixture = GaussianMixture(weights, means, variances if widths != "one" else [[1.0]])
    for n in (1, 150):
        x, log_ratios = quantiles(mixture, levels(n), target.weights)
        assert_array_equal(x, QUANTILES.sample(mixture, n).x[:, 0])
        expected = target.log_density(x[:, None]) - mixture.log_density(x[:, None])
        assert_allclose(log_ratios, expected, rtol=1e-9, atol=1e-9)


def test_a_crowd_of_components_has_the_levels_at_its_points():
    """Most of a thousand components are dealt to a few nodes for each standard deviation."""
    rng = default_rng(0)
    means = np.sort(2 * rng.standard_normal(1000))
    mixture = GaussianMixture(rng.dirichlet(np.ones(1000)), means[:, None], [[0.3]])
    condensed = condense(means, np.full(1000, np.sqrt(0.3)), mixture.weights, mixture.weights)
    assert condensed.shape[1] < 600
    points = QUANTILES.sample(mixture, 50).x
    below = ndtr((points - means) / np.sqrt(0.3)) @ mixture.weights
    assert_allclose(below, levels(50), atol=1e-13)
