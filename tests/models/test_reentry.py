"""A vehicle on re-entry, seen by a radar."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import herdfilter as hf
from herdfilter.models import BallisticReentry

START = np.array([6500.4, 349.14, -1.8093, -6.7967, 0.6932])
SCALE = np.array([1.0, 1.0, 0.1, 0.1, 1.0])


def motion(_, s):
    """Julier and Uhlmann's equations of motion, one number at a time."""
    x, y, vx, vy, c = s
    R, V = np.sqrt(x * x + y * y), np.sqrt(vx * vx + vy * vy)
    D = -0.59783 * np.exp(c) * np.exp((6374 - R) / 13.406) * V
    G = -3.986e5 / R**3
    return [vx, vy, D * vx + G * x, D * vy + G * y, 0.0]


def test_fine_euler_steps_solve_the_equations_of_motion():
    """Over 100 s, in which the air has slowed the vehicle down to an eighth; the error falls with the step."""
    exact = solve_ivp(motion, (0, 100), START, rtol=1e-11, atol=1e-11).y[:, -1]
    assert np.hypot(*exact[2:4]) < 0.2 * np.hypot(*START[2:4])
    errors = []
    for step in (0.1, 0.05, 0.025):
        moved = BallisticReentry(integration_step=step).transition_mean(START[None], 100.0, None, 1)[0]
        errors.append(np.linalg.norm(moved - exact))
    assert errors[0] < 1.0  # km, after more than 500
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2.0, rtol=0.1)  # a method of first order


def test_without_air_energy_and_angular_momentum_stay():
    model = BallisticReentry(drag=1e-12, integration_step=0.002)
    before, after = START, model.transition_mean(START[None], 20.0, None, 1)[0]

    def energy(s):
        return 0.5 * (s[2:4] ** 2).sum() - 3.986e5 / np.hypot(*s[:2])

    def momentum(s):
        return s[0] * s[3] - s[1] * s[2]

    assert energy(after) == pytest.approx(energy(before), rel=1e-5)
    assert momentum(after) == pytest.approx(momentum(before), rel=1e-5)


def test_noise_is_the_sources_for_its_step():
    """In 0.1 s: 2.4064e-5 for the velocities, 1e-6 for c, none for the position."""
    model = BallisticReentry()
    np.testing.assert_allclose(model.transition_covariance(0.1, 1), np.diag([0, 0, 2.4064e-5, 2.4064e-5, 1e-6]))
    moved = model.transition(START[None], np.array([[1.0, -2.0, 3.0]]), 0.1, None, 1)[0]
    noise = moved - model.transition_mean(START[None], 0.1, None, 1)[0]
    np.testing.assert_allclose(noise, [0, 0, np.sqrt(2.4064e-5), -2 * np.sqrt(2.4064e-5), 0.003], atol=1e-12)


@pytest.mark.parametrize("turn", [-2 * np.pi, 0.0, 2 * np.pi])
def test_likelihood_is_the_gaussian_density_with_the_bearing_wrapped(turn):
    model = BallisticReentry()
    x = np.array([[6374.0 - 50.0, -0.001, 0.0, 0.0, 0.0]])  # beyond the radar, where the bearing jumps
    residual = np.array([0.0007, -0.0002])
    z = model.observation_mean(x, 1)[0] + residual + [0.0, turn]
    noise = stats.multivariate_normal(np.zeros(2), model.observation_covariance(1))
    assert model.log_likelihood(z, x, 1)[0] == pytest.approx(noise.logpdf(residual), rel=1e-6)


def test_the_observations_jacobian_is_its_derivative(check_jacobian):
    model = BallisticReentry()
    x = START + np.random.default_rng(2).standard_normal((10, 5))
    check_jacobian(lambda x: model.observation_jacobian(x, 1), lambda x: model.observation_mean(x, 1), x, SCALE)


def test_the_air_reveals_the_ballistic_coefficient():
    """Before the air is felt c has its prior; after 100 s it is known to a tenth."""
    model = BallisticReentry()
    _, z = hf.simulate(model, 1000, 3, dt=0.1, initial=START)
    result = hf.UnscentedKalmanFilter(model).run(z, dt=0.1)
    assert np.sqrt(result.covariances[100, 4, 4]) > 0.5
    assert np.sqrt(result.covariances[-1, 4, 4]) < 0.1
    assert abs(result.means[-1, 4] - START[4]) < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"acceleration_density": 0}, "acceleration_density: expected a positive"),
        ({"integration_step": 0}, "integration_step: expected a positive"),
        ({"drag": -0.59783}, "drag: expected a positive"),
        ({"radar": [0.0]}, r"radar: expected shape \(2,\)"),
        ({"initial_mean": np.zeros(4)}, r"initial_mean: expected shape \(5,\), got \(4,\)"),
        ({"initial_covariance": np.eye(4)}, "initial_covariance: expected shape"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        BallisticReentry(**arguments)
