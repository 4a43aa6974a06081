"""Simulation takes what the run of a filter takes, and gives what it takes."""

from datetime import datetime, timedelta

import numpy as np
from helpers import EYE, cases, refuses
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

WALK = hf.models.from_functions(
    lambda x, dt, control: x + dt * (0 if control is None else control[0]),
    lambda x: x,
    lambda dt: [[dt]],
    [[1.0]],
    [0.0],
    [[1.0]],
)
LOW = hf.Sensor(lambda x: x - 100.0, [[0.01]])
HIGH = hf.Sensor(lambda x: np.hstack([x, x + 100.0]), 0.01 * EYE)
NOON = datetime(2026, 3, 1, 12)


def test_uneven_steps_have_noise_of_their_length_and_controls_drive():
    dt = [1e-8, 4.0, 1e-8]
    truth, z = hf.simulate(WALK, rng=1, dt=dt, controls=[[0.0], [10.0], [1e9]], initial=[5.0])
    assert (truth.shape, z.shape) == ((3, 1), (3, 1))
    assert abs(truth[0, 0] - 5) < 1e-2
    assert abs(truth[1, 0] - 45) < 4 * 2
    assert abs(truth[2, 0] - truth[1, 0] - 10) < 1e-2


@cases(
    "given",
    {"times": [2.5, 3.5, 6.0], "start": 2.0},
    {"times": [NOON + timedelta(seconds=s) for s in (0.5, 1.5, 4)], "start": NOON},
    {"dt": [timedelta(seconds=s) for s in (0.5, 1.0, 2.5)], "steps": 3},
)
def test_times_are_taken_as_a_run_takes_them(given):
    expected = hf.simulate(WALK, rng=3, dt=[0.5, 1.0, 2.5])
    for one, other in zip(hf.simulate(WALK, rng=3, **given), expected, strict=True):
        assert_array_equal(one, other)


def test_a_first_time_that_is_the_priors_observes_the_initial_state():
    truth, z = hf.simulate(WALK, rng=1, times=[0.0, 1.0], initial=[7.0])
    assert truth[0].tolist() == [7.0]
    assert hf.UnscentedKalmanFilter(WALK).run(z, times=[0.0, 1.0]).steps.tolist() == [0, 1]


def test_sensors_give_readings_that_a_run_takes():
    """Several at one time observe one state; None is the model's own observation."""
    times = [1.0, 1.0, 2.0, 2.5]
    sensors = [LOW, HIGH, None, LOW]
    truth, readings = hf.simulate(WALK, rng=1, times=times, controls=[[3.0]] * 4, sensors=sensors)
    assert truth[0] == truth[1]
    assert [(time, sensor) for time, sensor, _ in readings] == list(
        zip(times, sensors, strict=True)
    )
    for (_, _, z), x, offsets in zip(
        readings, truth, ([-100.0], [0.0, 100.0], [0.0], [-100.0]), strict=True
    ):
        assert_allclose(z, x + offsets, atol=4.5 if offsets == [0.0] else 0.45)
    result = hf.UnscentedKalmanFilter(WALK).run(readings, controls=[[3.0]] * 4)
    assert_allclose(result.means[[0, 1, 3]], truth[[0, 1, 3]], atol=0.5)


test_what_a_simulation_cannot_take_is_named = refuses(
    lambda given: hf.simulate(WALK, rng=1, **given),
    (
        {},
        "^steps: expected a number, or times, dt, controls or sensors for each of them, got none$",
    ),
    ({"steps": 2, "dt": [1, 2, 3]}, "^dt: expected one per step, 2, got 3$"),
    ({"times": [1.0, 1.0]}, "^times: expected increasing times, got 1.0 after 1.0 at step 2"),
    ({"times": [NOON]}, "^start: expected the date of the state before, as times are dates"),
    (
        {"steps": 2, "sensors": "radar"},
        "^sensors: expected a sequence with one entry per step, got 'radar'$",
    ),
)
