"""Kalman filters of many states at once: what they refuse. That they are as single ones is in test_many.py."""

import numpy as np
from helpers import refusal
from numpy.testing import assert_array_equal

import herdfilter as hf


def test_an_error_names_the_states_that_have_it_and_leaves_all_as_they_were():
    """In `update`, `predict` and `run`; an argument that is wrong for all of them is no matter of a state."""
    model = hf.models.from_functions(
        np.sqrt, lambda x: x, [[0.01]], lambda x: 5.0 - x[:, :, None], [1.0], [[0.01]]
    )
    batch = hf.BatchedKalmanFilter(model, [[4.0], [9.0], [3.0], [8.0]], [[0.01]], "extended")
    before = batch.means.copy()
    with refusal(
        r"^state \[1, 3\]: observation_covariance: expected positive semi-definite matrices"
    ):
        batch.update(z=[1.0, 2.0, 3.0, 4.0])
    with refusal(r"^state \[2\]: z: expected finite numbers, or NaN where missing, got \[inf\]"):
        batch.take([0, 0, 2]).update([4.0, np.nan, np.inf])
    growth = hf.models.UNGM()
    rule = hf.UnscentedKalmanFilter(hf.models.UNGM(), kappa=-0.9).rule
    wide = hf.BatchedKalmanFilter(growth, [[30.0], [0.0], [100.0]], np.ones((3, 1, 1)), rule)
    wide.predict()
    with refusal(
        r"^state \[1\]: step 1: the observation's covariance is not", hf.IndefiniteCovarianceError
    ):
        wide.update([1.0, 2.0, 3.0])
    assert_array_equal(batch.means, before)
    batch.means[2] = -1.0
    with np.errstate(invalid="ignore"), refusal(r"^state \[2\]: transition_mean: expected finite"):
        batch.run(np.ones((2, 4)))
    assert batch.step == 0
    for wrong in (
        lambda: batch.predict(0.0, np.ones(3)),
        lambda: batch.predict(dt=0.0),
        lambda: wide.update([1.0, 2.0, 3.0], gate=2.0),
        lambda: wide.update([1.0, [2.0], 3.0]),
    ):
        with refusal(r"^(dt|gate|z): expected"):
            wrong()
