"""Scans from tables."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from helpers import EYE, refusal, refuses
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.tracking import Birth, LMBTracker, scans_from_table

TABLE = pd.DataFrame(
    {"t": [2.0, 1.0, 2.0, 4.0], "e": [5, 1, 6, 7], "n": [0.5, 0.1, 0.6, 0.7], "kind": list("abcd")}
)


def test_rows_of_one_time_are_a_scan_in_order_of_time():
    readings = scans_from_table(TABLE, ["n", "e"], "t")
    assert [reading[:2] for reading in readings] == [(1.0, None), (2.0, None), (4.0, None)]
    assert_array_equal(readings[1][2], [[0.5, 5], [0.6, 6]])


def test_scans_without_a_detection_are_kept_if_their_times_are_given():
    sensor = hf.Sensor(lambda x: x, EYE, detection_probability=0.5, clutter_density=0.1)
    readings = scans_from_table(TABLE, ["e", "n"], "t", times=[4, 3, 2, 1, 0.5], sensor=sensor)
    shapes = [
        (0.5, sensor, (0, 2)),
        (1, sensor, (1, 2)),
        (2, sensor, (2, 2)),
        (3, sensor, (0, 2)),
        (4, sensor, (1, 2)),
    ]
    assert [(time, one, z.shape) for time, one, z in readings] == shapes


def test_a_file_of_dates_is_tracked_as_the_scans_themselves(walk, cluttered, tmp_path):
    start = datetime(2026, 3, 1, 12)
    rows = [(start + timedelta(seconds=k), 0.1 * k, 0.2) for k in (1, 2, 4)]
    path = tmp_path / "detections.csv"
    pd.DataFrame(rows, columns=["time", "x", "y"]).to_csv(path, index=False)
    every = [start + timedelta(seconds=k) for k in range(1, 5)]
    one, other = (
        LMBTracker(cluttered(walk), filter="ukf", initial=[Birth(0.9, walk.initial)], report=0.0)
        for _ in range(2)
    )
    found = one.run(scans_from_table(path, ["x", "y"], times=every), start=start)
    expected = other.run([[[0.1, 0.2]], [[0.2, 0.2]], [], [[0.4, 0.2]]])
    assert_array_equal(found.means, expected.means)


def test_a_file_that_is_no_table_is_named_in_one_line(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<html>\n<p>one\n<p>two, three, four, five, six\n")
    with refusal(r"^table: cannot read .*Expected 1 fields in line 3, saw 5", OSError):
        scans_from_table(path, ["e"])


test_odd_tables_are_named_in_one_line = refuses(
    lambda table, options: scans_from_table(table, **{"columns": ["e"], "time": "t", **options}),
    (3, {}, r"^table: expected a pandas\.DataFrame or the path of a CSV file, got 3$"),
    ("nowhere.csv", {}, "^table: cannot read 'nowhere.csv'"),
    (
        TABLE,
        {"columns": ["e", "z"]},
        r"^table: expected a column 'z', got the columns \['t', 'e', 'n', 'kind'\]$",
    ),
    (
        TABLE.assign(e=[1, np.nan, 2, 3]),
        {},
        "^column 'e': expected finite numbers, got 1 non-finite$",
    ),
    (TABLE, {"time": "kind"}, "^column 'kind': expected numbers or dates, got 'a' in row 0$"),
    (
        pd.DataFrame(
            {"t": np.float32(1.7e9) + np.float32(50) * np.arange(6, dtype=np.float32), "e": 0.0}
        ),
        {},
        "^column 't': expected times of type float64, got equal ones of type float32",
    ),
    (
        TABLE.assign(t=[2.0, np.nan, 2.0, 4.0]),
        {},
        r"^column 't': expected numbers or dates, got .*nan.* in row 1$",
    ),
    (
        TABLE,
        {"times": [1, 2, 3]},
        "^times: expected the times of all scans, got none at 4.0, the time of row 3$",
    ),
    error=(TypeError, ValueError, OSError),
)
