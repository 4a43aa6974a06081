import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import CHAIN, cases, refusal, refuses, result_of, same_runs
from numpy.testing import assert_allclose, assert_array_equal

import herdfilter as hf


def test_one_row_for_every_filter_count_and_run(scenario):
    table = hf.compare(scenario)
    keys = [
        (f, n, r)
        for f in scenario.filters
        for n in scenario.particles
        for r in range(scenario.runs)
    ]
    assert list(zip(table["filter"], table["n_particles"], table["run"], strict=True)) == keys
    assert (table["error"] == "").all()
    assert table["ess"].between(1, table["n_particles"]).all()


def test_a_filter_is_the_same_whatever_stands_beside_it_and_the_seed_decides(scenario):
    table = hf.compare(scenario, filters=["augmented-gauss-kh", "bootstrap"], particles=[30, 10])
    alone, other = (
        hf.compare(scenario, filters=["bootstrap"], particles=[10], seed=seed) for seed in (0, 1)
    )
    beside = table[(table["filter"] == "bootstrap") & (table["n_particles"] == 10)]
    same_runs(alone, beside.reset_index(drop=True))
    assert (alone["rmse"] != other["rmse"]).all()


def test_every_filter_of_a_run_sees_the_same_measurements(scenario, constant):
    filters = {}

    def remembering(name):
        def build(model, n_particles, rng):
            return filters.setdefault(name, constant(model, n_particles, rng))

        return build

    table = hf.compare(
        scenario, filters={"a": remembering("a"), "b": remembering("b")}, particles=[5]
    )
    assert_array_equal(filters["a"].seen, filters["b"].seen)
    by_run = [table[table["filter"] == name]["rmse"].to_numpy() for name in "ab"]
    assert_array_equal(*by_run)
    assert len(np.unique(by_run[0])) == scenario.runs  # the runs differ


def test_errors_are_distances_to_truth_and_reference(scenario, constant):
    result = result_of(scenario, {"zero": constant}, [5], runs=1)
    row = result.runs.iloc[0]
    run = result.trajectory
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(run.recording.truth**2)))
    assert row["reference_error"] == pytest.approx(np.sqrt(np.mean(run.reference.means**2)))
    assert np.isnan(row["log_likelihood"])  # the filter does not say


def test_a_failing_run_is_recorded_and_the_rest_goes_on(scenario, constant, failing):
    table = hf.compare(scenario, filters={"ok": constant, "bad": failing}, particles=[5], runs=8)
    bad = table[table["filter"] == "bad"]
    ok = table[table["filter"] == "ok"]
    failed = (bad["error"] != "").to_numpy()
    assert 0 < failed.sum() < 8
    assert (
        bad["error"][failed]
        .str.startswith("ArithmeticError: lost the target (conftest.py, line ")
        .all()
    )
    assert bad["diverged"][failed].all()
    assert bad[failed][["rmse", "reference_error", "ms_per_step"]].isna().all(axis=None)
    assert (ok["error"] == "").all()
    assert_array_equal(bad["rmse"][~failed], ok["rmse"][~failed])


def estimating(means):
    """A filter whose estimates are given."""
    filter_ = SimpleNamespace(
        run=lambda observations, dt=1.0, controls=None: SimpleNamespace(means=means)
    )
    return lambda model, n_particles, rng: filter_


def test_estimates_that_are_no_estimates_are_failures(scenario):
    broken = {"nan": np.full((10, 1), np.nan), "short": np.zeros((9, 1)), "text": "nothing"}
    filters = {name: estimating(means) for name, means in broken.items()}
    table = hf.compare(scenario, filters, particles=[5], runs=1)
    assert table["error"].str.startswith("ValueError: estimates: expected").all()
    assert table["diverged"].all()


def test_filters_are_given_by_name_by_keywords_or_by_function(scenario, constant):
    filters = {
        "renamed": "bootstrap",
        "objects": {"proposal": hf.HerdedProposal(hf.KernelHerding(bandwidth=0.5))},
        "text": {"proposal": "HerdedProposal(KernelHerding(bandwidth=0.5))", "resample_below": 0.3},
        "function": constant,
    }
    table = hf.compare(scenario, filters=filters, particles=[10], runs=2)
    assert list(table["filter"].unique()) == list(filters)
    assert (table["error"] == "").all()
    errors = table.set_index(["filter", "run"])["rmse"]
    assert_array_equal(errors["objects"], errors["text"])  # no random number in either


@cases(
    "arguments message",
    ({"filters": {"x": {"filter": "ParticleFiltre"}}}, "did you mean 'ParticleFilter'"),
    ({"run_timeout": np.nan}, "run_timeout: expected a positive finite number, got nan"),
)
def test_bad_arguments_are_named(scenario, arguments, message):
    with refusal(message):
        hf.compare(**({"scenario": scenario} | arguments))


def test_a_model_without_what_a_filter_needs_is_refused_before_any_run(scenario, tmp_path):
    (tmp_path / "bare.py").write_text("class Bare:\n    dim = 1\n")
    bare = dataclasses.replace(scenario, model={"type": "bare.py:Bare"}, folder=tmp_path)
    with refusal("Bare has no", TypeError):
        hf.compare(bare)


def test_a_model_alone_is_compared_on_series_that_it_simulates_and_on_recorded_ones():
    truth, z = hf.simulate(CHAIN, steps=6, rng=1)
    study = {"filters": ["bootstrap", "ekf"], "particles": 10, "runs": 2}
    simulated = hf.compare(CHAIN, **study, steps=6)
    assert simulated["rmse"].nunique() == 4
    assert "2 runs" in repr(simulated)
    recorded = hf.compare(CHAIN, **study, observations=z, truth=truth, times=np.arange(1.0, 7.0))
    exact = hf.ExtendedKalmanFilter(CHAIN).run(z)
    rmse = np.sqrt(np.mean(np.sum((exact.means - truth) ** 2, axis=1)))
    assert_allclose(recorded[recorded["filter"] == "ekf"]["rmse"], rmse)


def test_each_of_several_recorded_series_is_a_run_and_need_not_have_a_truth():
    truth, z = hf.simulate(CHAIN, steps=6, rng=1)
    gaps = [z[0], None, *z[2:]]
    series = [hf.study.Recording(truth, z), hf.study.Recording(None, z[::-1].copy(), dt=0.5)]
    table = hf.compare(CHAIN, ["ekf"], observations=series)
    assert table["rmse"].isna().tolist() == [False, True]
    assert (table["reference_error"] < 1e-9).all()
    assert hf.compare(CHAIN, ["ekf"], runs=1, observations=gaps)["error"].tolist() == [""]


test_what_does_not_belong_to_a_model_alone_is_refused = refuses(
    lambda given: hf.compare(**{"scenario": CHAIN, "filters": ["ekf"]} | given),
    ({"scenario": "ungm", "steps": 3}, "steps: expected none beside a scenario"),
    ({"truth": [[0.0, 0.0]]}, "truth: expected observations beside it"),
    ({"observations": [[0.0, 0.0]], "truth": [[0.0]]}, "truth: expected shape \\(1, 2\\)"),
    ({"observations": []}, "observations: expected at least one, got none"),
    (TypeError, {"observations": [np.zeros((3, 2))] * 2}, "observations: expected one series, or"),
    (
        {"observations": hf.study.Recording(None, np.zeros((2, 2))), "dt": 2.0},
        "dt: expected none beside a Recording",
    ),
)
