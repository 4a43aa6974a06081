"""What the sensors of the harbour are like: constants put into made-up scans are found again; real ones, where at hand."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from helpers import folder_of_data
from herdfilter.study.data.autoferry import AutoferryData
from herdfilter.study.data.harbour import (
    DetectionByDistance,
    load_harbour,
    sensor_constants,
    sightings,
)

import herdfilter as hf
from herdfilter.study.recording import load_data
from herdfilter.study.scenario import load_scenario

FOLDER = folder_of_data("autoferry")
REAL = pytest.mark.skipif(
    FOLDER is None, reason="no folder autoferry in ../shared/data or HERDFILTER_DATA"
)
harbour = cache(partial(load_harbour, FOLDER))
DELAY = 2.0
SD = 3.0
DETECTED = 0.7
CLUTTER = 2e-5


@pytest.fixture(scope="module")
def made_up():
    """Two vessels on straight courses, 100 m apart, and a radar whose constants are known."""
    rng = np.random.default_rng(5)
    time = np.arange(0.0, 600.0)
    courses = np.array([[3.0, 1.0], [-2.0, 2.0]])
    truth = np.array([[0.0, 0.0], [2000.0, 0.0]]) + time[:, None, None] * courses
    scans = []
    for positions in truth:
        seen = np.array(
            [p for p in positions - DELAY * courses if rng.random() < DETECTED]
        ).reshape(-1, 2)
        around = [p + rng.uniform(-80, 80, (rng.poisson(CLUTTER * 160**2), 2)) for p in positions]
        scans.append(np.vstack([seen + SD * rng.standard_normal(seen.shape), *around]))
    return AutoferryData(
        9, 0.0, time, ["radar"] * len(time), scans, np.zeros((len(time), 2)), truth
    )


def test_constants_of_a_sensor_are_found(made_up):
    """To three standard errors, with the false alarms that the gate of 20 m takes in where the vessel is missed."""
    found = sensor_constants(made_up, "radar")
    scans = 2 * len(made_up)
    false = (1 - DETECTED) * (1 - np.exp(-CLUTTER * np.pi * 20**2))
    expected = DETECTED + false
    error = np.sqrt(expected * (1 - expected) / scans)
    assert found.detection_probability == pytest.approx(expected, abs=3 * error)
    squared_speed = (10.0 + 8.0) / 2
    spread = 20**2 / 4 + DELAY**2 * squared_speed / 2  # of what is spread evenly over the gate
    sd = np.sqrt((DETECTED * SD**2 + false * spread) / expected)
    assert found.sd == pytest.approx(sd, rel=0.05)
    pulled = DELAY * DETECTED / expected  # false alarms are not late
    assert found.delay == pytest.approx(
        pulled, abs=3 * sd / np.sqrt(scans * expected * squared_speed)
    )
    area = np.pi * (60**2 - 20**2)
    assert found.clutter_density == pytest.approx(
        CLUTTER, abs=3 * np.sqrt(CLUTTER / (scans * area))
    )


def test_what_lies_near_the_other_vessel_is_neither_clutter_nor_of_this_one():
    """Two vessels 30 m apart, with a detection between them, and one of the other vessel on its far side."""
    truth = np.zeros((3, 2, 2))
    truth[:, 1, 0] = 30.0
    truth[:, :, 1] += np.arange(3.0)[:, None]
    scan = np.array([[16.0, 1.0], [40.0, 1.0]])
    data = AutoferryData(9, 0.0, np.arange(3.0), ["radar"] * 3, [scan] * 3, np.zeros((3, 2)), truth)
    one, other = (sightings(data, "radar", vessel) for vessel in (1, 2))
    assert np.isnan(one.error).all()
    np.testing.assert_array_equal(one.others, 0)
    np.testing.assert_allclose(other.error[1], [10.0, 0.0])
    # the two gates of 20 m overlap in the lens of two circles 30 m apart
    lens = 2 * 20**2 * np.arccos(15 / 20) - 15 * np.sqrt(4 * 20**2 - 30**2)
    assert one.area[0] == pytest.approx(np.pi * (60**2 - 2 * 20**2) + lens, rel=0.01)


@REAL
@pytest.mark.slow
def test_what_the_sensors_are_like_comes_from_the_other_recording():
    """The scans that are tracked in tell nothing of it: half of them lead to the same constants."""
    whole = harbour(2, 4, 1)
    half = load_harbour(FOLDER, 2, 4, vessel=1, max_scans=100)
    assert half.constants == whole.constants
    assert 1.7 < half.constants["radar"].delay < 2.7
    off = (whole.initial["initial_mean"] - whole.truth[0])[:2]
    # 0.999 of chi-square
    assert off @ np.linalg.solve(whole.initial["initial_covariance"][:2, :2], off) < 14


@REAL
@pytest.mark.slow
def test_one_vessel_is_tracked_by_two_sensors_at_times_of_their_own():
    """By a Kalman filter that weights its detections."""
    scenario = load_scenario("harbour")
    scenario = replace(scenario, data={**scenario.data, "max_scans": 40})
    assert len({sensor.mean for sensor in load_data(scenario, FOLDER).recording.sensors}) == 2
    assert hf.compare(scenario, filters=["ukf"], runs=1, data=FOLDER).iloc[0]["rmse"] < 5


@REAL
@pytest.mark.slow
def test_both_vessels_get_tracks_of_their_own():
    """GOSPA is far below that of no track at all, which is the cutoff: 20 m of two vessels, by half of its square each."""
    scenario = load_scenario("harbour_two")
    scenario = replace(scenario, data={**scenario.data, "max_scans": 20})
    assert hf.compare(scenario, filters=["lmb-ukf"], runs=1, data=FOLDER).iloc[0]["gospa"] < 12


def test_the_end_of_a_sensor_is_found():
    """From sightings that a known one drew, to a few standard errors, and with one more miss at the nearest."""
    rng = np.random.default_rng(2)
    distances = rng.uniform(20, 250, 4000)
    known = DetectionByDistance(0.93, 125.0, 6.0)
    x = np.column_stack([distances, 0 * distances])
    found = DetectionByDistance.fit(distances, rng.random(4000) < known(x), least_width=2.0)
    assert found.highest == pytest.approx(0.93, abs=0.03)
    assert found.reach == pytest.approx(125, abs=3)
    assert found.width == pytest.approx(6, abs=2)
    always = DetectionByDistance.fit(distances, np.ones(4000, dtype=bool), least_width=2.0)
    assert 0.99 < always(x).min() <= always(x).max() < 1
