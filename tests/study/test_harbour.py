"""What the sensors of the harbour are like: constants put into made-up scans are found again; real ones, where at hand."""

import os
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from helpers import refuses
from herdfilter.study.data.autoferry import AutoferryData, load_autoferry
from herdfilter.study.data.harbour import DetectionByDistance, load_harbour, sensor_constants, sightings, velocities

import herdfilter as hf
from herdfilter.study.recording import load_data
from herdfilter.study.scenario import load_scenario

PLACES = [Path(__file__).parents[2].parent / "shared" / "data", Path(os.environ.get("HERDFILTER_DATA", "-"))]
FOLDER = next((place for place in PLACES if (place / "autoferry").is_dir()), None)
REAL = pytest.mark.skipif(FOLDER is None, reason="no folder autoferry in ../shared/data or HERDFILTER_DATA")
harbour = cache(partial(load_harbour, FOLDER))
DELAY, SD, DETECTED, CLUTTER = 2.0, 3.0, 0.7, 2e-5


@pytest.fixture(scope="module")
def made_up():
    """Two vessels on straight courses, 100 m apart, and a radar whose constants are known."""
    rng, time = np.random.default_rng(5), np.arange(0.0, 1500.0)
    courses = np.array([[3.0, 1.0], [-2.0, 2.0]])
    truth = np.array([[0.0, 0.0], [4000.0, 0.0]]) + time[:, None, None] * courses
    scans = []
    for positions in truth:
        seen = np.array([p for p in positions - DELAY * courses if rng.random() < DETECTED]).reshape(-1, 2)
        around = [p + rng.uniform(-80, 80, (rng.poisson(CLUTTER * 160**2), 2)) for p in positions]
        scans.append(np.vstack([seen + SD * rng.standard_normal(seen.shape), *around]))
    return AutoferryData(9, 0.0, time, ["radar"] * len(time), scans, np.zeros((len(time), 2)), truth)


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
    assert found.delay == pytest.approx(pulled, abs=3 * sd / np.sqrt(scans * expected * squared_speed))
    area = np.pi * (60**2 - 20**2)
    assert found.clutter_density == pytest.approx(CLUTTER, abs=3 * np.sqrt(CLUTTER / (scans * area)))


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


def test_velocities_are_those_of_the_path():
    time = np.array([0.0, 0.4, 1.7, 2.0, 3.1, 5.0])
    path = np.column_stack([3 * time, 7 - 2 * time])
    path[3] = np.nan
    expected = np.tile([3.0, -2.0], (6, 1))
    expected[3] = np.nan
    np.testing.assert_allclose(velocities(time, path), expected, rtol=1e-12)


@REAL
@pytest.mark.parametrize(("recording", "other"), [(2, 4), (4, 2)])
def test_what_the_sensors_are_like_comes_from_the_other_recording(recording, other):
    """The scans that are tracked in tell nothing of it: half of them lead to the same constants."""
    whole = harbour(recording, other, 1)
    half = load_harbour(FOLDER, recording, other, vessel=1, max_scans=100)
    assert half.constants == whole.constants
    assert len(half.scans) == 100
    with pytest.raises(ValueError, match="constants_from: expected another recording"):
        load_harbour(FOLDER, recording, recording)


@REAL
@pytest.mark.parametrize("vessel", [1, 2])
def test_tracking_starts_with_the_first_detection_of_the_vessel(vessel):
    task = harbour(2, 4, vessel)
    assert task.truth.shape == (len(task.scans), 4)
    assert np.isfinite(task.truth).all()
    assert (task.dt > 0).all()
    off = (task.initial["initial_mean"] - task.truth[0])[:2]
    assert off @ np.linalg.solve(task.initial["initial_covariance"][:2, :2], off) < 14  # 0.999 of chi-square
    moved = np.diff(task.truth[:, :2], axis=0) / task.dt[1:, None]
    assert np.median(np.linalg.norm(moved - task.truth[1:, 2:], axis=1)) < 0.3, "m/s"


