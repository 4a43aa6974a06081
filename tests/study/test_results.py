"""Detections as positions in the plane, whatever the sensor tells of them."""

from types import SimpleNamespace

import numpy as np
from helpers import cases

from herdfilter.study.recording import Recording
from herdfilter.study.results import positions

TRUTH = np.random.default_rng(0).standard_normal((6, 2, 4)) * 50
TRUTH[3:, 1] = np.nan
RADAR = np.array([30.0, -10.0])


def polar(x, step):
    apart = x[:, [0, 2]] - RADAR
    return np.column_stack([np.hypot(*apart.T), np.arctan2(*apart.T[::-1])])


@cases(
    "observe",
    lambda x, step: x[:, [2, 0]] - [3.0, 4.0],
    polar,
    ids=["other order, from a sensor elsewhere", "range and bearing"],
)
def test_detections_without_noise_lie_on_the_targets(observe):
    """Also the scan of no detections has its place."""
    there = [states[np.isfinite(states).all(axis=1)] for states in TRUTH]
    there[2] = there[2][:0]
    scans = [observe(states, 1) for states in there]
    found = positions(SimpleNamespace(observation_mean=observe), Recording(TRUTH, scans), (0, 2))
    assert [len(scan) for scan in found] == [2, 2, 0, 1, 1, 1]
    np.testing.assert_allclose(
        np.concatenate(found), np.concatenate(there)[:, [0, 2]], rtol=0, atol=1e-6
    )


def test_what_is_no_position_has_none():
    scans = [np.zeros((1, 2))] * 6
    # a position and its velocity
    moving = SimpleNamespace(observation_mean=lambda x, step: x[:, [0, 1]])
    assert positions(moving, Recording(TRUTH, scans), (0, 2)) is None
