"""Models that name dimensions which are linear given the others."""

import numpy as np
from helpers import refuses
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.models import ConditionallyLinear, from_functions

EYE = np.eye(3)


def curved(x):
    """Linear in the second and third dimension, with slopes that depend on the first, but not in both with the first."""
    return np.column_stack([np.sin(x[:, 0]) + x[:, 1], np.cos(x[:, 0]) * x[:, 2], x[:, 2]])


def model(f=curved, h=lambda x: x[:, :1] ** 2 + x[:, 0:1] * x[:, 1:2], **options):
    return from_functions(f, h, 0.1 * EYE, [[1.0]], np.zeros(3), EYE, **options)


def test_it_is_the_model_for_every_other_filter():
    plain = model()
    linear = ConditionallyLinear(plain, [2, 1])
    assert linear.linear == (1, 2)
    truth, z = hf.simulate(linear, steps=5, rng=0)
    assert_array_equal(truth, hf.simulate(plain, steps=5, rng=0)[0])
    for make in (hf.UnscentedKalmanFilter, lambda one: hf.ParticleFilter(one, 50, rng=0)):
        assert_array_equal(make(linear).run(z).means, make(plain).run(z).means)


test_dimensions_that_are_not_linear_are_refused = refuses(
    ConditionallyLinear,
    (model(), [0, 1], r"transition_mean is linear given the others, got \[0, 1\]; leave out"),
    (model(lambda x: x, lambda x: x[:, 1:2] * x[:, 2:]), [1, 2], "observation_mean is linear given the others"),
)  # fmt: skip


def test_functions_that_need_a_control_are_not_looked_at():
    steered = model()
    steered.transition_mean = lambda x, dt, control, step: x + control[0]
    assert ConditionallyLinear(steered, [1]).linear == (1,)
