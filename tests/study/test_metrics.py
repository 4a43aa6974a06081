"""Consistency statistics, the energy distance on a line, and what intervals cover."""

import dataclasses
import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import EYE, position_and_speed, refusal, refuses
from numpy.random import default_rng
from numpy.testing import assert_allclose

import herdfilter as hf
from herdfilter.plotting import drawings
from herdfilter.report.page import render
from herdfilter.study.engine import run_study
from herdfilter.study.metrics import (
    energy_distance_on_line,
    inside_ellipsoid,
    labelled_estimates,
    normalised_squares,
    root_mean,
    set_errors,
    squared_error,
)
from herdfilter.study.plan import plan_study
from herdfilter.study.recording import record
from herdfilter.study.scenario import load_scenario, scenario_from_table
from herdfilter.study.statistics import bootstrap_interval, chi_square_band
from herdfilter.study.store import open_for_reading

TRACK = position_and_speed([[0.1, 0.15], [0.15, 0.3]])
RUNS = 60
STEPS = 25


@pytest.fixture(scope="module")
def nees():
    """NEES (RUNS, STEPS) of the Kalman filter on its own model."""
    errors = []
    covariances = []
    for seed in range(RUNS):
        truth, observations = hf.simulate(TRACK, STEPS, seed)
        result = hf.ExtendedKalmanFilter(TRACK).run(observations)
        errors.append(truth - result.means)
        covariances.append(result.covariances)
    return np.array([normalised_squares(e, P) for e, P in zip(errors, covariances, strict=True)])


def test_nees_of_the_kalman_filter_is_chi_square(nees):
    low, high = chi_square_band(np.full(STEPS, 2 * RUNS), 0.99)
    averages = nees.mean(axis=0) / 2
    assert ((low <= averages) & (averages <= high)).sum() >= STEPS - 1
    apart = nees[:, ::8]  # steps far enough from each other to be nearly independent
    for level in (0.5, 0.9):
        assert inside_ellipsoid(apart.ravel(), np.full(apart.size, 2.0), level) == pytest.approx(
            level, abs=0.08
        )


