"""One lost run flattens no figure; dashes are what filters are compared with."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import result_of
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter import plotting
from herdfilter.plotting.drawing import HIGHEST_RATIO, highest_ratio, path_limits
from herdfilter.plotting.over_time import model_sensors
from herdfilter.plotting.style import STYLES
from herdfilter.plotting.summaries import consistency_drawing, ratios_drawing
from herdfilter.study.scenario import load_scenario


@pytest.fixture(scope="module")
def plans(scenario, constant):
    """Those of a filter that is wrong by 1e20, beside another."""
    lost = partial(constant, value=1e20)
    return plotting.drawings(result_of(scenario, {"bootstrap": {}, "lost": lost}))


def triangles(ax):
    return [
        line
        for line in ax.lines
        if line.get_marker() in ("^", ">") and line.get_linestyle() == "None"
    ]


def test_a_lost_filter_leaves_room_for_the_other(plans):
    """Its place beyond the axis is a triangle; its path leaves the picture."""
    for name in ("error_over_particles", "error_over_time", "trajectory"):
        axes = plans[name].figure.axes
        assert max(ax.get_ylim()[1] for ax in axes) < 1e4
        assert any(triangles(ax) for ax in axes) == (name != "trajectory")
    (ax,) = plans["ratios"].figure.axes
    assert ax.get_xlim()[1] < 1e5
    assert len(triangles(ax)) == 1


def test_consistency_keeps_the_best_filter_in_view():
    assert highest_ratio([1.2, 1e20, np.nan]) == 1e4
    assert highest_ratio([1e20, 1e12]) == 1e13
    ends = {f"anees{end}": [1.1, 1e20] for end in ("", "_low", "_high")}
    table = pd.DataFrame({"filter": ["mine", "yours"], "n_particles": 9, "nis": np.nan, **ends})
    (ax,) = consistency_drawing(table).figure.axes
    assert ax.get_xlim()[1] < 1e5
    assert len(triangles(ax)) == 1
    # From the bottom up, in the colours that other figures have.
    mine, yours = plotting.styles(table["filter"]).values()
    markers = [line for line in ax.lines if line.get_marker() in (mine.marker, yours.marker)]
    assert [line.get_color() for line in markers] == [yours.color, mine.color]


def test_a_path_is_shown_whole_and_what_strays_is_cut_off():
    truth = np.array([[0.0, 0.0], [10.0, 5.0]])
    astray = np.array([[3.0, 1e20], [np.nan, 2.0], [4.0, 7.0]])
    far = np.array([[-5.0, 3.0], [500.0, 0.0]])
    low, high = path_limits(truth, astray, far)
    assert (low < truth.min(axis=0)).all()
    assert (high > truth.max(axis=0)).all()
    assert low[0] < -5.0  # the near sensor
    assert high[0] < 30.0  # not the far one
    assert 7.0 < high[1] < 30.0


def test_the_path_of_a_scenario_has_start_end_and_sensor():
    scenario = dataclasses.replace(load_scenario("bearings_only"), reference=None)
    result = result_of(scenario, ["bootstrap"], [10], runs=1)
    figure = plotting.drawings(result)["trajectory"].figure
    lines = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    assert_array_equal(lines["start"], lines["truth"][:1])
    assert_array_equal(lines["end"], lines["truth"][-1:])
    assert_array_equal(lines["sensor"], [[0.0, 0.0]])
    assert model_sensors(hf.models.UNGM()) is None
    assert model_sensors(SimpleNamespace(sensors=["a", "b"], radar=3.0)) is None


def test_triangle_stands_beside_the_value_that_is_beyond_the_axis():
    table = pd.DataFrame({"filter": [*"abcdef"], "n_particles": 50, "baseline": "a"})
    table["ratio"] = [1.0, 0.5, 9.8e7, 2e12, 9e3, np.inf]
    table["ratio_low"], table["ratio_high"] = (
        table["ratio"] / 2,
        table["ratio"] * [1, 1.5, 2, 2, 1.1, 1],
    )
    plan = ratios_drawing(table.assign(models=30))
    assert "geometric mean over 30 models" in plan.title
    (ax,) = plan.figure.axes
    ax.figure.canvas.draw()
    rows = {label.get_text(): place for place, label in enumerate(ax.get_yticklabels())}
    places = [
        line.get_transform().transform(line.get_xydata())[-1]
        for line in ax.lines
        if line.get_marker() == ">"
    ]
    assert {round(ax.transData.inverted().transform(place)[1]) for place in places} == {
        rows[name] for name in "cdf"
    }
    at_the_end = ax.transData.transform((HIGHEST_RATIO, 0))[0]
    assert all(x > at_the_end and ax.bbox.contains(x, y) for x, y in places)


def test_no_filter_is_dashed_and_what_is_dashed_is_named(plans):
    own = plotting.styles([f"mine {i}" for i in range(9)])
    assert {style.linestyle for style in (*STYLES.values(), *own.values())} == {"-", ":"}
    dashed = [
        line
        for plan in plans.values()
        for ax in plan.figure.axes
        for line in ax.lines
        if line.get_linestyle() == "--"
    ]
    assert {line.get_label() for line in dashed} == {
        "independent draws",
        "reference posterior mean",
    }
