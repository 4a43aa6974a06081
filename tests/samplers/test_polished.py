"""Polishing of finished points."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from herdfilter import kernels
from herdfilter.bandwidths import Whitened
from herdfilter.discrepancy import energy_distance, herding_error
from herdfilter.kernels import KernelMean
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, Polished, RandomSampling
from herdfilter.samplers.improved import squared_error

KERNELS = [kernels.Gaussian(), kernels.Matern(1.5), kernels.InverseMultiquadric(), kernels.Energy()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_error_and_its_gradient(random_mixture, kernel):
    mixture, rng = random_mixture(0, 2), np.random.default_rng(1)
    x, weights = mixture.sample(7, rng), rng.dirichlet(np.ones(7))
    mean = KernelMean(kernel, mixture.weights, mixture.means, mixture.distinct_covariances)
    value, gradient = squared_error(x, weights, kernel, mean)
    constant = kernels.expected_kernel_pair(mixture, np.eye(2), kernel)
    squared = herding_error(Points(x, weights), mixture, 1.0, kernel) ** 2
    assert value + constant == pytest.approx(squared, abs=1e-5)
    h = 1e-4
    for s, i in ((0, 0), (3, 1), (6, 0)):
        step = np.zeros_like(x)
        step[s, i] = h
        up, down = (squared_error(x + sign * step, weights, kernel, mean)[0] for sign in (1, -1))
        assert gradient[s, i] == pytest.approx((up - down) / (2 * h), abs=2e-6)


@pytest.mark.parametrize(("d", "share"), [(1, 0.8), (2, 0.8), (4, 0.95)])
@pytest.mark.parametrize("sampler", [KernelHerding(0.7), ContinuousHerdedGibbs(bandwidth=0.7), RandomSampling()])
def test_polishing_lowers_the_herding_error(random_mixture, sampler, d, share):
    mixture = random_mixture(2, d)
    before = herding_error(sampler.sample(mixture, 60, np.random.default_rng(0)), mixture, 0.7)
    after = herding_error(Polished(sampler, 0.7).sample(mixture, 60, np.random.default_rng(0)), mixture, 0.7)
    assert after < share * before


def test_polished_points_are_a_stationary_place(random_mixture):
    mixture = random_mixture(3, 2)
    polished = Polished(KernelHerding(1.0), 1.0, iterations=1000).sample(mixture, 30)
    mean = KernelMean(kernels.Gaussian(), mixture.weights, mixture.means, mixture.distinct_covariances)
    _, start = squared_error(KernelHerding(1.0).sample(mixture, 30).x, polished.weights, kernels.Gaussian(), mean)
    _, end = squared_error(polished.x, polished.weights, kernels.Gaussian(), mean)
    assert np.abs(end).max() < 1e-3 * np.abs(start).max()


def test_two_points_of_a_gaussian_are_where_the_error_is_least():
    """Symmetric about the mean, at the place that a search over their distance finds."""
    gaussian = GaussianMixture([1.0], [[3.0]], [[4.0]])
    points = Polished(KernelHerding(1.0), 1.0).sample(gaussian, 2)
    assert points.mean[0] == pytest.approx(3.0, abs=1e-4)

    def error(a):
        return herding_error(Points([[3 - a], [3 + a]]), gaussian, 1.0)

    apart = np.linspace(0.0, 4.0, 41)
    k = np.argmin([error(a) for a in apart])
    best = minimize_scalar(lambda a: error(a) ** 2, bounds=(apart[k - 1], apart[k + 1]), method="bounded").x
    assert 0.5 * np.ptp(points.x) == pytest.approx(best, abs=2e-3)


def test_support_points_have_a_smaller_energy_distance(random_mixture):
    mixture = random_mixture(4, 2)
    sampler = KernelHerding(Whitened())
    before = energy_distance(sampler.sample(mixture, 60), mixture)
    after = energy_distance(Polished(sampler, kernel=kernels.Energy()).sample(mixture, 60), mixture)
    assert after < 0.7 * before


def test_weights_and_equal_options(random_mixture):
    mixture = random_mixture(5, 2)
    weights = np.random.default_rng(0).dirichlet(np.ones(9))

    class Weighted:
        def sample(self, mixture, n, rng=None):
            return Points(mixture.sample(n, 0), weights)

    np.testing.assert_allclose(Polished(Weighted()).sample(mixture, 9).weights, weights, rtol=1e-12)
    assert Polished(KernelHerding()) == Polished(KernelHerding()) != Polished(KernelHerding(), 0.5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sampler": KernelHerding}, TypeError, "sampler: expected an instance, got the class KernelHerding"),
        ({"sampler": 3}, TypeError, "sampler: expected an object with sample"),
        ({"kernel": "gaussian"}, TypeError, "kernel: expected a kernel with value"),
        ({"iterations": 0}, ValueError, "iterations: expected an integer of at least 1, got 0"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth: expected a positive finite number"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Polished(**({"sampler": KernelHerding()} | arguments))
