"""Groups of components far apart: every point lies near a component, and no mixture is worse served than by random draws."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from herdfilter.discrepancy import energy_distance, expected_energy_distance
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    KernelHerding,
    PlacedAgain,
    Polished,
    SobolSampling,
)
from herdfilter.samplers.herding.frame import far_groups, unlike_groups
from herdfilter.testing import hostile_mixture

HERDING = [KernelHerding(), ContinuousHerdedGibbs()]


def two_modes(distance, dim, weight=0.5):
    """Two unit components so far apart, in a direction along no axis."""
    means = np.outer([0.0, distance], np.ones(dim) / np.sqrt(dim))
    return GaussianMixture([weight, 1 - weight], means, np.eye(dim))


def ratio(points, mixture):
    """Energy distance over what as many independent draws have in the mean."""
    return energy_distance(points, mixture) / expected_energy_distance(mixture, len(points))


@pytest.mark.parametrize("dim", [1, 2, 4, 8])
@pytest.mark.parametrize("sampler", HERDING, ids=["kh", "chg"])
def test_points_of_far_modes_stay_with_their_mode(sampler, dim):
    near = {n: ratio(sampler.sample(two_modes(5.0, dim), n), two_modes(5.0, dim)) for n in (10, 60)}
    for distance in (10.0, 100.0, 1e4, 1e8):
        mixture = two_modes(distance, dim)
        for n in near:
            points = sampler.sample(mixture, n)
            assert cdist(points.x, mixture.means).min(axis=1).max() < 6
            assert ratio(points, mixture) < 1.01 * near[n]


@pytest.mark.parametrize(
    "sampler",
    [
        KernelHerding(weights="line-search"),
        KernelHerding(weights="fully-corrective"),
        Polished(KernelHerding()),
        PlacedAgain(SobolSampling()),
    ],
    ids=["line-search", "fully-corrective", "polished", "placed-again"],
)
def test_whatever_is_herded_or_moved_stays_with_its_mode(sampler):
    mixture = two_modes(1000.0, 4, weight=0.3)
    points = sampler.sample(mixture, 30, np.random.default_rng(1))
    assert cdist(points.x, mixture.means).min(axis=1).max() < 6
    first = points.weights[points.x.sum(axis=1) < 1000].sum()
    assert first == pytest.approx(0.3, abs=0.51 / 30)


@pytest.mark.parametrize("sampler", HERDING, ids=["kh", "chg"])
@pytest.mark.parametrize("seed", range(6))
def test_no_mixture_is_worse_served_than_by_independent_draws(sampler, seed):
    """Independent draws themselves pass the first bound in one of 40 times, the second never."""
    sizes, ratios = (5, 20, 50), []
    for k in range(10):
        mixture = hostile_mixture(10 * seed + k)
        ratios.append(ratio(sampler.sample(mixture, sizes[k % 3]), mixture))
        assert ratios[-1] < 1, mixture
    assert np.median(ratios) < 0.4


@pytest.mark.parametrize("sampler", HERDING, ids=["kh", "chg"])
@pytest.mark.parametrize("dim", [2, 3, 4, 8])
def test_two_to_five_points_of_a_gaussian_part(sampler, dim):
    """All at the mean, as many as they are, would have 0.83, 1.24, 1.66 and 2.07."""
    gaussian = GaussianMixture([1.0], np.zeros((1, dim)), np.eye(dim))
    for n in (2, 3, 4, 5):
        assert ratio(sampler.sample(gaussian, n), gaussian) < 0.5


@pytest.mark.parametrize("sampler", HERDING, ids=["kh", "chg"])
def test_a_gaussian_in_a_subspace_is_sampled_as_well_as_in_its_own_dimensions(sampler):
    root = np.random.default_rng(3).standard_normal((8, 2))
    flat = GaussianMixture([1.0], np.zeros((1, 8)), root @ root.T)
    plane = GaussianMixture([1.0], np.zeros((1, 2)), root.T @ root)
    for n in (5, 20, 50):
        assert ratio(sampler.sample(flat, n), flat) == pytest.approx(ratio(sampler.sample(plane, n), plane), rel=0.35)


def test_shares_follow_the_weights_at_every_number_of_points():
    mixture = GaussianMixture([0.5, 0.3, 0.2], [[0.0], [100.0], [200.0]], np.eye(1))
    labels = cdist(KernelHerding().sample(mixture, 50).x, mixture.means).argmin(axis=1)
    counts = np.cumsum(labels[:, None] == np.arange(3), axis=0)
    expected = np.outer(np.arange(1, 51), mixture.weights)
    assert np.abs(counts - expected).max() <= 1


# What is a group


def test_a_cloud_of_narrow_components_is_one_group():
    x = np.random.default_rng(0).standard_normal((100, 3))
    for deviation in (0.3, 0.03, 1e-4):
        particles = GaussianMixture(np.ones(100), x, deviation**2 * np.eye(3))
        assert not far_groups(particles, 100).any()
        assert not unlike_groups(particles, 100).any()


def test_parallel_sheets_are_one_group():
    """Far apart along the one direction in which they are thin, near along all others: points of one avoid the other's."""
    root = np.random.default_rng(4).standard_normal((4, 4)) * [1.0, 1.0, 1.0, 1e-3]
    means = 0.1 * np.random.default_rng(5).standard_normal((3, 4))
    assert not far_groups(GaussianMixture(np.ones(3), means, root @ root.T), 60).any()


def test_neither_units_nor_origin_nor_order_decide_the_groups():
    rng = np.random.default_rng(2)
    means = np.concatenate([rng.standard_normal((4, 3)), 40 + rng.standard_normal((3, 3))])
    covariances = np.array([0.1 * np.eye(3)] * 6 + [1e-6 * np.eye(3)])
    mixture = GaussianMixture(np.arange(1, 8), means, covariances)
    expected = far_groups(mixture, 60)
    assert len(set(expected[:4])) == 1
    assert expected[0] not in expected[4:]
    unit = np.array([1e-6, 1.0, 1e5])
    moved = GaussianMixture(mixture.weights, (means + 3.0) * unit, covariances * np.outer(unit, unit))
    np.testing.assert_array_equal(far_groups(moved, 60), expected)
    turned = far_groups(GaussianMixture(mixture.weights[::-1], means[::-1], covariances[::-1]), 60)[::-1]
    np.testing.assert_array_equal(turned[:, None] == turned, expected[:, None] == expected)


def test_few_points_are_not_divided_among_many_groups():
    mixture = GaussianMixture(np.ones(9), 1e3 * np.arange(9.0)[:, None], np.eye(1))
    assert len(set(far_groups(mixture, 18))) == 9
    assert not far_groups(mixture, 3).any()
    light = GaussianMixture([1.0] + 8 * [1e-3], mixture.means, np.eye(1))
    assert len(set(far_groups(light, 4))) == 9


def test_two_divisions_that_lead_to_each_other_end():
    """The longest axis within groups changes with the division, so that a coarser one may be followed by a finer."""
    mixture = hostile_mixture(2_001_864)
    assert 1 < far_groups(mixture, 200).max() < len(mixture)
