"""The frame of herding: rounding decides next to nothing, and every point of far components lies near one."""

import numpy as np
import pytest
from helpers import EYE, cases, normal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from herdfilter.bandwidths import kernel_covariance
from herdfilter.discrepancy import energy_distance, expected_energy_distance
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    KernelHerding,
    MappedSampling,
    Polished,
    SobolSampling,
)
from herdfilter.samplers.herding.frame import far_groups, principal_axes

# noise of a position and its velocity, the same along each axis
MOVING = np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])


def symmetric_noise(dim, size, seed):
    noise = default_rng(seed).standard_normal((dim, dim))
    return size * (noise + noise.T)


@cases(
    "covariance",
    np.eye(3),
    np.diag([1.0, 2.0, 2.0, 2.0]),
    np.kron(np.eye(3), MOVING),
    np.eye(6) - np.full((6, 6), 0.1),
    ids=["sphere", "disc", "moving", "two modes"],
)
def test_rounding_turns_no_axis(covariance):
    towards = np.arange(1.0, len(covariance) + 1)
    values, axes = principal_axes(covariance, towards)
    assert_allclose(axes @ np.diag(values) @ axes.T, covariance, atol=1e-12)
    assert_allclose(axes.T @ axes, np.eye(len(axes)), atol=1e-12)
    for seed in range(5):
        noise = symmetric_noise(len(covariance), 1e-14, seed)
        assert_allclose(principal_axes(covariance + noise, towards)[1], axes, atol=1e-6)


