"""Scans that come late: a tracker goes back, and stands where scans in order would have led it."""

import numpy as np
from helpers import EYE, cases, normal, refusal

import herdfilter as hf
from herdfilter.tracking import Birth, BirthFromMeasurements, LMBTracker

RADAR = hf.Sensor(lambda x: x, 0.5 * EYE, detection_probability=0.8, clutter_density=0.02)


def arriving(seed, steps=10):
    """Readings of two targets by the model's own sensor and by a radar; several come late."""
    rng = np.random.default_rng(seed)
    readings = []
    for k in range(1, steps + 1):
        own = [
            np.array(place) + 0.7 * rng.normal(size=2)
            for place in ((0, 0), (3, 0))
            if rng.random() < 0.8
        ]
        scan = np.array([*own, *rng.uniform(-5, 5, (rng.poisson(1.0), 2))]).reshape(-1, 2)
        readings.append((float(k), RADAR if k % 3 == 0 else None, scan if k != 7 else None))
    return [readings[k] for k in (0, 1, 4, 2, 3, 5, 9, 8, 7, 6)]


def make(walk, cluttered, births="detections", **options):
    wide = normal([0, 0], 9)
    births = (
        BirthFromMeasurements(wide, expected=0.5, most=0.5)
        if births == "detections"
        else [Birth(0.2, wide)]
    )
    return LMBTracker(cluttered(walk, 0.8, 0.02), births, n_particles=15, rng=1, **options)


def standing(tracker):
    return [
        (t.label, t.existence, t.mean.tolist(), t.covariance.tolist(), t.history)
        for t in tracker.tracks
    ], tracker.time


@cases(
    "name association births",
    ("ukf", "auto", "detections"),
    ("auto", "auto", "places"),
    ("bootstrap", "random-gibbs", "detections"),
)
def test_late_scans_are_taken_up_in_their_places_to_the_last_bit(
    name, association, births, walk, cluttered
):
    options = {"filter": name, "association": association, "births": births}
    in_order, batch, fed = (make(walk, cluttered, **options) for _ in range(3))
    readings = arriving(4)
    expected = in_order.run(sorted(readings, key=lambda reading: reading[0]))
    late = batch.run(readings, late="replay")
    assert late.labels == expected.labels
    np.testing.assert_array_equal(np.concatenate(late.means), np.concatenate(expected.means))
    replay = hf.Replay(fed, lag=5.0)
    for time, sensor, scan in readings:
        record = replay.update(time, scan, sensor)
    assert standing(fed) == standing(in_order) == standing(batch)
    assert len(fed.tracks) > 1
    assert (record.step, record.labels) == (10, expected.labels[-1])
    for tracker in (fed, in_order):  # and it goes on as they do: births depend on the scan before
        tracker.predict()
        tracker.update([[1.0, 0.0]])
    assert standing(fed) == standing(in_order)


def test_a_late_scan_that_is_none_leaves_a_tracker_where_it_stood(walk, cluttered):
    one, other = (make(walk, cluttered, filter="bootstrap") for _ in range(2))
    replay = hf.Replay(one, lag=5.0)
    expected = hf.Replay(other, lag=5.0)
    for both in (replay, expected):
        for time, sensor, scan in arriving(4)[:3]:
            both.update(time, scan, sensor)
    with refusal(r"^scan: expected a scan, detections \(k, 2\)"):
        replay.update(3.0, [[1.0]])
    assert standing(one) == standing(other)
    for both in (replay, expected):
        for time, sensor, scan in arriving(4)[3:]:
            both.update(time, scan, sensor)
    assert standing(one) == standing(other)


def test_tracks_of_trackers_that_share_a_generator_draw_apart(walk, cluttered):
    rng = np.random.default_rng(3)
    first, second = (
        LMBTracker(
            cluttered(walk), filter="bootstrap", initial=2 * [Birth(0.9, walk.initial)], rng=rng
        )
        for _ in range(2)
    )
    means = {tuple(track.mean) for tracker in (first, second) for track in tracker.tracks}
    assert len(means) == 4
