import itertools

import numpy as np
import pandas as pd
import pytest
from helpers import cases, result_of
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter import plotting
from herdfilter.plotting.summaries import pareto
from herdfilter.study.scenario import Scenario

EYE = [[1.0, 0.0], [0.0, 1.0]]
PLANE = dict.fromkeys(("F", "H", "Q", "R", "initial_covariance"), EYE) | {
    "type": "LinearGaussian",
    "initial_mean": [0, 0],
}
FILTERS = ["bootstrap", "guided", "sqmc"]


def study(**changes):
    options = {
        "steps": 15,
        "runs": 6,
        "particles": (10, 20, 40),
        "reference": {"type": "kalman"},
    } | changes
    labels = ("east (m)", "north (m)")
    scenario = Scenario(
        "plane", "Plane", PLANE, unit="m", labels=labels, time_label="time (s)", **options
    )
    return result_of(scenario, FILTERS)


@pytest.fixture(scope="module")
def result():
    return study()


def labels(figure):
    return figure.get_supxlabel(), figure.get_supylabel()


def test_error_over_time_shows_every_filter_and_its_errors(result):
    figure = plotting.drawings(result)["error_over_time"].figure
    panels = {ax.get_title(): ax for ax in figure.axes}
    assert list(panels) == FILTERS
    squares = result.series["guided", 40]["reference"]
    assert_allclose(panels["guided"].lines[0].get_ydata(), np.median(np.sqrt(squares), axis=0))
    assert labels(figure) == ("time (s)", "error, median over runs (m)")
    # fits above three panels
    assert max(len(line) for line in figure.get_suptitle().splitlines()) < 130


def test_error_over_particles_shows_summary_and_intervals(result):
    summary = result.summary
    figure = plotting.drawings(result)["error_over_particles"].figure
    against_reference, against_truth = figure.axes
    for ax, measure in ((against_reference, "reference_error"), (against_truth, "rmse")):
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        lines = {line.get_label(): line for line in ax.lines}
        for bars, (name, rows) in zip(
            ax.collections, summary.groupby("filter", sort=False), strict=True
        ):
            assert_allclose(lines[name].get_ydata(), rows[f"{measure}_median"])
            ends = np.array([segment[:, 1] for segment in bars.get_segments()])
            assert_allclose(
                ends, rows[[f"{measure}_median_low", f"{measure}_median_high"]].to_numpy()
            )
    assert labels(figure) == ("particles", "error, median over runs (m)")


@cases("name column", ("seconds", "ms_per_step"), ("evaluations", "evaluations"))
def test_error_over_a_cost_has_it_across_and_particle_counts_apart_and_inside(result, name, column):
    figure = plotting.drawings(result)[f"error_over_{name}"].figure
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert_array_equal(lines[FILTERS[0]].get_xdata(), result.summary[column][:3])
    FigureCanvasAgg(figure).draw()
    for ax in figure.axes:
        assert ax.texts[0].get_text() == "n = 10"
        boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.x0)
        assert ax.get_window_extent().x0 < boxes[0].x0
        assert boxes[-1].x1 < ax.get_window_extent().x1
        assert all(before.x1 <= after.x0 for before, after in itertools.pairwise(boxes))


def test_the_pareto_front_holds_what_nothing_beats():
    times = [1.0, 2.0, 2.5, 3.0, 4.0, 0.9]
    errors = [5.0, 3.0, 3.5, 3.0, 1.0, np.nan]
    table = pd.DataFrame({"ms_per_step": times, "rmse_median": errors, "runs": 10})
    for failures, front in ((0, [0, 1, 4]), ([0, 0, 0, 0, 6, 0], [0, 1])):
        assert list(pareto(table.assign(failures=failures), "rmse").index) == front


def test_a_trajectory_in_the_plane(result):
    figure = plotting.drawings(result)["trajectory"].figure
    assert [ax.get_title() for ax in figure.axes] == [f"{name}, n = 20" for name in FILTERS]
    for ax, name in zip(figure.axes, FILTERS, strict=True):
        lines = {line.get_label(): line for line in ax.lines}
        assert_array_equal(lines["truth"].get_xydata(), result.trajectory.recording.truth)
        assert_array_equal(lines["estimate"].get_xydata(), result.trajectory.estimates[name])
    assert labels(figure) == ("east (m)", "north (m)")


def test_figures_of_one_run_at_one_count_without_a_reference():
    """Points have no offsets then; over time the particles are drawn."""
    result = study(reference=None, particles=(10,), runs=1, view="time")
    plans = plotting.drawings(result)
    assert len(plans) == 9
    assert all(plan.figure.axes for plan in plans.values())
    (ax,) = plans["error_over_particles"].figure.axes
    assert {
        float(x)
        for line in ax.lines
        for x in line.get_xdata()
        if line.get_marker() not in ("", "None", None)
    } == {10.0}
    (weighted,) = plans["trajectory"].figure.axes[1].collections
    assert_array_equal(
        weighted.get_offsets()[:, 1], result.trajectory.particles["guided"][:, :, 0].ravel()
    )


@pytest.mark.filterwarnings("error")
def test_one_count_with_intervals_has_limits():
    """Matplotlib warns where all points are above one number."""
    ax = plotting.drawings(study(particles=(10,)))["error_over_particles"].figure.axes[0]
    assert ax.get_xlim() == pytest.approx((8.5, 11.8))
