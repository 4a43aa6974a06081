"""The online object of every filter in the catalogue: kept in a file, copied, resumed; and what it keeps in memory."""

import copy
import gc
import pickle
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from herdfilter.catalogue.specifications import of_one_target, resolve_filters
from herdfilter.models import BearingsTracking, ConditionallyLinear, LinearGaussian, linear_chain
from herdfilter.models.simulation import simulate

MODEL = BearingsTracking(initial_covariance=np.diag([0.1, 0.1, 0.5, 0.5]))
OBSERVATIONS = simulate(MODEL, 12, 8, dt=0.1)[1]
LINE = linear_chain(1)
SEEN_ON_A_LINE = simulate(LINE, 12, 8)[1]
BEFORE, STEPS = 4, 8


def build(name, n=15, model=MODEL):
    return resolve_filters(name)[name](model, n, np.random.default_rng(6))


def advance(online, observations):
    return [(online.predict(0.1), online.update(z))[1] for z in observations]


def revived(online):
    return pickle.loads(pickle.dumps(online))


@pytest.mark.parametrize("name", of_one_target())
def test_a_filter_resumes_where_it_was(name):
    """Copied and pickled, between steps and after a prediction; in a loop or in a run."""
    model, z = (LINE, SEEN_ON_A_LINE) if name.endswith("-quantile") else (MODEL, OBSERVATIONS)
    model = ConditionallyLinear(model, [2, 3]) if name.startswith("rb-") else model
    z, online = z[:STEPS], build(name, model=model)
    whole = build(name, model=model).run(z, dt=0.1)
    advance(online, z[:BEFORE])
    others, runs = [copy.deepcopy(online), revived(online)], [copy.deepcopy(online), revived(online)]
    for other in [online, *others]:
        other.predict(0.1)
    others += [copy.deepcopy(online), revived(online)]
    rest = [[other.update(z[BEFORE]), *advance(other, z[BEFORE + 1 :])] for other in [*others, online]]
    for other, records in zip([*others, online], rest, strict=True):
        for k, record in enumerate(records, start=BEFORE):
            np.testing.assert_array_equal(record.mean, whole.means[k])
            np.testing.assert_array_equal(record.covariance, whole.covariances[k])
            assert (record.step, record.log_likelihood) == (k + 1, whole.log_likelihoods[k])
            assert record.outcome is whole.outcomes[k]
        assert other.record is records[-1]
        assert other.step == STEPS
        assert other.log_likelihood == online.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)
    for other in runs:
        np.testing.assert_array_equal(other.run(z[BEFORE:], dt=0.1).means, whole.means[BEFORE:])
        assert other.log_likelihood == online.log_likelihood


def held():
    """Bytes that are traced and in use, in blocks of 100 bytes and more: the least that an array takes.

    Smaller ones are names of attributes, of which the interpreter's cache of methods keeps up to 4096.
    """
    gc.collect()
    return sum(trace.size for trace in tracemalloc.take_snapshot().traces if trace.size >= 100)


@pytest.mark.parametrize("name", ["bootstrap", "herded-kh", "augmented-kh", "mixture-kh", "ukf"])
def test_a_long_run_keeps_no_history(name):
    """Memory after 100 steps is that after 20, to less than what 80 steps' particles would take.

    Another filter takes the same 120 steps first: loading compiled code and filling caches, at whatever step, is no growth.
    Neither is garbage that waits for its collection.
    """
    online, z = build(name), OBSERVATIONS[:1]
    advance(build(name), np.repeat(z, 120, axis=0))
    advance(online, np.repeat(z, 20, axis=0))
    tracemalloc.start()
    try:
        advance(online, np.repeat(z, 20, axis=0))
        before = held()
        advance(online, np.repeat(z, 80, axis=0))
        grown = held() - before
    finally:
        tracemalloc.stop()
    assert grown < 80 * 15 * 4 * 8 / 4


def test_an_error_on_the_way_hands_over_the_steps_completed():
    online = build("bootstrap", 50)
    spoiled = OBSERVATIONS.copy()
    spoiled[7] = np.inf
    with pytest.raises(ValueError, match="z: expected finite") as caught:
        online.run(spoiled, dt=0.1)
    whole = build("bootstrap", 50).run(OBSERVATIONS, dt=0.1)
    np.testing.assert_array_equal(caught.value.result.means, whole.means[:7])


def test_times_stand_for_time_steps():
    times = np.cumsum(np.linspace(0.05, 0.2, len(OBSERVATIONS)))
    for name in ("bootstrap", "ekf"):
        a = build(name).run(OBSERVATIONS, times=times)
        b = build(name).run(OBSERVATIONS, dt=np.diff(times, prepend=0.0))
        np.testing.assert_array_equal(a.means, b.means)


@pytest.mark.parametrize("name", ["bootstrap", "herded-kh", "augmented-kh", "auxiliary", "ekf", "edh", "ledh"])
def test_the_finite_part_of_an_observation_is_used(name):
    F, Q, R = [[1.0, 0.5], [0.0, 0.9]], [[0.2, 0.0], [0.0, 0.3]], [[0.5, 0.2], [0.2, 0.4]]
    two = LinearGaussian(F, np.eye(2), Q, R, [0.0, 1.0], np.eye(2))
    one = LinearGaussian(F, [[1.0, 0.0]], Q, [[0.5]], [0.0, 1.0], np.eye(2))
    observations = simulate(two, 8, 3)[1]  # at each step herding takes the differences of rounding threefold
    observations[:, 1] = np.nan
    results = [
        resolve_filters(name)[name](model, 30, np.random.default_rng(2)).run(z)
        for model, z in ((two, observations), (one, observations[:, :1]))
    ]
    np.testing.assert_allclose(results[0].means, results[1].means, rtol=1e-9, atol=1e-9)
    assert results[0].log_likelihood == pytest.approx(results[1].log_likelihood, rel=1e-9)
    assert {outcome.value for outcome in results[0].outcomes} == {"updated"}


def test_a_model_that_cannot_use_a_part_predicts_only():
    names = "dim", "initial", "transition_mean", "transition_covariance", "log_likelihood"
    online = build("bootstrap", 20, SimpleNamespace(**{name: getattr(MODEL, name) for name in names}))
    online.predict(0.1)
    record = online.update([0.3, np.nan])
    assert record.outcome.value == "missing"
    assert record.ess == pytest.approx(20)
