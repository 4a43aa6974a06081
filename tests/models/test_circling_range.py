"""A target that circles, and one sharp range."""

import numpy as np
import pytest

import herdfilter as hf
from herdfilter.models import CirclingRange


def test_a_step_turns_and_draws_in():
    model = CirclingRange(turn=np.pi / 2, damping=0.5)
    np.testing.assert_allclose(model.transition_mean(np.array([[2.0, 0.0]]), 1.0, None, 1), [[0.0, 1.0]], atol=1e-15)


def test_the_noise_is_a_hundredth_of_the_predicted_spread():
    model = CirclingRange()
    _, z = hf.simulate(model, 12, 3)
    pf, spreads = hf.ParticleFilter(model, 20_000, rng=1), []
    for observation in z:
        pf.predict()
        predicted = model.observation_mean(pf.particles, 1)[:, 0]
        spreads.append(np.sqrt(pf.weights @ (predicted - pf.weights @ predicted) ** 2))
        pf.update(observation)
    assert 0.008 < model.range_sd / np.median(spreads) < 0.0125


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"damping": 1.0}, "damping: expected a number above 0 and below 1, got 1.0"),
        ({"damping": -0.5}, "damping: expected a positive"),
        ({"turn": np.nan}, "turn: expected a finite number, got nan"),
        ({"sensor": [1.0]}, r"sensor: expected shape \(2,\)"),
        ({"initial_sd": 0.0}, "initial_sd: expected a positive"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        CirclingRange(**arguments)
