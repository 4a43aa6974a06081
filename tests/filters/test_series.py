"""What a batch run takes as times, controls and observations: dates, durations and tables, or a refusal by name."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from helpers import refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.filters import ParticleFilter, UnscentedKalmanFilter
from herdfilter.models.series import series
from herdfilter.models.simulation import simulate

START = datetime(2024, 3, 31, 0, 59, 30)
SECONDS = [0.5, 2.0, 62.25]
DATES = [START] + [START + timedelta(seconds=s) for s in SECONDS]
SUMMER = START.replace(tzinfo=UTC)


def steps(**times):
    return [step.dt for step in series([None] * 3, **times)]


@pytest.mark.parametrize(
    "times",
    [
        DATES,
        np.array(DATES, dtype="M8[ms]"),
        pd.DatetimeIndex(DATES, tz="Europe/Berlin"),
        pd.Series(DATES),
        [moment.replace(tzinfo=UTC) for moment in DATES],
        [timedelta(seconds=s) for s in SECONDS],
        np.array([round(1e3 * s) for s in SECONDS], dtype="m8[ms]"),
        pd.Series(SECONDS),
    ],
)
def test_dates_and_durations_are_seconds(times):
    """Of dates the first is here that of the filter's state."""
    given = {"times": times} if len(times) == 3 else {"start": next(iter(times)), "times": times[1:]}
    assert_allclose(steps(**given), np.diff(SECONDS, prepend=0.0), rtol=1e-15)


def test_the_clock_of_a_filter_goes_on_from_run_to_run(walk):
    """With absolute times two runs are as one; so with dates, whose start is said once."""
    z = [[0.1], [0.4], [0.2], [0.8]]
    for times, start in (([0.5, 1.0, 3.0, 3.5], None), ([START + timedelta(hours=h) for h in (1, 2, 5, 7)], START)):
        whole, halves = (UnscentedKalmanFilter(walk) for _ in range(2))
        expected = whole.run(z, times=times, start=start).means
        first, second = halves.run(z[:2], times=times[:2], start=start), halves.run(z[2:], times=times[2:])
        assert_array_equal(np.concatenate([first.means, second.means]), expected)
        assert whole.time == halves.time == (times[-1] if start is None else np.datetime64(times[-1]))
    whole.predict(60.0)
    assert whole.time == np.datetime64(times[-1] + timedelta(minutes=1))


def test_an_observation_at_the_time_of_the_prior_is_one_of_the_initial_state(walk):
    z, online = [[0.1], [0.4], [0.2]], UnscentedKalmanFilter(walk)
    for k, one in enumerate(z):
        if k:
            online.predict(2.0)
        last = online.update(one)
    dates = [START + timedelta(seconds=s) for s in (0, 2, 4)]
    for given in ({"dt": [0, 2, 2]}, {"times": [5, 7, 9], "start": 5}, {"times": dates, "start": START}):
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
    ({"times": DATES, "start": START}, "times: expected one per step, 3, got 4; the time of the filter's state is start"),
    ({"times": DATES[1:], "start": SUMMER}, "times: expected dates with a time zone, as start has, got"),
    ({"times": [-1, 0, 1]}, "times: expected increasing times, got -1 after 0.0, the time of the filter's state, at step 1"),
    ({"times": np.array(["NaT", "2025", "2026"], "M8[s]"), "start": START}, "times: expected finite numbers"),
    ({"times": ["2024-01-01", "2024-01-02", "2024-01-03"]}, "times: expected numbers .*'2024-01-01'"),
    ({"start": "noon"}, "start: expected a number, a duration or a date, got 'noon'"),
    ({"dt": np.timedelta64(2, "M")}, "dt: expected a positive duration, got"),
    ({"controls": "abc"}, "controls: expected a sequence with one entry per step, got 'abc'"),
)


def test_a_table_stands_for_its_rows(walk):
    """Whatever its columns and its index are called; dates in the index are used where the filter's date is known."""
    _, z = simulate(walk, 4, 3)
    when = pd.date_range("2024-01-01", periods=4, freq="h")
    frame = pd.DataFrame({"position": z[:, 0], "speed": np.arange(4.0)}, index=when)

    def run(observations, **options):
        return ParticleFilter(walk, 20, rng=1).run(observations, **options).means

    plain = run(z, controls=np.arange(4.0)[:, None])
    assert_array_equal(run(frame[["position"]].reset_index(drop=True), controls=frame[["speed"]]), plain)
    assert_array_equal(run(z.tolist(), controls=[[0.0], [1.0], [2.0], [3.0]]), plain)
    with pytest.raises(ValueError, match=r"observations: have dates, .*; give the date of the filter's state as start"):
        run(frame[["position"]])
    assert_array_equal(run(frame[["position"]], start=when[0] - pd.Timedelta("1h")), run(z, dt=3600.0))
    assert_array_equal(run(frame[["position"]], dt=1.0), run(z))


def test_what_looks_like_a_reading_and_is_none_is_named_in_one_line(walk):
    class Detection:
        state_vector, timestamp = np.ones((2, 1)), START

    for entry, said in (
        ((0.1, "gps", [0.2]), "expected a herdfilter.Sensor in readings .time, sensor, z., got"),
        (
            Detection(),
            "expected numbers, or readings .*, got Detection; .* give herdfilter.adapters.stone_soup.readings",
        ),
    ):
        with pytest.raises(ValueError, match=f"^observations: {said}[^\n]*$"):
            ParticleFilter(walk, 20, rng=1).run([entry])
