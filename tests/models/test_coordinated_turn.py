"""An aircraft in a turn, seen by a radar."""

import numpy as np
import pytest
from scipy import linalg, stats

from herdfilter.models import CoordinatedTurn

STATE = np.array([[1000.0, 300.0, -500.0, 40.0, -0.05], [-20.0, -3.0, 70.0, 250.0, 0.3]])
SCALE = np.array([100.0, 10.0, 100.0, 10.0, 0.01])


@pytest.mark.parametrize("rate", [-0.3, -1e-3, -1e-9, 0.0, 1e-300, 1e-9, 2e-3, 0.05, 2.0])
def test_the_turn_solves_its_differential_equation(rate):
    """The acceleration is the rate times the velocity turned by 90 degrees: a matrix exponential, for any rate."""
    x, dt = np.array([1000.0, 300.0, -500.0, 40.0]), 1.7
    generator = np.zeros((4, 4))
    generator[0, 1] = generator[2, 3] = 1.0
    generator[1, 3], generator[3, 1] = -rate, rate
    moved = CoordinatedTurn().transition_mean(np.array([[*x, rate]]), dt, None, 1)[0]
    np.testing.assert_allclose(moved[:4], linalg.expm(generator * dt) @ x, rtol=1e-12)
    assert moved[4] == rate


def test_straight_flight_is_the_limit_of_slow_turns():
    model, dt = CoordinatedTurn(), 2.0
    straight = model.transition_mean(np.array([[5.0, 3.0, 7.0, -4.0, 0.0]]), dt, None, 1)[0]
    np.testing.assert_array_equal(straight, [11.0, 3.0, -1.0, -4.0, 0.0])
    jacobian = model.transition_jacobian(np.array([[5.0, 3.0, 7.0, -4.0, 0.0]]), dt, None, 1)[0]
    np.testing.assert_allclose(jacobian[:, 4], [dt**2 / 2 * 4.0, dt * 4.0, dt**2 / 2 * 3.0, dt * 3.0, 1.0])


def test_a_full_circle_leads_back():
    model, x = CoordinatedTurn(), np.array([[1000.0, 300.0, 1000.0, 0.0, np.deg2rad(-3.0)]])
    moved = x
    for step in range(120):
        moved = model.transition_mean(moved, 1.0, None, step + 1)
    np.testing.assert_allclose(moved, x, rtol=1e-10, atol=1e-9)
    assert np.hypot(*model.transition_mean(x, 60.0, None, 1)[0, [1, 3]]) == pytest.approx(300.0, rel=1e-13)


@pytest.mark.parametrize("rate", [-0.05, -0.00667, -1e-5, 0.0, 1e-7, 0.00666, 0.4])
def test_jacobians_are_the_derivatives(rate, check_jacobian):
    model = CoordinatedTurn()
    x = np.column_stack([STATE[:, :4], np.full(2, rate)])
    check_jacobian(
        lambda x: model.transition_jacobian(x, 1.5, None, 1), lambda x: model.transition_mean(x, 1.5, None, 1), x, SCALE
    )
    check_jacobian(lambda x: model.observation_jacobian(x, 1), lambda x: model.observation_mean(x, 1), x, SCALE)


@pytest.mark.parametrize("turn", [-2 * np.pi, 0.0, 2 * np.pi])
def test_likelihood_is_the_gaussian_density_with_the_bearing_wrapped(turn):
    model = CoordinatedTurn()
    x = np.array([[-4000.0, 0.0, -2.0, 0.0, 0.0]])
    residual = np.array([7.0, -0.004])
    z = model.observation_mean(x, 1)[0] + residual + [0.0, turn]
    noise = stats.multivariate_normal(np.zeros(2), model.observation_covariance(1))
    assert model.log_likelihood(z, x, 1)[0] == pytest.approx(noise.logpdf(residual), rel=1e-9)
    only_range = stats.norm(0, 10).logpdf(7.0)
    assert model.log_likelihood([z[0], np.nan], x, 1)[0] == pytest.approx(only_range, rel=1e-9)


def test_the_defaults_are_the_papers():
    model = CoordinatedTurn()
    Q = model.transition_covariance(1.0, 1)
    np.testing.assert_allclose(Q[:2, :2], 0.1 * np.array([[1 / 3, 1 / 2], [1 / 2, 1]]))
    np.testing.assert_array_equal(Q[:2, :2], Q[2:4, 2:4])
    assert Q[4, 4] == 1.75e-4
    np.testing.assert_allclose(model.observation_covariance(1), np.diag([100.0, 10e-6]))
    assert np.rad2deg(model.initial.mean[4]) == pytest.approx(-3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"acceleration_density": 0}, "acceleration_density: expected a positive"),
        ({"turn_density": -1.0}, "turn_density: expected a positive"),
        ({"range_sd": np.nan}, "range_sd: expected a positive"),
        ({"bearing_sd": 0}, "bearing_sd: expected a positive"),
        ({"initial_mean": np.zeros(4)}, r"initial_mean: expected shape \(5,\), got \(4,\)"),
        ({"initial_covariance": np.eye(4)}, "initial_covariance: expected shape"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        CoordinatedTurn(**arguments)
