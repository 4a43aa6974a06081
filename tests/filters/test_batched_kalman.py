"""Kalman filters of many states at once beside as many single ones."""

import numpy as np
import pytest
from helpers import EYE, ROWS_KEEP_THEIR_BITS, cases, polar, refusal
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf
from herdfilter._covariances import covariance_factor
from herdfilter.filters.kalman.gaussian import Gaussians
from herdfilter.filters.kalman.rules import LINEAR_RULE

KINDS = {
    "unscented": hf.UnscentedKalmanFilter,
    "extended": hf.ExtendedKalmanFilter,
    "cubature": hf.CubatureKalmanFilter,
}


def turned(x):
    """A heading in radians, and a place that depends on it."""
    return np.column_stack([x[:, 0] + 0.3, x[:, 1] + np.sin(x[:, 0])])


MODELS = {
    "linear": hf.models.linear_chain(2),
    "radar": hf.models.from_functions(
        lambda x: 0.9 * x, polar, 0.1 * EYE, 0.05 * EYE, [3, 1], EYE, observation_circular=[1]
    ),
    "heading": hf.models.from_functions(
        turned, lambda x: x, 0.2 * EYE, 0.3 * EYE, [3, 0], EYE, circular=[0]
    ),
    "row by row": hf.models.from_functions(
        lambda x: np.column_stack([x[:, 0] + 0.1 * x[:, 1], 0.9 * x[:, 1]]),
        lambda x: x**2 / 5,
        EYE,
        EYE,
        [2, 1],
        EYE,
    ),
    "noise of the state": hf.models.from_functions(
        lambda x: x, lambda x: x, EYE, lambda x: (1 + x[:, :1, None] ** 2) * EYE, [0, 0], EYE
    ),
}


def batch_and_singles(model, rule, count=7, seed=0):
    rng = np.random.default_rng(seed)
    means = model.initial.mean + rng.normal(size=(count, 2))
    roots = rng.normal(size=(count, 2, 2))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * EYE
    covariances[-1] = [[1.0, 1.0], [1.0, 1.0]]  # singular
    singles = []
    for mean, covariance in zip(means, covariances, strict=True):
        one = KINDS[rule](model)
        one.belief = Gaussians(np.ones(1), mean[None], covariance_factor(covariance)[None])
        singles.append(one)
    return hf.BatchedKalmanFilter(model, means, covariances, rule), singles


def observed(model, count, steps, seed=1):
    """Observations (T, K, 2) with entries and whole rows missing."""
    rng = np.random.default_rng(seed)
    z = np.array(
        [[hf.simulate(model, 1, rng=rng)[1][0] for _ in range(count)] for _ in range(steps)]
    )
    z[rng.random(z.shape) < 0.2] = np.nan
    z[1] = np.nan
    return z


def assert_alike(batch, singles, exact):
    """To the last bit if `exact`; else to what the differences of an extended filter leave of rounding."""
    loss = 1e-12 if singles[0].rule != LINEAR_RULE else 1e-9
    for name in ("mean", "covariance", "log_likelihood"):
        expected = np.array([getattr(one, name) for one in singles])
        found = getattr(batch, f"{name}s")
        assert_allclose(found, expected, rtol=0 if exact else loss, atol=0 if exact else loss)


@cases(
    "name rule",
    ("linear", "extended"),
    ("radar", "unscented"),
    ("heading", "cubature"),
    ("row by row", "unscented"),
    ("noise of the state", "unscented"),
    ("noise of the state", "extended"),
)
def test_each_state_is_filtered_as_by_a_filter_of_its_own(name, rule):
    """To the last bit where the model treats row by row, without angles: products of matrices and means of angles do not."""
    model = MODELS[name]
    batch, singles = batch_and_singles(model, rule)
    for step, z in enumerate(observed(model, 7, 6)):
        batch.predict(0.5)
        log_densities, outcomes = batch.update(z, gate=0.99 if step > 2 else None)
        for k, one in enumerate(singles):
            one.predict(0.5)
            record = one.update(z[k], gate=0.99 if step > 2 else None)
            assert outcomes[k] is record.outcome
            assert log_densities[k] == pytest.approx(record.log_likelihood, rel=1e-9, abs=1e-9)
        assert_alike(batch, singles, exact=ROWS_KEEP_THEIR_BITS and name == "row by row")
    assert (batch.step, batch.time) == (singles[0].step, singles[0].time)
    assert {outcome.name for outcome in outcomes} >= {"UPDATED"}


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
    wide = hf.BatchedKalmanFilter(growth, [[30.0], [0.0], [100.0]], [[1.0]], rule)
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
