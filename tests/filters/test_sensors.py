"""Readings of several sensors: any order, ties, times of any kind, late ones."""

from datetime import UTC, datetime

import numpy as np
import pytest
from helpers import EYE, assert_same, cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

F = np.array([[1.0, 1.0], [0.0, 1.0]])
Q = np.array([[0.5, 0.1], [0.1, 0.3]])
H = np.array([[1.0, 0.0], [1.0, 2.0]])
R = np.diag([0.5, 2.0])
FIRST = hf.Sensor(lambda x: x @ H[:1].T, R[:1, :1])
SECOND = hf.Sensor(lambda x: x @ H[1:].T, R[1:, 1:])
STACKED = hf.models.LinearGaussian(F, H, Q, R, [0.0, 1.0], EYE)
Z = np.array([[0.4, 2.0], [2.5, 6.0], [2.6, 3.0], [4.0, 9.0]])


def moving():
    def f(x, dt):
        return x + dt * np.column_stack([x[:, 1], 0 * x[:, 1]])

    return hf.models.from_functions(f, None, lambda dt: dt * Q, None, [0.0, 1.0], EYE)


def readings(times=(1, 2, 3, 4), swapped=False):
    pairs = [[(t, FIRST, z[:1]), (t, SECOND, z[1:])] for t, z in zip(times, Z, strict=True)]
    return [reading for pair in pairs for reading in (pair[::-1] if swapped else pair)]


@cases("name swapped", ("ukf", False), ("ekf", True), ("auto", False))
def test_two_sensors_at_one_time_are_one_stacked_observation(name, swapped):
    """Exact on a linear Gaussian model, where the default filter is the Kalman filter for the first of the two."""
    exact = hf.UnscentedKalmanFilter(STACKED).run(Z)
    result = hf.make_filter(name, moving(), 2000, rng=0).run(readings(swapped=swapped))
    exactly = name != "auto"
    assert_array_equal(result.steps, [1, 1, 2, 2, 3, 3, 4, 4])
    assert_allclose(result.means[1::2], exact.means, atol=1e-10 if exactly else 0.05)
    assert_allclose(result.covariances[1::2], exact.covariances, atol=1e-10 if exactly else 0.05)
    assert result.log_likelihood == pytest.approx(
        exact.log_likelihood, abs=1e-9 if exactly else 0.05
    )


def test_a_sensor_does_what_the_models_own_functions_do(walk_class, typical):
    model = walk_class()
    seen = hf.Sensor(
        lambda x: model.observation_mean(x, 1),
        model.observation_covariance(1),
        log_likelihood=lambda z, x: model.log_likelihood(z, x, 1),
    )
    own, sensed = (hf.ParticleFilter(model, 20, typical.make(), rng=1) for _ in range(2))
    z = np.full(len(model.observation_covariance(1)), 0.7)
    for _ in range(2):
        own.predict()
        sensed.predict()
        own.update(z)
        sensed.update(z, sensor=seen)
    assert_same(own, sensed, "particles", "weights")
    assert own.log_likelihood == sensed.log_likelihood


MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


@cases("name", "ukf", "enkf", "auto", "sqmc")
def test_late_readings_are_taken_up_in_their_places_to_the_last_bit(name):
    arriving = [
        (1.0, FIRST, [0.4]),
        (4.0, SECOND, [9.0]),
        (2.5, FIRST, [2.5]),
        (3.0, SECOND, [3.0]),
    ]
    one, other, batch = (hf.make_filter(name, moving(), 25, rng=2) for _ in range(3))
    result = one.run(sorted(arriving, key=lambda reading: reading[0]))
    assert_array_equal(batch.run(arriving, late="replay").means, result.means)
    replay = hf.Replay(other, lag=2.0)
    for time, sensor, z in arriving:
        record = replay.update(time, z, sensor)
    assert_array_equal(record.mean, result.means[-1])
    assert_array_equal(replay.filter.covariance, one.covariance)
    assert replay.filter.log_likelihood == one.log_likelihood


class Summed:
    """A filter of the user's own, without a base class."""

    def __init__(self):
        self.total = 0.0

    def predict(self, dt, control=None):
        self.total *= 0.5**dt

    def update(self, z):
        self.total += z
        return self.total


def test_a_filter_without_a_base_class_takes_late_readings():
    replay = hf.Replay(Summed(), lag=5.0)
    for time, z in ((1.0, 1.0), (3.0, 4.0), (2.0, 2.0)):
        total = replay.update(time, z)
    assert total == 4.0 + 0.5 * (2.0 + 0.5)


def test_a_replay_forgets_what_is_older_than_the_lag():
    replay = hf.Replay(hf.UnscentedKalmanFilter(moving()), lag=1.0)
    for time in (1.0, 2.0, 3.0):
        replay.update(time, [0.5], FIRST)
    with refusal(
        r"^time: expected at most 1\.0 before the latest reading, got 1\.5, which is 1\.5"
    ):
        replay.update(1.5, [0.5], FIRST)
    with refusal(r"^time: expected a time not before the start, 0.0, got -1$"):
        replay.update(-1, [0.5], FIRST)


def test_a_reading_that_fails_leaves_a_replay_where_it_stood():
    wall = hf.Sensor(None, None, log_likelihood=lambda z, x: np.full(len(x), -np.inf))
    replay = hf.Replay(hf.make_filter("bootstrap", moving(), 10, rng=0), lag=5.0)
    for time in (1.0, 3.0):
        replay.update(time, [0.5], FIRST)
    before = replay.filter.particles, replay.filter.log_likelihood
    with pytest.raises(hf.DegenerateWeightsError):
        replay.update(2.0, [0.0], wall)
    assert replay.filter.particles is before[0]
    assert (replay.filter.log_likelihood, replay.filter.step) == (before[1], 2)
    replay.update(2.0, [0.5], FIRST)
    assert replay.filter.step == 3


test_readings_that_do_not_fit_are_named = refuses(
    lambda given, options: hf.UnscentedKalmanFilter(moving()).run(given, **options),
    (
        readings((1, 3, 2, 4)),
        {},
        r"^observations: .* in the order of their times, got 2 after 3 at place 4; late='rep",
    ),
    (
        [(1, FIRST, [0.0]), [2.0]],
        {},
        r"^observations: expected readings \(time, sensor, z\) throughout, got \[2\.0\]",
    ),
    (
        [(-1, FIRST, [0.0])],
        {},
        r"^observations: expected readings not before .*state, 0.0, got the time -1; give that of the state as start$",
    ),
    (
        [(MIDNIGHT, FIRST, [0.0])],
        {},
        r"^start: expected the date of the state before, as times are dates, got the time 0; the first",
    ),
    (
        readings(),
        {"times": [1, 2]},
        r"^observations: expected readings, which have times, or times or dt",
    ),
)


@cases("name", "ukf", "bootstrap")
def test_a_model_without_observation_functions_asks_for_a_sensor(name):
    online = hf.make_filter(name, moving(), 10, rng=0)
    online.predict()
    with refusal(
        r"^model: FunctionModel lacks log_likelihood, or .*, as in update\(z, sensor=\.\.\.\)$",
        TypeError,
    ):
        online.update([1.0])
    with refusal(r"^sensor: expected a herdfilter.Sensor, got 3$", TypeError):
        online.update([1.0], sensor=3)
