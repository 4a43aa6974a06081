"""A family of models: each run has its own, and is the same whatever other models there are."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from helpers import cases, completed, refusal, same_runs, table_of
from numpy.testing import assert_array_equal

import herdfilter as hf
from herdfilter.study import over_models, reference
from herdfilter.study.families import verdict_over_models
from herdfilter.study.plan import plan_study
from herdfilter.study.recording import Recording, record
from herdfilter.study.reference import Reference
from herdfilter.study.run_record import RunRecord
from herdfilter.study.scenario import Scenario, load_scenario
from herdfilter.study.store import StoreError

MODEL = """
import numpy as np

from herdfilter.models import LinearGaussian


class Drawn(LinearGaussian):
    def __init__(self, seed):
        self.seed = seed
        eye = np.eye(1 + seed % 2)
        super().__init__(0.9 * eye, eye, 0.5 * eye, eye, np.zeros(len(eye)), eye)
        self.__dict__["steps"], self.__dict__["labels"] = 4 + seed, ("walk", f"d = {len(eye)}")
        self.__dict__["grid"] = {"lower": -15.0, "upper": 15.0, "points": 301} if len(eye) == 1 else None
"""
FAMILY = """
title = "A family"
runs = 1
models = 2
particles = [8, 100, 200]
filters = ["bootstrap", "multinomial"]
[filter.multinomial]
resampling = "MultinomialResampling()"
[model]
type = "drawn.py:Drawn"
[reference]
type = "grid-or-large"
n = 512
filter = ["sqmc", "bootstrap"]
"""
compared = partial(hf.compare, particles=[8])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("family")
    (folder / "drawn.py").write_text(MODEL)
    (folder / "family.toml").write_text(FAMILY)
    return folder / "family.toml"


def test_each_run_has_the_model_of_its_seed(path):
    table = compared(path, ["bootstrap"], models=3, runs=2, first_model=5)
    assert table["model"].tolist() == [5, 5, 6, 6, 7, 7]
    assert table["kind"].tolist() == ["walk, d = 2"] * 2 + ["walk, d = 1"] * 2 + ["walk, d = 2"] * 2
    assert table["rmse"].nunique() == 6


def test_a_model_is_run_alike_whichever_others_there_are(path):
    together = compared(path, models=3)
    alone = compared(path, models=1, first_model=2)
    same_runs(together[together["model"] == 2].assign(run=0), alone)


def test_more_models_continue_a_store_and_fewer_or_others_do_not(path, tmp_path):
    store = tmp_path / "study.sqlite"
    first = compared(path, models=2, store=store)
    more = compared(path, models=3, store=store, resume=True)
    same_runs(more[more["model"] < 2], first)
    # not run again
    assert more.loc[more["model"] < 2, "seconds"].tolist() == first["seconds"].tolist()
    same_runs(more, compared(path, models=3))
    with refusal("models: expected at least the 3 that were begun, got 1", StoreError):
        compared(path, models=1, store=store, resume=True)
    with refusal(r"family\.first: .", StoreError):
        compared(path, models=3, store=store, resume=True, first_model=1)


def test_the_reference_is_the_models_grid_and_else_two_large_filters(path):
    table = compared(path, ["bootstrap"])
    assert (table["reference_sd"] == 0).tolist() == [True, False]
    assert (table["reference_uncertainty"] < 0.1).all()


def test_a_grid_that_does_not_hold_the_state_gives_way_to_large_filters(path):
    study = plan_study(path)
    model = study.build_model(0)
    model.grid = {"lower": -1.0, "upper": 1.0, "points": 41}
    recording = Recording(np.zeros((2, 1)), np.zeros((2, 1)))
    found = reference.compute_reference(study.scenario, model, recording, np.random.default_rng(0))
    assert (found.error > 0).all()


def evidence(unit=(1.0, 1.0), own=((2.0, 8.0), (2.0, 8.0)), error=(1.0, -2.0)):
    """Two steps in two dimensions, of posterior variances 2 and 8 in the units given."""
    unit = np.array(unit)
    covariances = np.array([np.diag(variances * unit**2) for variances in ([2.0, 8.0], [2.0, 8.0])])
    mine = np.array([np.diag(variances * unit**2) for variances in np.array(own)])
    known = Reference(
        np.zeros((2, 2)), 0.0, 0.1 * np.sqrt([2.0, 8.0]) * np.ones((2, 2)) * unit, covariances
    )
    result = SimpleNamespace(means=np.array([error, error]) * unit, covariances=mine)
    recording = Recording(np.zeros((2, 2)), np.zeros((2, 1)))
    scenario = Scenario("s", "S", {"type": "UNGM"})
    return RunRecord(scenario, SimpleNamespace(dim=2), recording, known, result)


@cases("unit", (1.0, 1.0), (1e-6, 1e4))
def test_errors_in_posterior_standard_deviations_know_no_unit(unit):
    known = evidence(unit)
    assert known.reference_error_sd == pytest.approx(np.sqrt((1 / 2 + 4 / 8) / 2))
    assert known.reference_uncertainty == pytest.approx(0.1)
    assert known.variance_ratio == pytest.approx(1.0)


def test_half_and_twice_the_variance_count_alike():
    assert evidence(own=[[1.0, 16.0], [4.0, 4.0]]).variance_ratio == pytest.approx(1.0)
    assert evidence(own=[[0.5, 2.0], [0.5, 2.0]]).variance_ratio == pytest.approx(0.25)
    assert 0 < evidence(own=[[0.0, 0.0], [2.0, 8.0]]).variance_ratio < 0.01


def test_what_is_known_for_sure_counts_for_nothing():
    known = evidence()
    known.reference.covariances[:, 0, 0] = 0.0
    assert known.reference_error_sd == pytest.approx(np.sqrt(4 / 8))
    assert known.variance_ratio == pytest.approx(1.0)
    known = evidence()
    known.reference.covariances[0, 0, 0] = 0.0  # at one step only
    assert np.isfinite([known.reference_error_sd, known.variance_ratio]).all()


def test_the_command_line_tells_of_the_models(path, tmp_path, monkeypatch):
    # planned, but not drawn
    for place, nothing in (("plotting.save_figures", []), ("report.parts.inline", "")):
        monkeypatch.setattr(f"herdfilter.{place}", lambda *arguments, nothing=nothing: nothing)
    out = tmp_path / "out"
    done = completed("compare", path, "--models", "3", "--workers", "1", "--out", out)
    assert "A family: 3 runs of 3 models, seeds 0 to 2" in done.stdout
    assert pd.read_csv(out / "models.csv")["exponent"].notna().all()
    assert "3 runs of 3 models" in (out / "report.html").read_text()


@cases(
    "old new message",
    (
        '"drawn.py:Drawn"',
        '"drawn.py:Drawn"\nseed = 3',
        r"model.seed: cannot be combined with `models`",
    ),
    (
        '["sqmc", "bootstrap"]',
        '["sqmc", "ekf"]',
        "filter: expected a particle filter that draws at random",
    ),
)
def test_a_file_that_does_not_fit_is_named(path, old, new, message):
    other = path.with_name("other.toml")
    other.write_text(FAMILY.replace(old, new))
    with refusal(message):
        plan_study(other)


def test_a_model_that_cannot_be_made_is_a_failure_of_its_own_runs(path):
    broken = path.with_name("broken.py")
    broken.write_text(
        MODEL.replace("self.seed = seed", "self.seed = seed\n        assert seed != 1")
    )
    scenario = load_scenario(path)
    scenario = dataclasses.replace(scenario, model={"type": "broken.py:Drawn"}, models=3)
    table = compared(scenario, ["bootstrap"])
    assert (table["error"] != "").tolist() == [False, True, False]
    assert hf.study.over_models(table)[["models", "compared", "unknown"]].to_numpy().tolist() == [
        [3, 2, 1]
    ]


def pair(own, base=None):
    """A table of the errors of a filter b, beside those of bootstrap: by default 1."""
    return table_of({"bootstrap": np.ones_like(own) if base is None else base, "b": own})


def row_of(table, name="b"):
    return over_models(table).set_index("filter").loc[name]


def column(*values):
    return np.array(values)[:, None]


def test_ratios_are_averaged_as_ratios_are():
    row = row_of(pair(column(2.0, 5.0, 1.0), column(1.0, 10.0, 1.0)))
    assert row["ratio"] == pytest.approx(1.0)
    assert row[["ratio_low", "ratio_high"]].isna().all()  # from six models on
    six = row_of(pair(column(2.0, 0.5, 1.0, 2.0, 0.5, 1.0)))
    assert six["ratio_low"] < 1 < six["ratio_high"]
    assert (row["models"], row["compared"], row["above"]) == (3, 3, pytest.approx(1 / 3))
    assert (row["ratio_10"], row["ratio_50"], row["ratio_90"]) == (0.5, 1.0, 2.0)
    assert row["worst"] == "0: 2.00 (kind 0); 2: 1.00 (kind 2); 1: 0.500 (kind 1)"
    assert row["log_likelihood"] == pytest.approx(1.0)


def test_a_model_counts_once_however_many_runs_it_has():
    base = np.ones((6, 7))
    own = column(2.0, 0.5, 3.0, 0.7, 0.5, 0.6)
    row = row_of(pair(base * own))
    again = row_of(pair(own))
    for name in ("ratio", "ratio_low", "ratio_high", "above"):
        assert row[name] == again[name]
    logs = np.log(own[:, 0])
    expected = scipy.stats.t.interval(0.95, 5, logs.mean(), logs.std(ddof=1) / np.sqrt(6))
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx(np.exp(expected))
    claims = hf.study.claims(pair(0.5 * base[:3]))
    # too few for a claim, though there are 21 runs
    assert claims[["runs", "better"]].to_numpy().tolist() == [[3, ""]]
    two = row_of(pair(np.tile([0.25, 1.0], (6, 1))))
    # of an even number the geometric mean of the middle two
    assert two["ratio"] == pytest.approx(0.5)


def test_a_filter_that_fails_has_lost():
    row = row_of(pair(column(0.5, np.nan, 1.0, 0.5), column(1.0, 1.0, np.nan, 1.0)))
    assert row["compared"] == 3  # the baseline has nothing to compare with at one
    assert row["above"] == pytest.approx(1 / 3)
    assert row["lost"] == pytest.approx(1 / 4)
    assert row["ratio"] == pytest.approx(0.5)
    assert row["worst"].startswith("1: inf")
    good = row_of(pair(column(*[0.5, 0.4] * 4)))
    assert good["better"] == -1
    lost = row_of(pair(column(*[0.5, 0.4] * 3, 0.5, np.nan)))
    # no gain is claimed where it fails at a model
    assert (lost["ratio_high"], lost["better"]) == (np.inf, 0)


def test_a_variance_is_right_to_a_quarter_and_a_reference_certain_to_a_third_of_the_smallest_error():
    table = pair(column(0.6, 0.6, 0.6, 2.0, 2.0, 2.0))
    table.loc[table["filter"] == "b", "variance_ratio"] = [0.79, 0.8, 1.0, 1.25, 1.26, np.nan]
    limits = {0: 0.0, 1: 0.199, 2: 0.201, 3: 0.33, 4: 0.334, 5: np.nan}
    table["reference_uncertainty"] = table["model"].map(limits)
    row = row_of(table)
    assert row["variance_right"] == pytest.approx(3 / 5)
    assert row["variance_50"] == 1.0
    assert row["uncertain"] == 3
    assert row["unknown"] == 0
    assert row_of(table, "bootstrap")["uncertain"] == 3


def test_what_a_filter_loses_and_the_baseline_keeps_counts_once_for_each_model():
    table = pair(np.ones((4, 2)))
    lost = np.zeros(8, dtype=bool)
    lost[[0, 1, 2]] = True  # both runs of the first model, one of the second
    table.loc[table["filter"] == "b", "diverged"] = lost
    assert row_of(table)["lost"] == 0.5
    table.loc[table["filter"] == "bootstrap", "diverged"] = lost
    assert row_of(table)["lost"] == 0.0
    table = table.drop(columns="diverged")
    table.loc[table.index[-1], "error"] = "ValueError: no"
    assert row_of(table)["lost"] == 0.25


def test_log_likelihoods_and_times_are_those_of_the_median_run_over_the_baselines():
    table = pair(np.ones((2, 3)))
    table["log_likelihood_error"] = [-2.0, 2.0, 9.0, 1.0, 1.0, 1.0, -1.0, 1.0, 50.0, 3.0, -3.0, 3.0]
    table["ms_per_step"] = [2.0, 2.0, 7.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 4.0, 4.0, 4.0]
    table["evaluations"] = 10 * table["ms_per_step"]
    row = row_of(table)
    assert row["log_likelihood"] == pytest.approx((0.5 + 3) / 2)
    assert row["time"] == row["evaluations"] == pytest.approx((0.5 + 4) / 2)
    assert row["time_worst"] == 4.0


def test_exponents_need_two_counts_from_a_hundred_on_and_errors_above_nought():
    rates = column(0.5, 0.9)
    tables = {n: table_of({"bootstrap": 3 * n**-rates}, n) for n in (99, 100, 101)}
    both = over_models(pd.concat([tables[100], tables[101]])).iloc[0]
    assert (both["exponent"], both["exponent_worst"]) == pytest.approx((-0.7, -0.5))
    assert np.isnan(over_models(pd.concat([tables[99], tables[100]])).iloc[0]["exponent"])
    failed = pd.concat([tables[100], table_of({"bootstrap": column(np.nan, 3 * 101**-0.9)}, 101)])
    assert over_models(failed).iloc[0]["exponent"] == pytest.approx(-0.9)


def test_the_verdict_names_the_best_filter_with_its_numbers():
    base = np.ones((6, 1))
    errors = {
        "bootstrap": base,
        "b": np.full((6, 1), 0.5),
        "c": column(0.4, 0.4, 1.2, 0.4, 1.2, 1.2),
    }
    told = verdict_over_models(over_models(table_of(errors)))
    assert told == (
        "With 100 particles b's error is 0.500 times bootstrap's in the geometric mean of 6 models "
        "(95 % interval 0.500 to 0.500), at 1 times its time per step; it is larger on 0 % of them."
    )
    small = pd.concat([table_of(errors, 10), pair(2 * base)])
    told = verdict_over_models(over_models(small))
    assert "b's error is 2.00 times bootstrap's" in told
    assert "it is larger on 100 % of them" in told
    unsure = over_models(pair(column(0.1, 5.0, 0.6, 2.0, 0.4, 0.6)))
    assert "no gain over bootstrap is shown: b's error is" in verdict_over_models(unsure)
    assert "no other filter" in verdict_over_models(over_models(table_of({"bootstrap": base})))
    one = {name: values[:1] for name, values in errors.items()}
    assert "too few models for an interval" in verdict_over_models(over_models(table_of(one)))


def test_a_model_of_which_either_number_is_known_is_not_unknown():
    table = pair(np.ones((3, 1)))
    table.loc[table["model"] == 1, "reference_uncertainty"] = np.nan
    table.loc[table["model"] == 2, "reference_error_sd"] = np.nan
    assert row_of(table)["unknown"] == 0
    assert row_of(table.drop(columns="scenario"))["scenario"] == ""


def test_models_shown_to_be_worse_are_those_whose_interval_lies_above_one():
    """Of models with six runs and more: one worse, one better, one equal, one in doubt; a fifth has too few."""
    values = np.array([np.full(6, 2.0), np.full(6, 0.5), np.full(6, 1.0), [0.5, 3, 3, 3, 3, 3]])
    table = pair(values)
    few = pair(np.full((5, 5), 9.0))
    row = row_of(pd.concat([table, few[few["model"] == 4]]))
    assert (row["above"], row["above_shown"]) == (pytest.approx(3 / 5), pytest.approx(1 / 4))


def test_quantiles_are_those_of_a_tenth_of_the_models_at_either_end():
    places = 1.0 + np.random.default_rng(2).permutation(10)
    table = pair(column(*places))
    table.loc[table["filter"] == "b", "ms_per_step"] = 2 * places
    row = row_of(table)
    assert [row[f"ratio_{q}"] for q in (10, 50, 90)] == [1.0, 5.0, 9.0]
    assert (row["time"], row["time_90"], row["time_worst"]) == (11.0, 18.0, 20.0)


@cases("bound lost", (0.02, True), (50.0, False))
def test_data_of_a_departing_model_and_targets_lost_in_its_spreads(bound, lost):
    """The filters get the model of the scenario, and the data are those of the other, of the same seed."""
    base = load_scenario("random_misspecified")
    believed = dataclasses.replace(
        base, reference=None, divergence=dataclasses.replace(base.divergence, rmse_above=bound)
    )
    options = {"particles": [20], "runs": 1, "models": 2, "first_model": 4}
    study = plan_study(believed, ["bootstrap"], **options)
    model = study.build_model(1)
    other = hf.models.random_model(5, departure="any")
    recording = record(believed, model, None, study.recording_rng(1))
    truth, z = hf.simulate(other, model.steps, study.recording_rng(1))
    assert_array_equal(recording.truth, truth)
    assert_array_equal(recording.observations, z)
    table = hf.compare(believed, ["bootstrap"], **options)
    assert table["diverged"].tolist() == [lost] * 2
    means = study.build_filter(study.tasks[1], model).run(z).means
    last = -round(0.25 * len(z))
    errors = ((means - truth) / model.spread)[last:]
    assert table["final_rmse"][1] == pytest.approx(np.sqrt((errors**2).mean()))
