"""Results as tables and pictures, and every object in one line."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import EYE, position_and_speed
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf

MODEL = position_and_speed(EYE / 100, 0.1)

Z = [[0.1], None, [0.5], [0.3]]


@pytest.fixture(scope="module")
def result():
    return hf.ParticleFilter(MODEL, 50, rng=0).run(Z, keep_particles=True)


def test_the_table_has_a_row_per_step_and_the_numbers_of_the_result(result):
    table = result.to_dataframe(labels=["place", "speed"])
    assert list(table) == [
        *("step", "time", "place_mean", "place_sd", "speed_mean", "speed_sd"),
        *("ess", "resampled", "log_likelihood", "outcome"),
    ]
    assert list(table["step"]) == [1, 2, 3, 4]
    assert list(table["outcome"]) == ["updated", "missing", "updated", "updated"]
    assert_array_equal(table["speed_mean"], result.means[:, 1])
    assert_allclose(table["place_sd"] ** 2, result.covariances[:, 0, 0])
    assert table["log_likelihood"].sum() == pytest.approx(result.log_likelihood)


def test_all_dimensions_are_drawn_over_time_with_truth_and_readings(result):
    truth = np.arange(8.0).reshape(4, 2)
    panels = result.plot(
        truth=truth, observations={0: [0.1, None, 0.5, 0.3]}, labels=["place", "speed"]
    )
    assert panels.shape == (2,)
    for i, ax in enumerate(panels):
        lines = {line.get_label(): line.get_xydata() for line in ax.lines}
        assert_array_equal(lines["estimate"], np.column_stack([[1, 2, 3, 4], result.means[:, i]]))
        assert_array_equal(lines["truth"][:, 1], truth[:, i])
        assert len(ax.collections) == 1  # the band
        assert ("readings" in lines) == (i == 0)
    assert_array_equal(panels[0].lines[0].get_ydata(), [0.1, np.nan, 0.5, 0.3])
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in panels] == [
        ("", "place"),
        ("time", "speed"),
    ]
    given = Figure().subplots(2)
    assert list(result.plot(given, ancestors=True)) == list(given)
    right = given[0].figure.axes[2]
    assert_array_equal(right.lines[0].get_ydata(), result.distinct_ancestors)
    assert len(hf.ExtendedKalmanFilter(hf.models.linear_chain(6)).run([None] * 3).plot()) == 4
    plt.close("all")


def test_positions_are_drawn_as_a_plane_where_the_model_says_which():
    model = hf.models.CoordinatedTurn()
    plane = (0, 2)
    truth, z = hf.simulate(model, 4, rng=0)
    pf = hf.make_filter("auto", model, 20, rng=0)
    filtered = pf.run(z, keep_particles=True)
    for result in (
        filtered,
        hf.make_filter("ukf", model).run(z),
        pf.forecast(4),
        hf.marginal_smoother(pf, filtered),
    ):
        ax = result.plot(Figure().subplots(), truth=truth)
        paths = [line.get_xydata() for line in ax.lines]
        assert_array_equal(paths[0], truth[:, plane])
        assert_array_equal(paths[1], result.means[:, plane])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x2")
    assert filtered.plot(Figure().subplots(), dims=0).get_xlabel() == "time"
    assert [len(filtered.plot(Figure().subplots(), ellipses=p).patches) for p in (0.9, None)] == [
        4,
        0,
    ]


def test_everything_has_one_short_line(result):
    pf = hf.ParticleFilter(MODEL, 50, rng=0)
    kalman = hf.ExtendedKalmanFilter(MODEL)
    for online in (pf, kalman):
        online.predict()
        online.update([0.2])
    for start, thing in {
        "ParticleFilter(model=LinearGaussian, dim=2, n_particles=50, proposal=BootstrapProposal, ": pf,
        "ExtendedKalmanFilter(model=LinearGaussian, dim=2, step=1, log_likelihood=": kalman,
        "StepRecord(step=1, mean=[": pf.record,
        "Gaussians(weights=[1], means=array(1, 2), factors=": kalman.belief,
        "unused_observations=1, particles=array(4, 50, 2))": result,
        "Particles(n=7, dim=3)": hf.Particles.equal(np.zeros((7, 3))),
        "Forecast(steps=3, dim=2, observations=array(3, 1))": kalman.forecast(3),
    }.items():
        assert start in repr(thing)
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 220
