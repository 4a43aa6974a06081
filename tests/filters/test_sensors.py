"""Readings of several sensors: any order, ties, times of any kind, late ones."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from helpers import assert_same, refuses

import herdfilter as hf

F, Q = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[0.5, 0.1], [0.1, 0.3]])
H, R = np.array([[1.0, 0.0], [1.0, 2.0]]), np.diag([0.5, 2.0])
FIRST = hf.Sensor(lambda x: x @ H[:1].T, R[:1, :1])
SECOND = hf.Sensor(lambda x: x @ H[1:].T, R[1:, 1:])
STACKED = hf.models.LinearGaussian(F, H, Q, R, [0.0, 1.0], np.eye(2))
Z = np.array([[0.4, 2.0], [2.5, 6.0], [2.6, 3.0], [4.0, 9.0]])


def moving():
    def f(x, dt):
        return x + dt * np.column_stack([x[:, 1], 0 * x[:, 1]])

    return hf.models.from_functions(f, None, lambda dt: dt * Q, None, [0.0, 1.0], np.eye(2))


def readings(times=(1, 2, 3, 4), swapped=False):
    pairs = [[(t, FIRST, z[:1]), (t, SECOND, z[1:])] for t, z in zip(times, Z, strict=True)]
    return [reading for pair in pairs for reading in (pair[::-1] if swapped else pair)]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", ["ukf", "ekf", "ckf", "auto"])
def test_two_sensors_at_one_time_are_one_stacked_observation(name, swapped):
    """Exact on a linear Gaussian model, where the default filter is the Kalman filter for the first of the two."""
    exact = hf.UnscentedKalmanFilter(STACKED).run(Z)
    result = hf.make_filter(name, moving(), 2000, rng=0).run(readings(swapped=swapped))
    exactly = name != "auto"
    np.testing.assert_array_equal(result.steps, [1, 1, 2, 2, 3, 3, 4, 4])
    np.testing.assert_allclose(result.means[1::2], exact.means, atol=1e-10 if exactly else 0.05)
    np.testing.assert_allclose(result.covariances[1::2], exact.covariances, atol=1e-10 if exactly else 0.05)
    assert result.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-9 if exactly else 0.05)


def test_a_grid_takes_sensors_in_turn():
    line = hf.models.from_functions(lambda x: x, None, [[1.0]], None, [0.0], [[1.0]])
    rough, fine = (hf.Sensor(lambda x: x, [[variance]]) for variance in (4.0, 1.0))
    given = [(1, rough, [1.0]), (2, fine, [1.5]), (2, rough, [0.0])]
    exact = hf.UnscentedKalmanFilter(line).run(given)
    result = hf.GridFilter(line, -10, 10, 400).run(given)
    np.testing.assert_allclose(result.means, exact.means, atol=1e-6)
    assert result.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)


def test_a_sensor_does_what_the_models_own_functions_do(walk_class, promised):
    model = walk_class()
    seen = hf.Sensor(
        lambda x: model.observation_mean(x, 1),
        model.observation_covariance(1),
        log_likelihood=lambda z, x: model.log_likelihood(z, x, 1),
    )
    own, sensed = (hf.ParticleFilter(model, 20, promised.make(), rng=1) for _ in range(2))
    z = np.full(len(model.observation_covariance(1)), 0.7)
    for _ in range(2):
        own.predict()
        sensed.predict()
        own.update(z)
        sensed.update(z, sensor=seen)
    assert_same(own, sensed, "particles", "weights")
    assert own.log_likelihood == sensed.log_likelihood


MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "start"),
    [
        ([10.5, 11.5, 12.5, 13.5], 9.5),
        ([MIDNIGHT + timedelta(seconds=k) for k in range(1, 5)], MIDNIGHT),
        (pd.date_range("2026-03-01 00:00:01", periods=4, freq="s", tz="Europe/Paris"), "paris"),
        (np.datetime64("2026-03-01") + np.arange(1, 5) * np.timedelta64(1, "s"), np.datetime64("2026-03-01")),
        ([timedelta(seconds=k) for k in range(1, 5)], None),
    ],
    ids=["numbers", "datetime", "pandas", "numpy", "durations"],
)
def test_times_may_be_numbers_dates_or_durations(times, start):
    if isinstance(start, str):
        start = pd.Timestamp("2026-03-01", tz="Europe/Paris")
    expected = hf.UnscentedKalmanFilter(moving()).run(readings())
    result = hf.UnscentedKalmanFilter(moving()).run(readings(times), start=start)
    np.testing.assert_array_equal(result.means, expected.means)
    assert list(result.times[::2]) == list(times)


def test_readings_may_all_be_of_the_models_own_observation():
    own, times = hf.UnscentedKalmanFilter(STACKED), [1.0, 2.5, 3.0, 4.0]
    result = own.run([(t, None, z) for t, z in zip(times, Z, strict=True)])
    np.testing.assert_array_equal(result.means, hf.UnscentedKalmanFilter(STACKED).run(Z, times=times).means)


@pytest.mark.parametrize("name", ["ukf", "enkf", "bootstrap", "auto", "kalman-mixture-kh", "sqmc"])
def test_late_readings_are_taken_up_in_their_places_to_the_last_bit(name):
    arriving = [(1.0, FIRST, [0.4]), (4.0, SECOND, [9.0]), (2.5, FIRST, [2.5]), (3.0, SECOND, [3.0])]
    in_order = sorted(arriving, key=lambda reading: reading[0])
    expected = hf.make_filter(name, moving(), 25, rng=2)
    result = expected.run(in_order)
    batch = hf.make_filter(name, moving(), 25, rng=2).run(arriving, late="replay")
    np.testing.assert_array_equal(batch.means, result.means)
    replay = hf.Replay(hf.make_filter(name, moving(), 25, rng=2), lag=2.0)
    for time, sensor, z in arriving:
        record = replay.update(time, z, sensor)
    np.testing.assert_array_equal(record.mean, result.means[-1])
    np.testing.assert_array_equal(replay.filter.covariance, expected.covariance)
    assert replay.filter.log_likelihood == expected.log_likelihood


def test_a_replay_forgets_what_is_older_than_the_lag():
    replay = hf.Replay(hf.UnscentedKalmanFilter(moving()), lag=1.0)
    for time in (1.0, 2.0, 3.0):
        replay.update(time, [0.5], FIRST)
    with pytest.raises(ValueError, match=r"^time: expected at most 1 before the latest reading, got 1\.5, which is 1\.5"):
        replay.update(1.5, [0.5], FIRST)
    with pytest.raises(ValueError, match=r"^time: expected a time not before the start, 0.0, got -1$"):
        replay.update(-1, [0.5], FIRST)


def test_a_reading_that_fails_leaves_a_replay_where_it_stood():
    wall = hf.Sensor(None, None, log_likelihood=lambda z, x: np.full(len(x), -np.inf))
    replay = hf.Replay(hf.make_filter("bootstrap", moving(), 10, rng=0), lag=5.0)
    replay.update(1.0, [0.5], FIRST)
    replay.update(3.0, [0.5], FIRST)
    before = replay.filter.particles, replay.filter.log_likelihood, replay.filter.step
    with pytest.raises(hf.DegenerateWeightsError):
        replay.update(2.0, [0.0], wall)
    assert replay.filter.particles is before[0]
    assert (replay.filter.log_likelihood, replay.filter.step) == before[1:]
    replay.update(2.0, [0.5], FIRST)
    assert replay.filter.step == 3


test_readings_that_do_not_fit_are_named = refuses(
    lambda given, options: hf.UnscentedKalmanFilter(moving()).run(given, **options),
    (readings((1, 3, 2, 4)), {}, r"^observations: .* in the order of their times, got 2 after 3 at place 4; late='rep"),
    ([(1, FIRST, [0.0]), [2.0]], {}, r"^observations: expected readings \(time, sensor, z\) throughout, got \[2\.0\]"),
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
    (readings(), {"times": [1, 2]}, r"^observations: expected readings, which have times, or times or dt"),
    (readings(), {"late": "drop"}, r"^late: unknown 'drop'"),
)


@pytest.mark.parametrize("name", ["ukf", "bootstrap", "kalman-mixture-kh"])
def test_a_model_without_observation_functions_asks_for_a_sensor(name):
    online = hf.make_filter(name, moving(), 10, rng=0)
    online.predict()
    with pytest.raises(TypeError, match=r"^sensor: expected a herdfilter.Sensor, as FunctionModel has no observation"):
        online.update([1.0])
    with pytest.raises(TypeError, match=r"^sensor: expected a herdfilter.Sensor, got 3$"):
        online.update([1.0], sensor=3)


@pytest.mark.parametrize("name", ["ukf", "bootstrap"])
def test_what_is_predicted_of_an_observation_is_the_sensors(name):
    """Where there is neither a sensor nor an observation of the model's own there is no prediction, and no error."""
    online = hf.make_filter(name, moving(), 4000, rng=0)
    online.predict()
    assert online.predicted_observation() is None
    mean, covariance = online.predicted_observation(SECOND)
    exactly = name == "ukf"
    np.testing.assert_allclose(mean, H[1:] @ F @ [0.0, 1.0], atol=1e-10 if exactly else 0.2)
    np.testing.assert_allclose(covariance, H[1:] @ (F @ F.T + Q) @ H[1:].T + R[1:, 1:], rtol=1e-10 if exactly else 0.1)


