"""What marks single models: robots, targets in turns, stochastic volatility, the uniform box."""

import numpy as np
import pytest
from helpers import assert_jacobian, cases, refusal
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, stats

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.models import (
    BearingsTracking,
    CoordinatedTurn,
    LandmarkLocalisation,
    RangeOnly,
    StochasticVolatility,
    UniformBox,
)
from herdfilter.models.resolved import Measurement
from herdfilter.study.recording import record
from herdfilter.study.scenario import load_scenario


def test_simulated_robot_drives_a_figure_of_eight():
    """Without noise it is back where it began after one turn each way, and its heading has taken all values."""
    model = LandmarkLocalisation(
        position_noise=1e-9,
        heading_noise=1e-9,
        initial_covariance=1e-18 * np.eye(3),
        speed=2.0,
        turn_rate=2 * np.pi / 25,
        reverse_every=50,
    )
    truth, _ = hf.simulate(model, 100, 0, dt=0.5)
    assert_allclose(truth[[49, 99], :2], 0, atol=1e-6)
    side = 2 * 2.0 / model.turn_rate
    assert truth[:50, 1].max() == pytest.approx(side, rel=0.01)
    assert truth[50:, 1].min() == pytest.approx(-side, rel=0.01)
    assert np.ptp(wrap_angles(truth, [2])[:, 2]) > 6


def test_a_recording_has_the_controls_that_the_truth_was_simulated_with():
    scenario = load_scenario("landmarks")
    recording = record(scenario, scenario.build_model(), None, default_rng(0))
    assert set(recording.controls[:, 1]) == {0.25, -0.25}


BEACONS = [[0.0, 0.0], [30.0, 0.0], [0.0, 40.0]]


def test_likelihood_is_students_t_about_the_scaled_distance():
    beacon = 1
    model = RangeOnly(BEACONS, range_scale=1.1, range_spread=0.5, degrees_of_freedom=3)
    x = np.array([[3.0, 4.0, 0.0], [10.0, 10.0, 1.0], [-5.0, 20.0, 2.0]])
    distance = np.linalg.norm(x[:, :2] - BEACONS[beacon], axis=1)
    expected = stats.t.logpdf(25.0, 3, loc=1.1 * distance, scale=0.5)
    assert_allclose(model.log_likelihood([beacon, 25.0], x, 1), expected, rtol=1e-12)


def test_simulated_beacons_take_turns_and_ranges_follow_the_likelihood():
    model = RangeOnly(BEACONS)
    assert_array_equal(hf.simulate(model, 7, default_rng(0))[1][:, 0], [0, 1, 2, 0, 1, 2, 0])
    z = Measurement(model).sample(np.tile([3.0, 4.0, 0.0], (20_000, 1)), default_rng(0), 1)
    scaled = (z[:, 1] - 1.07 * 5.0) / model.range_spread
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    assert_allclose((scaled[:, None] < stats.t.ppf(levels, 5)).mean(axis=0), levels, atol=0.015)


def test_at_a_sensor_the_jacobian_is_no_number():
    """Nor is there a warning; an extended Kalman filter names the Jacobian."""
    model = BearingsTracking()
    at = np.array([[*model.sensors[0], 0.0, 0.0]])
    jacobian = model.observation_jacobian(at, 1)
    assert np.isnan(jacobian[0, 0]).all()
    assert np.isfinite(jacobian[0, 1]).all()
    started = BearingsTracking(
        initial_mean=at[0], spectral_density=1e-250, initial_covariance=1e-250 * np.eye(4)
    )
    with refusal("jacobian: expected finite numbers, got 4 non-finite"):
        hf.ExtendedKalmanFilter(started).run([[0.1, 0.2]])


STATE = np.array([[1000.0, 300.0, -500.0, 40.0, -0.05], [-20.0, -3.0, 70.0, 250.0, 0.3]])
SCALE = np.array([100.0, 10.0, 100.0, 10.0, 0.01])


@cases("rate", -0.3, -1e-9, 0.0, 2e-3, 2.0)
def test_the_turn_solves_its_differential_equation(rate):
    """The acceleration is the rate times the velocity turned by 90 degrees: a matrix exponential, for any rate."""
    x = np.array([1000.0, 300.0, -500.0, 40.0])
    dt = 1.7
    generator = np.zeros((4, 4))
    generator[0, 1] = generator[2, 3] = 1.0
    generator[1, 3] = -rate
    generator[3, 1] = rate
    moved = CoordinatedTurn().transition_mean(np.array([[*x, rate]]), dt, None, 1)[0]
    assert_allclose(moved[:4], linalg.expm(generator * dt) @ x, rtol=1e-12)
    assert moved[4] == rate


@cases("rate", -0.00667, 0.0, 1e-7, 0.4)
def test_jacobians_of_a_turn_at_any_rate_are_the_derivatives(rate):
    model = CoordinatedTurn()
    x = np.column_stack([STATE[:, :4], np.full(2, rate)])
    assert_jacobian(
        lambda x: model.transition_jacobian(x, 1.5, None, 1),
        lambda x: model.transition_mean(x, 1.5, None, 1),
        x,
        SCALE,
    )


def test_likelihood_is_the_density_of_a_return():
    x = np.linspace(-6, 4, 21)[:, None]
    model = StochasticVolatility()
    expected = stats.norm(0, np.exp(x[:, 0] / 2)).logpdf(-3.0)
    assert_allclose(model.log_likelihood([-3.0], x, 1), expected, rtol=1e-12)
    drawn = model.sample_observation(np.full((4000, 1), -1.0), default_rng(0), 1)
    assert stats.kstest(drawn[:, 0], stats.norm(0, np.exp(-0.5)).cdf).pvalue > 1e-3


def test_the_prior_of_volatility_is_stationary():
    model = StochasticVolatility(mu=0.4, rho=-0.8, sigma=0.5)
    variance = model.rho**2 * model.initial.covariance + model.transition_covariance(1.0, 1)
    assert_allclose(variance, model.initial.covariance, rtol=1e-13)
    assert_allclose(model.transition_mean(model.initial.mean[None], 1.0, None, 1), [[0.4]])


def test_density_of_a_box_is_flat_inside_and_draws_fill_it_evenly():
    box = UniformBox([0.0, -1.0], [2.0, 3.0])
    grid = np.stack(
        np.meshgrid(np.arange(-0.95, 4, 0.1), np.arange(-1.95, 4, 0.1)), axis=-1
    ).reshape(-1, 2)
    density = np.exp(box.log_density(grid))
    assert density.sum() * 0.01 == pytest.approx(1.0)
    assert_allclose(np.unique(density), [0.0, 1 / 8], rtol=1e-12)
    counts, *_ = np.histogram2d(*box.sample(40_000, 0).T, bins=(4, 4), range=((0, 2), (-1, 3)))
    assert counts.sum() == 40_000
    assert np.abs(counts - 2500).max() < 5 * np.sqrt(2500)
