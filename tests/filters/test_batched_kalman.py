"""Kalman filters of many states at once beside as many single ones."""

import copy

import numpy as np
import pytest
from helpers import ROWS_KEEP_THEIR_BITS, cases

import herdfilter as hf
from herdfilter.angles import merged
from herdfilter.filters.kalman.batched import merge_by_owner
from herdfilter.filters.kalman.gaussian import GaussianBelief
from herdfilter.filters.kalman.rules import LINEAR_RULE

EYE = np.eye(2)
KINDS = {
    "unscented": hf.UnscentedKalmanFilter,
    "extended": hf.ExtendedKalmanFilter,
    "cubature": hf.CubatureKalmanFilter,
}


def bent(x):
    """Range and bearing, row by row."""
    return np.column_stack([np.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2), np.arctan2(x[:, 1], x[:, 0])])


def turned(x):
    """A heading in radians, and a place that depends on it."""
    return np.column_stack([x[:, 0] + 0.3, x[:, 1] + np.sin(x[:, 0])])


MODELS = {
    "linear": hf.models.linear_chain(2),
    "radar": hf.models.from_functions(lambda x: 0.9 * x, bent, 0.1 * EYE, 0.05 * EYE, [3, 1], EYE, observation_circular=[1]),
    "heading": hf.models.from_functions(turned, lambda x: x, 0.2 * EYE, 0.3 * EYE, [3, 0], EYE, circular=[0]),
    "row by row": hf.models.from_functions(
        lambda x: np.column_stack([x[:, 0] + 0.1 * x[:, 1], 0.9 * x[:, 1]]), lambda x: x**2 / 5, EYE, EYE, [2, 1], EYE
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
        one.belief = GaussianBelief(mean, covariance, one.belief.rule)
        singles.append(one)
    return hf.BatchedKalmanFilter(model, means, covariances, rule), singles


def observed(model, count, steps, seed=1):
    """Observations (T, K, 2) with entries and whole rows missing."""
    rng = np.random.default_rng(seed)
    z = np.array([[hf.simulate(model, 1, rng=rng)[1][0] for _ in range(count)] for _ in range(steps)])
    z[rng.random(z.shape) < 0.2] = np.nan
    z[1] = np.nan
    return z


def assert_alike(batch, singles, exact):
    """To the last bit if `exact`; else to what the differences of an extended filter leave of rounding."""
    loss = 1e-12 if singles[0].belief.rule != LINEAR_RULE else 1e-9
    for name in ("mean", "covariance", "log_likelihood"):
        expected = np.array([getattr(one, name) for one in singles])
        found = getattr(batch, f"{name}s")
        np.testing.assert_allclose(found, expected, rtol=0 if exact else loss, atol=0 if exact else loss)


@pytest.mark.parametrize("rule", KINDS)
@pytest.mark.parametrize("name", MODELS)
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


@pytest.mark.parametrize("rule", KINDS)
def test_a_sensor_and_an_observation_of_the_initial_state(rule):
    model = MODELS["radar"]
    sensor = hf.Sensor(lambda x: x[:, :1] ** 2, [[0.5]])
    batch, singles = batch_and_singles(model, rule)
    z = observed(model, 7, 2)[0]
    batch.take(slice(6)).update(None)
    batch, singles = batch.take(slice(6)), singles[:6]  # an iterated update needs a regular prior
    batch.update(z[:6])
    batch.update(np.arange(6.0), sensor)
    batch.predict()
    batch.update(np.arange(6.0), sensor)
    for k, one in enumerate(singles):
        one.update(z[k])
        one.update([float(k)], sensor)
        one.predict()
        one.update([float(k)], sensor)
    assert_alike(batch, singles, exact=False)


def test_a_run_has_the_results_of_single_runs():
    model = MODELS["radar"]
    batch, singles = batch_and_singles(model, "unscented")
    z = observed(model, 7, 5)
    results = batch.run(z, dt=[1.0, 2.0, 1.0, 0.5, 1.0])
    for k, one in enumerate(singles):
        expected = one.run(z[:, k], dt=[1.0, 2.0, 1.0, 0.5, 1.0])
        np.testing.assert_allclose(results[k].means, expected.means, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(results[k].covariances, expected.covariances, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(results[k].times, expected.times)
        np.testing.assert_array_equal(results[k].steps, expected.steps)
        assert results[k].outcomes == expected.outcomes
        assert repr(results[k]).split(",")[0] == repr(expected).split(",")[0]
    assert_alike(batch, singles, exact=False)


def test_chosen_states_take_up_chosen_observations():
    """As hypotheses of a tracker: a state may be chosen several times, and the batch stays."""
    model = MODELS["linear"]
    batch, singles = batch_and_singles(model, "extended")
    batch.predict()
    before = batch.means
    z = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    tried = batch.take([2, 2, 5])
    log_densities, _ = tried.update(z)
    np.testing.assert_array_equal(batch.means, before)
    for place, k in enumerate([2, 2, 5]):
        one = copy.copy(singles[k])
        one.predict()
        one.update(z[place])
        np.testing.assert_allclose(tried.means[place], one.mean, rtol=1e-12)
        assert log_densities[place] == pytest.approx(one.log_likelihood)


@pytest.mark.parametrize("circular", [(), (1,)])
def test_mixtures_of_many_owners_are_merged_as_each_alone(circular):
    rng = np.random.default_rng(3)
    owners = np.repeat([0, 1, 2, 3], [3, 1, 4, 2])
    means, roots = 4 * rng.normal(size=(10, 2)), rng.normal(size=(10, 2, 2))
    covariances, weights = roots @ roots.transpose(0, 2, 1), rng.random(10)
    weights /= np.bincount(owners, weights)[owners]
    found = merge_by_owner(means, covariances, weights, owners, circular)
    for i in range(4):
        own = owners == i
        expected = merged(means[own], covariances[own], weights[own], circular)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[i], other, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found[0][1], means[3])  # of one, its own unchanged


@cases(
    "call error expected",
    (
        lambda kf: kf.update([[1.0, 2.0]]),
        ValueError,
        r"^z: expected a row for each of 7 states, got shape \(1, 2\)",
    ),
    (lambda kf: kf.update(np.ones((7, 3))), ValueError, r"^z: expected shape \(2,\), as observation_mean has, got \(3,\)"),
    (
        lambda kf: kf.update(np.full((7, 2), np.inf)),
        ValueError,
        r"^z: expected finite numbers, .* got \[inf inf\]",
    ),
    (lambda kf: kf.update(np.ones((7, 2)), gate=2.0), ValueError, "^gate: expected a probability"),
    (lambda kf: kf.run(np.ones((3, 2, 2))), ValueError, r"^observations: expected shape \(T, 7, k\), got \(3, 2, 2\)"),
    (lambda kf: kf.predict(-1.0), ValueError, "^dt: expected"),
    (lambda kf: hf.BatchedKalmanFilter(kf.model, [0.0], EYE), ValueError, "^means: expected"),
    (lambda kf: hf.BatchedKalmanFilter(kf.model, kf.means, np.ones((3, 2, 2))), ValueError, "^covariances: expected one"),
    (lambda kf: hf.BatchedKalmanFilter(kf.model, kf.means, EYE, "square"), ValueError, "^rule: unknown"),
    (
        lambda kf: hf.BatchedKalmanFilter(hf.models.WithClutter(kf.model, 0.9, 0.1), kf.means, EYE),
        TypeError,
        "^model: expected one without scans, got LinearGaussian",
    ),
)
def test_what_is_wrong_is_named_and_changes_nothing(call, error, expected):
    batch, _ = batch_and_singles(MODELS["linear"], "unscented")
    before = batch.means, batch.covariances, batch.step
    with pytest.raises(error, match=expected):
        call(batch)
    assert all(one is other for one, other in zip((batch.means, batch.covariances), before[:2], strict=True))
    assert batch.step == before[2]
