"""The frame of herding, and what rounding may decide: nothing, or next to it."""

import numpy as np
import pytest

from herdfilter.bandwidths import kernel_covariance
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import (
    ContinuousHerdedGibbs,
    KernelHerding,
    MappedSampling,
    RandomGibbs,
    SobolSampling,
)
from herdfilter.samplers.herding.frame import principal_axes

MOVING = np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])  # noise of a position and its velocity, the same along each axis


def symmetric_noise(dim, size, seed):
    noise = np.random.default_rng(seed).standard_normal((dim, dim))
    return size * (noise + noise.T)


@pytest.mark.parametrize(
    "covariance",
    [
        np.eye(3),
        np.diag([1.0, 2.0, 2.0, 2.0]),
        np.kron(np.eye(3), MOVING),
        np.eye(6) - np.full((6, 6), 0.1),
    ],
    ids=["sphere", "disc", "moving", "two modes"],
)
def test_rounding_turns_no_axis(covariance):
    towards = np.arange(1.0, len(covariance) + 1)
    values, axes = principal_axes(covariance, towards)
    np.testing.assert_allclose(axes @ np.diag(values) @ axes.T, covariance, atol=1e-12)
    np.testing.assert_allclose(axes.T @ axes, np.eye(len(axes)), atol=1e-12)
    for seed in range(5):
        noise = symmetric_noise(len(covariance), 1e-14, seed)
        np.testing.assert_allclose(principal_axes(covariance + noise, towards)[1], axes, atol=1e-6)


def family(name, dim):
    rng = np.random.default_rng(7)
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


@pytest.mark.parametrize(
    "sampler",
    [KernelHerding(), ContinuousHerdedGibbs(), MappedSampling(KernelHerding()), SobolSampling()],
    ids=["kh", "chg", "mapped", "sobol"],
)
@pytest.mark.parametrize("name", ["two modes", "unequal", "cross", "moving", "three"])
@pytest.mark.parametrize("dim", [2, 8])
def test_rounding_moves_no_point(sampler, name, dim):
    """Numbers that differ in their last digit stand for the arithmetic of another processor."""
    mixture, rng = family(name, dim), np.random.default_rng(1)
    points = sampler.sample(mixture, 20).x
    width = np.sqrt(np.linalg.eigvalsh(kernel_covariance("auto", mixture, 20))[0])

    def change(*shape):
        return 1 + 2.3e-16 * rng.integers(-1, 2, shape)

    for _ in range(20):
        noise = change(dim, dim)
        covariances = mixture.distinct_covariances * np.sqrt(noise * noise.T)
        other = GaussianMixture(
            mixture.weights * change(len(mixture)),
            mixture.means * change(*mixture.means.shape),
            covariances if len(covariances) > 1 else covariances[0],
        )
        assert np.abs(sampler.sample(other, 20).x - points).max() < 1e-4 * width


@pytest.mark.parametrize(
    "sampler",
    [KernelHerding(), ContinuousHerdedGibbs(), ContinuousHerdedGibbs(target="paper"), RandomGibbs()],
    ids=["kh", "chg", "published", "random"],
)
def test_components_without_extent_across_a_plane_keep_to_it(sampler):
    """However the plane lies: rounding leaves a variance of either sign across it, magnified where the kernel is narrow."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d, components = rng.integers(2, 7), rng.choice([1, 3])
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        plane = axes[:, : rng.integers(1, d)]
        flat = plane * rng.uniform(0.5, 2, plane.shape[1]) @ plane.T
        flat = (flat + flat.T) / 2 * (1 + symmetric_noise(d, 5e-17, seed))
        means = rng.standard_normal((components, plane.shape[1])) @ plane.T
        points = sampler.sample(GaussianMixture(np.ones(components), means, flat), 20, rng).x
        assert np.abs(points - points @ plane @ plane.T).max() < 1e-3
        assert np.ptp(points @ plane, axis=0).min() > 0.3
