"""Filters online: a loop is a run, and nothing of it is kept in memory. That copies go on is in tests/test_copies.py."""

import gc
import tracemalloc

import numpy as np
import pytest
from helpers import cases
from numpy.testing import assert_array_equal

from herdfilter.catalogue.specifications import resolve_filters
from herdfilter.models import BearingsTracking, ConditionallyLinear, linear_chain
from herdfilter.models.simulation import simulate

MODEL = BearingsTracking(initial_covariance=np.diag([0.1, 0.1, 0.5, 0.5]))
OBSERVATIONS = simulate(MODEL, 8, 8, dt=0.1)[1]
LINE = linear_chain(1)


def build(name, n=15, model=MODEL):
    return resolve_filters(name)[name](model, n, np.random.default_rng(6))


def advance(online, observations):
    return [(online.predict(0.1), online.update(z))[1] for z in observations]


SOME = [
    "bootstrap",
    "sqmc",
    "ledh",
    "ranked",
    "auto",
    "herded-kh",
    "herded-quantile",
    "augmented-gauss-kh",
    "mixture-kh",
]
SOME += ["kalman-mixture-kh", "rb-auto", "ukf", "enkf", "edh", "imm", "mkf"]


def held():
    """Bytes that are traced and in use, in blocks of 100 bytes and more: the least that an array takes.

    Smaller ones are names of attributes, of which the interpreter's cache of methods keeps up to 4096.
    """
    gc.collect()
    return sum(trace.size for trace in tracemalloc.take_snapshot().traces if trace.size >= 100)


@cases("name", *SOME)
def test_a_loop_gives_the_bits_of_a_run_which_goes_on_from_it(name):
    model = LINE if name.endswith("-quantile") else MODEL
    z = simulate(model, 8, 8, dt=0.1)[1]
    model = ConditionallyLinear(model, [2, 3]) if name.startswith("rb-") else model
    online, half = (build(name, model=model) for _ in range(2))
    whole = build(name, model=model).run(z, dt=0.1)
    for k, record in enumerate(advance(online, z)):
        assert_array_equal(record.mean, whole.means[k])
        assert_array_equal(record.covariance, whole.covariances[k])
        assert (record.step, record.log_likelihood) == (k + 1, whole.log_likelihoods[k])
        assert record.outcome is whole.outcomes[k]
    assert online.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)
    advance(half, z[:4])
    assert_array_equal(half.run(z[4:], dt=0.1).means, whole.means[4:])


@cases("name", "bootstrap", "augmented-gauss-kh", "ukf")
def test_a_long_run_keeps_no_history(name):
    """Memory after 100 steps is that after 20, to less than what 80 steps' particles would take.

    Another filter takes the same 120 steps first: loading compiled code and filling caches, at whatever step, is no growth.
    Neither is garbage that waits for its collection.
    """
    online = build(name)
    z = OBSERVATIONS[:1]
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
