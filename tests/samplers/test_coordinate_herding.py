"""Coordinate-wise kernel herding: every move against the joint objective, and its quality."""

import numpy as np
import pytest

from herdfilter.discrepancy import energy_distance
from herdfilter.kernels import expected_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import ContinuousHerdedGibbs, CoordinateHerding, RandomSampling


def objective(mixture, sigma, earlier, x):
    """E[k(x, X)] - 1 / (t + 1) sum_s k(x, x_s) at the rows of x."""
    kernels = np.exp(-((x[:, None] - earlier) ** 2).sum(axis=2) / (2 * sigma**2))
    return expected_kernel(mixture, x, sigma**2 * np.eye(mixture.dim)) - kernels.sum(axis=1) / (
        len(earlier) + 1
    )


@pytest.mark.parametrize(("d", "sigma"), [(1, 0.2), (2, 0.4), (2, 1.5), (3, 0.8)])
def test_every_move_is_to_the_highest_point_of_the_joint_objective(random_mixture, d, sigma):
    """Moves are known from outside with one sweep: to 1e-8 of the objective's largest value, and no grid value above."""
    mixture = random_mixture(60 + d, d, components=3)
    points = CoordinateHerding(sigma, sweeps=1).sample(mixture, 15).x
    counts, latest = np.zeros(3), mixture.means.copy()
    for t in range(len(points)):
        label = np.argmax((t + 1) * mixture.weights - counts)
        counts[label] += 1
        if t:
            x = latest[label].copy()
            for i in range(d):
                grid = np.arange(-25.0, 25.0, 0.05 * sigma)
                line = np.repeat(x[None], len(grid), axis=0)
                line[:, i] = grid
                best = objective(mixture, sigma, points[:t], line).max()
                x[i] = points[t, i]
                reached = objective(mixture, sigma, points[:t], x[None])[0]
                assert reached >= best - 1e-8 * abs(best)
        latest[label] = points[t]


def test_in_one_dimension_points_are_those_of_herded_gibbs(random_mixture):
    """There the joint objective is the conditional one, in another unit: (t + 1) times it, over t."""
    mixture = random_mixture(61, 1)
    joint = CoordinateHerding(0.3).sample(mixture, 40).x
    np.testing.assert_allclose(joint, ContinuousHerdedGibbs(bandwidth=0.3).sample(mixture, 40).x, atol=1e-4)


def test_closer_to_the_mixture_than_random_draws_in_four_dimensions(random_mixture):
    ratios = []
    for seed in range(5):
        mixture = random_mixture(62 + seed, 4)
        random = np.median(
            [energy_distance(RandomSampling().sample(mixture, 100, k), mixture) for k in range(5)]
        )
        ratios.append(energy_distance(CoordinateHerding().sample(mixture, 100), mixture) / random)
    assert np.median(ratios) < 0.4


def test_start_is_the_first_point(random_mixture):
    points = CoordinateHerding(0.5).sample(random_mixture(63, 2), 4, start=[1.0, -2.0])
    np.testing.assert_allclose(points.x[0], [1.0, -2.0], rtol=1e-12)


def test_samples_that_cover_the_whole_slice_do_not_drive_points_away():
    """Far more samples than the mixture wants: the objective is negative wherever the mixture has mass."""
    mixture = GaussianMixture([1.0], [[0.0, 0.0]], 1e-4 * np.eye(2))
    points = CoordinateHerding(1.0).sample(mixture, 30).x
    assert np.abs(points).max() < 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bandwidth": -1.0}, "bandwidth: expected a positive finite number, got -1.0"),
        ({"sweeps": 0}, "sweeps: expected an integer of at least 1, got 0"),
        ({"scan": "backward"}, "scan: unknown 'backward'; "),
        ({"axes": "own"}, "axes: unknown 'own'; expected one of state, principal"),
    ],
)
def test_bad_options_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        CoordinateHerding(**arguments)
