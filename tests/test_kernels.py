"""The Gaussian kernel's expectations, and its bandwidth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdfilter.bandwidths import check_bandwidth, kernel_covariance, scale_rule
from herdfilter.kernels import density_product, expected_kernel, expected_kernel_pair, log_normaliser
from herdfilter.mixture import GaussianMixture, floored

LINE = GaussianMixture([0.2, 0.5, 0.3], [[-3.0], [0.0], [2.5]], [[[0.4]], [[1.5]], [[0.2]]])
PLANE = GaussianMixture(
    [0.6, 0.4], [[0.0, 1.0], [2.0, -1.0]], [[[1.0, 0.6], [0.6, 0.8]], [[0.5, -0.2], [-0.2, 0.9]]]
)
PLANE_KERNEL = np.array([[0.7, 0.3], [0.3, 0.5]])


def line_grid():
    y = np.linspace(-16, 16, 3201)
    return y[:, None], y[1] - y[0]


def plane_grid():
    y = np.linspace(-9, 10, 301)
    return np.stack(np.meshgrid(y, y), axis=-1).reshape(-1, 2), (y[1] - y[0]) ** 2


CASES = [
    pytest.param(LINE, np.array([[0.3]]), line_grid, id="one dimension"),
    pytest.param(PLANE, PLANE_KERNEL, plane_grid, id="two dimensions"),
]


def kernel(x, y, covariance):
    """The definition, pair by pair: (n, d), (m, d) -> (n, m)."""
    u = x[:, None] - y
    return np.exp(-0.5 * np.einsum("nmi,ij,nmj->nm", u, np.linalg.inv(covariance), u))


@pytest.mark.parametrize(("mixture", "covariance", "grid"), CASES)
def test_expected_kernel_is_the_integral_over_the_mixture(mixture, covariance, grid):
    y, cell = grid()
    x = np.concatenate([mixture.means, mixture.means + 1.7])
    expected = kernel(x, y, covariance) @ np.exp(mixture.log_density(y)) * cell
    np.testing.assert_allclose(expected_kernel(mixture, x, covariance), expected, rtol=1e-9)


@pytest.mark.parametrize(("mixture", "covariance", "grid"), CASES)
def test_expected_kernel_of_a_pair_is_the_integral_over_both(mixture, covariance, grid):
    y, cell = grid()
    expected = np.exp(mixture.log_density(y)) @ expected_kernel(mixture, y, covariance) * cell
    assert expected_kernel_pair(mixture, covariance) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("mixture", "covariance", "grid"), CASES)
def test_density_product_is_the_integral_of_the_square(mixture, covariance, grid):
    y, cell = grid()
    p = np.exp(mixture.log_density(y))
    assert density_product(mixture) == pytest.approx(p @ p * cell, rel=1e-9)


def test_expectations_have_the_square_root_that_the_published_ones_lack():
    """At its own mean a Gaussian has E[N(X; m, K)] = 1 / sqrt((2 pi)^d |S + K|); published: without the root."""
    S, K, d = np.array([[2.0, 0.5], [0.5, 1.0]]), PLANE_KERNEL, 2
    gaussian = GaussianMixture([1.0], [[3.0, -1.0]], S)
    constant = np.exp(log_normaliser(K))
    alone = constant * expected_kernel(gaussian, gaussian.means, K)[0]
    pair = constant * expected_kernel_pair(gaussian, K)
    single_det, pair_det = ((2 * np.pi) ** d * np.linalg.det(C) for C in (S + K, 2 * S + K))
    assert alone == pytest.approx(1 / np.sqrt(single_det), rel=1e-12)
    assert pair == pytest.approx(1 / np.sqrt(pair_det), rel=1e-12)
    assert abs(alone * single_det - 1) > 10  # the published forms would make these 1
    assert abs(pair * pair_det - 1) > 10
    drawn = gaussian.sample(200_000, 0)
    values = constant * kernel(gaussian.means, drawn, K)[0]
    assert abs(values.mean() - alone) < 4.5 * values.std() / np.sqrt(200_000)


def test_the_kernel_peaks_at_one_whatever_its_width():
    """A point mass against the kernel at its own place, in ten dimensions where the normalised kernel is near 1e6."""
    for sigma in (1e-8, 0.1, 1e8):
        point = GaussianMixture([1.0], np.ones((1, 10)), np.zeros((10, 10)))
        np.testing.assert_allclose(
            expected_kernel(point, np.ones((1, 10)), sigma**2 * np.eye(10)), 1, rtol=1e-9
        )


def test_log_normaliser_makes_the_kernel_a_density():
    y, cell = plane_grid()
    total = kernel(np.zeros((1, 2)), y, PLANE_KERNEL).sum() * cell
    assert np.exp(log_normaliser(PLANE_KERNEL)) * total == pytest.approx(1, rel=1e-9)


# Bandwidth


@pytest.mark.parametrize("d", [1, 2, 3, 4, 8, 20])
def test_rule_shrinks_a_little_slower_than_the_distance_between_points(d):
    """That distance falls as n^(-1/d), the rule as n^(-1/(d + 1)); it starts between one and three deviations."""
    assert scale_rule(2 ** (d + 1), d) == pytest.approx(0.5 * scale_rule(1, d), rel=1e-12)
    assert 1 < scale_rule(1, d) < 3


def test_auto_is_the_rule_in_whitened_coordinates():
    K = kernel_covariance("auto", PLANE, 50)
    np.testing.assert_allclose(K, scale_rule(50, 2) ** 2 * PLANE.covariance, rtol=1e-12)


@pytest.mark.parametrize("singular", [False, True])
def test_auto_follows_a_change_of_units(singular):
    units = np.diag([1e-6, 3.0, 1e5])
    root = np.random.default_rng(0).standard_normal((3, 2 if singular else 3))
    means = np.zeros((1, 3))
    before = kernel_covariance("auto", GaussianMixture([1.0], means, root @ root.T), 100)
    scaled = units @ root
    after = kernel_covariance("auto", GaussianMixture([1.0], means, scaled @ scaled.T), 100)
    np.testing.assert_allclose(after, units @ before @ units, rtol=1e-6)
    assert np.linalg.eigvalsh(before)[0] > 0


def test_number_and_matrix_are_taken_as_they_are():
    np.testing.assert_array_equal(kernel_covariance(0.5, PLANE, 7), 0.25 * np.eye(2))
    np.testing.assert_array_equal(kernel_covariance(PLANE_KERNEL, PLANE, 7), PLANE_KERNEL)
    np.testing.assert_array_equal(kernel_covariance(PLANE_KERNEL.tolist(), PLANE, 7), PLANE_KERNEL)


@pytest.mark.parametrize("value", ["auto", 0.5, 2, np.float32(0.5), np.array(0.5), [[2.0, 0.1], [0.1, 1.0]]])
def test_good_bandwidths_pass(value):
    np.testing.assert_array_equal(check_bandwidth(value), value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("wide", "expected \"auto\", a rule, a number, .* got 'wide'"),
        ("0.5", "expected \"auto\", a rule, a number, .* got '0.5'"),
        (0, "expected a positive finite number, got 0"),
        (-0.1, "expected a positive finite number, got -0.1"),
        (np.nan, "expected a positive finite number, got nan"),
        (np.inf, "expected a positive finite number, got inf"),
        (True, "expected a positive finite number, got True"),
        (None, "expected a positive finite number, got None"),
        ([0.1, 0.0], r"expected positive widths, got \[0.1, 0.0\]"),
        ([0.1, np.nan], "expected finite numbers, got 1 non-finite"),
        (np.eye(2)[None], r"expected a positive definite \(d, d\) matrix"),
        ([[1.0, 0.0]], r"expected square matrices.* got shape \(1, 2\)"),
        ([[1.0, 0.5], [0.4, 1.0]], "expected symmetric matrices, got an asymmetry of 0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], "expected positive semi-definite matrices, got an eigenvalue of -1"),
        ([[1.0, 1.0], [1.0, 1.0]], "expected a positive definite"),
        ([[1.0, 0.0], [0.0]], "expected numbers"),
        (np.empty((0, 0)), "expected"),
        ([[np.nan, 0.0], [0.0, 1.0]], "expected finite numbers, got 1 non-finite"),
    ],
)
def test_bad_bandwidths_are_named(value, message):
    with pytest.raises(ValueError, match=f"bandwidth: {message}"):
        check_bandwidth(value)


def test_bandwidth_of_another_dimension_is_refused():
    with pytest.raises(
        ValueError, match=r"bandwidth: expected shape \(2,\) or \(2, 2\) for this mixture, got \(3, 3\)"
    ):
        kernel_covariance(np.eye(3), PLANE, 10)


# The floor


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 5))
def test_floor_lifts_the_correlations_and_nothing_else(seed, d, rank):
    rng = np.random.default_rng(seed)
    root = np.exp(rng.uniform(-8, 8, (d, 1))) * rng.standard_normal((d, min(rank, d)))
    covariance = root @ root.T
    lifted = floored(covariance, 1e-4)
    scale = np.sqrt(np.diagonal(lifted))
    assert np.linalg.eigvalsh(lifted / np.outer(scale, scale))[0] > 0.99e-4 / (1 + 1e-4)
    if rank:
        before = np.sqrt(np.diagonal(covariance))
        assert np.abs((lifted - covariance) / np.outer(before, before)).max() <= 1.01e-4
    else:
        assert np.linalg.eigvalsh(lifted)[0] > 0


def test_floor_leaves_sound_covariances_alone():
    np.testing.assert_array_equal(floored(PLANE_KERNEL), PLANE_KERNEL)
    skewed = np.diag([1e-12, 1.0, 1e12])  # units apart, not deficient
    np.testing.assert_array_equal(floored(skewed), skewed)


def test_floor_of_a_dimension_without_spread():
    lifted = floored(np.diag([4.0, 0.0, 1e-2]), 1e-6)
    np.testing.assert_allclose(lifted, np.diag([4.0, 1e-8, 1e-2]), atol=1e-16)
