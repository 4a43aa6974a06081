"""The grid filter against closed forms, brute force and a published reference."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import kalman, plane, refuses

from herdfilter.filters.grid import GridFilter
from herdfilter.filters.kalman import ExtendedKalmanFilter
from herdfilter.mixture import GaussianMixture
from herdfilter.models import UNGM, LinearGaussian, RangeOnly, UniformBox, from_functions, linear_chain
from herdfilter.models.simulation import simulate
from herdfilter.smoothing import rts_smoother

REFERENCE = Path(__file__).parents[1] / "reference" / "ungm_exact.json"

LINE = LinearGaussian(F=[[0.9]], H=[[2.0]], Q=[[0.5]], R=[[1.5]], initial_mean=[1.0], initial_covariance=[[2.0]])
PLANE = plane(R=[[0.8]])


@pytest.mark.parametrize(
    ("model", "corner", "points", "tolerance"),
    [(LINE, 12.0, 1601, 1e-8), (PLANE, 9.0, (321, 341), 1e-6)],
    ids=["one dimension", "two dimensions"],
)
def test_linear_gaussian_posterior_is_kalmans(model, corner, points, tolerance):
    _, observations = simulate(model, 15, np.random.default_rng(0))
    observations[[3, 8, 9]] = np.nan
    means, covariances, log_likelihoods = kalman(model, observations)
    result = GridFilter(model, -corner, corner, points).run(observations)
    np.testing.assert_allclose(result.means, means, atol=tolerance)
    np.testing.assert_allclose(result.covariances, covariances, atol=tolerance)
    np.testing.assert_allclose(result.log_likelihood, log_likelihoods.sum(), atol=tolerance)


@pytest.mark.parametrize(
    ("model", "corner", "points", "tolerance"),
    [(LINE, 12.0, 1601, 1e-8), (PLANE, 9.0, (321, 341), 1e-6)],
    ids=["one dimension", "two dimensions"],
)
def test_linear_gaussian_smoothing_is_that_of_rauch_tung_and_striebel(model, corner, points, tolerance):
    _, observations = simulate(model, 12, np.random.default_rng(2))
    observations[[3, 8, 9]] = np.nan
    kf = ExtendedKalmanFilter(model)
    expected = rts_smoother(kf, kf.run(observations))
    result = GridFilter(model, -corner, corner, points).smooth(observations)
    np.testing.assert_allclose(result.means, expected.means, atol=tolerance)
    np.testing.assert_allclose(result.covariances, expected.covariances, atol=tolerance)


def test_observations_that_come_once_are_smoothed_as_a_list_of_them():
    grid, z = GridFilter(linear_chain(1), lower=-12, upper=12, points=241), [[0.2], [1.5], [4.0]]
    np.testing.assert_array_equal(grid.smooth(iter(z)).means, grid.smooth(z).means)
    assert (grid.smooth(z).means[:2] > grid.run(z).means[:2]).all()


def test_smoothing_follows_durations_controls_and_readings_of_one_time():
    """Readings at the same time are one state; the last row is the filter's."""
    model = from_functions(
        lambda x, dt, control: np.exp(-0.3 * dt) * x + control, lambda x: x, lambda dt: [[dt]], [[0.7]], [0.5], [[1.0]]
    )
    readings = [(t, None, z) for t, z in zip([0.5, 0.5, 2.5, 3.5, 3.5, 3.8], [1.0, 0.4, None, -2.0, -1.0, 0.3], strict=True)]
    controls = [0.0, 0.0, 2.0, -1.0, -1.0, 0.4]
    kf = ExtendedKalmanFilter(model)
    expected = rts_smoother(kf, kf.run(readings, controls=controls, start=0.0), controls=controls)
    grid = GridFilter(model, -12, 12, 1601)
    result, filtered = (f(readings, controls=controls, keep_masses=True, start=0.0) for f in (grid.smooth, grid.run))
    np.testing.assert_allclose(result.means, expected.means, atol=1e-7)
    np.testing.assert_allclose(result.covariances, expected.covariances, atol=1e-7)
    np.testing.assert_array_equal(result.masses[-1], filtered.masses[-1])
    np.testing.assert_allclose(result.masses[0], result.masses[1], atol=1e-15)
    assert result.log_likelihood == filtered.log_likelihood
    assert grid.smooth(readings, controls=controls, start=0.0).masses is None


def test_nonlinear_smoothing_is_that_of_all_paths():
    """UNGM by the definition, with dense matrices of transition densities: the forward-backward recursions."""
    model, x, steps = UNGM(), np.linspace(-45, 45, 1501), 6
    _, observations = simulate(model, steps, np.random.default_rng(3))
    forward, backward = [np.exp(-(x**2) / 10)], [np.ones(len(x))]
    shifts = [0.5 * x + 25 * x / (1 + x**2) + 8 * np.cos(1.2 * k) for k in range(1, steps + 1)]
    moves = [np.exp(-((x[:, None] - f) ** 2) / 20) for f in shifts]  # to the row from the column
    likelihoods = [np.exp(-((z - x**2 / 20) ** 2) / 2) for z in observations]
    for move, likelihood in zip(moves, likelihoods, strict=True):
        forward.append(likelihood * (move @ forward[-1]))
    for move, likelihood in zip(moves[:0:-1], likelihoods[:0:-1], strict=True):
        backward.append(move.T @ (likelihood * backward[-1]))
    expected = np.array([a * b / (a @ b) for a, b in zip(forward[1:], backward[::-1], strict=True)])
    result = GridFilter(model, -45, 45, 1501).smooth(observations, keep_masses=True)
    np.testing.assert_allclose(result.masses, expected, atol=1e-8)
    np.testing.assert_allclose(result.means[:, 0], expected @ x, atol=1e-6)


