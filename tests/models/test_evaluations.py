"""Evaluations of a model are counted exactly: one for each state at which it is asked."""

import numpy as np
from helpers import Walk, cases, plane

import herdfilter as hf
from herdfilter.models import UNGM, BearingsOnly, ConditionallyLinear, WithClutter


def of_functions(R):
    return hf.models.from_functions(lambda x: x, lambda x: x, [[1]], R, [0], [[1]])


@cases(
    "name model f h",
    ("bootstrap", UNGM(), 20, 20),
    ("bootstrap", of_functions(lambda x: np.ones((len(x), 1, 1))), 20, 40),  # h and R
    ("herded-kh", Walk(), 20, 20),
    ("ranked", UNGM(), 20, 80),  # three sigma points, and the likelihood
    ("ranked", UNGM().compiled(), 20, 100),  # the compiled loop: the middle point again
    ("ukf", plane(), 5, 5),  # 2 d + 1 points
    ("ekf", BearingsOnly(), 2, 2),  # the value, and the Jacobian
    ("bootstrap", WithClutter(of_functions([[1]]), 0.9, 0.1), 20, 20),
    ("bootstrap", WithClutter(plane(), 0.9, 0.1), 20, 40),  # a likelihood for each detection
    ("rb-bootstrap", ConditionallyLinear(plane(), [1]), 40, 40),  # the value, and a difference
)
def test_states_given_to_transition_and_observation(name, model, f, h):
    pf = hf.make_filter(name, model, 20, rng=0)
    z = [[0.5], [1.0]] if hasattr(model, "scans") else [0.5]
    with hf.models.count_evaluations() as evaluations:
        pf.run([z] * 5)
    assert (evaluations.transition, evaluations.observation) == (5 * f, 5 * h)
    assert evaluations.total == 5 * (f + h)
