"""The grid filter against closed forms, brute force and a published reference."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import assert_same, cases, on_a_line, plane, refusal, refuses
from numpy.testing import assert_allclose, assert_array_equal

from herdfilter.filters.grid import GridFilter
from herdfilter.filters.kalman import ExtendedKalmanFilter
from herdfilter.models import UNGM, from_functions
from herdfilter.models.simulation import simulate
from herdfilter.smoothing import rts_smoother

REFERENCE = Path(__file__).parents[1] / "reference" / "ungm_exact.json"

LINE = on_a_line(F=0.9, H=2.0, Q=0.5, R=1.5, mean=1.0, variance=2.0)
PLANE = plane(R=[[0.8]])


@cases(
    "model corner points tolerance",
    (LINE, 12.0, 1601, 1e-8),
    (PLANE, 9.0, (321, 341), 1e-6),
    ids=["one dimension", "two dimensions"],
)
def test_linear_gaussian_posterior_and_smoothing_are_those_of_kalman_and_of_rauch_tung_and_striebel(
    model, corner, points, tolerance
):
    _, observations = simulate(model, 5, np.random.default_rng(0))
    observations[[1, 3]] = np.nan
    kf = ExtendedKalmanFilter(model)
    grid = GridFilter(model, -corner, corner, points)
    filtered = kf.run(observations)
    for result, exact in (
        (grid.run(observations), filtered),
        (grid.smooth(observations), rts_smoother(kf, filtered)),
    ):
        assert_same(result, exact, "means", "covariances", atol=tolerance)
    assert_allclose(result.log_likelihood, filtered.log_likelihood, atol=tolerance)


def test_smoothing_follows_durations_controls_and_readings_of_one_time():
    """Readings at the same time are one state; the last row is the filter's."""
    model = from_functions(
        lambda x, dt, control: np.exp(-0.3 * dt) * x + control,
        lambda x: x,
        lambda dt: [[dt]],
        [[0.7]],
        [0.5],
        [[1.0]],
    )
    z = [
        (0.5, None, 1.0),
        (0.5, None, 0.4),
        (2.5, None, None),
        (3.5, None, -2.0),
        (3.5, None, -1.0),
        (3.8, None, 0.3),
    ]
    given = {"controls": [0.0, 0.0, 2.0, -1.0, -1.0, 0.4], "start": 0.0}
    kf = ExtendedKalmanFilter(model)
    grid = GridFilter(model, -12, 12, 1601)
    expected = rts_smoother(kf, kf.run(z, **given), controls=given["controls"])
    result, filtered = (f(z, keep_masses=True, **given) for f in (grid.smooth, grid.run))
    assert_same(result, expected, "means", "covariances", atol=1e-07)
    assert_array_equal(result.masses[-1], filtered.masses[-1])
    assert_allclose(result.masses[0], result.masses[1], atol=1e-15)
    assert result.log_likelihood == filtered.log_likelihood


def test_ungm_reference_means_and_log_likelihoods_are_reproduced():
    grid = GridFilter(UNGM(), -60, 60, 4801)
    for run in json.loads(REFERENCE.read_text())["runs"][:2]:
        result = grid.run(np.array(run["observations"])[:, None])
        assert_allclose(result.means[:, 0], run["posterior_mean"], atol=1e-7)
        assert result.log_likelihood == pytest.approx(run["log_likelihood"], abs=1e-7)


test_runs_that_do_not_fit_the_grid_are_refused = refuses(
    lambda grid: grid.run([[0.0]]),
    (
        GridFilter(LINE, -12, 12, 101),
        "points: expected at least 4 grid cells to a standard deviation",
    ),
    (
        GridFilter(UNGM(), -14, 14, 801),
        r"lower, upper: expected a grid that holds the state, got a loss of .* step 1",
    ),
)


def test_a_grid_is_refused_where_the_transition_tears_neighbours_apart():
    """Near 0 the growth model stretches 25-fold: the noise of variance 1 does not join images five apart."""
    model = UNGM(process_variance=1.0, observation_variance=10.0)
    _, z = simulate(model, 20, 1)
    with refusal(r"^points: expected images of neighbours within 2 standard deviations"):
        GridFilter(model, -60, 60, 601).run(z)
    coarse, fine = (GridFilter(model, -60, 60, n).run(z).log_likelihood for n in (2401, 4801))
    assert abs(coarse - fine) < 1e-6
