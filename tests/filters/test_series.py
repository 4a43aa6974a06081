"""What a batch run takes as times, controls and observations: dates, durations and tables, or a refusal by name."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from helpers import refuses

from herdfilter.filters import ParticleFilter, UnscentedKalmanFilter
from herdfilter.filters.series import series
from herdfilter.models.simulation import simulate

START = datetime(2024, 3, 31, 0, 59, 30)
SECONDS = [0.5, 2.0, 62.25]
DATES = [START] + [START + timedelta(seconds=s) for s in SECONDS]
BERLIN = timezone(timedelta(hours=1))


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
    np.testing.assert_allclose(steps(times=times), np.diff(SECONDS, prepend=0.0), rtol=1e-15)


def test_days_are_seconds_too():
    assert steps(times=[date(2024, 2, d) for d in (27, 28, 29)] + [date(2024, 3, 1)]) == [86400.0] * 3


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
    ({"times": DATES[1:]}, r"times: expected 4 dates, for the filter's state and for each step, got 3"),
    (
        {"times": [DATES[0].replace(tzinfo=UTC), *DATES[1:]]},
        "times: expected dates of one time zone, got None, UTC; convert them to one",
    ),
    (
        {"times": [DATES[0].replace(tzinfo=BERLIN), *(d.replace(tzinfo=UTC) for d in DATES[1:])]},
        "times: expected dates of one time zone, got UTC, UTC.01:00",
    ),
    ({"times": DATES[:1] + DATES[:3]}, "times: expected increasing times, got 0 after 0, .* at step 1"),
    ({"times": np.array(["2024", "NaT", "2025", "2026"], "M8[s]")}, "times: expected finite numbers"),
    ({"times": ["2024-01-01", "2024-01-02", "2024-01-03"]}, "times: expected numbers .*'2024-01-01'"),
    ({"times": "2024"}, "times: expected numbers"),
    ({"dt": np.timedelta64(2, "M")}, "dt: expected a positive duration, got .* before step 1"),
    ({"dt": timedelta(0)}, "dt: expected a positive duration, got .* before step 1"),
    ({"dt": np.timedelta64("NaT")}, "dt: expected a positive duration, got .*NaT.* before step 1"),
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
    for observed in (frame[["position"]], frame["position"].to_numpy()[:, None]):
        tabled = ParticleFilter(walk, 20, rng=1).run(observed, controls=frame[["speed"]])
        np.testing.assert_array_equal(tabled.means, plain.means)


def test_a_column_stands_for_its_values(walk_class):
    class Number(walk_class):
        def log_likelihood(self, z, x, step):
            return super().log_likelihood(np.atleast_1d(z), x, step)

    column = pd.Series([0.3, np.nan, 0.5], index=["c", "a", "b"], name="z")
    plain = ParticleFilter(Number(), 20, rng=1).run([0.3, None, 0.5])
    np.testing.assert_array_equal(ParticleFilter(Number(), 20, rng=1).run(column).means, plain.means)