def test_nonlinear_posterior_is_that_of_brute_force_quadrature():
    """UNGM by the definition: a dense matrix of transition densities times the rectangle rule."""
    model, x, h = UNGM(), np.linspace(-50, 50, 2001), 0.05
    _, observations = simulate(model, 6, np.random.default_rng(1))
    p, expected = np.exp(-(x**2) / 10) / np.sqrt(10 * np.pi), []
    for k, z in enumerate(observations, start=1):
        f = 0.5 * x + 25 * x / (1 + x**2) + 8 * np.cos(1.2 * k)
        p = np.exp(-((x[:, None] - f) ** 2) / 20) @ p * h / np.sqrt(20 * np.pi)
        p *= np.exp(-((z - x**2 / 20) ** 2) / 2)
        p /= p.sum() * h
        expected.append([(x * p).sum() * h, (x**2 * p).sum() * h])
    expected = np.array(expected)
    result = GridFilter(model, -50, 50, 2001).run(observations)
    np.testing.assert_allclose(result.means[:, 0], expected[:, 0], atol=1e-6)
    np.testing.assert_allclose(result.covariances[:, 0, 0] + result.means[:, 0] ** 2, expected[:, 1], atol=1e-5)


def test_ungm_reference_means_and_log_likelihoods_are_reproduced():
    grid = GridFilter(UNGM(), -60, 60, 4801)
    for run in json.loads(REFERENCE.read_text())["runs"]:
        result = grid.run(np.array(run["observations"])[:, None])
        np.testing.assert_allclose(result.means[:, 0], run["posterior_mean"], atol=1e-7)
        assert result.log_likelihood == pytest.approx(run["log_likelihood"], abs=1e-7)


def walking(initial, transition_mean, noise):
    return SimpleNamespace(
        dim=1,
        initial=initial,
        transition_mean=transition_mean,
        transition_covariance=lambda dt, step: np.array([[noise * dt]]),
        log_likelihood=lambda z, x, step: np.zeros(len(x)),
    )


def test_control_and_time_step_reach_the_model():
    drift = walking(GaussianMixture([1.0], [[0.0]], [[1.0]]), lambda x, dt, control, step: x + control[0] * dt + step, 1.0)
    result = GridFilter(drift, -8, 24, 801).run([None, [np.nan]], dt=[1.0, 2.0], controls=[[1.0], [3.0]])
    np.testing.assert_allclose(result.means[:, 0], [1 + 1, 2 + 6 + 2], atol=1e-9)
    np.testing.assert_allclose(result.covariances[:, 0, 0], [2.0, 4.0], atol=1e-9)
    assert result.log_likelihood == 0


def test_flat_prior():
    corner = 10 + 0.5 * 6 / 600  # the corners of the box lie halfway between grid points
    walk = walking(UniformBox([-3.0], [3.0]), lambda x, dt, control, step: x, 0.5)
    result = GridFilter(walk, -corner, corner, 2002).run([[0.0]])
    np.testing.assert_allclose(result.means, [[0.0]], atol=1e-9)
    np.testing.assert_allclose(result.covariances, [[[0.5 + 36 / 12]]], atol=1e-4)


test_bad_grids_are_named = refuses(
    GridFilter,
    (LINE, 5, 5, 100, "upper: expected more than lower"),
    (LINE, [-5, -5], 5, 100, r"lower: expected shape \(1,\), got \(2,\)"),
    (PLANE, -9, 9, (100,), "points: expected 2 numbers, got 1"),
    (LINE, -5, 5, 1, "points: expected an integer of at least 8, got 1"),
    (LINE, 3, 9, 400, "points: expected a grid that resolves the initial distribution"),
    (RangeOnly([[0, 0]]), -9, 9, 50, r"model: expected no angles in the state, got circular=\(2,\)"),
)


test_runs_that_do_not_fit_the_grid_are_refused = refuses(
    lambda model, corner, points, given: GridFilter(model, -corner, corner, points).run([[0.0]], **given),
    (LINE, 12, 101, {}, "points: expected at least 4 grid cells to a standard deviation"),
    (UNGM(), 14, 801, {}, r"lower, upper: expected a grid that holds the state, got a loss of .* step 1"),
    (LINE, 12, 801, {"controls": [None] * 2}, "controls: expected one per step, 1, got 2"),
    (LINE, 12, 801, {"dt": [1.0] * 3}, "dt: expected one per step, 1, got 3"),
)


def test_an_impossible_observation_is_named():
    model = walking(LINE.initial, lambda x, dt, control, step: x, 0.5)
    model.log_likelihood = lambda z, x, step: np.full(len(x), -np.inf)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="observations: step 1 is impossible everywhere"):
        GridFilter(model, -12, 12, 801).run([[0.0]])


def test_missing_functions_are_named():
    with pytest.raises(TypeError, match=r"GridFilter needs transition_mean .* SimpleNamespace has no transition_mean"):
        GridFilter(SimpleNamespace(dim=1, initial=UniformBox([0.0], [1.0])), 0, 1, 100)


def test_a_grid_is_refused_where_the_transition_tears_neighbours_apart():
    """Near 0 the growth model stretches 25-fold: the noise of variance 1 does not join images five apart."""
    model = UNGM(process_variance=1.0, observation_variance=10.0)
    _, z = simulate(model, 20, 1)
    with pytest.raises(ValueError, match=r"^points: expected images of neighbours within 2 standard deviations"):
        GridFilter(model, -60, 60, 601).run(z)
    coarse, fine = (GridFilter(model, -60, 60, n).run(z).log_likelihood for n in (2401, 4801))
    assert abs(coarse - fine) < 1e-6
