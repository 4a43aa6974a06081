"""Random Gibbs sampling: exact conditionals, and the mixture left invariant."""

import numpy as np
import pytest
from helpers import refuses

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import RandomGibbs


@pytest.fixture
def connected():
    covariances = [[[1.0, 0.6], [0.6, 1.0]], [[0.5, -0.2], [-0.2, 1.5]], [[2.0, 0.0], [0.0, 0.3]]]
    return GaussianMixture([0.5, 0.3, 0.2], [[0.0, 0.0], [1.5, 0.5], [-1.0, 1.0]], covariances)


def standard_error(values):
    batches = values[: len(values) // 40 * 40].reshape(40, -1, values.shape[1]).mean(axis=1)
    return batches.std(axis=0, ddof=1) / np.sqrt(40)


@pytest.mark.parametrize("sampler", [RandomGibbs(), RandomGibbs(sweeps=3, burn_in=100)])
def test_a_chain_has_the_moments_of_a_connected_mixture(connected, sampler):
    x = sampler.sample(connected, 20_000, 1).x
    centred = x - connected.mean
    values = np.column_stack([centred, centred**2, centred[:, :1] * centred[:, 1:]])
    cov = connected.covariance
    expected = np.array([0.0, 0.0, cov[0, 0], cov[1, 1], cov[0, 1]])
    assert (np.abs(values.mean(axis=0) - expected) < 4.5 * standard_error(values)).all()


def test_points_of_a_single_gaussian_are_independent_draws(random_mixture):
    gaussian, n = random_mixture(95, 3, n_components=1), 20_000
    x = RandomGibbs().sample(gaussian, n, 2).x
    white = np.linalg.solve(np.linalg.cholesky(gaussian.covariance), (x - gaussian.mean).T)
    assert np.abs(white.mean(axis=1)).max() < 4.5 / np.sqrt(n)
    assert np.abs(white @ white.T / n - np.eye(3)).max() < 4.5 * np.sqrt(2 / n)
    assert np.abs(white[:, 1:] @ white[:, :-1].T / n).max() < 4.5 / np.sqrt(n)


def test_sweeps_and_burn_in_thin_one_chain(connected):
    every = RandomGibbs(burn_in=0).sample(connected, 60, 4).x
    for sampler, n, expected in (
        (RandomGibbs(sweeps=3, burn_in=0), 20, every[2::3]),
        (RandomGibbs(sweeps=2, burn_in=10), 25, every[11::2]),
    ):
        np.testing.assert_allclose(sampler.sample(connected, n, 4).x, expected, rtol=0, atol=1e-12)


test_bad_options_are_named = refuses(
    lambda arguments: RandomGibbs(**arguments),
    ({"sweeps": 0}, "sweeps: expected an integer of at least 1, got 0"),
    ({"burn_in": 1.5}, "burn_in: expected an integer of at least 0, got 1.5"),
)