def test_a_filter_that_needs_moments_refuses_a_sensor_of_a_likelihood_alone():
    alone = hf.Sensor(None, None, log_likelihood=lambda z, x: -np.abs(x[:, 0] - z[0]))
    for name in ("ukf", "kalman-mixture-kh"):
        online = hf.make_filter(name, moving(), 10, rng=0)
        online.predict()
        with pytest.raises(
            TypeError, match="needs observation_mean and observation_covariance; FunctionModel with this sensor has"
        ):
            online.update([1.0], sensor=alone)
    assert np.isfinite(hf.make_filter("auto", moving(), 10).run([(1, alone, [1.0])]).log_likelihood)


test_a_sensor_that_does_not_fit_is_named = refuses(
    hf.Sensor,
    (None, None, "^mean: expected a function of states, or else log_likelihood; got neither$"),
    (lambda x: x, None, "^covariance: expected a value, as mean is given, got None$"),
    (TypeError, 3, [[1.0]], r"^mean: expected a function of states \(n, d\), got 3$"),
    (lambda x: x, [1.0], r"^covariance: expected shape \(\*, \*\), got \(1,\)$"),
    (lambda x: x, [[1.0]], [3], r"^circular: expected .* from 0 to 0, .* got \[3\]$"),
    (lambda x: x, [[1.0]], 0, r"^circular: expected .*, such as \[0\], got 0$"),
)


def test_a_sensor_is_simulated_by_its_moments():
    x = np.tile([1.0, 2.0], (4000, 1))
    z = SECOND.sample(x, rng=0)
    assert z.mean() == pytest.approx(5.0, abs=4 * np.sqrt(2 / 4000))
    assert z.var() == pytest.approx(2.0, rel=0.15)
