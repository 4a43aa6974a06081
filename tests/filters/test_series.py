"""What a batch run takes as times, controls and observations: dates, durations and tables, or a refusal by name."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from helpers import refuses

from herdfilter.filters import ParticleFilter, UnscentedKalmanFilter
from herdfilter.models.series import series
from herdfilter.models.simulation import simulate

START = datetime(2024, 3, 31, 0, 59, 30)
SECONDS = [0.5, 2.0, 62.25]
DATES = [START] + [START + timedelta(seconds=s) for s in SECONDS]
BERLIN = timezone(timedelta(hours=1))
SUMMER = START.replace(tzinfo=UTC)


def steps(**times):
    return [step.dt for step in series([None] * 3, **times)]


@pytest.mark.parametrize(
    "times",
    [
        DATES,
        np.array(DATES, dtype="M8[ms]"),
        np.array(DATES, dtype="M8[ns]"),
        pd.DatetimeIndex(DATES),
        pd.DatetimeIndex(DATES, tz="Europe/Berlin"),
        pd.Series(DATES),
        pd.Series(DATES).dt.tz_localize("UTC"),
        [moment.replace(tzinfo=UTC) for moment in DATES],
        [timedelta(seconds=s) for s in SECONDS],
        np.array([round(1e3 * s) for s in SECONDS], dtype="m8[ms]"),
        pd.to_timedelta(SECONDS, unit="s"),
        pd.Series(SECONDS),
        SECONDS,
    ],
)
def test_dates_and_durations_are_seconds(times):
    """Of dates the first is here that of the filter's state."""
    given = {"times": times} if len(times) == 3 else {"start": next(iter(times)), "times": times[1:]}
    np.testing.assert_allclose(steps(**given), np.diff(SECONDS, prepend=0.0), rtol=1e-15)


def test_days_are_seconds_too():
    days = [date(2024, 2, d) for d in (28, 29)] + [date(2024, 3, 1)]
    assert steps(times=days, start=date(2024, 2, 27)) == [86400.0] * 3


def test_the_clock_of_a_filter_goes_on_from_run_to_run(walk):
    """With absolute times two runs are as one; so with dates, whose start is said once."""
    z = [[0.1], [0.4], [0.2], [0.8]]
    for times, start in (([0.5, 1.0, 3.0, 3.5], None), ([START + timedelta(hours=h) for h in (1, 2, 5, 7)], START)):
        whole, halves = (ParticleFilter(walk, 20, rng=1) for _ in range(2))
        expected = whole.run(z, times=times, start=start)
        first, second = halves.run(z[:2], times=times[:2], start=start), halves.run(z[2:], times=times[2:])
        np.testing.assert_array_equal(np.concatenate([first.means, second.means]), expected.means)
        end = times[-1] if start is None else np.datetime64(times[-1])
        assert (whole.time, halves.time) == (end, end)
    whole.predict(60.0)
    assert whole.time == np.datetime64(times[-1] + timedelta(minutes=1))


def test_the_time_of_a_run_with_steps_goes_on(walk):
    online = UnscentedKalmanFilter(walk)
    assert online.time == 0.0
    assert online.run([None] * 3, dt=0.5).times.tolist() == [0.5, 1.0, 1.5]
    assert online.run([None] * 2, dt=0.25).times.tolist() == [1.75, online.time] == [1.75, 2.0]
    later = online.run([None], dt=60.0, start=START)
    assert later.times.tolist() == [START + timedelta(minutes=1)]


@pytest.mark.parametrize("make", [lambda m: ParticleFilter(m, 30, rng=1), UnscentedKalmanFilter], ids=["particles", "ukf"])
def test_an_observation_at_the_time_of_the_prior_is_one_of_the_initial_state(walk, make):
    z = [[0.1], [0.4], [0.2]]
    online = make(walk)
    for k, one in enumerate(z):
        if k:
            online.predict(2.0)
        last = online.update(one)
    by_dt, by_times = make(walk).run(z, dt=[0, 2, 2]), make(walk).run(z, times=[5, 7, 9], start=5)
    dates = [START + timedelta(seconds=s) for s in (0, 2, 4)]
    for result in (by_dt, by_times, make(walk).run(z, times=dates, start=START)):
        assert result.steps.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(result.means[-1], last.mean)


@pytest.mark.parametrize("step", [timedelta(milliseconds=1500), np.timedelta64(1500, "ms"), pd.Timedelta(1.5, "s")])
def test_a_time_step_may_be_a_duration(walk, step):
    assert steps(dt=step) == steps(dt=[step] * 3) == [1.5] * 3
    for make in (lambda: ParticleFilter(walk, 20, rng=1), lambda: UnscentedKalmanFilter(walk)):
        one, other = make(), make()
        one.predict(1.5)
        other.predict(step)
        np.testing.assert_array_equal(other.covariance, one.covariance)


