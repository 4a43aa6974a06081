"""Random Gibbs sampling: exact conditionals, the mixture left invariant, and what a chain cannot do."""

import numpy as np
import pytest
from helpers import refuses
from scipy.special import ndtr
from scipy.stats import kstest

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import RandomGibbs
from herdfilter.samplers.random_gibbs import random_gibbs


@pytest.fixture
def connected():
    covariances = [[[1.0, 0.6], [0.6, 1.0]], [[0.5, -0.2], [-0.2, 1.5]], [[2.0, 0.0], [0.0, 0.3]]]
    return GaussianMixture([0.5, 0.3, 0.2], [[0.0, 0.0], [1.5, 0.5], [-1.0, 1.0]], covariances)


def standard_error(values):
    batches = values[: len(values) // 40 * 40].reshape(40, -1, values.shape[1]).mean(axis=1)
    return batches.std(axis=0, ddof=1) / np.sqrt(40)


@pytest.mark.parametrize("shared", [False, True])
def test_each_coordinate_is_drawn_from_its_conditional(connected, shared):
    covariances = connected.covariances[0] if shared else connected.covariances
    mixture = GaussianMixture(connected.weights, 2 * connected.means, covariances)
    start, rng, n = np.array([5.0, 0.8]), np.random.default_rng(0), 2000
    precision = np.linalg.inv(mixture.distinct_covariances)
    log_det = np.linalg.slogdet(precision)[1]
    target = np.log(mixture.weights) + 0.5 * log_det, mixture.means, precision
    work, chain, draws = (np.empty((3, 2)), np.empty(3)), np.empty((1, 2)), np.empty(n)
    for k in range(n):
        random_gibbs(*target, start.copy(), rng.random((1, 2)), rng.standard_normal((1, 2)), *work, chain)
        draws[k] = chain[0, 0]
    conditional = mixture.conditional([1], start[1])

    def distribution(x):
        scale = np.sqrt(conditional.covariances[:, 0, 0])
        return ndtr((np.asarray(x)[:, None] - conditional.means[:, 0]) / scale) @ conditional.weights

    assert kstest(draws, distribution).pvalue > 1e-3


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


def test_more_sweeps_make_successive_points_less_dependent():
    """Two narrow components that cross: a sweep keeps 0.9^4 of the offset of the squares, of either."""
    crossing = GaussianMixture([0.5, 0.5], np.zeros((2, 2)), [[[1, 0.9], [0.9, 1]], [[1, -0.9], [-0.9, 1]]])

    def dependence(sweeps):
        squares = RandomGibbs(sweeps=sweeps).sample(crossing, 40_000, 3).x[:, 0] ** 2
        return np.corrcoef(squares[1:], squares[:-1])[0, 1]

    assert dependence(1) == pytest.approx(0.9**4, abs=0.05)
    assert dependence(4) == pytest.approx(0.9**16, abs=0.05)


def test_sweeps_and_burn_in_thin_one_chain(connected):
    every = RandomGibbs(burn_in=0).sample(connected, 60, 4).x
    for sampler, n, expected in (
        (RandomGibbs(sweeps=3, burn_in=0), 20, every[2::3]),
        (RandomGibbs(sweeps=2, burn_in=10), 25, every[11::2]),
    ):
        np.testing.assert_allclose(sampler.sample(connected, n, 4).x, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("burn_in", [None, 50])
def test_a_chain_cannot_jump_between_far_modes(burn_in):
    """The documented limit: all points in one mode, the heaviest with a burn-in, by its weight with a draw."""
    means = np.array([[0.0, 0.0], [400.0, 50.0], [250.0, 300.0]])
    mixture = GaussianMixture([0.5, 0.3, 0.2], means, np.eye(2))
    starts = []
    for seed in range(40):
        x = RandomGibbs(burn_in=burn_in).sample(mixture, 100, seed).x
        nearest = np.argmin(((x[:, None] - means) ** 2).sum(-1), axis=1)
        assert (nearest == nearest[0]).all()
        starts.append(nearest[0])
    counts = np.bincount(starts, minlength=3)
    expected = 40 * mixture.weights if burn_in is None else [40, 0, 0]
    assert np.abs(counts - expected).max() <= 4.5 * np.sqrt(40 / 4) * (burn_in is None)


def test_far_modes_along_an_axis_of_the_mixture_are_both_visited():
    """The mixture's principal axes are its coordinates, and the conditional along the first one holds both modes."""
    mixture = GaussianMixture([0.6, 0.4], [[0.0, 0.0], [30.0, 30.0]], np.eye(2))
    right = RandomGibbs().sample(mixture, 2000, 0).x[:, 0] > 15
    assert abs(right.mean() - 0.4) < 4.5 * np.sqrt(0.24 / 2000)


test_bad_options_are_named = refuses(
    lambda arguments: RandomGibbs(**arguments),
    ({"sweeps": 0}, "sweeps: expected an integer of at least 1, got 0"),
    ({"burn_in": 1.5}, "burn_in: expected an integer of at least 0, got 1.5"),
)
