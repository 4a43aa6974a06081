"""Targets in the plane and in space: their motion and what sensors tell of it."""

import numpy as np
import pytest
from helpers import assert_jacobian
from scipy import linalg

import herdfilter as hf
from herdfilter.models import (
    BearingsTracking,
    CoordinatedTurn,
)


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
    with pytest.raises(ValueError, match="jacobian: expected finite numbers, got 4 non-finite"):
        hf.ExtendedKalmanFilter(started).run([[0.1, 0.2]])


STATE = np.array([[1000.0, 300.0, -500.0, 40.0, -0.05], [-20.0, -3.0, 70.0, 250.0, 0.3]])
SCALE = np.array([100.0, 10.0, 100.0, 10.0, 0.01])


@pytest.mark.parametrize("rate", [-0.3, -1e-9, 0.0, 2e-3, 2.0])
def test_the_turn_solves_its_differential_equation(rate):
    """The acceleration is the rate times the velocity turned by 90 degrees: a matrix exponential, for any rate."""
    x, dt = np.array([1000.0, 300.0, -500.0, 40.0]), 1.7
    generator = np.zeros((4, 4))
    generator[0, 1] = generator[2, 3] = 1.0
    generator[1, 3], generator[3, 1] = -rate, rate
    moved = CoordinatedTurn().transition_mean(np.array([[*x, rate]]), dt, None, 1)[0]
    np.testing.assert_allclose(moved[:4], linalg.expm(generator * dt) @ x, rtol=1e-12)
    assert moved[4] == rate


@pytest.mark.parametrize("rate", [-0.00667, 0.0, 1e-7, 0.4])
def test_jacobians_of_a_turn_at_any_rate_are_the_derivatives(rate):
    model = CoordinatedTurn()
    x = np.column_stack([STATE[:, :4], np.full(2, rate)])
    assert_jacobian(
        lambda x: model.transition_jacobian(x, 1.5, None, 1),
        lambda x: model.transition_mean(x, 1.5, None, 1),
        x,
        SCALE,
    )
