"""What a batch run takes as times, controls and observations: dates, durations and tables, or a refusal by name."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from helpers import EYE, cases, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.filters import GridFilter, ParticleFilter, UnscentedKalmanFilter
from herdfilter.models.from_functions import from_functions
from herdfilter.models.sensors import Sensor
from herdfilter.models.series import series
from herdfilter.models.simulation import simulate

START = datetime(2024, 3, 31, 0, 59, 30)
SECONDS = [0.5, 2.0, 62.25]
DATES = [START] + [START + timedelta(seconds=s) for s in SECONDS]
SUMMER = START.replace(tzinfo=UTC)


def steps(**times):
    return [step.dt for step in series([None] * 3, **times)]


@cases(
    "times",
    DATES,
    np.array(DATES, dtype="M8[ms]"),
    pd.DatetimeIndex(DATES, tz="Europe/Berlin"),
    pd.Series(DATES),
    [moment.replace(tzinfo=UTC) for moment in DATES],
    [timedelta(seconds=s) for s in SECONDS],
    np.array([round(1e3 * s) for s in SECONDS], dtype="m8[ms]"),
    pd.Series(SECONDS),
)
def test_dates_and_durations_are_seconds(times):
    """Of dates the first is here that of the filter's state."""
    given = (
        {"times": times} if len(times) == 3 else {"start": next(iter(times)), "times": times[1:]}
    )
    assert_allclose(steps(**given), np.diff(SECONDS, prepend=0.0), rtol=1e-15)


def test_the_clock_of_a_filter_goes_on_from_run_to_run(walk):
    """With absolute times two runs are as one; so with dates, whose start is said once."""
    z = [[0.1], [0.4], [0.2], [0.8]]
    for times, start in (
        ([0.5, 1.0, 3.0, 3.5], None),
        ([START + timedelta(hours=h) for h in (1, 2, 5, 7)], START),
    ):
        whole, halves = (UnscentedKalmanFilter(walk) for _ in range(2))
        expected = whole.run(z, times=times, start=start).means
        first = halves.run(z[:2], times=times[:2], start=start)
        second = halves.run(z[2:], times=times[2:])
        assert_array_equal(np.concatenate([first.means, second.means]), expected)
        assert (
            whole.time == halves.time == (times[-1] if start is None else np.datetime64(times[-1]))
        )
    whole.predict(60.0)
    assert whole.time == np.datetime64(times[-1] + timedelta(minutes=1))


def test_an_observation_at_the_time_of_the_prior_is_one_of_the_initial_state(walk):
    z = [[0.1], [0.4], [0.2]]
    online = UnscentedKalmanFilter(walk)
    for k, one in enumerate(z):
        if k:
            online.predict(2.0)
        last = online.update(one)
    dates = [START + timedelta(seconds=s) for s in (0, 2, 4)]
    for given in (
        {"dt": [0, 2, 2]},
        {"times": [5, 7, 9], "start": 5},
        {"times": dates, "start": START},
    ):
        result = UnscentedKalmanFilter(walk).run(z, **given)
        assert result.steps.tolist() == [0, 1, 2]
        assert_array_equal(result.means[-1], last.mean)


def test_a_time_step_may_be_a_duration(walk):
    for step in (timedelta(milliseconds=1500), np.timedelta64(1500, "ms"), pd.Timedelta(1.5, "s")):
        assert steps(dt=step) == steps(dt=[step] * 3) == [1.5] * 3
    pf = ParticleFilter(walk, 20, rng=1)
    pf.predict(step)
    assert pf.time == 1.5


test_times_and_controls_that_do_not_fit_are_named = refuses(
    lambda arguments: steps(**arguments),
    (
        {"times": DATES[1:]},
        r"start: expected the date of the state before, as times are dates, got the time 0; the first date is",
    ),
    (
        {"times": DATES, "start": START},
        "times: expected one per step, 3, got 4; the time of the filter's state is start",
    ),
    (
        {"times": DATES[1:], "start": SUMMER},
        "times: expected dates with a time zone, as start has, got",
    ),
    (
        {
            "times": [DATES[1].replace(tzinfo=UTC), DATES[2], DATES[3].replace(tzinfo=UTC)],
            "start": SUMMER,
        },
        r"times: expected dates with a time zone, as start has, got datetime.datetime\(2024, 3, 31, 0, 59, 32\)$",
    ),
    (
        {"times": [DATES[1], pd.Timestamp(DATES[2], tz="Europe/Berlin"), DATES[3]], "start": START},
        r"times: expected dates with no time zone, as start has, got Timestamp\('2024-03-31 00:59:32\+0100'",
    ),
    (
        {"times": [-1, 0, 1]},
        "times: expected increasing times, got -1 after 0.0, the time of the filter's state, at step 1",
    ),
    (
        {"times": np.array(["NaT", "2025", "2026"], "M8[s]"), "start": START},
        "times: expected finite numbers",
    ),
    (
        {"times": ["2024-01-01", "2024-01-02", "2024-01-03"]},
        "times: expected numbers, .*'2024-01-01'; pandas.to_datetime",
    ),
    ({"start": "noon"}, "start: expected a number, a duration or a date, got 'noon'"),
    ({"dt": np.timedelta64(2, "M")}, "dt: expected a positive duration, got"),
    ({"controls": "abc"}, "controls: expected a sequence with one entry per step, got 'abc'"),
)


