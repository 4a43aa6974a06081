"""Quasi-Monte Carlo draws from a mixture."""

import numpy as np
from helpers import cases, normal
from numpy.testing import assert_allclose

from herdfilter.mixture import GaussianMixture
from herdfilter.samplers import SobolSampling


def shares(points, means):
    nearest = np.argmin(((points.x[:, None] - means) ** 2).sum(-1), axis=1)
    return np.bincount(nearest, minlength=len(means))


@cases("scramble", False, True)
def test_of_a_power_of_two_components_get_their_shares_to_within_one(scramble):
    rng = np.random.default_rng(0)
    means = 1e3 * rng.standard_normal((7, 3))
    mixture = GaussianMixture(rng.dirichlet(np.ones(7)), means, np.eye(3))
    for n in (1, 16, 256):
        points = SobolSampling(scramble).sample(mixture, n, 1)
        assert np.abs(shares(points, means) - n * mixture.weights).max() < 1


def test_of_every_number_components_get_their_shares_as_the_sequence_allows():
    """The first coordinate is van der Corput's sequence: discrepancy at most (log2 n + 1) / 2 + 1, in points."""
    means = np.array([[-1e3], [0.0], [1e3]])
    mixture = GaussianMixture([0.15, 0.35, 0.5], means, [[1.0]])
    for n in range(1, 60):
        off = np.abs(shares(SobolSampling().sample(mixture, n), means) - n * mixture.weights).max()
        assert off < (np.log2(n) + 1) / 2 + 1


def test_of_a_power_of_two_the_mean_of_a_gaussian_is_exact(random_mixture):
    for n, d in ((1, 3), (2, 10), (64, 10)):
        gaussian = random_mixture(90, d, n_components=1)
        assert_allclose(SobolSampling().sample(gaussian, n).mean, gaussian.mean, atol=1e-12)


def test_one_dimension_of_a_gaussian_is_the_grid_of_quantiles():
    from scipy.special import ndtri

    points = SobolSampling().sample(normal([0.0], 4.0), 32)
    assert_allclose(np.sort(points.x[:, 0]), 2 * ndtri((np.arange(32) + 0.5) / 32), atol=1e-12)


def test_scrambled_points_average_without_bias_and_with_less_variance(random_mixture):
    mixture = random_mixture(91, 2)
    n = 64
    draws = np.array(
        [
            [*p.mean, *(p.weights @ (p.x - mixture.mean) ** 2)]
            for p in (SobolSampling(scramble=True).sample(mixture, n, seed) for seed in range(300))
        ]
    )
    expected = np.append(mixture.mean, np.diag(mixture.covariance))
    error = draws.std(axis=0) / np.sqrt(300)
    assert (np.abs(draws.mean(axis=0) - expected) < 4.5 * error).all()
    independent = np.diag(mixture.covariance) / n
    assert (draws[:, :2].var(axis=0) < 0.1 * independent).all()
