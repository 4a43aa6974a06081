"""Results as tables and pictures, and every object in one line."""

from datetime import datetime, timedelta

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import cases
from matplotlib.figure import Figure

import herdfilter as hf
from herdfilter.filters import Particles
from herdfilter.filters.grid import GridFilter

MODEL = hf.models.LinearGaussian([[1.0, 1.0], [0.0, 1.0]], [[1.0, 0.0]], np.eye(2) / 100, [[0.1]], [0.0, 0.0], np.eye(2))
LINE = hf.models.LinearGaussian(F=[[0.9]], H=[[1.0]], Q=[[1.0]], R=[[0.1]], initial_mean=[0.0], initial_covariance=[[1.0]])
Z = [[0.1], None, [0.5], [0.3]]


@pytest.fixture(scope="module")
def result():
    return hf.ParticleFilter(MODEL, 50, rng=0).run(Z, keep_particles=True)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_the_table_has_a_row_per_step_and_the_numbers_of_the_result(result):
    table = result.to_dataframe(labels=["place", "speed"])
    assert list(table) == [
        *("step", "time", "place_mean", "place_sd", "speed_mean", "speed_sd"),
        *("ess", "resampled", "log_likelihood", "outcome"),
    ]
    assert list(table["step"]) == [1, 2, 3, 4]
    assert list(table["outcome"]) == ["updated", "missing", "updated", "updated"]
    np.testing.assert_array_equal(table["speed_mean"], result.means[:, 1])
    np.testing.assert_allclose(table["place_sd"] ** 2, result.covariances[:, 0, 0])
    assert table["log_likelihood"].sum() == pytest.approx(result.log_likelihood)


def test_every_result_has_a_table_and_a_picture(result, ax):
    exact = GridFilter(LINE, -10.0, 10.0, 200).run(Z)
    assert list(exact.to_dataframe()) == ["step", "x0_mean", "x0_sd"]
    assert exact.plot(ax) is ax
    smoothed = hf.backward_simulation(MODEL, result, 5, 0)
    np.testing.assert_allclose(smoothed.to_dataframe()["x1_mean"], smoothed.means[:, 1])
    assert smoothed.plot(ax) is ax
    kalman = hf.ExtendedKalmanFilter(MODEL).run(Z)
    assert len(kalman.to_dataframe(["a", "b"])) == 4


def test_the_picture_in_the_plane_has_path_truth_and_ellipses(result, ax):
    truth = np.arange(8.0).reshape(4, 2)
    assert result.plot(ax, dims=(0, 1), truth=truth, labels=["place", "speed"]) is ax
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    np.testing.assert_array_equal(lines["estimate"], result.means)
    np.testing.assert_array_equal(lines["truth"], truth)
    assert len(ax.patches) == 4
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("place", "speed")
    assert len(result.plot(Figure().subplots(), dims=(0, 1), ellipses=None).patches) == 0