def family(name, dim):
    rng = default_rng(7)
    if name == "two modes":
        return GaussianMixture([0.5, 0.5], np.outer([-1, 1], np.ones(dim)), np.eye(dim))
    if name == "unequal":  # the heaviest is in the middle
        return GaussianMixture([0.3, 0.3, 0.4], np.outer([-2, 2, 0], np.ones(dim)), np.eye(dim))
    if name == "cross":
        ends = 2 * np.vstack([np.eye(dim), -np.eye(dim)])
        return GaussianMixture(np.ones(2 * dim), ends, 0.3 * np.eye(dim))
    means = rng.standard_normal((3, dim))
    if name == "moving":
        return GaussianMixture(np.ones(3), means, np.kron(np.eye(dim // 2), MOVING))
    roots = rng.standard_normal((3, dim, dim))
    return GaussianMixture([0.5, 0.3, 0.2], 2 * means, roots @ roots.swapaxes(1, 2) / dim)


@cases(
    "sampler name dim",
    (KernelHerding(), "two modes", 8),
    (KernelHerding(), "unequal", 2),
    (ContinuousHerdedGibbs(), "two modes", 2),
    (ContinuousHerdedGibbs(), "cross", 8),
    (ContinuousHerdedGibbs(), "three", 2),
    (MappedSampling(KernelHerding()), "three", 8),
    (SobolSampling(), "moving", 2),
)
def test_rounding_moves_no_point(sampler, name, dim):
    """Numbers that differ in their last digit stand for the arithmetic of another processor."""
    mixture = family(name, dim)
    rng = default_rng(1)
    points = sampler.sample(mixture, 20).x
    width = np.sqrt(np.linalg.eigvalsh(kernel_covariance("auto", mixture, 20))[0])

    def change(*shape):
        return 1 + 2.3e-16 * rng.integers(-1, 2, shape)

    for _ in range(8):
        noise = change(dim, dim)
        covariances = mixture.distinct_covariances * np.sqrt(noise * noise.T)
        other = GaussianMixture(
            mixture.weights * change(len(mixture)),
            mixture.means * change(*mixture.means.shape),
            covariances if len(covariances) > 1 else covariances[0],
        )
        assert np.abs(sampler.sample(other, 20).x - points).max() < 1e-4 * width


@cases(
    "sampler",
    KernelHerding(),
    ContinuousHerdedGibbs(),
    ContinuousHerdedGibbs(target="paper"),
    ids=["kh", "chg", "published"],
)
def test_components_without_extent_across_a_plane_keep_to_it(sampler):
    """However the plane lies: rounding leaves a variance of either sign across it, magnified where the kernel is narrow."""
    for seed in range(20):
        rng = default_rng(seed)
        d = rng.integers(2, 7)
        components = rng.choice([1, 3])
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        plane = axes[:, : rng.integers(1, d)]
        flat = plane * rng.uniform(0.5, 2, plane.shape[1]) @ plane.T
        flat = (flat + flat.T) / 2 * (1 + symmetric_noise(d, 5e-17, seed))
        means = rng.standard_normal((components, plane.shape[1])) @ plane.T
        points = sampler.sample(GaussianMixture(np.ones(components), means, flat), 20, rng).x
        assert np.abs(points - points @ plane @ plane.T).max() < 1e-3
        assert np.ptp(points @ plane, axis=0).min() > 0.3


# Groups of components


def two_modes(distance, dim, weight=0.5):
    means = np.outer([0.0, distance], np.ones(dim) / np.sqrt(dim))
    return GaussianMixture([weight, 1 - weight], means, np.eye(dim))


def ratio(points, mixture):
    return energy_distance(points, mixture) / expected_energy_distance(mixture, len(points))


@cases("dim", 1, 4)
def test_points_of_far_modes_stay_with_their_mode(herding, dim):
    near = {n: ratio(herding.sample(two_modes(5.0, dim), n), two_modes(5.0, dim)) for n in (10, 60)}
    for distance in (10.0, 100.0, 1e4, 1e8):
        mixture = two_modes(distance, dim)
        for n in near:
            points = herding.sample(mixture, n)
            assert cdist(points.x, mixture.means).min(axis=1).max() < 6
            assert ratio(points, mixture) < 1.01 * near[n]


@cases(
    "sampler",
    KernelHerding(weights="line-search"),
    KernelHerding(weights="fully-corrective"),
    Polished(KernelHerding()),
    ids=["line-search", "fully-corrective", "polished"],
)
def test_whatever_is_herded_or_moved_stays_with_its_mode(sampler):
    mixture = two_modes(1000.0, 4, weight=0.3)
    points = sampler.sample(mixture, 30, default_rng(1))
    assert cdist(points.x, mixture.means).min(axis=1).max() < 6
    first = points.weights[points.x.sum(axis=1) < 1000].sum()
    assert first == pytest.approx(0.3, abs=0.51 / 30)


@cases("seed", *range(2))
def test_no_mixture_is_worse_served_than_by_independent_draws(herding, hostile_mixture, seed):
    """Independent draws themselves pass the first bound in one of 40 times, the second never."""
    sizes = (5, 20, 50)
    ratios = []
    for k in range(10):
        mixture = hostile_mixture(10 * seed + k)
        ratios.append(ratio(herding.sample(mixture, sizes[k % 3]), mixture))
        assert ratios[-1] < 1, mixture
    assert np.median(ratios) < 0.4


@cases("dim", 2, 8)
def test_two_to_five_points_of_a_gaussian_part(herding, dim):
    """All at the mean, as many as they are, would have 0.83, 1.24, 1.66 and 2.07."""
    gaussian = normal(np.zeros(dim))
    for n in (2, 3, 4, 5):
        assert ratio(herding.sample(gaussian, n), gaussian) < 0.5


def test_parallel_sheets_are_one_group():
    """Far apart along the one direction in which they are thin, near along all others: points of one avoid the other's."""
    root = default_rng(4).standard_normal((4, 4)) * [1.0, 1.0, 1.0, 1e-3]
    means = 0.1 * default_rng(5).standard_normal((3, 4))
    assert not far_groups(GaussianMixture(np.ones(3), means, root @ root.T), 60).any()


def test_neither_units_nor_origin_nor_order_decide_the_groups():
    rng = default_rng(2)
    means = np.concatenate([rng.standard_normal((4, 3)), 40 + rng.standard_normal((3, 3))])
    covariances = np.array([0.1 * np.eye(3)] * 6 + [1e-6 * np.eye(3)])
    mixture = GaussianMixture(np.arange(1, 8), means, covariances)
    expected = far_groups(mixture, 60)
    assert len(set(expected[:4])) == 1
    assert expected[0] not in expected[4:]
    unit = np.array([1e-6, 1.0, 1e5])
    moved = GaussianMixture(
        mixture.weights, (means + 3.0) * unit, covariances * np.outer(unit, unit)
    )
    assert_array_equal(far_groups(moved, 60), expected)
    turned = far_groups(GaussianMixture(mixture.weights[::-1], means[::-1], covariances[::-1]), 60)[
        ::-1
    ]
    assert_array_equal(turned[:, None] == turned, expected[:, None] == expected)


def test_two_divisions_that_lead_to_each_other_end(hostile_mixture):
    """The longest axis within groups changes with the division, so that a coarser one may be followed by a finer."""
    mixture = hostile_mixture(2_001_864)
    assert 1 < far_groups(mixture, 200).max() < len(mixture)


def test_groups_of_one_covariance_share_a_frame():
    """Long clusters that lie across one another; a kernel as long as each of them alone leaves 0.034."""
    rng = default_rng(20)
    across = rng.standard_normal((40, 2)) * [6.0, 0.5]
    along = rng.standard_normal((60, 2)) * [0.5, 6.0]
    mixture = GaussianMixture(
        np.ones(100), np.concatenate([across, along + np.array([40.0, 0.0])]), 0.3 * EYE
    )
    points = KernelHerding().sample(mixture, 100)
    assert (points.x[:, 0] > 20).sum() == 60
    assert ratio(points, mixture) < 0.028


def test_a_far_component_with_one_point_has_it_at_its_mean(herding):
    means = 100.0 * np.arange(12.0)[:, None] * [1.0, 2.0]
    points = herding.sample(GaussianMixture(np.ones(12), means, np.diag([1.0, 3.0])), 24)
    assert cdist(points.x, means).min(axis=1).max() < 2
    lone = herding.sample(GaussianMixture([0.9, *np.full(5, 0.02)], means[:6], EYE), 50)
    assert_array_equal(np.sort(lone.x[lone.x[:, 0] > 50, 0]), means[1:6, 0])
