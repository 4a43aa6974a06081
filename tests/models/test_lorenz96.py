"""The Lorenz-96 system."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from herdfilter.models import Lorenz96


def flow(t, x, forcing=8.0):
    d = len(x)
    return [(x[(i + 1) % d] - x[i - 2]) * x[i - 1] - x[i] + forcing for i in range(d)]


def exact(x, dt):
    return np.array([solve_ivp(flow, (0, dt), s, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1] for s in x])


@pytest.fixture
def states():
    return Lorenz96(dim=7).initial.sample(10, np.random.default_rng(0))


def test_integration_follows_the_differential_equation(states):
    np.testing.assert_allclose(
        Lorenz96(dim=7, integration_step=0.01).transition_mean(states, 0.2, None, 1), exact(states, 0.2), atol=1e-5
    )


def test_integration_is_of_fourth_order(states):
    truth = exact(states, 0.2)
    errors = [
        np.abs(Lorenz96(dim=7, integration_step=h).transition_mean(states, 0.2, None, 1) - truth).max()
        for h in (0.05, 0.025, 0.0125)
    ]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 4.0, atol=0.4)


def test_the_uniform_state_of_the_forcing_stays():
    x = np.full((1, 6), 8.0)
    np.testing.assert_allclose(Lorenz96(dim=6).transition_mean(x, 0.5, None, 1), x, atol=1e-12)


def test_the_circle_has_no_first_variable(states):
    model = Lorenz96(dim=7)
    moved = model.transition_mean(states, 0.3, None, 1)
    turned = model.transition_mean(np.roll(states, 3, axis=1), 0.3, None, 1)
    np.testing.assert_allclose(turned, np.roll(moved, 3, axis=1), rtol=1e-13)


def test_initial_state_is_on_the_attractor():
    """Its energy is bounded by that of the forced fixed point, and it is chaotic: no longer nearly uniform."""
    mean = Lorenz96().initial_mean
    assert mean.std() > 2
    assert np.abs(mean).max() < 15


@pytest.mark.parametrize(("every", "seen"), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (5, [0])])
def test_every_nth_variable_is_observed(every, seen):
    model, x = Lorenz96(dim=5, observed_every=every), np.arange(5.0)[None]
    np.testing.assert_array_equal(model.observation_mean(x, 1), [seen])
    assert model.observation_covariance(1).shape == (len(seen), len(seen))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 3}, "dim: expected an integer of at least 4, got 3"),
        ({"observed_every": 0}, "observed_every: expected an integer of at least 1, got 0"),
        ({"observed_every": 11}, "observed_every: expected at most dim = 10, got 11"),
        ({"forcing": 0.0}, "forcing: expected a positive"),
        ({"noise_rate": -1.0}, "noise_rate: expected a positive"),
        ({"initial_mean": [1.0]}, r"initial_mean: expected shape \(10,\), got \(1,\)"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Lorenz96(**arguments)
