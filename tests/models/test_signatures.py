"""What is wrong with a model is said before its first step: functions of other arguments, a dimension, an initial state."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import Walk, cases, normal, refusal

import herdfilter as hf
from herdfilter.models.contract import takes_state

USERS = {
    "bootstrap": lambda model: hf.ParticleFilter(model, 5, rng=1),
    "guided": lambda model: hf.ParticleFilter(model, 5, hf.GuidedProposal(), rng=1),
    "automatic": lambda model: hf.ParticleFilter(model, 5, hf.AutomaticProposal(), rng=1),
    "Kalman": hf.ExtendedKalmanFilter,
    "ensemble": lambda model: hf.EnsembleKalmanFilter(model, 5, rng=1),
    "flow": lambda model: hf.DaumHuangFilter(model, 5, rng=1),
}
LIKELY = ("bootstrap", "guided", "automatic")
SEEN = ("guided", "automatic", "Kalman", "ensemble", "flow")


def changed(**changes):
    return type("Changed", (Walk,), changes)()


@cases(
    "name function expected users",
    ("transition_mean", lambda self, x, dt: x, "(x, dt, control, step), got (x, dt)", USERS),
    ("transition_covariance", np.eye(1), "(dt, step), got array([[1.]])", USERS),
    ("log_likelihood", lambda self, z, x, *, step: 1, "(z, x, step), got (z, x, *, step)", LIKELY),
    (
        "observation_covariance",
        lambda self, step, x, dt: 1,
        "(step) or (step, x), got (step, x, dt)",
        SEEN,
    ),
    ("observation_jacobian", lambda self, x: x, "(x, step), got (x)", ("Kalman", "flow")),
)
def test_a_function_of_other_arguments_is_named_before_the_first_step(
    name, function, expected, users
):
    for user in users:
        with pytest.raises(TypeError) as caught:
            USERS[user](changed(**{name: function}))
        told = f"model.{name}: expected a function of {expected}"
        assert str(caught.value) in (told, f"{told} of Changed")


def test_any_way_to_take_the_arguments_will_do():
    for function in (
        lambda self, *anything: anything[0],
        lambda self, x, dt=1.0, control=None, step=0, **more: x,
        staticmethod(np.frompyfunc(lambda x, *rest: x, 4, 1)),
    ):
        for make in USERS.values():
            make(changed(transition_mean=function))


@dataclass(frozen=True)
class Constant:
    """A function whose hash fails, as that of an array does."""

    matrix: np.ndarray

    def __call__(self, step):
        return self.matrix


def test_a_callable_object_without_a_hash_is_a_function():
    walk = Walk(observation_covariance=Constant(np.eye(1)))
    for make in USERS.values():
        make(walk).run([[1.0], [2.0]])


def test_a_type_error_inside_a_function_is_its_own():
    """It is not taken for one of the arguments, and keeps its place."""

    class Wrong(Walk):
        def transition_mean(self, x, dt, control, step):
            return math.sin(x, step)

    with refusal(r"^math.sin\(\) takes exactly one argument \(2 given\)", TypeError) as caught:
        hf.ParticleFilter(Wrong(), 5, rng=1).run([[0.1]])
    assert caught.traceback[-1].name == "transition_mean"


@cases(
    "changes message",
    ({"initial": np.zeros(1)}, "model.initial: .* ndarray has no .*GaussianMixture.*sample"),
    ({"dim": "2"}, "model.dim: expected an integer of at least 1, got '2'"),
    ({"circular": (1,)}, r"model.circular: expected .* from 0 to 0, .* got \(1,\)"),
    ({"initial": normal([0, 0])}, "model.initial: expected a .* in 1 dim"),
)
def test_an_initial_state_or_a_dimension_that_is_none_is_named(changes, message):
    for make in (*USERS.values(), lambda model: hf.simulate(model, 2, 1)):
        with refusal(f"^{message}", (TypeError, ValueError)):
            make(changed(**changes))


def of_state(self, step, x):
    return np.broadcast_to(np.eye(1), (len(x), 1, 1))


@cases(
    "function expected",
    (lambda self, *anything: np.eye(1), False),
    (lambda self, step, *, scale=1.0: scale * np.eye(1), False),
    (lambda self, step, states, *more: of_state(self, step, states), True),
    (classmethod(of_state), True),
)
def test_an_observation_covariance_of_the_state_is_told_by_its_second_argument(function, expected):
    model = changed(observation_covariance=function)
    assert takes_state(model) is expected
    for name in SEEN:
        USERS[name](model).run([[0.1]])
