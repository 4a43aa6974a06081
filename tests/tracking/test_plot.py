"""The picture of a tracker's result."""

import numpy as np
import pytest
from helpers import refusal
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.tracking import Birth, LMBTracker


@pytest.fixture
def result(walk, cluttered, gaussian):
    """Two targets, of which the second is not detected twice and then is again."""
    tracker = LMBTracker(
        cluttered(walk),
        (),
        0.99,
        filter="ukf",
        initial=[Birth(0.9, gaussian(x, 0)) for x in (0, 9)],
        confirm=(1, 1),
        report=0.2,
    )
    left = [0.2, 0.1]
    right = [9.1, 0.1]
    return tracker.run([[left, right], [left, right], [left], [left], [left, right]])


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def test_in_the_plane_each_track_is_a_path_with_ellipses_and_rings_where_it_coasts(result):
    ax = result.plot(Figure().subplots(), dims=(0, 1), names=["east", "north"])
    assert ax.get_ylabel() == "north"
    paths = result.trajectories()
    for label, path in paths.items():
        assert_array_equal(lines(ax)[f"track {label}"].get_xydata(), path)
    assert len(ax.patches) == 10
    (rings,) = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert_array_equal(rings.get_xydata(), paths[0, 1][2:4])
    truth = np.zeros((5, 2, 2))
    truth[:2, 1] = np.nan
    over_time, _ = result.plot([Figure().subplots() for _ in range(2)], truth=truth)
    assert_array_equal(lines(over_time)["track (0, 1)"].get_ydata(), paths[0, 1][:, 0])
    assert [[3, 0], [4, 0], [5, 0]] in [line.get_xydata().tolist() for line in over_time.lines]
    assert len(over_time.collections) == 2
    with refusal(r"^truth: expected shape \(5, \*, 2\), got \(5, 2\)"):
        result.plot(Figure().subplots(), truth=truth[:, 0])


def test_over_time_only_the_last_of_several_pictures_names_the_axis_of_time(cluttered):
    model = hf.models.linear_chain(3)
    tracker = LMBTracker(cluttered(model), (), filter="ukf", initial=[Birth(0.9, model.initial)])
    axes = tracker.run([[[0.1, 0.2, 0.3]], [[0.2, 0.1, 0.3]]]).plot(
        [Figure().subplots() for _ in range(3)]
    )
    assert [one.get_xlabel() for one in axes] == ["", "", "time"]
