"""Every kernel: its mixture of Gaussians, its expectation, and the descriptions of it that the literature gives."""

import numpy as np
import pytest
from helpers import cases, refusal, refuses
from numpy.testing import assert_allclose
from scipy import integrate

from herdfilter import kernels
from herdfilter.discrepancy import energy_distance, herding_error
from herdfilter.kernels import KernelMean, as_kernel, expected_kernel, expected_kernel_pair
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

KERNELS = [
    kernels.Gaussian(),
    kernels.Laplace(),
    kernels.Matern(2.5),
    kernels.Matern(3.3),
    kernels.LocalizedCumulative(2.0),
    kernels.Energy(),
]
LINE = GaussianMixture([0.2, 0.5, 0.3], [[-3.0], [0.0], [2.5]], [[[0.4]], [[1.5]], [[0.2]]])
every_kernel = cases("kernel", *KERNELS, ids=repr)


@every_kernel
def test_the_mixture_of_gaussians_is_the_kernel(kernel):
    r = np.array([0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
    rates, weights = kernel.scales()
    assert rates.shape == weights.shape
    summed = np.exp(-0.5 * rates * r[:, None] ** 2) @ weights
    assert_allclose(summed, kernel.value(r**2), atol=2e-6)


@every_kernel
def test_slopes_are_derivatives(kernel):
    q = np.array([1e-4, 0.01, 0.5, 1.0, 4.0, 30.0])
    h = 1e-5 * q
    numerical = (kernel.value(q + h) - kernel.value(q - h)) / (2 * h)
    assert_allclose(kernel.slope(q), numerical, rtol=1e-5)
    assert np.isfinite(kernel.slope(np.zeros(1))).all()


@every_kernel
def test_expectations_are_integrals_over_the_line(kernel):
    covariance = np.array([[0.6]])
    x = np.array([[-2.0], [0.3], [4.0]])

    def density(y):
        return np.exp(LINE.log_density(np.array([[y]])))[0]

    for point, found in zip(x[:, 0], expected_kernel(LINE, x, covariance, kernel), strict=True):
        expected, _ = integrate.quad(
            lambda y, p=point: kernel.value(np.array((p - y) ** 2 / 0.6)) * density(y),
            -12, 12, points=[point, -3, 0, 2.5], limit=400
        )  # fmt: skip
        assert found == pytest.approx(expected, abs=3e-6)
    y = np.linspace(-12, 12, 4801)[:, None]
    mean_of_mean = (
        np.exp(LINE.log_density(y))
        @ expected_kernel(LINE, y, covariance, kernel)
        * (y[1, 0] - y[0, 0])
    )
    assert expected_kernel_pair(LINE, covariance, kernel) == pytest.approx(mean_of_mean, abs=3e-6)


@every_kernel
def test_the_kernel_mean_in_space_is_that_of_many_draws(kernel):
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((3, 3, 3))
    roots[0, :, 2] = 0.0  # one component is flat
    mixture = GaussianMixture(
        [0.5, 0.2, 0.3], rng.standard_normal((3, 3)), roots @ roots.transpose(0, 2, 1)
    )
    mean = KernelMean(kernel, mixture.weights, mixture.means, mixture.distinct_covariances)
    x = rng.standard_normal((4, 3))
    draws = mixture.sample(30_000, 1)
    values = kernel.value(((x[:, None] - draws) ** 2).sum(-1))
    error = values.std(axis=1) / np.sqrt(len(draws))
    assert (np.abs(mean(x) - values.mean(axis=1)) < 4.5 * error + 2e-6).all()


@every_kernel
def test_gradients_of_the_kernel_mean(kernel):
    mean = KernelMean(kernel, LINE.weights, LINE.means, LINE.distinct_covariances)
    x = np.array([[-4.0], [0.1], [1.7]])
    h = 1e-4
    _, gradient = mean.with_gradient(x)
    assert_allclose(gradient, ((mean(x + h) - mean(x - h)) / (2 * h))[:, None], atol=1e-6)


def test_the_kernel_peaks_at_one_whatever_its_width():
    """A point mass against the kernel at its own place, in ten dimensions where the normalised kernel is near 1e6."""
    place = np.ones((1, 10))
    point = GaussianMixture([1.0], place, np.zeros((10, 10)))
    for sigma in (1e-8, 0.1, 1e8):
        assert_allclose(expected_kernel(point, place, sigma**2 * np.eye(10)), 1, rtol=1e-9)


def test_matern_of_half_and_of_large_order():
    r = np.linspace(0, 3, 20)
    assert_allclose(kernels.Laplace().value(r**2), np.exp(-r), rtol=1e-12)
    assert_allclose(kernels.Matern(30.0).value(r**2), np.exp(-(r**2) / 2), atol=0.01)
    general = kernels.Matern(1.5 + 1e-9).value(r**2)
    assert_allclose(general, kernels.Matern(1.5).value(r**2), atol=1e-7)


def test_the_localized_cumulative_kernel_is_its_integral():
    """(2 / b^2) int_0^b s exp(-r^2 / (4 s^2)) ds."""
    for r in (0.3, 1.0, 4.0):
        integral, _ = integrate.quad(lambda s, r=r: s * np.exp(-(r**2) / (4 * s * s)), 0, 3.0)
        assert kernels.LocalizedCumulative(3.0).value(np.array(r**2)) == pytest.approx(
            2 / 9 * integral, rel=1e-8
        )


def test_the_herding_error_of_the_energy_kernel_is_the_energy_distance():
    points = Points(LINE.sample(20, 0), np.random.default_rng(1).dirichlet(np.ones(20)))
    assert herding_error(points, LINE, 1.0, kernels.Energy()) ** 2 == pytest.approx(
        energy_distance(points, LINE), abs=5e-6
    )


class NoExpectation:
    def value(self, squared):
        return np.exp(-(np.sqrt(squared) ** 3))

    def slope(self, squared):
        return -1.5 * np.sqrt(squared) * self.value(squared)


def test_a_kernel_without_an_expectation_is_named():
    with refusal(
        r"kernel: expected an object with value and slope and scales, got .*NoExpectation",
        TypeError,
    ):
        herding_error(Points([[0.0]]), LINE, 1.0, NoExpectation())
    with refusal("kernel: expected an instance, got the class Matern", TypeError):
        as_kernel("kernel", kernels.Matern)


test_bad_shapes_are_named = refuses(
    lambda kind, value: kind(value),
    (kernels.Matern, 0.0, "nu: expected a positive finite number"),
    (kernels.Matern, 80.0, "nu: expected a number from 0.001 to 30, got 80"),
    (kernels.LocalizedCumulative, 0.0, "largest: expected a positive finite number"),
)
