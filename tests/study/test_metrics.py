"""Consistency statistics, the energy distance on a line, and what intervals cover."""

import numpy as np
import pytest
from scipy.stats import bootstrap, chi2, norm

import herdfilter as hf
from herdfilter.models import LinearGaussian
from herdfilter.models.simulation import simulate
from herdfilter.study.metrics import (
    energy_distance_on_line,
    inside_ellipsoid,
    normalised_squares,
    root_mean,
    squared_error,
)
from herdfilter.study.statistics import bootstrap_interval, chi_square_band

TRACK = LinearGaussian(
    F=[[1.0, 1.0], [0.0, 1.0]],
    H=[[1.0, 0.0]],
    Q=[[0.1, 0.15], [0.15, 0.3]],
    R=[[1.0]],
    initial_mean=[0.0, 0.0],
    initial_covariance=np.eye(2),
)
RUNS, STEPS = 60, 25


@pytest.fixture(scope="module")
def nees():
    """Function of a factor on the filter's covariances: NEES (RUNS, STEPS) of the Kalman filter on its own model."""
    errors, covariances = [], []
    for seed in range(RUNS):
        truth, observations = simulate(TRACK, STEPS, seed)
        result = hf.ExtendedKalmanFilter(TRACK).run(observations)
        errors.append(truth - result.means)
        covariances.append(result.covariances)
    return lambda factor: np.array([normalised_squares(e, factor * P) for e, P in zip(errors, covariances, strict=True)])


def test_nees_of_the_kalman_filter_is_chi_square(nees):
    squares = nees(1.0)
    low, high = chi_square_band(np.full(STEPS, 2 * RUNS), 0.99)
    averages = squares.mean(axis=0) / 2
    assert ((low <= averages) & (averages <= high)).sum() >= STEPS - 1
    apart = squares[:, ::8]  # steps far enough from each other to be nearly independent
    for level in (0.5, 0.9):
        assert inside_ellipsoid(apart.ravel(), np.full(apart.size, 2.0), level) == pytest.approx(level, abs=0.08)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_covariances_of_the_wrong_size_leave_the_band(nees, factor):
    averages = nees(factor).mean(axis=0) / 2
    low, high = chi_square_band(2 * RUNS)
    outside = averages > high if factor < 1 else averages < low
    assert outside.mean() > 0.9