def test_nees_does_not_depend_on_the_units():
    rng = default_rng(0)
    errors = rng.standard_normal((5, 3))
    roots = rng.standard_normal((5, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1)
    units = np.diag([1e-6, 1.0, 1e5])
    expected = [e @ np.linalg.inv(P) @ e for e, P in zip(errors, covariances, strict=True)]
    assert_allclose(normalised_squares(errors, covariances), expected, rtol=1e-6)
    assert_allclose(
        normalised_squares(errors @ units, units @ covariances @ units), expected, rtol=1e-6
    )


def correlated(rest):
    return [[1.0, 1 - rest], [1 - rest, 1.0]]


def test_a_covariance_that_is_singular_up_to_rounding_has_no_nees():
    """A correlation of 1 - e leaves the eigenvalue e: of 1e-11 it is taken, of 1e-13 it is put down to rounding."""
    diagonals = ([1.0, np.inf], [1.0, 0.0], [1.0, -1.0], [0.0, 0.0])
    singular = [*map(np.diag, diagonals), correlated(1e-13), correlated(np.nan)]
    squares = normalised_squares(np.ones((8, 2)), np.array([EYE, correlated(1e-11), *singular]))
    assert_allclose(squares, [2.0, 1.0, *[np.nan] * 6])


def test_points_beyond_the_grid_and_equal_points_count():
    """All mass at two units from a uniform density on [0, 1]: 2 E|x - X| - E|X - X'| = 2 * 2.5 - 1 / 3."""
    edges = np.linspace(0, 1, 11)
    masses = np.full(10, 0.1)
    distance = energy_distance_on_line(np.full(4, 3.0), np.full(4, 0.25), edges, masses)
    assert distance == pytest.approx(5 - 1 / 3)


def test_the_bootstrap_takes_values_of_any_size():
    """A filter that is sure of a wrong place has normalised squares of any size."""
    values = np.array([1.0, 2.0, 1e150, 3.0, 1e200, 5.0])
    low, high = bootstrap_interval(values, np.mean)
    assert 0 < low < values.mean() <= high <= 1e200
    few = np.arange(1.0, 7.0)
    scaled = np.array(bootstrap_interval(1e-200 * few, np.mean)) / 1e-200
    assert_allclose(scaled, bootstrap_interval(few, np.mean))


def test_errors_are_over_the_dimensions_named_with_angles_wrapped():
    estimate = np.array([[1.0, 3.0, 9.0], [0.0, 0.0, 0.0]])
    target = np.array([[0.0, -3.0, 0.0], [2.0, 0.0, 5.0]])
    assert_allclose(squared_error(estimate, target, [0, 1]), [37.0, 4.0])
    assert_allclose(squared_error(estimate, target, [0, 1], [1]), [1 + (2 * np.pi - 6) ** 2, 4.0])
    assert root_mean(np.array([16.0, 16.0, 4.0])) == pytest.approx(np.sqrt(12))


def test_the_share_inside_an_ellipsoid_leaves_out_what_is_no_number():
    squares = np.array([0.0, 3.8, 3.9, np.nan])
    assert inside_ellipsoid(squares, np.ones(4)) == pytest.approx(2 / 3)
    assert inside_ellipsoid(squares, np.ones(4), 0.5) == pytest.approx(1 / 3)
    assert np.isnan(inside_ellipsoid(squares[3:], np.zeros(1)))


T = 6
LINE = "models.LinearGaussian(F=[[1, 0], [0, 1]], H=[[1, 0], [0, 1]], Q=[[0, 0], [0, 0]], R=[[1e-6, 0], [0, 1e-6]], "
LINE += "initial_mean=[0, 0], initial_covariance=[[1, 0], [0, 1]])"
MODEL = {"type": "WithClutter", "model": LINE, "detection_probability": 1.0, "clutter_density": 0.0}
PLACE = {"probability": 0.1, "mean": [0.0, 0.0], "sd": [9.0, 9.0]}


def table(**targets):
    tracks = [{"initial": [0.0, 0.0]}, {"initial": [3.0, 0.0], "first": 3, "last": 5}]
    targets = {"cutoff": 2.0, "births": [dict(PLACE)], "tracks": tracks} | targets
    return {
        "title": "two",
        "model": {**MODEL, "region": [[-9, 9], [-9, 9]]},
        "steps": T,
        "targets": targets,
    }


def made(**targets):
    return scenario_from_table(Path("two.toml"), table(**targets))


scenario = pytest.fixture(made)


def told(model, n, rng, birth, survival_probability):
    """A tracker that says what it sees, moved by what it was told; the leftmost is the first."""
    moved = np.array([birth[0].probability * (n / 10), 1 - survival_probability])

    def run(scans, dt, controls):
        means = [scan[np.argsort(scan[:, 0])] + moved for scan in scans]
        return SimpleNamespace(
            means=means, labels=[[("a", i) for i in range(len(scan))] for scan in scans]
        )

    return SimpleNamespace(run=run)


def blind(model, n, rng):
    """A tracker that sees nothing, and needs to know nothing."""
    return SimpleNamespace(
        run=lambda scans, dt, controls: SimpleNamespace(
            means=[[]] * len(scans), labels=[[]] * len(scans)
        )
    )


@pytest.fixture
def read(scenario, tmp_path):
    """The result of a study, as its store has it."""
    store = tmp_path / "study.sqlite"
    run_study(plan_study(scenario, {"blind": blind, "told": told}, 10, runs=1), store=store)
    with open_for_reading(store) as kept:
        return kept.result()


def test_the_table_says_how_far_the_sets_are_apart(read):
    rows = read.runs.set_index("filter")
    off = np.hypot(0.1, 0.01)  # of each estimate, but for noise
    count = np.array([1, 1, 2, 2, 2, 1])
    mean = np.sqrt(count).mean()
    expected = {
        "gospa": (off * mean, np.sqrt(2) * mean),
        "gospa_localisation": (off * np.sqrt(count.mean()), 0),
        "gospa_missed": (0, np.sqrt(2 * count.mean())),
        "gospa_false": (0, 0),
        "ospa": (off, 2),
        "label_switches": (0, 0),
        "cardinality_error": (0, count.mean()),
    }
    for name, values in expected.items():
        assert_allclose(rows.loc[["told", "blind"], name], values, atol=0.01, err_msg=name)
    assert (
        rows[["rmse", "anees", "nis", "nees_degrees", "log_likelihood", "ess"]]
        .isna()
        .all(axis=None)
    )


def test_a_study_is_stored_drawn_and_reported(scenario, read):
    assert dataclasses.asdict(read.study.scenario.targets) == dataclasses.asdict(scenario.targets)
    shown = read.trajectory
    truth = read.trajectory.recording.truth
    assert [len(scan) for scan in shown.positions] == [1, 1, 2, 2, 2, 1]
    seen = np.isfinite(truth).all(axis=2)
    assert_allclose(shown.estimates["told"][seen], truth[seen], atol=0.11)
    assert np.isnan(shown.estimates["told"][~seen]).all()
    detections = np.sort(np.concatenate(shown.positions), axis=0)
    assert_allclose(detections, np.sort(truth[seen], axis=0), atol=0.11)
    assert read.verdict.startswith("With 10 particles no gain over blind is shown: told's GOSPA is")

    plans = drawings(read)
    assert {"sets_over_time", "gospa_parts", "trajectory", "error_over_time"} <= set(plans)
    assert "GOSPA of order 2, and OSPA of order 1" in render(
        read, {"trajectory": plans["trajectory"]}
    )


def test_targets_without_tracks_are_born_and_die_as_the_trackers_are_told():
    drawn = table(tracks=[], births=[PLACE | {"probability": 0.5}] * 2, survival_probability=0.9)
    scenario = scenario_from_table(Path("drawn.toml"), drawn | {"steps": 500})
    truth = record(scenario, scenario.build_model(), None, default_rng(1)).truth
    there = np.isfinite(truth).all(axis=2)
    assert truth.shape[1] == pytest.approx(500, abs=4 * np.sqrt(1000 / 4))
    # one birth a step, ten steps each
    assert there[100:].sum(axis=1).mean() == pytest.approx(10, abs=2)
    for alive in there.T:
        assert len(list(itertools.groupby(alive))) <= 3  # once, without a gap
    assert np.std(truth[there.argmax(axis=0), range(truth.shape[1]), 0]) == pytest.approx(
        9, rel=0.15
    )


def test_crossing_is_the_published_one():
    scenario = load_scenario("crossing")
    model = scenario.build_model()
    made = record(scenario, model, None, default_rng(0))
    there = np.isfinite(made.truth).all(axis=2)
    known = {1: 3, 19: 3, 20: 6, 40: 8, 60: 10, 70: 10, 71: 8, 80: 10, 100: 10}
    assert {step: there[step - 1].sum() for step in known} == known
    assert_allclose(made.truth[69, 0], [0, 0, -700, -10])
    assert model.clutter_density * 2000**2 == pytest.approx(30)
    assert np.mean([len(scan) for scan in made.scans]) == pytest.approx(
        30 + 0.98 * there.sum(axis=1).mean(), abs=2.5
    )


test_what_is_wrong_with_targets_is_named = refuses(
    lambda changed: made(**changed),
    (
        {"births": [PLACE | {"probability": 2}]},
        r"births\[0\].probability: expected a number above 0 and up to 1, got 2",
    ),
    (
        {"births": {"mean": [0.0], "sd": [1.0], "expected": 1}, "tracks": []},
        r"tracks: expected some, or",
    ),
)


test_what_does_not_fit_the_model_or_the_filters_is_named = refuses(
    plan_study,
    (
        made(),
        ["bootstrap"],
        "filter bootstrap: ParticleFilter tracks one target, and there are many",
    ),
    ("ungm", ["lmb-ukf"], "filter lmb-ukf: birth: expected where targets may appear"),
    (
        made(tracks=[{"initial": [0.0, 0.0], "first": 9}]),
        {"told": told},
        "tracks: first: expected at most 6, the last step, got 9",
    ),
)


def test_many_targets_have_no_reference(scenario):
    with refusal(r"reference: cannot be combined with \[targets\]"):
        dataclasses.replace(scenario, reference={"type": "grid"})


test_what_a_tracker_gets_wrong_is_named = refuses(
    lambda result: labelled_estimates(result, 1, 2),
    (
        SimpleNamespace(means=[[]]),
        "labels: expected one entry for each of 1 steps from a tracker, got none",
    ),
    (
        SimpleNamespace(means=[[[1.0, 2.0]] * 2], labels=["aa"]),
        r"labels: expected 2 different ones at step 1, got \['a', 'a'\]",
    ),
    (
        SimpleNamespace(means=[[[1.0]]], labels=[["a"]]),
        r"means: expected shape \(\*, 2\), got \(1, 1\)",
    ),
)


def test_errors_of_sets_are_those_of_each_step_over_the_dimensions_named():
    rng = default_rng(0)
    truth = rng.normal(0, 2, (5, 3, 4))
    estimates = rng.normal(0, 2, (5, 2, 4))
    truth[1, 0] = np.nan
    truth[3] = np.nan
    estimates[2, 1, 0] = np.nan
    estimates[4] = np.nan
    targets = SimpleNamespace(cutoff=2.5, gospa_order=2.0, ospa_order=1.0)
    found = set_errors(truth, estimates, targets, [0, 2])
    for k in range(5):
        x, y = (part[k][np.isfinite(part[k]).all(axis=1)][:, [0, 2]] for part in (truth, estimates))
        expected = hf.tracking.gospa(x, y, 2.5)
        parts = [found[name][k] for name in ("gospa", "localisation", "missed", "false")]
        assert parts == pytest.approx(list(expected))
        assert found["ospa"][k] == pytest.approx(hf.tracking.ospa(x, y, 2.5))
        assert found["cardinality"][k] == len(y) - len(x)
