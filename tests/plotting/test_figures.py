import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import herdfilter as hf
from herdfilter import plotting
from herdfilter.plotting.drawing import Drawing, Panel
from herdfilter.plotting.style import figures, log_places, save
from herdfilter.plotting.summaries import pareto
from herdfilter.study.engine import run_study
from herdfilter.study.plan import plan_study
from herdfilter.study.scenario import Scenario

PLANE = {
    "type": "LinearGaussian",
    "F": [[1.0, 0.0], [0.0, 1.0]],
    "H": [[1.0, 0.0], [0.0, 1.0]],
    "Q": [[1.0, 0.0], [0.0, 1.0]],
    "R": [[0.5, 0.0], [0.0, 0.5]],
    "initial_mean": [0.0, 0.0],
    "initial_covariance": [[1.0, 0.0], [0.0, 1.0]],
}
FILTERS = ["bootstrap", "augmented-kh", "augmented-random"]


def study(**changes):
    scenario = Scenario(
        **{
            "name": "plane",
            "title": "Plane",
            "model": PLANE,
            "steps": 15,
            "runs": 6,
            "particles": (10, 20, 40),
            "unit": "m",
            "labels": ("east (m)", "north (m)"),
            "time_label": "time (s)",
            "reference": {"type": "kalman"},
        }
        | changes
    )
    return run_study(plan_study(scenario, filters=FILTERS))


@pytest.fixture(scope="module")
def result():
    return study()


def labels(figure):
    return {text for ax in figure.axes for text in (ax.get_xlabel(), ax.get_ylabel())}


def colours_by_filter(ax):
    return {c.get_label(): c.lines[0].get_color() for c in ax.containers}


def test_a_figure_is_laid_out_once_and_drawn_once_a_file(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    drawn, draw = [], Axes.draw
    monkeypatch.setattr(Axes, "draw", lambda *arguments: drawn.append(1) or draw(*arguments))
    with figures() as new:
        figure, _ = new(1, 1, (3, 2))
    save(figure, tmp_path / "a.png", tmp_path / "a.svg")
    assert len(drawn) == 2


def test_error_over_time_shows_every_filter_and_its_errors(result):
    figure = plotting.error_over_time(result, n_particles=20)
    panels = {ax.get_title(): ax for ax in figure.axes}
    assert list(panels) == FILTERS
    squares = result.series["augmented-kh", 20]["reference"]
    np.testing.assert_allclose(panels["augmented-kh"].lines[0].get_ydata(), np.median(np.sqrt(squares), axis=0))
    assert figure.get_supxlabel() == "time (s)"
    assert figure.get_supylabel() == "error, median over runs (m)"
    assert max(len(line) for line in figure.get_suptitle().splitlines()) < 130  # fits above three panels


def test_error_over_particles_shows_summary_and_intervals(result):
    summary = hf.study.summarise(result.runs)
    figure = plotting.error_over_particles(summary, "m")
    against_reference, against_truth = figure.axes
    for ax, measure in ((against_reference, "reference_error"), (against_truth, "rmse")):
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        for container, (_, rows) in zip(ax.containers, summary.groupby("filter", sort=False), strict=True):
            line, _, (bars,) = container.lines
            np.testing.assert_allclose(line.get_ydata().astype(float), rows[f"{measure}_median"])
            ends = np.array([segment[:, 1] for segment in bars.get_segments()])
            np.testing.assert_allclose(ends, rows[[f"{measure}_median_low", f"{measure}_median_high"]].to_numpy())
    assert {"particles", "error, median over runs (m)"} <= labels(figure)


def test_error_over_seconds_has_time_across(result):
    summary = hf.study.summarise(result.runs)
    figure = plotting.error_over_seconds(summary)
    line = figure.axes[0].containers[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), summary["ms_per_step"][:3])
    assert figure.axes[0].get_xlabel() == "milliseconds per step, median over runs"


def test_particle_counts_over_time_stay_inside_the_axes_and_apart(result):
    figure = plotting.error_over_seconds(hf.study.summarise(result.runs))
    FigureCanvasAgg(figure).draw()
    for ax in figure.axes:
        assert ax.texts[0].get_text() == "n = 10"
        frame, ends = ax.get_window_extent(), []
        for text in ax.texts:
            box = text.get_window_extent()
            assert frame.x0 < box.x0
            assert box.x1 < frame.x1
            ends.append((box.x0, box.x1))
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(sorted(ends)))


def test_the_pareto_front_holds_what_nothing_beats():
    times, errors = [1.0, 2.0, 2.5, 3.0, 4.0, 0.9], [5.0, 3.0, 3.5, 3.0, 1.0, np.nan]
    table = pd.DataFrame({"ms_per_step": times, "rmse_median": errors})
    assert list(pareto(table, "rmse").index) == [0, 1, 4]
    failing = table.assign(runs=10, failures=[0, 0, 0, 0, 6, 0])
    assert list(pareto(failing, "rmse").index) == [0, 1]


