"""Tracks of Gaussians in a batch beside the same tracks one by one."""

import numpy as np
import pytest
from helpers import EYE, cases, normal, polar
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.models import WithClutter
from herdfilter.tracking import Birth, LMBTracker
from herdfilter.tracking.bank import GaussianFilters, ListedFilters

WALK = hf.models.ConstantVelocity(0.1, 1.0, np.zeros(4), np.eye(4))
RADAR = hf.Sensor(
    polar, np.diag([1.0, 0.01]), circular=[1], detection_probability=0.8, clutter_density=0.01
)
HEADING = hf.models.from_functions(
    lambda x: np.column_stack(
        [x[:, 0] + 0.2, x[:, 1] + np.cos(x[:, 0]), x[:, 2] + np.sin(x[:, 0])]
    ),
    lambda x: x[:, 1:],
    0.05 * np.eye(3),
    EYE,
    [3.0, 0.0, 0.0],
    np.eye(3),
    circular=[0],
)
KINDS = {
    "ukf": hf.UnscentedKalmanFilter,
    "ekf": hf.ExtendedKalmanFilter,
    "ckf": hf.CubatureKalmanFilter,
}


def alone(name):
    """Return a filter of the kind that takes no part in a batch: it has a method of its own."""
    kind = KINDS[name]
    own = type(
        "Own",
        (kind,),
        {"predict": lambda self, dt=1.0, control=None: kind.predict(self, dt, control)},
    )
    return lambda model, n_particles, rng: own(model)


def scenes():
    """Name -> model, arguments of the tracker, and readings."""
    rng = np.random.default_rng(5)

    def scans(steps, targets, clutter, half):
        found = []
        for k in range(steps):
            own = targets + 0.3 * k + rng.normal(size=targets.shape)
            false = rng.uniform(-half, half, (rng.poisson(clutter), 2))
            found.append(rng.permutation(np.vstack([own[rng.random(len(own)) < 0.9], false])))
        return found

    places = rng.uniform(-20, 20, (8, 2))
    starts = [Birth(0.9, normal([*place, 0.3, 0.3])) for place in places]
    crowd = WithClutter(WALK, 0.9, 0.005)
    yield (
        "a crowd",
        crowd,
        {"initial": starts},
        [(k + 1.0, None, z) for k, z in enumerate(scans(8, places, 5, 25))],
    )
    two = hf.GaussianMixture([0.4, 0.6], [[3.1, 0, 0], [-3.0, 4, 1]], np.diag([0.1, 4, 4]))
    heading = WithClutter(HEADING, 0.9, 0.005)
    yield (
        "angles",
        heading,
        {"birth": [Birth(0.2, two)], "initial": [Birth(0.9, two)]},
        [(k + 1.0, None, z) for k, z in enumerate(scans(8, places[:2] / 8, 3, 10))],
    )
    ranges = [polar(z) for z in scans(8, np.array([[-9.0, 0.1], [8, 8]]), 2, 15)]
    seen = [Birth(0.9, normal([*place, 0.3, 0.3])) for place in ([-9.0, 0.1], [8.0, 8.0])]
    yield (
        "a radar",
        crowd,
        {"initial": seen},
        [
            (k // 2 + 1.0, RADAR if k % 3 else None, z if k % 3 else [])
            for k, z in enumerate(ranges)
        ],
    )


SCENES = {name: rest for name, *rest in scenes()}


@cases(
    "scene name",
    *((scene, "ukf") for scene in SCENES),
    ("a radar", "ekf"),
    ("angles", "ckf"),
    ("a crowd", "ekf"),
)
def test_a_batch_of_tracks_is_the_same_tracks_one_by_one(scene, name):
    model, options, readings = SCENES[scene]
    batched, listed = (LMBTracker(model, filter=one, **options) for one in (name, alone(name)))
    found = batched.run(readings)
    expected = listed.run(readings)
    assert isinstance(batched._held.bank, GaussianFilters)
    assert isinstance(listed._held.bank, ListedFilters)
    assert found.labels == expected.labels
    # slopes by differences have ten digits
    close = dict.fromkeys(("rtol", "atol"), 1e-8 if name == "ekf" else 1e-11)
    assert sum(map(len, found.labels)) > 5
    for field in ("means", "covariances", "existence"):
        for one, other in zip(getattr(found, field), getattr(expected, field), strict=True):
            assert_allclose(one, other, **close, err_msg=field)
    assert [one.label for one in batched.tracks] == [one.label for one in listed.tracks]
    for one, other in zip(batched.tracks, listed.tracks, strict=True):
        assert_allclose(one.filter.covariance, other.filter.covariance, **close)
        assert one.existence == pytest.approx(other.existence, abs=close["atol"])
        assert (one.filter.step, one.filter.time) == (batched.step, batched.time)


def test_tracks_are_a_copy():
    start = Birth(0.9, normal([1.0, 0, 0, 0]))
    tracker = LMBTracker(WithClutter(WALK, 0.9, 0.01), filter="ukf", initial=[start])
    track = tracker.tracks[0]
    track.filter.predict()
    track.filter.update([5.0, 5.0])
    tracker.predict()
    assert tracker.tracks[0].filter.step == 1
    assert_allclose(tracker.tracks[0].mean, [1.0, 0, 0, 0], atol=1e-12)
