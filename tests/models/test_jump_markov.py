"""Models that jump between modes: what they say of themselves, and how they are simulated."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers import EYE, on_a_line, refuses
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter.models.contract import in_mode
from herdfilter.models.simulation import sample_modes


def still(mean=0.0, noise=1e-12, seen=1.0):
    """A state that hardly moves, seen with a factor."""
    return on_a_line(H=seen, Q=noise, R=1e-12, mean=mean, variance=1e-12)


def rising(rate, seen=1.0):
    return hf.models.from_functions(
        lambda x: x + rate, lambda x: seen * x, [[1e-12]], [[1e-12]], [0.0], [[1e-12]]
    )


def test_a_state_moves_and_is_seen_as_the_mode_of_each_step_says():
    model = hf.models.JumpMarkov([rising(1.0), rising(-2.0, seen=5.0)], np.full((2, 2), 0.5))
    truth, z = hf.simulate(model, 4, rng=0, modes=[0, 0, 1, 1, 0])
    assert_allclose(truth[:, 0], [1, -1, -3, -2], atol=1e-4)
    assert_allclose(z[:, 0], [1, -5, -15, -2], atol=1e-4)


def test_modes_are_a_markov_chain():
    T = np.array([[0.9, 0.1], [0.3, 0.7]])
    model = hf.models.JumpMarkov([still(), still()], T, [0.2, 0.8])
    path = sample_modes(model, 2000, rng=1)
    for i in range(2):
        followed = path[1:][path[:-1] == i]
        assert np.mean(followed == 1) == pytest.approx(
            T[i, 1], abs=5 * np.sqrt(0.25 / len(followed))
        )


def test_the_initial_state_is_that_of_any_mode():
    model = hf.models.JumpMarkov([still(-1.0), still(3.0)], EYE, [0.25, 0.75])
    assert model.initial.mean == pytest.approx(2.0)
    drawn = model.initial.sample(200, np.random.default_rng(0))
    assert np.mean(drawn > 1) == pytest.approx(0.75, abs=0.15)


def test_what_is_wrapped_around_a_model_is_wrapped_around_its_mode():
    model = hf.models.JumpMarkov([still(), still()], EYE)
    scanned = in_mode(hf.models.WithClutter(model, 0.9, 0.1), 1)
    assert scanned.model is model.models[1]
    assert scanned.detection_probability == 0.9
    sensor = hf.Sensor(lambda x: 2 * x, [[1.0]])
    seen = in_mode(sensor.on(model), 1)
    assert seen.transition_mean.__self__ is model.models[1]
    assert seen.observation_mean(np.ones((1, 1)), 1) == 2.0
    scanning = hf.Sensor(lambda x: 2 * x, [[1.0]], detection_probability=0.9, clutter_density=0.1)
    likelihoods = [
        sensed.log_likelihood([[1.0], [3.0]], np.array([[0.5], [1.2]]), 1)
        for sensed in (in_mode(scanning.on(model), 1), scanning.on(still()))
    ]
    assert_array_equal(*likelihoods)


@dataclass
class Doubled:
    """A user's own wrapper, which observes twice the state."""

    model: object

    def __getattr__(self, name):
        if name == "model" or name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.model, name)

    def observation_mean(self, x, step):
        return 2 * self.model.observation_mean(x, step)


class Chosen(Doubled):
    """The same, which says itself what its modes are."""

    def in_mode(self, mode):
        return Doubled(self.model.models[mode])


def test_wrappers_of_the_users_own_stay_around_each_mode():
    model = hf.models.JumpMarkov([still(seen=1.0), still(seen=2.0)], EYE)
    for kind in (Doubled, Chosen):
        seen = in_mode(kind(model), 1)
        assert_array_equal(
            seen.observation_mean(np.ones((1, 1)), 1),
            2 * model.models[1].observation_mean(np.ones((1, 1)), 1),
        )


two = [still(), still()]


test_bad_input_is_named = refuses(
    hf.models.JumpMarkov,
    (two, [[0.5, 0.4], [0, 1]], r"transition_matrix: expected rows .* got \[0.5, 0.4\] in row 0"),
    (two, [[1e308, 1e308], [0, 1]], r"transition_matrix: expected numbers up to 1e\+150, got 1e\+308"),
    ([*two, hf.models.CoordinatedTurn()], np.eye(3), r"models: expected the same dim .* got 5 in models\[2\]"),
)  # fmt: skip

test_a_path_that_is_none_is_named = refuses(
    lambda model, modes: hf.simulate(model, 2, rng=0, modes=modes),
    (hf.models.JumpMarkov(two, EYE), [0, 1.5, 1], "^modes: expected the mode, from 0 to 1, at each of steps 0 to 2"),
    (TypeError, still(), [0, 0, 0], "^model: simulation of given modes needs models and .*; LinearGaussian has no models"),
)  # fmt: skip