UNIX = 1.7e9
DAY = pd.Timestamp("2024-01-01")
LONG = (
    r"^start: expected the time of the filter's state, as the first step is over 1000 times the median of the others, "
    r"1\.7e\+09 and 1; got None: give it, 0 if that is right, or count times from it$"
)
SEEN = Sensor(lambda x: x[:, :1], [[0.04]])
RUNS = {
    "times": lambda online, times, start=None: online.run(
        [[0.1 * k] for k in range(len(times))], times=times, start=start
    ),
    "readings": lambda online, times, start=None: online.run(
        [(time, SEEN, [0.1 * k]) for k, time in enumerate(times)], start=start
    ),
}


@pytest.fixture(params=RUNS)
def run(request):
    return RUNS[request.param]


def line():
    """A position and a velocity; one of 0.1 a second is seen."""

    def f(x, dt):
        return x @ np.array([[1.0, 0.0], [dt, 1.0]])

    return from_functions(
        f, lambda x: x[:, :1], lambda dt: 1e-6 * dt * EYE, [[0.04]], [0.0, 0.0], EYE
    )


def test_a_first_step_of_a_thousand_others_asks_for_the_start(run):
    """Seconds since 1970, where the time of the prior was forgotten; of the prior itself it is right on request."""
    times = [UNIX + k for k in range(30)]
    for given in (times, [timedelta(seconds=time) for time in times]):
        online = UnscentedKalmanFilter(line())
        with refusal(LONG):
            run(online, given)
        assert (online.step, online.time) == (0, 0.0)
    told = run(UnscentedKalmanFilter(line()), times, UNIX - 1).means[-1]
    assert_allclose(told, run(UnscentedKalmanFilter(line()), np.arange(1.0, 31.0)).means[-1])
    assert told[1] == pytest.approx(0.1, abs=0.01)
    assert run(UnscentedKalmanFilter(line()), times, 0.0).means.shape == (30, 2)
    assert run(UnscentedKalmanFilter(line()), [900.0, 901.0, 902.0]).means.shape == (3, 2)
    # nothing to compare with
    assert run(UnscentedKalmanFilter(line()), [1e9]).means.shape == (1, 2)


def test_a_long_wait_of_a_filter_whose_date_is_known_is_right(run):
    online = UnscentedKalmanFilter(line())
    first = pd.date_range(DAY, periods=4, freq="s")
    run(online, list(first[1:]), DAY)
    run(online, list(first + pd.Timedelta("1D")))
    assert online.time == np.datetime64("2024-01-02T00:00:03")


def test_every_reader_of_times_asks_for_the_start():
    times = [UNIX + k for k in range(5)]
    z = [[0.1]] * 5
    with refusal(LONG):
        simulate(line(), times=times)
    with refusal(LONG):
        UnscentedKalmanFilter(line()).forecast(times=times)
    with refusal(LONG):
        GridFilter(
            from_functions(lambda x: x, lambda x: x, [[1.0]], [[1.0]], [0.0], [[1.0]]), -9, 9, 91
        ).run(z, times=times)


@cases(
    "times start",
    (np.float32(UNIX) + np.float32(50) * np.arange(8, dtype=np.float32), UNIX - 50),
    (np.array([1e5, 1e5 + 0.002, 1e5 + 1, 1e5 + 2], dtype=np.float32), 1e5 - 1),
    ids=["float32", "float32 of two sensors"],
)
def test_stamps_that_float32_does_not_tell_apart_are_refused(run, times, start):
    """As readings they would share a step."""
    with refusal(r"^times: expected times of type float64, got equal ones of type float32, which"):
        run(UnscentedKalmanFilter(line()), times, start)


def test_equal_stamps_of_a_type_that_tells_steps_apart_share_a_step():
    for kind in (np.float32, np.float64, np.int64):
        result = RUNS["readings"](
            UnscentedKalmanFilter(line()), np.array([1, 1, 2, 4, 4], dtype=kind)
        )
        assert result.steps.tolist() == [1, 1, 2, 3, 3]


def test_a_table_stands_for_its_rows(walk):
    """Whatever its columns and its index are called; dates in the index are used where the filter's date is known."""
    _, z = simulate(walk, 4, 3)
    when = pd.date_range("2024-01-01", periods=4, freq="h")
    frame = pd.DataFrame({"position": z[:, 0], "speed": np.arange(4.0)}, index=when)

    def run(observations, **options):
        return ParticleFilter(walk, 20, rng=1).run(observations, **options).means

    plain = run(z, controls=np.arange(4.0)[:, None])
    assert_array_equal(
        run(frame[["position"]].reset_index(drop=True), controls=frame[["speed"]]), plain
    )
    assert_array_equal(run(z.tolist(), controls=[[0.0], [1.0], [2.0], [3.0]]), plain)
    with refusal(r"observations: have dates, .*; give the date of the filter's state as start"):
        run(frame[["position"]])
    assert_array_equal(
        run(frame[["position"]], start=when[0] - pd.Timedelta("1h")), run(z, dt=3600.0)
    )
    assert_array_equal(run(frame[["position"]], dt=1.0), run(z))


def test_what_looks_like_a_reading_and_is_none_is_named_in_one_line(walk):
    message = (
        r"^observations: expected a herdfilter.Sensor in readings .time, sensor, z., got[^\n]*$"
    )
    with refusal(message):
        ParticleFilter(walk, 20, rng=1).run([(0.1, "gps", [0.2])])
