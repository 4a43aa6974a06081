"""The autoferry recordings: on the real files where they are at hand, and on made-up ones of the same form."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from herdfilter.study.data.autoferry import load_autoferry

from herdfilter.study.data import DATA_FILES, checksum

PLACES = [Path(__file__).parents[2].parent / "shared" / "data", Path(os.environ.get("HERDFILTER_DATA", "-"))]
LIDAR, RADAR, INFRARED = 1, 2, 3


def real(number):
    """Parameter for a real recording, skipped where no folder holds it."""
    file = Path("autoferry", f"scenario{number}_detections.json")
    folder = next((place for place in PLACES if (place / file).is_file()), None)
    reason = f"no {file} in ../shared/data or HERDFILTER_DATA"
    return pytest.param(folder, number, id=str(number), marks=pytest.mark.skipif(folder is None, reason=reason))


REAL = pytest.mark.parametrize(("folder", "number"), [real(2), real(4)])


def scan(time, sensor, measurement):
    """An entry of the detections; the own ship is 100 m north of the origin and goes east at 1 m/s."""
    own = [100.0, time]
    return {"sensorID": sensor, "measurements": [], "ownshipPosition": own, "time": 1e9 + time, "measurement": measurement}


def fix(vessel, time):
    """Where a vessel is: the first goes north from the origin at 3 m/s, the second south at 5 m/s."""
    return {"targetID": vessel, "position": [(3 if vessel == 1 else -5) * time, 7, 0], "time": 1e9 + time}


SCANS = [
    scan(2.0, RADAR, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    scan(3.0, RADAR, [1.0, 4.0]),
    scan(3.5, INFRARED, 0.5),
    scan(4.0, LIDAR, []),
    scan(4.5, INFRARED, [0.5, 0.6, 0.7]),
    scan(5.0, LIDAR, [[1.0, 2.0], [4.0, 5.0]]),
    scan(6.0, INFRARED, []),
]
FIXES = [[fix(1, t - 0.25), fix(2, np.floor(t))] for t in (2.0, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0)]


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a recording, numbered 2 as one that can be downloaded, into a folder."""
    monkeypatch.delenv("HERDFILTER_DATA", raising=False)

    def write_into(scans=SCANS, fixes=FIXES, folder=tmp_path):
        folder.mkdir(exist_ok=True)
        for name, content in (("detections", scans), ("groundTruth", fixes)):
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / f"scenario2_{name}.json").write_text(text)
        return folder

    return write_into


def test_every_form_of_a_scan_is_a_table(write):
    """Many detections are two rows, one is a flat pair, none an empty list; all become north and east of the origin."""
    data = load_autoferry(write())
    assert data.sensors == ["radar", "radar", "lidar", "lidar"]
    assert [detections.tolist() for detections in data.scans] == [
        [[101.0, 6.0], [102.0, 7.0], [103.0, 8.0]],
        [[101.0, 7.0]],
        [],
        [[101.0, 9.0], [102.0, 10.0]],  # not the rows of the file
    ]
    assert [detections.shape for detections in data.scans] == [(3, 2), (1, 2), (0, 2), (2, 2)]
    np.testing.assert_array_equal(data.time, [0, 1, 2, 3])
    assert data.start == 1e9 + 2
    np.testing.assert_array_equal(data.own_ship, [[100, 2], [100, 3], [100, 4], [100, 5]])


def test_two_detections_of_a_radar_are_not_two_flat_pairs(write):
    data = load_autoferry(write([scan(2.0, RADAR, [[1.0], [4.0]])], FIXES[:1]))
    assert data.scans[0].tolist() == [[101.0, 6.0]]


def test_bearings_come_as_a_column(write):
    data = load_autoferry(write(), sensors=["infrared"])
    assert [bearings.tolist() for bearings in data.scans] == [[[0.5]], [[0.5], [0.6], [0.7]], []]
    assert data.scans[-1].shape == (0, 1)


def test_truth_is_interpolated_to_the_time_of_the_scan(write):
    """The second vessel's fixes are whole seconds, told again in scans of other times, and end before the last scan."""
    data = load_autoferry(write(), sensors=["radar", "lidar", "infrared"])
    expected = np.array([6.0, 9.0, 10.5, 12.0, 13.5, 15.0])
    np.testing.assert_allclose(data.truth[:-1, 0, 0], expected, atol=1e-6)
    np.testing.assert_allclose(data.truth[:, 1, 0], -5 / 3 * np.append(expected, 18), atol=1e-6)
    np.testing.assert_array_equal(data.truth[:-1, :, 1], 7)
    assert np.isnan(data.truth[-1, 0]).all(), "no fix at the time of the last scan or after it"


def test_truth_is_missing_in_a_gap_of_the_receiver(write):
    fixes = [[f for f in both if f["targetID"] == 1 or f["time"] not in (1e9 + 3, 1e9 + 4)] for both in FIXES]
    truth = load_autoferry(write(fixes=fixes)).truth
    np.testing.assert_array_equal(np.isnan(truth[:, 1, 0]), [False, True, True, False])
    assert np.isfinite(truth[:, 0]).all()
    alone = load_autoferry(write(fixes=[[both[0]] for both in FIXES])).truth
    assert np.isnan(alone[:, 1]).all()


def test_scans_come_in_order_of_time_and_only_the_first_are_kept(write):
    turned = load_autoferry(write(SCANS[::-1], FIXES[::-1]), max_scans=3)
    assert turned.sensors == ["radar", "radar", "lidar"]
    np.testing.assert_array_equal(turned.time, [0, 1, 2])