def test_nees_does_not_depend_on_the_units():
    rng = np.random.default_rng(0)
    errors, roots = rng.standard_normal((5, 3)), rng.standard_normal((5, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1)
    units = np.diag([1e-6, 1.0, 1e5])
    expected = [e @ np.linalg.inv(P) @ e for e, P in zip(errors, covariances, strict=True)]
    np.testing.assert_allclose(normalised_squares(errors, covariances), expected, rtol=1e-6)
    np.testing.assert_allclose(normalised_squares(errors @ units, units @ covariances @ units), expected, rtol=1e-6)


def test_a_singular_covariance_has_no_nees():
    line = np.array([[1.0, 2.0], [2.0, 4.0]])
    covariances = np.array([np.eye(2), line, np.zeros((2, 2)), np.full((2, 2), np.nan), np.diag([1.0, 0.0])])
    squares = normalised_squares(np.ones((5, 2)), covariances)
    np.testing.assert_array_equal(squares, [2.0, *[np.nan] * 4])


def test_bands_are_quantiles_of_chi_square():
    degrees = np.array([1, 7, 400])
    low, high = chi_square_band(degrees, 0.9)
    np.testing.assert_allclose(low, chi2.ppf(0.05, degrees) / degrees)
    np.testing.assert_allclose(high, chi2.ppf(0.95, degrees) / degrees)
    assert np.isnan(chi_square_band(0)).all()
    assert np.isnan(inside_ellipsoid(np.full(3, np.nan), np.zeros(3)))


EDGES = np.linspace(-9.0, 9.0, 3001)
NORMAL = np.diff(norm.cdf(EDGES))


def test_energy_distance_on_a_line_is_that_to_a_gaussian():
    rng = np.random.default_rng(0)
    x, weights = 2 * rng.standard_normal(30), rng.dirichlet(np.ones(30))
    mixture = hf.GaussianMixture([1.0], [[0.0]], [[1.0]])
    expected = hf.energy_distance(hf.Points(x[:, None], weights), mixture)
    assert energy_distance_on_line(x, weights, EDGES, NORMAL) == pytest.approx(expected, rel=1e-4)


def test_points_beyond_the_grid_and_equal_points_count():
    """All mass at two units from a uniform density on [0, 1]: 2 E|x - X| - E|X - X'| = 2 * 2.5 - 1 / 3."""
    edges, masses = np.linspace(0, 1, 11), np.full(10, 0.1)
    distance = energy_distance_on_line(np.full(4, 3.0), np.full(4, 0.25), edges, masses)
    assert distance == pytest.approx(5 - 1 / 3)


def test_energy_distance_of_exact_draws_falls_as_one_over_n():
    rng = np.random.default_rng(1)
    for n in (10, 40, 160):
        draws = [energy_distance_on_line(rng.standard_normal(n), np.full(n, 1 / n), EDGES, NORMAL) for _ in range(150)]
        assert np.mean(draws) * n == pytest.approx(2 / np.sqrt(np.pi), rel=0.25)  # E|X - X'|


def test_the_bootstrap_of_a_mean_covers_what_it_says():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(300):
        low, high = bootstrap_interval(rng.standard_normal(30), np.mean, resamples=400)
        hits += low <= 0 <= high
    assert 0.89 < hits / 300 < 0.98


@pytest.mark.parametrize("runs", [8, 40, 150])
def test_the_bootstrap_is_scipys(runs):
    values = np.random.default_rng(runs).exponential(size=runs)

    def root_mean_square(x, axis):
        return np.sqrt(np.mean(x**2, axis=axis))

    low, high = bootstrap_interval(values, root_mean_square, resamples=9000)
    theirs = bootstrap((values,), root_mean_square, vectorized=True, n_resamples=9000, method="BCa", rng=1)
    width = high - low
    assert low == pytest.approx(theirs.confidence_interval.low, abs=0.06 * width)
    assert high == pytest.approx(theirs.confidence_interval.high, abs=0.06 * width)


def test_the_bootstrap_takes_values_of_any_size():
    """A filter that is sure of a wrong place has normalised squares of any size."""
    values = np.array([1.0, 2.0, 1e150, 3.0, 1e200, 5.0])
    low, high = bootstrap_interval(values, np.mean)
    assert 0 < low < values.mean() <= high <= 1e200
    few = np.arange(1.0, 7.0)
    one, scaled = bootstrap_interval(few, np.mean), bootstrap_interval(1e-200 * few, np.mean)
    np.testing.assert_allclose(np.array(one) * 1e-200, scaled)


def test_errors_are_over_the_dimensions_named_with_angles_wrapped():
    estimate, target = (
        np.array([[1.0, 3.0, 9.0], [0.0, 0.0, 0.0]]),
        np.array([[0.0, -3.0, 0.0], [2.0, 0.0, 5.0]]),
    )
    np.testing.assert_allclose(squared_error(estimate, target, [0, 1]), [37.0, 4.0])
    np.testing.assert_allclose(squared_error(estimate, target, [0, 1], [1]), [1 + (2 * np.pi - 6) ** 2, 4.0])
    assert root_mean(np.array([16.0, 16.0, 4.0])) == pytest.approx(np.sqrt(12))


def test_nearly_singular_covariances_have_a_nees_up_to_rounding():
    """A correlation of 1 - e leaves the eigenvalue e: of 1e-11 it is taken, of 1e-13 it is put down to rounding."""
    squares = [
        normalised_squares(np.array([[1.0, 1.0]]), np.array([[[1.0, 1 - e], [1 - e, 1.0]]]))[0] for e in (1e-11, 1e-13)
    ]
    assert squares[0] == pytest.approx(1.0)
    assert np.isnan(squares[1])
    assert np.isnan(normalised_squares(np.ones((1, 2)), np.array([[[1.0, 0.0], [0.0, -1.0]]]))).all()


def test_the_share_inside_an_ellipsoid_leaves_out_what_is_no_number():
    squares = np.array([0.0, 3.8, 3.9, np.nan])
    assert inside_ellipsoid(squares, np.ones(4)) == pytest.approx(2 / 3)
    assert inside_ellipsoid(squares, np.ones(4), 0.5) == pytest.approx(1 / 3)
