"""Tentative, confirmed and coasting tracks."""

from helpers import cases, normal, refusal

import herdfilter as hf
from herdfilter.tracking import Birth, BirthFromMeasurements, DetectionHistory, LMBTracker


def statuses(walk, cluttered, scans, dt=1.0, **options):
    """Status and time since detection of one target that surely exists, after each scan."""
    tracker = LMBTracker(
        cluttered(walk),
        (),
        1.0,
        filter="ukf",
        initial=[Birth(0.99, walk.initial)],
        report=0.0,
        **options,
    )
    (histories,) = zip(*tracker.run(scans, dt=dt).history, strict=True)
    return (
        [one.status for one in histories],
        [one.time_since_detection for one in histories],
        histories[-1].detections,
    )


HIT = [[0.1, 0.2]]
MISS = []


def test_a_track_is_confirmed_by_m_of_n_scans_then_coasts_while_none_detects_it(walk, cluttered):
    found, elapsed, detections = statuses(
        walk, cluttered, [HIT, MISS, HIT, MISS, HIT, MISS, None, HIT], dt=0.5, confirm=(3, 5)
    )
    assert found == [*["tentative"] * 4, "confirmed", "coasting", "coasting", "confirmed"]
    assert elapsed == [0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 1.0, 0.0]
    assert detections == 4


def test_detections_too_far_apart_do_not_confirm(walk, cluttered):
    assert statuses(walk, cluttered, [HIT, MISS, HIT, MISS], confirm=(2, 2))[0] == ["tentative"] * 4
    # no scan misses no target
    assert statuses(walk, cluttered, [HIT, None, HIT], confirm=[2, 2])[0][2] == "confirmed"


def test_before_the_first_detection_time_counts_from_the_start(walk, cluttered):
    births = BirthFromMeasurements(normal([0, 0], 9), expected=0.5, most=0.5)
    tracker = LMBTracker(cluttered(walk), births, filter="ukf", report=0.0)
    assert tracker.run([HIT, MISS]).history == [[], [DetectionHistory(0, 1.0, False, (False,))]]


def test_one_of_several_sensors_keeps_a_track_from_coasting(walk, cluttered):
    other = hf.Sensor(lambda x: x[:, :1], [[0.5]], detection_probability=0.5, clutter_density=0.01)
    readings = [(1, None, HIT), (2, None, HIT), (2, other, []), (3, other, [])]
    assert statuses(walk, cluttered, readings, dt=None, confirm=(1, 1))[:2] == (
        [*["confirmed"] * 3, "coasting"],
        [0, 0, 0, 1],
    )


@cases("confirm", 3, (4, 3))
def test_odd_confirmations_are_named_in_one_line(confirm, walk, cluttered):
    with refusal(r"^confirm: expected [^\n]*$", (TypeError, ValueError)):
        LMBTracker(cluttered(walk), confirm=confirm)


def test_table_and_summary_say_the_same(walk, cluttered, gaussian):
    tracker = LMBTracker(
        cluttered(walk),
        [Birth(0.3, gaussian(0, 0))],
        filter="ukf",
        initial=[Birth(0.9, gaussian(50, 0))],
        confirm=(2, 3),
        report=0.3,
    )
    far = [50.0, 0.0]
    result = tracker.run(
        [[far], [far], [[0.1, 0.0], far], [[0.1, 0.2], far], [[0.1, 0.2], far], [far]], dt=2.0
    )
    table = result.to_dataframe(["x", "y"])
    summary = result.summary()
    assert summary["track_id"].tolist() == ["0-0", "3-0"]
    assert summary["status"].tolist() == ["confirmed", "coasting"]
    assert summary["detections"].tolist() == [6, 3]
    for row in summary.itertuples():
        rows = table[table["track_id"] == row.track_id]
        assert len(rows) == row.scans
        assert (row.first, row.last) == (rows["time"].min(), rows["time"].max())
        assert row.existence == rows["existence"].iloc[-1]
    nobody = LMBTracker(cluttered(walk)).run([[]]).summary()
    assert nobody.columns.tolist() == summary.columns.tolist()
