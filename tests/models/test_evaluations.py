"""Evaluations of a model are counted exactly: one for each state at which it is asked."""

from types import SimpleNamespace

import numpy as np
from helpers import EYE, Walk, cases

import herdfilter as hf
from herdfilter.models import count_evaluations

PLANE = hf.models.LinearGaussian(EYE, EYE, EYE, EYE, [0.0, 1.0], EYE)
SIMULATED = SimpleNamespace(
    dim=1,
    initial=Walk.initial,
    sample_transition=lambda x, rng, dt, control, step: x + rng.laplace(size=x.shape),
    log_likelihood=lambda z, x, step: -np.abs(z - x)[:, 0],
)


def plane(R):
    return hf.models.from_functions(lambda x: x, lambda x: x, EYE, R, [0, 0], EYE)


@cases(
    "name model z f h",
    ("bootstrap", hf.models.UNGM(), [0.5], 20, 20),
    ("ranked", hf.models.UNGM(), [0.5], 20, 80),  # three sigma points, and the likelihood
    ("ranked", hf.models.UNGM().compiled(), [0.5], 20, 100),  # the compiled loop: and the centre
    ("bootstrap", SIMULATED, [0.5], 20, 20),
    ("bootstrap", plane(lambda x: np.tile(EYE, (len(x), 1, 1))), [0.5, 1], 20, 40),
    ("herded-kh", Walk(), [0.5], 20, 20),
    ("ukf", PLANE, [0.5, 1], 5, 5),  # 2 d + 1 points
    ("ekf", hf.models.BearingsOnly(), [0.5], 2, 2),  # the value, and the Jacobian
    ("bootstrap", hf.models.WithClutter(plane(EYE), 0.9, 0.1), EYE, 20, 20),
    ("bootstrap", hf.models.WithClutter(PLANE, 0.9, 0.1), EYE, 20, 40),  # once for each detection
    ("rb-bootstrap", hf.models.ConditionallyLinear(PLANE, [1]), [0.5, 1], 40, 40),  # and slopes
)
def test_states_given_to_transition_and_observation(name, model, z, f, h):
    pf = hf.make_filter(name, model, 20, rng=0)
    with count_evaluations() as evaluations:
        pf.run([z] * 5)
    assert (evaluations.transition, evaluations.observation) == (5 * f, 5 * h)
    assert evaluations.total == 5 * (f + h)