def test_one_dimension_is_drawn_over_time(result, ax):
    result.plot(ax, dims=1, truth=np.zeros((4, 2)))
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    np.testing.assert_array_equal(lines["estimate"], np.column_stack([[1, 2, 3, 4], result.means[:, 1]]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "x1")
    assert len(ax.collections) == 1  # the band
    assert not ax.patches


def test_all_dimensions_are_drawn_over_time_with_truth_and_readings(result):
    truth = np.arange(8.0).reshape(4, 2)
    readings = {0: [0.1, None, 0.5, 0.3]}
    panels = result.plot(truth=truth, observations=readings, labels=["place", "speed"])
    assert panels.shape == (2,)
    for i, ax in enumerate(panels):
        lines = {line.get_label(): line.get_xydata() for line in ax.lines}
        np.testing.assert_array_equal(lines["estimate"], np.column_stack([[1, 2, 3, 4], result.means[:, i]]))
        np.testing.assert_array_equal(lines["truth"][:, 1], truth[:, i])
        assert len(ax.collections) == 1
        assert ("readings" in lines) == (i == 0)
    np.testing.assert_array_equal(panels[0].lines[0].get_ydata(), [0.1, np.nan, 0.5, 0.3])
    assert [ax.get_ylabel() for ax in panels] == ["place", "speed"]
    assert [ax.get_xlabel() for ax in panels] == ["", "time"]
    assert panels[0].get_shared_x_axes().joined(*panels)
    given = Figure().subplots(2)
    assert list(result.plot(given)) == list(given)
    many = hf.ExtendedKalmanFilter(hf.models.linear_chain(6)).run([None] * 3)
    assert len(many.plot()) == 4
    plt.close("all")


@pytest.mark.parametrize(
    ("model", "plane"),
    [(hf.models.BearingsTracking(), (0, 1)), (hf.models.CoordinatedTurn(), (0, 2))],
    ids=["first", "apart"],
)
def test_positions_are_drawn_as_a_plane_where_the_model_says_which(model, plane):
    truth, z = hf.simulate(model, 4, rng=0)
    pf = hf.make_filter("auto", model, 20, rng=0)
    filtered = pf.run(z, keep_particles=True)
    results = [filtered, hf.make_filter("ukf", model).run(z), pf.forecast(4)]
    smoothed = [hf.marginal_smoother(pf, filtered), hf.backward_simulation(pf, filtered, 5, 0)]
    for result in results + smoothed:
        ax = result.plot(Figure().subplots(), truth=truth)
        paths = [line.get_xydata() for line in ax.lines]
        np.testing.assert_array_equal(paths[0], truth[:, plane])
        np.testing.assert_array_equal(paths[1], result.means[:, plane])
        assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(f"x{i}" for i in plane)
    assert filtered.plot(Figure().subplots(), dims=0).get_xlabel() == "time"
    modes = hf.models.JumpMarkov([model, model], [[0.9, 0.1], [0.1, 0.9]])
    assert hf.make_filter("auto", hf.models.WithClutter(modes, 0.9, 1e-3), 20, rng=0).run([None]).position_dims == plane


@cases(
    "wrong message",
    ({"observations": {0: [1.0]}}, "observations: expected shape"),
    ({"observations": {5: np.zeros(4)}}, "observations: expected a mapping from a dimension that is drawn"),
    ({"observations": np.zeros(4)}, "observations: expected a mapping from a dimension that is drawn"),
    ({"truth": np.zeros((3, 2))}, "truth: expected a row for each of 4 steps, got 3"),
    ({"dims": (0, 5)}, "dims: expected one or two indices from 0 to 1"),
    ({"truth": np.zeros((4, 3))}, "truth: expected shape"),
    ({"ellipses": 2.0}, "ellipses: expected a probability"),
    ({"labels": ["one"]}, "labels: expected 2 names of dimensions"),
)
def test_what_does_not_fit_is_named(result, ax, wrong, message):
    with pytest.raises(ValueError, match=message):
        result.plot(ax, **wrong)
    assert not ax.has_data()


def test_as_many_axes_as_dimensions_are_asked_for(result):
    with pytest.raises(ValueError, match="ax: expected 2 axes, one for each dimension, or one for the first, got 3"):
        result.plot(Figure().subplots(3))


def test_everything_has_one_short_line(result):
    pf, kalman = hf.ParticleFilter(MODEL, 50, rng=0), hf.ExtendedKalmanFilter(MODEL)
    for online in (pf, kalman):
        online.predict()
        online.update([0.2])
    things = {
        "ParticleFilter(model=LinearGaussian, dim=2, n_particles=50, proposal=BootstrapProposal, ": pf,
        "ExtendedKalmanFilter(model=LinearGaussian, dim=2, step=1, log_likelihood=": kalman,
        "GridFilter(model=LinearGaussian, points=(200,), lower=[-10], upper=[10])": GridFilter(LINE, -10.0, 10.0, 200),
        "GridResult(means=array(4, 1), covariances=array(4, 1, 1), log_likelihood=": GridFilter(LINE, -10.0, 10.0, 200).run(
            Z
        ),
        "StepRecord(step=1, mean=[": pf.record,
        "GaussianBelief(mean=[": kalman.belief,
        "Trajectories(n=3, steps=4, dim=2)": hf.backward_simulation(MODEL, result, 3, 0),
        "particles=array(4, 50, 2))": result,
        "Particles(n=7, dim=3)": Particles.equal(np.zeros((7, 3))),
        "Points(n=3, dim=3)": hf.Points(np.eye(3)),
        "GaussianMixture(components=1, dim=2, shared)": MODEL.initial,
    }
    for start, thing in things.items():
        assert start in repr(thing)
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 220


def test_times_and_angles_come_along(ax):
    robot = hf.models.LandmarkLocalisation()
    start = datetime(2024, 5, 1, 12)
    dates = [start + k * timedelta(seconds=0.5) for k in range(4)]
    result = hf.ParticleFilter(robot, 20, rng=0).run([None] * 3, times=dates[1:], start=start)
    table = result.to_dataframe(["x", "y", "heading"])
    assert [moment.to_pydatetime() for moment in table["time"]] == dates[1:]
    assert result.circular == robot.circular == (2,)
    assert len(result.plot(ax, dims=2).lines) == 1
    waited = hf.ParticleFilter(robot, 20, rng=0).run([None] * 3, times=[timedelta(hours=k) for k in (1, 2, 3)])
    line = waited.plot(Figure().subplots(), dims=0).lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [3600, 7200, 10800])
