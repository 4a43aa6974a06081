"""The labelled multi-Bernoulli tracker beside single filters, and beside recursions written out here."""

import copy
from itertools import product

import numpy as np
import pytest
from helpers import EYE, cases, refusal
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

import herdfilter as hf
from herdfilter.tracking import Birth, BirthFromMeasurements, LMBTracker


def scans_of(steps, seed, places=((0.0, 0.0),), detected=1.0, clutter=0, half=10.0):
    """Detections of targets that stand still, and clutter in a square, in any order."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(steps):
        own = [np.array(x) + 0.7 * rng.normal(size=2) for x in places if rng.random() < detected]
        z = np.array([*own, *rng.uniform(-half, half, size=(rng.poisson(clutter), 2))]).reshape(
            -1, 2
        )
        found.append(rng.permutation(z))
    return found


def same(one, other, tolerance=1e-12):
    assert one.labels == other.labels
    for field in ("means", "covariances", "existence"):
        a, b = (np.concatenate(getattr(result, field)) for result in (one, other))
        assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@cases("name tolerance", ("ukf", 1e-14), ("bootstrap", 0))
def test_one_certain_target_without_clutter_is_the_single_filter(name, tolerance, walk, cluttered):
    """The tracker updates Gaussians in a batch: some sixty sums may round differently. Particles have their own filter."""
    model = cluttered(walk, 1.0, 0.0)
    tracker = LMBTracker(model, (), 1.0, filter=name, rng=3, initial=[Birth(1.0, walk.initial)])
    alone = copy.deepcopy(tracker.tracks[0].filter)
    scans = scans_of(5, 1)
    found = tracker.run(scans)
    expected = alone.run([z[0] for z in scans])
    for moment in ("means", "covariances"):
        value = np.concatenate(getattr(found, moment))
        assert_allclose(value, getattr(expected, moment), rtol=tolerance, atol=tolerance)
    assert found.labels == [[(0, 0)]] * 5
    assert_array_equal(found.cardinality, 1.0)


def written_out(tracks, z, r, model):
    """One step of the tracker for Gaussian tracks (mean, covariance), by all assignments in turn."""
    walk = model.model
    detected = model.detection_probability
    clutter = model.clutter_density
    r = [0.99 * one for one in r]
    own = []
    tracks = [(mean, P + walk.Q) for mean, P in tracks]
    for mean, P in tracks:
        S = P + walk.R
        K = P @ np.linalg.inv(S)
        g = [multivariate_normal(mean, S).pdf(w) for w in z]
        moved = [(mean, P), *((mean + K @ (w - mean), P - K @ S @ K.T) for w in z)]
        own.append((moved, np.array(g)))
    # of each track: dead, missed, or one of the detections
    weights = [
        [1 - q, q * (1 - detected), *(q * detected * g / clutter)]
        for q, (_, g) in zip(r, own, strict=True)
    ]
    sums = [np.zeros(2 + len(z)) for _ in tracks]
    for choice in product(range(2 + len(z)), repeat=len(tracks)):
        taken = [c for c in choice if c > 1]
        if len(set(taken)) == len(taken):
            joint = np.prod([w[c] for w, c in zip(weights, choice, strict=True)])
            for total, c in zip(sums, choice, strict=True):
                total[c] += joint
    new_tracks = []
    new_r = []
    for total, (moved, _) in zip(sums, own, strict=True):
        new_r.append(total[1:].sum() / total.sum())
        shares = total[1:] / total[1:].sum()
        mean = sum(s * m for s, (m, _) in zip(shares, moved, strict=True))
        P = sum(
            s * (C + np.outer(m - mean, m - mean)) for s, (m, C) in zip(shares, moved, strict=True)
        )
        new_tracks.append((mean, P))
    return new_tracks, new_r, 1 - sum(total[2:] / total.sum() for total in sums)


@cases("association", "exact", "belief-propagation")
def test_gaussian_tracks_follow_the_recursion_written_out(association, walk, cluttered, gaussian):
    model = cluttered(walk, 0.8, 0.02)
    starts = [Birth(0.7, gaussian(0, 0)), Birth(0.9, gaussian(2, 0))][
        : 1 + (association == "exact")
    ]
    tracker = LMBTracker(
        model,
        (),
        association=association,
        filter="ekf",
        initial=starts,
        gate_probability=1,
        prune=0,
    )
    tracks = [(one.initial.means[0], one.initial.covariances[0]) for one in starts]
    r = [one.probability for one in starts]
    for z in scans_of(4, 5, [(0, 0), (2, 0)], 0.8, clutter=1, half=3.0):
        tracker.predict()
        tracker.update(z)
        tracks, r, _ = written_out(tracks, z, r, model)
        for track, (mean, P), q in zip(tracker.tracks, tracks, r, strict=True):
            assert_allclose(track.mean, mean, rtol=0, atol=1e-12)
            assert_allclose(track.covariance, P, rtol=0, atol=1e-12)
            assert track.existence == pytest.approx(q, abs=1e-12)


def test_targets_are_counted_and_keep_their_labels(walk, cluttered, gaussian):
    """One target stands to the left at all times, another to the right from step 6 to step 15."""
    rng = np.random.default_rng(2)
    scans = []
    for k in range(1, 21):
        places = [(-20.0, 0.0)] + [(20.0, 0.0)] * (6 <= k <= 15)
        (z,) = scans_of(1, rng, places, 0.98, clutter=2, half=30.0)
        scans.append(z)
    births = [Birth(0.01, gaussian(-20, 0)), Birth(0.01, gaussian(20, 0))]
    tracker = LMBTracker(cluttered(walk, 0.98, 2 / 3600), births, filter="auto", n_particles=50)
    found = tracker.run(scans)
    counts = np.array([len(labels) for labels in found.labels])
    places = [np.nanmean(path[:, 0]) for path in found.trajectories().values()]
    assert sorted(np.sign(places)) == [-1, 1]
    # after the first miss a target is still there with 0.99 * 0.02 / (1 - 0.99 * 0.98), more probable than not
    assert_array_equal(np.flatnonzero(counts == 2) + 1, np.arange(6, 17))
    assert set(counts) == {1, 2}


def test_without_detections_existence_falls_by_its_formula(walk, cluttered):
    tracker = LMBTracker(
        cluttered(walk, 0.6), (), 0.9, filter="ekf", initial=[Birth(0.8, walk.initial)]
    )
    with refusal("call predict first", RuntimeError):
        tracker.update([])
    r = 0.8
    for scan in ([], None, [], []):  # no scan is not a scan of nothing
        tracker.predict()
        tracker.update(scan)
        r *= 0.9
        r *= 1 if scan is None else 0.4 / (1 - 0.6 * r)
        assert tracker.cardinality == pytest.approx(r, rel=1e-13)
    alone = hf.make_filter("ekf", walk)
    alone.run([None] * 4)
    assert_allclose(tracker.tracks[0].covariance, alone.covariance, rtol=1e-13)


def test_half_a_time_twice_is_one_time(walk, cluttered):
    halves, whole = (
        LMBTracker(
            cluttered(walk),
            [Birth(0.2, walk.initial)],
            0.8,
            filter="ekf",
            initial=[Birth(0.5, walk.initial)],
        )
        for _ in range(2)
    )
    halves.run([None, None], dt=0.5)
    whole.run([None])
    assert halves.tracks[0].existence == pytest.approx(whole.tracks[0].existence)
    nobody = [
        np.prod([1 - t.existence for t in tracker.tracks if t.label[0]])
        for tracker in (halves, whole)
    ]
    first = 1 - np.sqrt(0.8)  # may have died again in the second half
    assert nobody == pytest.approx([(1 - first) * (1 - first * np.sqrt(0.8)), 0.8])


def test_a_sensor_that_sees_what_the_model_sees_tells_the_same(walk, cluttered, gaussian):
    def identity(x):
        return np.broadcast_to(EYE, (len(x), 2, 2))

    radar = hf.Sensor(
        lambda x: x, walk.R, jacobian=identity, detection_probability=0.8, clutter_density=0.02
    )
    births = [Birth(0.1, gaussian(0, 0))]
    scans = scans_of(6, 5, [(0, 0)], 0.8, clutter=1, half=3.0)
    readings = [(float(k), radar, z) for k, z in enumerate(scans, 1)]
    own, seen = (LMBTracker(cluttered(walk, 0.8, 0.02), births, filter="ekf") for _ in range(2))
    same(own.run(scans), seen.run(readings))
    with refusal("sensor: expected one that gives scans"):
        own.update([], hf.Sensor(lambda x: x, walk.R))


def test_what_came_before_an_error_is_kept(walk, cluttered):
    model = cluttered(walk)
    scans = [*scans_of(3, 1), [[1.0, 2.0, 3.0]], *scans_of(1, 1)]
    tracker = LMBTracker(model, [Birth(0.9, walk.initial)], filter="ekf")
    with refusal(
        r"scan: expected .* detections of 2 numbers each, got shape \(1, 3\) at step 4"
    ) as caught:
        tracker.run(scans)
    expected = LMBTracker(model, [Birth(0.9, walk.initial)], filter="ekf").run(scans[:3])
    same(caught.value.result, expected, tolerance=0.0)


@cases(
    "wrong by",
    ([[1.0, 2.0], [3.0]], "model"),
    ([[np.nan, 0.0]], "model"),
    ([[1.0]], "sensor"),
    ([[1.0, 2.0, 3.0]], "readings"),
)
def test_a_first_scan_of_the_wrong_length_leaves_a_tracker_with_births_from_detections_as_it_was(
    wrong, by, walk, cluttered
):
    radar = hf.Sensor(lambda x: x, EYE, detection_probability=0.9, clutter_density=1e-3)
    sensor = None if by == "model" else radar
    right = [[1.0, 2.0]]
    one, other = (
        LMBTracker(cluttered(walk), BirthFromMeasurements(walk.initial), filter="ukf") for _ in "12"
    )
    if by != "readings":
        one.predict()
    with refusal(r"^scan: expected a scan, detections \(k, 2\)"):
        one.run([(1.0, radar, wrong)]) if by == "readings" else one.update(wrong, sensor)
    other.predict()
    for tracker in (one, other):
        tracker.update(right, sensor)
        tracker.predict()
        tracker.update(right, sensor)
    assert one.tracks
    assert_array_equal(one.tracks[0].filter.mean, other.tracks[0].filter.mean)


def test_impossible_scans_are_named(walk, cluttered, gaussian):
    sure = LMBTracker(
        cluttered(walk, 1.0), (), 1.0, filter="ekf", initial=[Birth(1.0, walk.initial)]
    )
    sure.predict()
    with refusal(r"expected a detection of track \(0, 0\).*survival probability below 1"):
        sure.update([])
    starts = [Birth(1.0, gaussian(0.0, 0.0)), Birth(1.0, gaussian(50.0, 0.0))]
    clear = LMBTracker(cluttered(walk, 0.9, 0.0), (), filter="ekf", initial=starts)
    clear.predict()
    for place in (0, 1):  # two detections near the second target: one is of no target
        scan = np.roll([[50.0, 0.0], [50.5, 0.0], [0.0, 0.0]], place, axis=0)
        with refusal(
            rf"density is zero, got \[50.* 0. *\] as detection [{place}{place + 1}] at step 1"
        ):
            clear.update(scan)


@cases(
    "options error expected",
    (
        {"birth": [0.3]},
        TypeError,
        r"birth: expected a list of herdfilter.tracking.Birth\(.*, or BirthFromMeasurements",
    ),
    ({"filter": "ufk"}, ValueError, "did you mean 'ukf'"),
    (
        {"filter": lambda model, n, rng: object()},
        TypeError,
        "filter: expected an object with predicted_obs",
    ),
)
def test_what_is_wrong_with_a_tracker_is_named(options, error, expected, walk, cluttered):
    given = {"birth": [Birth(0.1, walk.initial)], **options}
    with refusal(expected, error):
        LMBTracker(cluttered(walk), **given)
    with refusal("model: expected a herdfilter", TypeError):
        LMBTracker(walk, **given)


@cases("option", "prune", "report")
def test_a_track_is_kept_and_reported_from_its_bound_on(option, walk, cluttered, gaussian):
    """Existence after a miss, r (1 - p) / (1 - r p), is the bound itself, just below it or just above."""
    starts = [Birth(r, gaussian(50.0 * i, 0)) for i, r in enumerate((0.2, 0.4, 0.6))]
    after = [0.5 * r / (1 - 0.5 * r) for r in (0.2, 0.4, 0.6)]
    for bound, count in ((after[1] * (1 - 1e-9), 2), (after[1] * (1 + 1e-9), 1)):
        given = {"report": 0.0, "prune": 0.0} | {option: bound}
        tracker = LMBTracker(cluttered(walk, 0.5), (), 1.0, filter="ekf", initial=starts, **given)
        tracker.predict()
        record = tracker.update([])
        assert len(record.labels) == count
        assert len(tracker.tracks) == (count if option == "prune" else 3)
        assert record.cardinality == pytest.approx(
            sum(after[-count:]) if option == "prune" else sum(after)
        )


def test_the_most_probable_tracks_are_kept_and_of_equals_the_older(walk, cluttered, gaussian):
    starts = [Birth(r, gaussian(50.0 * i, 0)) for i, r in enumerate((0.5, 0.4, 0.5, 0.6, 0.5))]
    tracker = LMBTracker(cluttered(walk), (), filter="ekf", initial=starts, max_tracks=3)
    tracker.run([[]])
    assert [track.label for track in tracker.tracks] == [(0, 0), (0, 2), (0, 3)]


def test_the_table_has_a_row_for_each_track_and_scan_with_the_numbers_of_the_result(
    walk, cluttered, gaussian
):
    births = [Birth(0.3, gaussian(0, 0)), Birth(0.3, gaussian(6, 0))]
    result = LMBTracker(cluttered(walk, 0.9, 1e-3), births, filter="ekf").run(
        scans_of(5, 3, [(0, 0), (6, 0)]), dt=0.5
    )
    frame = result.to_dataframe(["east", "north"])
    labels = [
        (k + 1, 0.5 * (k + 1), *label) for k, found in enumerate(result.labels) for label in found
    ]
    assert (
        list(frame[["step", "time", "birth", "number"]].itertuples(index=False, name=None))
        == labels
    )
    assert len(labels) > 5
    assert_array_equal(frame["existence"], np.concatenate(result.existence))
    assert_array_equal(frame[["east_mean", "north_mean"]], np.concatenate(result.means))
    assert_array_equal(frame["north_sd"], np.sqrt(np.concatenate(result.covariances)[:, 1, 1]))


def test_detections_start_tracks_as_far_as_no_track_explains_them(walk, cluttered, gaussian):
    model = cluttered(walk, 0.8, 0.02)
    starts = [Birth(0.7, gaussian(0, 0)), Birth(0.9, gaussian(2, 0))]
    births = BirthFromMeasurements(gaussian(0, 0, variance=100.0), expected=0.3, most=1.0)
    tracker = LMBTracker(
        model,
        births,
        association="exact",
        filter="ekf",
        initial=starts,
        gate_probability=1,
        prune=0,
    )
    z = np.array([[0.2, 0.1], [2.5, -0.5], [6.0, 6.0]])
    tracker.predict()
    tracker.update(z)
    tracker.predict()
    tracks = [(one.initial.means[0], one.initial.covariances[0]) for one in starts]
    left = written_out(tracks, z, [0.7, 0.9], model)[2]
    assert left[0] < 0.5 < left[2]
    newborn = [track.existence for track in tracker.tracks if track.label[0] == 2]
    assert_allclose(newborn, 0.3 * left / left.sum(), rtol=1e-9)


def near(x):
    """Detection probability of a sensor that sees the left half of the plane."""
    return np.where(x[:, 0] < 0, 0.9, 0.0)


@cases("name by_sensor", ("ukf", True), ("auto", False))
def test_a_track_that_cannot_be_seen_is_not_given_up(name, by_sensor, walk, cluttered, gaussian):
    """An empty scan is news of the target on the left, by the formula, and none of the one on the right."""
    places = [Birth(0.6, gaussian(-50.0, 0.0)), Birth(0.6, gaussian(50.0, 0.0))]
    model = cluttered(walk) if by_sensor else cluttered(walk, near)
    tracker = LMBTracker(model, (), 1.0, filter=name, rng=3, initial=places)
    tracker.predict()
    sensor = (
        hf.Sensor(lambda x: x, walk.R, detection_probability=near, clutter_density=1e-3)
        if by_sensor
        else None
    )
    record = tracker.update([], sensor)
    assert [track.existence for track in tracker.tracks] == pytest.approx([0.06 / 0.46, 0.6])
    assert record.labels == [(0, 1)]


def test_a_detection_where_clutter_is_dense_says_less_of_a_track(walk, cluttered, gaussian):
    places = [Birth(0.1, gaussian(-50.0, 0.0)), Birth(0.1, gaussian(50.0, 0.0))]
    model = cluttered(walk, 0.9, lambda z: np.where(z[:, 0] < 0, 1e-1, 1e-3))
    tracker = LMBTracker(model, (), 1.0, filter="auto", initial=places)
    tracker.predict()
    tracker.update([[-50.0, 0.0], [50.0, 0.0]])
    # in the middle of a predicted detection
    odds = 0.9 / np.array([1e-1, 1e-3]) / (2 * np.pi * 1.7)
    expected = 0.1 * (0.1 + odds) / (0.91 + 0.1 * odds)
    assert [track.existence for track in tracker.tracks] == pytest.approx(expected, rel=0.01)
