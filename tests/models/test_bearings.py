"""Bearings of a constant-velocity target."""

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.models import BearingsTracking


def test_bearings_by_hand():
    model = BearingsTracking(sensors=[[0, 0], [1, 1]])
    x = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 5.0, 5.0]])
    np.testing.assert_allclose(model.observation_mean(x, 1), [[0, -np.pi / 2], [np.pi / 2, np.pi]], atol=1e-15)


@pytest.mark.parametrize("turn", [-2 * np.pi, 0.0, 2 * np.pi])
def test_residual_is_wrapped_where_bearings_jump(turn):
    """Left of the sensor the bearing jumps from pi to -pi: a hair's breadth, not a full turn."""
    model = BearingsTracking(sensors=[[0, 0], [0, 5]])
    x = np.array([[-1.0, -0.01, 0.0, 0.0]])
    mean = model.observation_mean(x, 1)[0]
    assert mean[0] < -3.1
    z = mean + np.array([2 * np.pi - 0.02 + turn, 0.0])
    expected = -0.5 * (0.02 / model.bearing_sd) ** 2 - 2 * np.log(model.bearing_sd * np.sqrt(2 * np.pi))
    assert model.log_likelihood(z, x, 1)[0] == pytest.approx(expected, rel=1e-9)


def test_two_bearings_fix_the_position():
    model = BearingsTracking()
    target = np.array([[0.3, -0.4, 1.0, 2.0]])
    z = model.observation_mean(target, 1)[0]
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 81), np.linspace(-2, 2, 81)), axis=-1).reshape(-1, 2)
    x = np.hstack([grid, np.zeros_like(grid)])
    np.testing.assert_allclose(x[model.log_likelihood(z, x, 1).argmax(), :2], target[0, :2], atol=1e-12)


def test_two_short_steps_are_one_long_step():
    """The discretised Wiener velocity model composes: F Q1 F' + Q2 is the covariance over the whole time."""
    model = BearingsTracking(spectral_density=0.7)
    F = model.transition_mean(np.eye(4), 0.2, None, 1).T
    composed = F @ model.transition_covariance(0.3, 1) @ F.T + model.transition_covariance(0.2, 1)
    np.testing.assert_allclose(composed, model.transition_covariance(0.5, 1), rtol=1e-12, atol=1e-15)


def test_all_observed_values_are_angles():
    assert BearingsTracking().observation_circular == (0, 1)
    assert BearingsTracking(sensors=np.eye(3)[:, :2]).observation_circular == (0, 1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensors": [[0, 0]]}, "sensors: expected at least 2 positions, got 1"),
        ({"sensors": [0, 0]}, "sensors: expected shape"),
        ({"bearing_sd": 0}, "bearing_sd: expected a positive"),
        ({"spectral_density": -1.0}, "spectral_density: expected a positive"),
        ({"initial_mean": [0, 0]}, r"initial_mean: expected shape \(4,\), got \(2,\)"),
        ({"initial_covariance": np.eye(3)}, "initial_covariance: expected shape"),
        ({"initial_covariance": np.stack([np.eye(4)] * 2)}, "initial_covariance: expected shape"),
        ({"initial_covariance": -np.eye(4)}, "initial_covariance: expected positive semi-definite"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        BearingsTracking(**arguments)


def test_at_a_sensor_the_jacobian_is_no_number():
    """Nor is there a warning; an extended Kalman filter names the Jacobian."""
    model = BearingsTracking()
    at = np.array([[*model.sensors[0], 0.0, 0.0]])
    jacobian = model.observation_jacobian(at, 1)
    assert np.isnan(jacobian[0, 0]).all()
    assert np.isfinite(jacobian[0, 1]).all()
    started = BearingsTracking(initial_mean=at[0], spectral_density=1e-250, initial_covariance=1e-250 * np.eye(4))
    with pytest.raises(ValueError, match="jacobian: expected finite numbers, got 4 non-finite"):
        hf.ExtendedKalmanFilter(started).run([[0.1, 0.2]])