def test_files_may_stand_in_a_folder_of_their_own(write, tmp_path, monkeypatch):
    write(folder=tmp_path / "autoferry")
    assert len(load_autoferry(tmp_path)) == 4
    monkeypatch.setenv("HERDFILTER_DATA", str(tmp_path))
    assert len(load_autoferry()) == 4


WRONG = {
    "not json": ("[{", r"scenario2_detections\.json: expected a JSON file"),
    "no list": ("{}", r"expected a list of scans, got \{\}"),
    "no sensor": ([{"time": 3}], r"entry 0: expected sensorID, time, .*, got \{'time': 3\}"),
    "unknown sensor": ([scan(2.0, 9, [])], r"entry 0: expected a sensorID from 1 to 4, got 9"),
    "three rows": (
        [SCANS[0], scan(2.0, RADAR, [[1], [2], [3]])],
        r"entry 1: expected a row of norths and a row of easts, got shape \(3, 1\)",
    ),
    "number alone": ([scan(2.0, RADAR, 0.5)], r"expected a row of norths and a row of easts, got shape \(\)"),
    "ragged": ([scan(2.0, RADAR, [[1, 2], [3]])], "entry 0: expected a measurement of finite numbers, got"),
    "text": ([scan(2.0, RADAR, ["1", "2"])], "entry 0: expected a measurement of finite numbers, got"),
    "not a number": ([scan(2.0, LIDAR, [float("nan"), 1])], "expected a measurement of finite numbers, got"),
    "rows of bearings": ([scan(2.0, INFRARED, [[1, 2]])], r"expected bearings in a list, got shape \(1, 2\)"),
    "nowhere": ([SCANS[0] | {"ownshipPosition": [1]}], "expected an ownshipPosition of finite numbers, got"),
    "never": ([SCANS[0] | {"time": None}], "entry 0: expected a time of finite numbers, got None"),
    "cameras only": ([SCANS[2]], "expected scans of radar or lidar, got none"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_file_of_another_form_is_refused_in_a_line(write, wrong):
    content, message = WRONG[wrong]
    fixes = FIXES[: len(content)] if isinstance(content, list) else FIXES
    with pytest.raises(ValueError, match=message) as caught:
        load_autoferry(write(content, fixes))
    assert "\n" not in str(caught.value)
    assert "scenario2_detections.json" in str(caught.value)


@pytest.mark.parametrize(
    ("fixes", "message"),
    [
        (FIXES[:-1], "expected 7 entries as there are scans, got 6"),
        ([[fix(3, 2.0)], *FIXES[1:]], "entry 0: expected a targetID of 1 or 2, got 3"),
        ([[fix(1, 2.0) | {"position": [1, 2]}], *FIXES[1:]], "entry 0: expected a position of finite numbers"),
        ([5, *FIXES[1:]], "entry 0: expected targetID, time, position, got 5"),
    ],
)
def test_a_truth_of_another_form_is_refused(write, fixes, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_autoferry(write(fixes=fixes))
    assert "scenario2_groundTruth.json" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "2"}, "scenario: expected an integer of at least 1, got '2'"),
        ({"sensors": ["radr"]}, "sensors: unknown 'radr'; did you mean 'radar'"),
        ({"sensors": "radar"}, "sensors: expected a sequence of names, got 'radar'"),
        ({"sensors": []}, "sensors: expected at least one of lidar, radar"),
        ({"max_scans": 0}, "max_scans: expected an integer of at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(write, arguments, message):
    with pytest.raises(ValueError, match=message):
        load_autoferry(write(), **arguments)


def test_a_recording_that_is_not_there(write):
    with pytest.raises(FileNotFoundError, match=r"expected scenario7_detections\.json in .*, got scenario2_"):
        load_autoferry(write(), scenario=7)


@REAL
def test_real_files_are_the_published_ones(folder, number):
    for kind in ("detections", "groundTruth"):
        file = f"scenario{number}_{kind}.json"
        assert checksum(folder / "autoferry" / file) == DATA_FILES[file].sha256


@REAL
def test_real_sensors_tick_at_their_rates_and_see_the_vessels(folder, number):
    """Every scan of the file is there, in order; most have one near each vessel."""
    data = load_autoferry(folder, number)
    entries = json.loads((folder / "autoferry" / f"scenario{number}_detections.json").read_text())
    assert len(data) == sum(entry["sensorID"] in (LIDAR, RADAR) for entry in entries)
    assert (np.diff(data.time) > 0).all()
    sensors = np.array(data.sensors)
    for sensor, period in (("radar", 1.68), ("lidar", 0.504)):
        assert np.median(np.diff(data.time[sensors == sensor])) == pytest.approx(period, rel=0.01)
        apart = np.concatenate(
            [
                np.linalg.norm(truth[:, None] - detections, axis=2).min(axis=1)
                for truth, detections, by in zip(data.truth, data.scans, data.sensors, strict=True)
                if by == sensor and len(detections)
            ]
        )
        assert np.nanmedian(apart) < (8 if sensor == "radar" else 12)


@REAL
def test_real_cameras_look_at_the_vessels(folder, number):
    """Bearings run from north towards east: most of the camera's nearest ones are right to a few degrees."""
    data = load_autoferry(folder, number, sensors=["daylight"])
    north, east = np.moveaxis(data.truth - data.own_ship[:, None], -1, 0)
    bearing = np.arctan2(east, north)
    off = [
        np.abs(np.angle(np.exp(1j * (seen - truth)))).min()
        for seen, truth in zip(data.scans, bearing, strict=True)
        if len(seen) and np.isfinite(truth).all()
    ]
    assert np.median(off) < np.radians(3)
