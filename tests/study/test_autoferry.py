"""The autoferry recordings, on made-up files of their form; test_harbour.py has the real ones."""

import json

import numpy as np
import pytest
from helpers import cases, refusal
from herdfilter.study.data.autoferry import load_autoferry
from numpy.testing import assert_allclose, assert_array_equal

LIDAR = 1
RADAR = 2
INFRARED = 3


def scan(time, sensor, measurement):
    """An entry of the detections; the own ship is 100 m north of the origin and goes east at 1 m/s."""
    own = [100.0, time]
    return {
        "sensorID": sensor,
        "measurements": [],
        "ownshipPosition": own,
        "time": 1e9 + time,
        "measurement": measurement,
    }


def fix(vessel, time):
    """Where a vessel is: the first goes north from the origin at 3 m/s, the second south at 5 m/s."""
    return {
        "targetID": vessel,
        "position": [(3 if vessel == 1 else -5) * time, 7, 0],
        "time": 1e9 + time,
    }


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

    def write_into(scans=SCANS, fixes=FIXES):
        for name, content in (("detections", scans), ("groundTruth", fixes)):
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / f"scenario2_{name}.json").write_text(text)
        return tmp_path

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
    assert_array_equal(data.time, [0, 1, 2, 3])
    assert data.start == 1e9 + 2
    assert_array_equal(data.own_ship, [[100, 2], [100, 3], [100, 4], [100, 5]])


def test_truth_is_interpolated_to_the_time_of_the_scan(write):
    """The second vessel's fixes are whole seconds, told again in scans of other times, and end before the last scan."""
    data = load_autoferry(write(SCANS[::-1], FIXES[::-1]), sensors=["radar", "lidar", "infrared"])
    assert [bearings.tolist() for bearings in data.scans if bearings.shape[1] == 1] == [
        [[0.5]],
        [[0.5], [0.6], [0.7]],
        [],
    ]
    expected = np.array([6.0, 9.0, 10.5, 12.0, 13.5, 15.0])
    assert_allclose(data.truth[:-1, 0, 0], expected, atol=1e-6)
    assert_allclose(data.truth[:, 1, 0], -5 / 3 * np.append(expected, 18), atol=1e-6)
    assert_array_equal(data.truth[:-1, :, 1], 7)
    assert np.isnan(data.truth[-1, 0]).all(), "no fix at the time of the last scan or after it"


def test_truth_is_missing_in_a_gap_of_the_receiver(write):
    fixes = [
        [f for f in both if f["targetID"] == 1 or f["time"] not in (1e9 + 3, 1e9 + 4)]
        for both in FIXES
    ]
    truth = load_autoferry(write(fixes=fixes)).truth
    assert_array_equal(np.isnan(truth[:, 1, 0]), [False, True, True, False])
    assert np.isfinite(truth[:, 0]).all()


@cases(
    "scans fixes message",
    ("[{", FIXES, r"scenario2_detections\.json: expected a JSON file"),
    (
        [SCANS[0], scan(2.0, RADAR, [[1], [2], [3]])],
        FIXES[:2],
        r"entry 1: expected a row of norths .* got shape \(3, 1\)",
    ),
    (SCANS, FIXES[:-1], r"groundTruth.json: expected 7 entries as there are scans, got 6"),
)
def test_a_recording_of_another_form_is_refused_in_a_line(write, scans, fixes, message):
    with refusal(message):
        load_autoferry(write(scans, fixes))
