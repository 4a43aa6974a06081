"""Bearings of a target from one sensor at rest."""

import numpy as np
import pytest
from scipy import stats

import herdfilter as hf
from herdfilter.models import BearingsOnly


@pytest.fixture
def states():
    return BearingsOnly().initial.sample(40, np.random.default_rng(1))


def test_one_step_by_hand():
    """Gordon, Salmond and Smith: Phi x + Gamma w, for a step of 1."""
    x = np.array([[-0.05, 0.001, 0.7, -0.055]])
    moved = BearingsOnly().transition(x, np.array([[2.0, -3.0]]), 1.0, None, 1)
    expected = [-0.05 + 0.001 + 0.5 * 0.002, 0.001 + 0.002, 0.7 - 0.055 - 0.5 * 0.003, -0.055 - 0.003]
    np.testing.assert_allclose(moved, [expected], rtol=1e-14)


def test_the_noise_has_two_dimensions_whatever_the_time():
    for dt in (0.1, 1.0, 7.0):
        assert np.linalg.matrix_rank(BearingsOnly().transition_covariance(dt, 1), tol=1e-14) == 2


def test_a_bearing_says_nothing_of_the_distance(states):
    model = BearingsOnly()
    z = model.observation_mean(states[:1], 1)[0]
    near = model.log_likelihood(z, states, 1)
    far = model.log_likelihood(z, states * np.array([50.0, 1.0, 50.0, 1.0]), 1)
    np.testing.assert_allclose(near, far, rtol=1e-9)


@pytest.mark.parametrize("turn", [-2 * np.pi, 0.0, 2 * np.pi])
def test_residual_is_wrapped_where_the_bearing_jumps(turn):
    """Left of the sensor the bearing jumps from pi to -pi; the target of the paper passes there."""
    model = BearingsOnly()
    x = np.array([[-0.3, 0.0, -0.001, 0.0]])
    z = model.observation_mean(x, 1)[0] + 2 * np.pi - 0.008 + turn
    expected = stats.norm(0, model.bearing_sd).logpdf(0.008)
    assert model.log_likelihood(z, x, 1)[0] == pytest.approx(expected, rel=1e-9)


def test_jacobians_are_the_derivatives(states, check_jacobian):
    model, scale = BearingsOnly(), np.array([0.5, 0.005, 0.3, 0.01]) / 30
    check_jacobian(
        lambda x: model.transition_jacobian(x, 1.5, None, 1), lambda x: model.transition_mean(x, 1.5, None, 1), states, scale
    )
    right = states[states[:, 0] > 0.02]  # away from the jump and the sensor
    check_jacobian(lambda x: model.observation_jacobian(x, 1), lambda x: model.observation_mean(x, 1), right, scale)


def test_filters_that_need_a_density_of_the_transition_refuse_the_model():
    _, z = hf.simulate(BearingsOnly(), 3, 1)
    pf = hf.ParticleFilter(BearingsOnly(), 20, hf.GuidedProposal(), rng=1)
    with pytest.raises(ValueError, match=r"transition_covariance: .* expected a positive definite matrix"):
        pf.run(z)


def test_a_simulation_may_start_at_a_given_state():
    still = BearingsOnly(acceleration_sd=1e-12)
    truth, _ = hf.simulate(still, 24, 1, initial=[-0.05, 0.001, 0.7, -0.055])
    np.testing.assert_allclose(truth[-1], [-0.05 + 0.024, 0.001, 0.7 - 24 * 0.055, -0.055], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"acceleration_sd": 0}, "acceleration_sd: expected a positive"),
        ({"bearing_sd": -1.0}, "bearing_sd: expected a positive"),
        ({"initial_mean": [0, 0]}, r"initial_mean: expected shape \(4,\), got \(2,\)"),
        ({"initial_covariance": np.eye(3)}, "initial_covariance: expected shape"),
        ({"initial_covariance": -np.eye(4)}, "initial_covariance: expected positive semi-definite"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        BearingsOnly(**arguments)