@REAL
def test_the_radar_shows_vessels_where_they_were_two_seconds_ago():
    """In both recordings, of different courses; the lidar is less than a second late."""
    for recording, other in ((2, 4), (4, 2)):
        constants = harbour(recording, other, 1).constants
        assert 1.7 < constants["radar"].delay < 2.7
        assert abs(constants["lidar"].delay) < 1


def shortened(name, scans):
    """The scenario of that name with as many scans."""
    scenario = load_scenario(name)
    return replace(scenario, data={**scenario.data, "max_scans": scans})


@REAL
def test_one_vessel_is_tracked_by_two_sensors_at_times_of_their_own():
    """By a Kalman filter that weights its detections; the engine does what the filter does with the readings."""
    scenario = shortened("harbour", 80)
    data = load_data(scenario, FOLDER)
    recording, model = data.recording, scenario.build_model(**data.model_arguments)
    assert len({sensor.mean for sensor in recording.sensors}) == 2
    observations, told = recording.input
    result = hf.make_filter("ukf", model, rng=0).run(observations, **told)
    np.testing.assert_allclose(result.times.astype(float), recording.times)
    off = np.linalg.norm((result.means - recording.truth)[:, :2], axis=1)
    row = hf.compare(scenario, filters=["ukf"], runs=1, data=FOLDER).iloc[0]
    assert row["rmse"] == pytest.approx(np.sqrt((off**2).mean()), rel=1e-9)
    assert row["rmse"] < 5


@REAL
def test_both_vessels_get_tracks_of_their_own():
    """GOSPA is far below that of no track at all, which is the cutoff: 20 m of two vessels, by half of its square each."""
    row = hf.compare(shortened("harbour_two", 20), filters=["lmb-ukf"], runs=1, data=FOLDER).iloc[0]
    assert row["gospa"] < 12


@REAL
def test_detections_outside_the_area_and_of_the_own_ship_are_left_out():
    area = np.array([[-180.0, 110.0], [-640.0, -330.0]])
    whole, part = harbour(2, 4), load_harbour(FOLDER, area=area, nearest=30.0)
    own = load_autoferry(FOLDER).own_ship
    for before, after, ship in zip(whole.scans, part.scans, own, strict=True):
        inside = ((before > area[:, 0]) & (before < area[:, 1])).all(axis=1)
        np.testing.assert_array_equal(after, before[inside & (np.linalg.norm(before - ship, axis=1) > 30)])
    assert part.constants == whole.constants


test_bad_arguments_are_named = refuses(
    lambda arguments: load_harbour(FOLDER, **arguments),
    ({"vessel": 3}, "vessel: expected 1 or 2, got 3"),
    ({"sensors": ["radar", "daylight"]}, "sensors: expected radar and lidar, which see positions"),
    ({"area": [[1.0, 0.0], [0.0, 1.0]]}, r"area: expected rows \(least, largest\) of north and east"),
    ({"max_scans": 0}, "max_scans: expected an integer of at least 1, got 0"),
)


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
    place = np.array([10.0, 20.0])
    np.testing.assert_allclose(known.at(place)(x + place), known(x))
    always = DetectionByDistance.fit(distances, np.ones(4000, dtype=bool), least_width=2.0)
    assert 0.99 < always(x).min() <= always(x).max() < 1


@REAL
def test_the_lidar_has_an_end_at_the_same_distance_in_both_recordings():
    first, second = (harbour(recording=one, constants_from=other).constants for one, other in ((2, 4), (4, 2)))
    for constants in (first, second):
        assert 115 < constants["lidar"].detection.reach < 140
        assert constants["radar"].detection is None
    task = harbour(recording=2, constants_from=4)
    sensors = task.data_set.recording.sensors
    lidar = [(s, place) for s, place, name in zip(sensors, task.own_ship, task.sensors, strict=True) if name == "lidar"]
    for sensor, place in lidar[:3]:
        far = np.array([[place[0] + 200.0, place[1], 0.0, 0.0]])
        assert sensor.detection_probability(far) < 1e-6
        assert sensor.detection_probability(far - [[150.0, 0.0, 0.0, 0.0]]) > 0.9