test_times_and_controls_that_do_not_fit_are_named = refuses(
    lambda arguments: steps(**arguments),
    (
        {"times": DATES[1:]},
        r"start: expected the date of the state before, as times are dates, got the time 0; the first date is",
    ),
    ({"times": DATES, "start": START}, "times: expected one per step, 3, got 4; the time of the filter's state is start"),
    ({"times": DATES[1:], "start": START.replace(tzinfo=UTC)}, "times: expected dates with a time zone, as start has, got"),
    ({"times": SECONDS, "start": START}, "times: expected dates, as the filter stands at 2024-03-31.*, got 0.5"),
    (
        {"times": [DATES[1].replace(tzinfo=BERLIN), *(d.replace(tzinfo=UTC) for d in DATES[2:])], "start": SUMMER},
        "times: expected dates of one time zone, got UTC, UTC.01:00; convert them to one",
    ),
    ({"times": [*DATES[:2], DATES[1]], "start": START}, "times: expected increasing times, got .* after .* at step 3"),
    ({"times": [-1, 0, 1]}, "times: expected increasing times, got -1 after 0.0, the time of the filter's state, at step 1"),
    ({"times": np.array(["NaT", "2025", "2026"], "M8[s]"), "start": START}, "times: expected finite numbers"),
    ({"times": ["2024-01-01", "2024-01-02", "2024-01-03"]}, "times: expected numbers .*'2024-01-01'"),
    ({"times": "2024"}, "times: expected a sequence with one entry per step, got '2024'"),
    ({"times": SECONDS, "dt": 1.0}, "times: expected either times or dt, got both"),
    ({"start": "noon"}, "start: expected a number, a duration or a date, got 'noon'"),
    ({"dt": np.timedelta64(2, "M")}, "dt: expected a positive duration, got"),
    ({"dt": timedelta(0)}, "dt: expected a positive"),
    ({"dt": [1, 0, 1]}, "dt: expected a positive .* before step 2"),
    ({"dt": np.timedelta64("NaT")}, "dt: expected a positive duration, got .*NaT"),
    ({"controls": "abc"}, "controls: expected a sequence with one entry per step, got 'abc'"),
    ({"controls": {"speed": 1, "turn": 2, "dive": 3}}, "controls: expected a sequence with one entry"),
    ({"controls": 1.0}, "controls: expected a sequence with one entry per step, got 1.0"),
)


@pytest.mark.parametrize("observations", ["abc", b"abc", {"z": [1.0]}, {1.0}, 1.0, np.array(1.0), None])
def test_observations_that_are_no_series_are_named(walk, observations):
    with pytest.raises(ValueError, match="observations: expected a sequence with one entry per step, got"):
        ParticleFilter(walk, 5, rng=1).run(observations)


def test_a_table_stands_for_its_rows(walk):
    """Whatever its columns and its index are called: values are what counts."""
    _, z = simulate(walk, 4, 3)
    controls = np.arange(4.0)[:, None]
    plain = ParticleFilter(walk, 20, rng=1).run(z, controls=controls)
    when = pd.date_range("2024-01-01", periods=4, freq="h")
    frame = pd.DataFrame({"position": z[:, 0], "speed": controls[:, 0]}, index=when)
    for observed in (frame[["position"]].reset_index(drop=True), frame["position"].to_numpy()[:, None]):
        tabled = ParticleFilter(walk, 20, rng=1).run(observed, controls=frame[["speed"]])
        np.testing.assert_array_equal(tabled.means, plain.means)
    listed = ParticleFilter(walk, 20, rng=1).run(z.tolist(), controls=controls.tolist())
    np.testing.assert_array_equal(listed.means, plain.means)
    # dates in the index are used where the filter's date is known, and asked about where it is not
    with pytest.raises(ValueError, match=r"observations: have dates, .*; give the date of the filter's state as start"):
        ParticleFilter(walk, 20, rng=1).run(frame[["position"]])
    dated = ParticleFilter(walk, 20, rng=1).run(frame[["position"]], start=when[0] - pd.Timedelta("1h"))
    hourly = ParticleFilter(walk, 20, rng=1).run(z, dt=3600.0)
    np.testing.assert_array_equal(dated.means, hourly.means)
    even = ParticleFilter(walk, 20, rng=1).run(frame[["position"]], dt=1.0, controls=controls)
    np.testing.assert_array_equal(even.means, plain.means)


def test_the_time_coordinate_of_an_array_of_xarray_is_used(walk):
    class DataArray:
        """What is used of xarray's."""

        def __init__(self, values, when):
            self.values, self.dims, self.coords = values, ("time", "entry"), {"time": pd.Index(when)}

        def to_numpy(self):
            return self.values

    _, z = simulate(walk, 3, 3)
    plain = ParticleFilter(walk, 20, rng=1).run(z, times=[0.5, 1.0, 2.5])
    labelled = ParticleFilter(walk, 20, rng=1).run(DataArray(z, [0.5, 1.0, 2.5]))
    np.testing.assert_array_equal(labelled.means, plain.means)
    with pytest.raises(ValueError, match="observations: have dates, from 2024-01-01"):
        ParticleFilter(walk, 20, rng=1).run(DataArray(z, pd.date_range("2024-01-01", periods=3)))


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


def test_a_column_stands_for_its_values(walk_class):
    class Number(walk_class):
        def log_likelihood(self, z, x, step):
            return super().log_likelihood(np.atleast_1d(z), x, step)

    column = pd.Series([0.3, np.nan, 0.5], index=["c", "a", "b"], name="z")
    plain = ParticleFilter(Number(), 20, rng=1).run([0.3, None, 0.5])
    np.testing.assert_array_equal(ParticleFilter(Number(), 20, rng=1).run(column).means, plain.means)
