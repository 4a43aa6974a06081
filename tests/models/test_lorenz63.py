"""The Lorenz-63 system."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from herdfilter.models import Lorenz63


def flow(t, s, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = s
    return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]


def exact(x, dt):
    return np.array([solve_ivp(flow, (0, dt), s, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1] for s in x])


@pytest.fixture
def states():
    return Lorenz63().initial.sample(20, np.random.default_rng(0))


def test_integration_follows_the_differential_equation(states):
    np.testing.assert_allclose(Lorenz63().transition_mean(states, 0.25, None, 1), exact(states, 0.25), atol=5e-4)


def test_integration_is_of_fourth_order(states):
    truth = exact(states, 0.25)
    errors = [
        np.abs(Lorenz63(integration_step=h).transition_mean(states, 0.25, None, 1) - truth).max()
        for h in (0.01, 0.005, 0.0025)
    ]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 4.0, atol=0.3)


def test_fixed_points_stay():
    c = np.sqrt(8 / 3 * 27)
    points = np.array([[c, c, 27.0], [-c, -c, 27.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(Lorenz63().transition_mean(points, 1.0, None, 1), points, atol=1e-10)


def test_a_time_that_is_no_multiple_of_the_step_is_kept_exactly(states):
    np.testing.assert_allclose(Lorenz63().transition_mean(states, 0.123, None, 1), exact(states, 0.123), atol=5e-4)


def test_noise_grows_with_time():
    model = Lorenz63(noise_rate=0.4)
    np.testing.assert_allclose(model.transition_covariance(0.25, 1), 0.1 * np.eye(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sigma": 0.0}, "sigma: expected a positive"),
        ({"noise_rate": -1.0}, "noise_rate: expected a positive"),
        ({"integration_step": np.nan}, "integration_step: expected a positive"),
        ({"observation_variance": 0}, "observation_variance: expected a positive"),
        ({"initial_mean": [1.0, 2.0]}, r"initial_mean: expected shape \(3,\), got \(2,\)"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Lorenz63(**arguments)
