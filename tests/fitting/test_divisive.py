"""Division: one Gaussian where the particles are, more where they are not, and the true density in the end."""

import numpy as np
import pytest
from helpers import assert_same, refuses

import herdfilter as hf
from herdfilter.fitting import DivisiveFit

FIT = DivisiveFit()


def equal(n):
    return np.full(n, 1 / n)


def ring(n, rng):
    angle, radius = rng.uniform(0, 2 * np.pi, n), 3 + 0.2 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def banana(n, rng):
    x = rng.standard_normal((n, 2))
    return np.column_stack([x[:, 0], 0.8 * x[:, 0] ** 2 + 0.4 * x[:, 1]])


def two_modes(n, rng):
    x = np.sqrt(np.maximum(9 + 2.5 * rng.standard_normal(n), 0.01))
    return (np.where(rng.random(n) < 0.35, -x, x))[:, None]


def skewed(n, rng):
    return np.exp(0.6 * rng.standard_normal((n, 1)))


def heavy_tailed(n, rng):
    return rng.standard_normal((n, 2)) / np.sqrt(rng.chisquare(4, (n, 1)) / 4)


SHAPES = {f.__name__: f for f in (ring, banana, two_modes, skewed, heavy_tailed)}


@pytest.mark.parametrize("d", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [30, 300])
def test_a_gaussian_is_left_whole(n, d):
    rng = np.random.default_rng(1)
    uneven = [rng.dirichlet(np.full(n, 2.0)) for _ in range(30)]
    sizes = [len(FIT.fit(rng.standard_normal((n, d)), w)) for w in [equal(n)] * 30 + uneven]
    assert sizes.count(1) >= 58


def test_one_gaussian_is_that_of_the_moments():
    x = np.random.default_rng(2).standard_normal((50, 2))
    ours, theirs = FIT.fit(x, equal(50)), hf.GaussianFit().fit(x, equal(50))
    assert_same(ours, theirs, "means", "covariances")


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("sd", [0.1, 1.0])
def test_two_far_modes_are_divided_at_the_gap(d, share, sd):
    rng = np.random.default_rng(3)
    first = np.arange(200) < 200 * share
    x = rng.standard_normal((200, d)) * np.where(first, sd, 1.0)[:, None]
    x[first] += 12.0
    mixture = FIT.fit(x, equal(200))
    assert len(mixture) == 2
    order = np.argsort(-mixture.means[:, 0])
    np.testing.assert_allclose(mixture.weights[order], [share, 1 - share], atol=1e-9)
    np.testing.assert_allclose(mixture.means[order], [x[first].mean(0), x[~first].mean(0)], atol=1e-9)
    for covariance, side in zip(mixture.covariances[order], (first, ~first), strict=True):
        np.testing.assert_allclose(covariance, np.cov(x[side].T, bias=True).reshape(d, d), atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_halves_of_two_overlapping_gaussians_are_not_divided_on(d):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((3000, d))
    x[:, 0] += np.where(np.arange(3000) % 2, 1.7, -1.7)
    mixture = FIT.fit(x, equal(3000))
    assert len(mixture) == 2
    np.testing.assert_allclose(np.sort(mixture.means[:, 0]), [-1.7, 1.7], atol=0.15)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_components_grow_and_the_distance_to_the_truth_falls_with_the_number_of_particles(shape):
    rng = np.random.default_rng(5)
    truth = hf.Points(shape(1500, rng), equal(1500))
    sizes, distances = [], []
    for n in (30, 300, 3000):
        few = [FIT.fit(shape(n, rng), equal(n)) for _ in range(3)]
        sizes.append(np.mean([len(fit) for fit in few]))
        distances.append(np.mean([hf.energy_distance(truth, fit) for fit in few]))
    assert sizes[0] < sizes[1] <= sizes[2]
    assert distances[0] > distances[1] > distances[2]


def test_uneven_weights_give_the_density_that_they_stand_for():
    target = hf.GaussianMixture([0.3, 0.7], [[-3.0], [2.0]], [[[0.5]], [[1.0]]])
    wide = hf.GaussianMixture([1.0], [target.mean], [2 * target.covariance])
    x = wide.sample(4000, 7)
    w = np.exp(target.log_density(x) - wide.log_density(x))
    mixture = FIT.fit(x, w / w.sum())
    at = np.linspace(-5, 5, 41)[:, None]
    np.testing.assert_allclose(np.exp(mixture.log_density(at)), np.exp(target.log_density(at)), atol=0.02)


def test_few_effective_particles_are_one_gaussian():
    """Two modes that 400 particles show, and an effective number of eight does not."""
    x = np.random.default_rng(8).standard_normal((400, 1)) + 2.0 * (-1.0) ** np.arange(400)[:, None]
    weights = np.full(400, 1e-12)
    weights[:8] = (1 - 392e-12) / 8
    assert [len(FIT.fit(x, w)) for w in (equal(400), weights)] == [2, 1]


@pytest.mark.parametrize("d", [1, 2, 4])
def test_affine_maps_map_the_mixture(d):
    rng = np.random.default_rng(9)
    x = rng.standard_normal((300, d)) + 4.0 * (np.arange(300) % 3 == 0)[:, None]
    matrix, shift = (rng.standard_normal((d, d)) * 10.0 ** rng.integers(-4, 4, d)[:, None], rng.standard_normal(d))
    plain, mapped = FIT.fit(x, equal(300)), FIT.fit(x @ matrix.T + shift, equal(300))
    assert len(plain) > 1
    jacobian = np.linalg.slogdet(matrix)[1]
    np.testing.assert_allclose(
        mapped.log_density(x @ matrix.T + shift) + jacobian, plain.log_density(x), rtol=1e-5, atol=1e-5
    )


def test_particles_in_a_plane_are_divided_within_it():
    """Whether three dimensions hold a flat ring or two a ring: the components are the same."""
    x = ring(400, np.random.default_rng(10))
    basis = np.linalg.qr(np.random.default_rng(11).standard_normal((3, 2)))[0]
    flat, plain = FIT.fit(x @ basis.T + 5.0, equal(400)), FIT.fit(x, equal(400))
    assert len(flat) == len(plain) > 3
    by_weight = [np.argsort(mixture.weights) for mixture in (flat, plain)]
    np.testing.assert_allclose(flat.weights[by_weight[0]], plain.weights[by_weight[1]], rtol=1e-6)
    np.testing.assert_allclose((flat.means[by_weight[0]] - 5.0) @ basis, plain.means[by_weight[1]], atol=1e-6)


def test_particles_in_two_places_give_two_components():
    mixture = FIT.fit(np.array([[0.0], [1.0]] * 20), equal(40))
    assert len(mixture) == 2
    np.testing.assert_allclose(np.sort(mixture.means[:, 0]), [0.0, 1.0], atol=1e-9)


test_bad_options_are_named = refuses(
    lambda options: DivisiveFit(**options),
    ({"significance": 0.0}, "significance: expected a number between 0 and 1, got 0.0"),
    ({"significance": 1}, "significance: expected a number between 0 and 1, got 1"),
    ({"significance": "low"}, "significance: expected a number between 0 and 1, got 'low'"),
    ({"max_components": 0}, "max_components: expected an integer of at least 1, got 0"),
)