def test_places_on_a_logarithmic_axis_are_few_and_within():
    for low, high in ((1, 10), (0.8, 5), (3e-5, 7e4), (0.81, 0.94), (2.9, 9.3), (1e-16, 1e3), (99, 101)):
        places = log_places(low, high)
        assert 2 <= len(places) <= 10
        assert all(low <= place <= high for place in places)


def test_four_panels_stand_two_by_two():
    for panels, columns in ((1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (6, 3), (7, 3), (9, 3)):
        plan = Drawing((Panel("", lambda ax: ax.plot([0, 1], [0, 1])),) * panels, (2.0, 1.5))
        places = {round(ax.get_position().x0, 2) for ax in plan.figure().axes}
        assert len(places) == columns


def test_one_count_has_no_offsets_between_filters():
    table = hf.compare("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=2)
    (ax, *_) = plotting.error_over_particles(hf.study.summarise(table)).axes
    assert {float(x) for line in ax.lines for x in line.get_xdata() if line.get_marker() not in ("", "None", None)} == {20.0}


def test_panels_by_themselves_have_the_limits_of_the_whole(result):
    plan = plotting.drawings(result)["error_over_time"]
    whole = plan.figure().axes[0]
    for _, figure in plan.parts():
        (ax,) = figure.axes
        assert (ax.get_xlim(), ax.get_ylim()) == (whole.get_xlim(), whole.get_ylim())


def test_no_two_filters_of_a_study_have_one_colour_where_there_are_enough():
    names = ["bootstrap", "sqmc", "herded-kh", "mixture-kh", "augmented-kh", "kalman-mixture-kh", "mine"]
    assert len({look.color for look in plotting.styles(names).values()}) == len(names)


def test_a_filter_has_the_same_colour_in_every_figure(result):
    summary = hf.study.summarise(result.runs)
    by_count = colours_by_filter(plotting.error_over_particles(summary).axes[0])
    by_time = colours_by_filter(plotting.error_over_seconds(summary).axes[0])
    titles = {ax.get_title(): ax.title.get_color() for ax in plotting.error_over_time(result).axes}
    assert by_count == by_time == titles
    assert len(set(by_count.values())) == len(FILTERS)


def test_filters_of_ones_own_get_styles_that_are_free():
    names = ["bootstrap", "mine", "herded-kh", "yours"]
    looks = plotting.styles(names)
    assert list(looks) == names
    assert len({look.color for look in looks.values()}) == 4
    many = plotting.styles([f"filter {i}" for i in range(30)])
    assert len(many) == 30


def test_a_trajectory_in_the_plane(result):
    figure = plotting.trajectory(result, ["bootstrap", "augmented-kh"])
    assert [ax.get_title() for ax in figure.axes] == ["bootstrap, n = 20", "augmented-kh, n = 20"]
    for ax, name in zip(figure.axes, ["bootstrap", "augmented-kh"], strict=True):
        lines = {line.get_label(): line for line in ax.lines}
        np.testing.assert_array_equal(lines["truth"].get_xydata(), result.trajectory.recording.truth)
        np.testing.assert_array_equal(lines["estimate"].get_xydata(), result.trajectory.estimates[name])
    assert {"east (m)", "north (m)"} <= labels(figure)


def test_a_trajectory_over_time_shows_the_particles():
    result = study(view="time", particles=(10,), runs=1)
    figure = plotting.trajectory(result, ["augmented-kh"])
    (weighted,) = figure.axes[0].collections
    particles = result.trajectory.particles["augmented-kh"][:, :, 0]
    np.testing.assert_array_equal(weighted.get_offsets()[:, 1], particles.ravel())
    assert {"east (m)", "time (s)"} <= labels(figure)


def test_the_trajectory_is_of_the_first_filter_and_the_best_other(result):
    summary = hf.study.summarise(result.runs).query("n_particles == 20").set_index("filter")
    best = summary["reference_error_median"].drop("bootstrap").idxmin()
    titles = [ax.get_title() for ax in plotting.trajectory(result).axes]
    assert titles == ["bootstrap, n = 20", f"{best}, n = 20"]


def test_figures_without_a_reference_one_count_and_one_run():
    result = study(reference=None, particles=(10,), runs=1)
    plans = plotting.drawings(result)
    assert len(plans) == 8
    for plan in plans.values():
        plan.figure().draw_without_rendering()
    assert len(plotting.error_over_particles(hf.study.summarise(result.runs)).axes) == 1
