"""Every closed form against numerical quadrature, on random mixtures in one and two dimensions.

Integrands that are smooth and vanish at the ends are summed by the trapezoidal rule, whose error is then below rounding.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.special import ndtr

from herdfilter.discrepancy import energy_distance, herding_error, normalised_l2
from herdfilter.kernels import density_product, expected_kernel, expected_kernel_pair
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

few = settings(max_examples=4, deadline=None, derandomize=True)
BOUND = 14.0  # the mixtures below hardly reach beyond


def covariance(rng, d):
    root = rng.standard_normal((d, d))
    return 0.4 * root @ root.T + 0.15 * np.eye(d)


@st.composite
def problems(draw, dims=(1, 2)):
    d = draw(st.sampled_from(dims))
    components = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shared = draw(st.booleans())
    covariances = covariance(rng, d) if shared else [covariance(rng, d) for _ in range(components)]
    means = np.clip(1.5 * rng.standard_normal((components, d)), -4, 4)
    mixture = GaussianMixture(rng.dirichlet(np.ones(components)), means, covariances)
    points = Points(np.clip(1.5 * rng.standard_normal((4, d)), -4, 4), rng.dirichlet(np.ones(4)))
    return mixture, points, covariance(rng, d)


def integral(function, d):
    y = np.linspace(-BOUND, BOUND, 201)
    if d == 1:
        return trapezoid(function(y[:, None]), y)
    values = function(np.stack(np.meshgrid(y, y, indexing="ij"), axis=-1).reshape(-1, 2))
    return trapezoid(trapezoid(values.reshape(len(y), len(y)), y), y)


def density(mixture):
    return lambda y: np.exp(mixture.log_density(y))


def kernel_density(points, K):
    return GaussianMixture(points.weights, points.x, K)


def unit_peak(x, y, K):
    u = y - x
    return np.exp(-0.5 * np.einsum("ni,ij,nj->n", u, np.linalg.inv(K), u))


@few
@given(problems())
def test_expected_kernel_and_that_of_a_pair(problem):
    mixture, points, K = problem
    p = density(mixture)
    expected = [integral(lambda y, x=x: p(y) * unit_peak(x, y, K), mixture.dim) for x in points.x]
    np.testing.assert_allclose(expected_kernel(mixture, points.x, K), expected, rtol=1e-8)
    expected = integral(lambda y: p(y) * expected_kernel(mixture, y, K), mixture.dim)
    assert expected_kernel_pair(mixture, K) == pytest.approx(expected, rel=1e-8)


@few
@given(problems())
def test_density_product(problem):
    mixture, _, K = problem
    p = density(mixture)
    smooth = density(mixture.convolve(K))
    assert density_product(mixture) == pytest.approx(
        integral(lambda y: p(y) ** 2, mixture.dim), rel=1e-8
    )
    expected = integral(lambda y: p(y) * smooth(y), mixture.dim)
    assert density_product(mixture, K) == pytest.approx(expected, rel=1e-8)


@few
@given(problems())
def test_herding_error(problem):
    """The distance of both smoothed by the kernel's square root."""
    mixture, points, K = problem
    p = density(mixture.convolve(K / 2))
    q = density(kernel_density(points, K / 2))
    expected = np.sqrt(integral(lambda y: (p(y) - q(y)) ** 2, mixture.dim))
    assert herding_error(points, mixture, K) == pytest.approx(expected, rel=1e-6)


@few
@given(problems())
def test_normalised_l2(problem):
    mixture, points, K = problem
    p = density(mixture)
    q = density(kernel_density(points, K))
    d = mixture.dim
    inner = integral(lambda y: p(y) * q(y), d)
    norms = np.sqrt(integral(lambda y: p(y) ** 2, d) * integral(lambda y: q(y) ** 2, d))
    assert normalised_l2(points, mixture, K) == pytest.approx(
        2 * (1 - inner / norms), rel=1e-6, abs=1e-9
    )


def cdf(mixture, y):
    return float(
        mixture.weights @ ndtr((y - mixture.means[:, 0]) / np.sqrt(mixture.covariances[:, 0, 0]))
    )


@few
@given(problems(dims=(1,)))
def test_energy_distance_on_the_line(problem):
    mixture, points, _ = problem
    order = np.argsort(points.x[:, 0])
    edges = [-BOUND, *points.x[order, 0], BOUND]
    levels = [0.0, *np.cumsum(points.weights[order])]
    parts = [
        quad(lambda y, c=c: (cdf(mixture, y) - c) ** 2, a, b, epsrel=1e-10)[0]
        for c, a, b in zip(levels, edges[:-1], edges[1:], strict=True)
    ]
    assert energy_distance(points, mixture) == pytest.approx(2 * sum(parts), rel=1e-7, abs=1e-9)
