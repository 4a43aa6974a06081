"""A double well, observed now and then."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import herdfilter as hf
from herdfilter.models import DoubleWell


def test_the_flow_solves_the_equation():
    start = np.array([-2.0, -0.1, 0.0, 0.3, 1.0, 4.0])
    solved = solve_ivp(lambda t, x: 4 * x - 4 * x**3, (0, 0.3), start, rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(DoubleWell().transition_mean(start[:, None], 0.3, None, 1)[:, 0], solved, atol=1e-8)


def test_two_short_times_are_one_long_one():
    model, x = DoubleWell(), np.linspace(-3, 3, 13)[:, None]
    twice = model.transition_mean(model.transition_mean(x, 0.2, None, 1), 0.5, None, 2)
    np.testing.assert_allclose(twice, model.transition_mean(x, 0.7, None, 1), rtol=1e-12)


def test_only_every_tenth_step_is_observed():
    _, z = hf.simulate(DoubleWell(), 80, 0, dt=0.2)
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(z[:, 0])) + 1, np.arange(10, 81, 10))


def test_neither_well_is_preferred_until_the_first_observation():
    """By symmetry the mean stays 0, and the spread that of two wells."""
    model = DoubleWell()
    exact = hf.GridFilter(model, -5.0, 5.0, 401).run([[np.nan]] * 9 + [[1.5]], dt=0.2)
    assert np.abs(exact.means[:9]).max() < 1e-9
    assert exact.covariances[8, 0, 0] > 0.7
    assert exact.means[9, 0] > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise_rate": 0.0}, "noise_rate: expected a positive"),
        ({"observed_every": 0}, "observed_every: expected an integer of at least 1, got 0"),
        ({"observed_every": 2.5}, "observed_every: expected an integer"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        DoubleWell(**arguments)
