"""A family of models: each run has its own, and is the same whatever other models there are."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import herdfilter as hf
from herdfilter.cli import main
from herdfilter.study import reference
from herdfilter.study.columns import TIMES
from herdfilter.study.evidence import Evidence
from herdfilter.study.measures import reference_error_sd, reference_uncertainty, variance_ratio
from herdfilter.study.posterior import Reference
from herdfilter.study.recording import Recording
from herdfilter.study.scenario import Scenario, load_scenario
from herdfilter.study.store import StoreError, open_for_reading
from herdfilter.study.study import plan_study

MODEL = """
import numpy as np

from herdfilter import GaussianMixture


class Drawn:
    def __init__(self, seed):
        self.seed = seed
        self.dim, self.steps = 1 + seed % 2, 4 + seed
        self.labels = ("walk", f"d = {self.dim}")
        self.initial = GaussianMixture([1.0], [np.zeros(self.dim)], [np.eye(self.dim)])
        self.grid = {"lower": -15.0, "upper": 15.0, "points": 301} if self.dim == 1 else None

    def transition_mean(self, x, dt, control, step):
        return 0.9 * x

    def transition_covariance(self, dt, step):
        return 0.5 * np.eye(self.dim)

    def log_likelihood(self, z, x, step):
        return -0.5 * ((z - x) ** 2).sum(axis=1) - self.dim * np.log(2 * np.pi) / 2

    def observation_mean(self, x, step):
        return x

    def observation_covariance(self, step):
        return np.eye(self.dim)
"""
FAMILY = """
title = "A family"
runs = 1
models = 2
particles = [8, 100, 200]
filters = ["bootstrap", "bootstrap-multinomial"]
[model]
type = "drawn.py:Drawn"
[reference]
type = "grid-or-large"
n = 512
filter = ["sqmc", "bootstrap"]
"""
COUNT = {"particles": [8]}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("family")
    (folder / "drawn.py").write_text(MODEL)
    (folder / "family.toml").write_text(FAMILY)
    return folder / "family.toml"


def same(a, b):
    columns = [name for name in a if name not in TIMES]
    pd.testing.assert_frame_equal(a[columns].reset_index(drop=True), b[columns].reset_index(drop=True))


def run(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def test_each_run_has_the_model_of_its_seed(path):
    table = hf.compare(path, ["bootstrap"], **COUNT, models=3, runs=2, first_model=5)
    assert (table["error"] == "").all()
    assert table["model"].tolist() == [5, 5, 6, 6, 7, 7]
    assert table["kind"].tolist() == ["walk, d = 2"] * 2 + ["walk, d = 1"] * 2 + ["walk, d = 2"] * 2
    assert table["nees_degrees"].tolist() == [2, 2, 1, 1, 2, 2]
    assert table["rmse"].nunique() == 6
    study = plan_study(path, models=3, runs=2, first_model=5)
    assert [study.build_model(r).seed for r in range(study.runs)] == [5, 5, 6, 6, 7, 7]


def test_a_model_is_run_alike_whichever_others_there_are(path):
    together = hf.compare(path, **COUNT, models=3)
    alone = hf.compare(path, **COUNT, models=1, first_model=2)
    same(together[together["model"] == 2].assign(run=0), alone)


def test_more_models_continue_a_store_and_fewer_or_others_do_not(path, tmp_path):
    store = tmp_path / "study.sqlite"
    first = hf.compare(path, **COUNT, models=2, store=store)
    more = hf.compare(path, **COUNT, models=3, store=store, resume=True)
    assert len(more) == 6
    same(more[more["model"] < 2], first)
    assert more.loc[more["model"] < 2, "seconds"].tolist() == first["seconds"].tolist()  # not run again
    same(more, hf.compare(path, **COUNT, models=3))
    with pytest.raises(StoreError, match="models: expected at least the 3 that were begun, got 1"):
        hf.compare(path, **COUNT, models=1, store=store, resume=True)
    for other in ({"first_model": 1}, {"runs": 2}):
        with pytest.raises(StoreError, match=r"family\.(first|runs): ."):
            hf.compare(path, **COUNT, models=3, store=store, resume=True, **other)


def test_models_of_different_lengths_are_stacked(path, tmp_path):
    hf.compare(path, ["bootstrap"], **COUNT, store=tmp_path / "s")
    with open_for_reading(tmp_path / "s") as store:
        result = store.result()
    truth = result.series["bootstrap", 8]["truth"]
    assert np.isfinite(truth).sum(axis=1).tolist() == [4, 5]


def test_the_reference_is_the_models_grid_and_else_two_large_filters(path):
    table = hf.compare(path, ["bootstrap"], **COUNT)
    assert (table["reference_sd"] == 0).tolist() == [True, False]
    assert (table["reference_uncertainty"] < 0.1).all()


def test_a_grid_that_does_not_hold_the_state_gives_way_to_large_filters(path):
    study = plan_study(path)
    model = study.build_model(0)
    model.grid = {"lower": -1.0, "upper": 1.0, "points": 41}
    recording = Recording(np.zeros((2, 1)), np.zeros((2, 1)))
    found = reference.compute_reference(study.scenario, model, recording, np.random.default_rng(0))
    assert (found.error > 0).all()


def test_the_first_filter_of_a_list_that_serves_makes_the_reference(path):
    scenario = load_scenario(path)
    model = SimpleNamespace(dim=1, initial=hf.GaussianMixture([1.0], [[0.0]], [[1.0]]))
    model.sample_transition = lambda x, rng, dt, control, step: x + rng.normal(size=x.shape)
    model.log_likelihood = lambda z, x, step: -0.5 * (z[0] - x[:, 0]) ** 2
    recording = Recording(np.zeros((2, 1)), np.zeros((2, 1)))
    found = reference.compute_reference(scenario, model, recording, np.random.default_rng(0))
    assert np.isfinite(found.means).all()
    only = dataclasses.replace(scenario, reference={**scenario.reference, "filter": ["sqmc"]})
    with pytest.raises(TypeError, match="SequentialQuasiMonteCarlo needs"):
        reference.compute_reference(only, model, recording, np.random.default_rng(0))


def test_the_covariance_of_several_filters_is_theirs_and_that_of_their_means(monkeypatch):
    results = [SimpleNamespace(means=np.full((3, 1), m), covariances=np.full((3, 1, 1), v), log_likelihood=0.0)
               for m, v in ((1.0, 2.0), (-1.0, 4.0))]  # fmt: skip
    built = [SimpleNamespace(run=lambda *a, r=r, **k: r) for r in results]
    monkeypatch.setattr(reference, "serving", lambda *arguments: lambda *more: built.pop())
    recording = Recording(np.zeros((3, 1)), np.zeros((3, 1)))
    found = reference._large(SimpleNamespace(), recording, np.random.default_rng(0), n=5, repeats=2)
    np.testing.assert_allclose(found.covariances, 3.0 + 2.0)
    np.testing.assert_allclose(found.error, 1.0)


def evidence(unit=(1.0, 1.0), own=((2.0, 8.0), (2.0, 8.0)), error=(1.0, -2.0)):
    """Two steps in two dimensions, of posterior variances 2 and 8 in the units given."""
    unit = np.array(unit)
    covariances = np.array([np.diag(variances * unit**2) for variances in ([2.0, 8.0], [2.0, 8.0])])
    mine = np.array([np.diag(variances * unit**2) for variances in np.array(own)])
    known = Reference(np.zeros((2, 2)), 0.0, 0.1 * np.sqrt([2.0, 8.0]) * np.ones((2, 2)) * unit, covariances)
    result = SimpleNamespace(means=np.array([error, error]) * unit, covariances=mine)
    recording = Recording(np.zeros((2, 2)), np.zeros((2, 1)))
    scenario = Scenario("s", "S", {"type": "UNGM"})
    return Evidence(scenario, SimpleNamespace(dim=2), recording, known, result)


@pytest.mark.parametrize("unit", [(1.0, 1.0), (1e-6, 1e4)])
def test_errors_in_posterior_standard_deviations_know_no_unit(unit):
    known = evidence(unit)
    assert reference_error_sd(known) == pytest.approx(np.sqrt((1 / 2 + 4 / 8) / 2))
    assert reference_uncertainty(known) == pytest.approx(0.1)
    assert variance_ratio(known) == pytest.approx(1.0)


def test_half_and_twice_the_variance_count_alike():
    assert variance_ratio(evidence(own=[[1.0, 16.0], [4.0, 4.0]])) == pytest.approx(1.0)
    assert variance_ratio(evidence(own=[[0.5, 2.0], [0.5, 2.0]])) == pytest.approx(0.25)
    assert 0 < variance_ratio(evidence(own=[[0.0, 0.0], [2.0, 8.0]])) < 0.01


def test_what_is_known_for_sure_counts_for_nothing():
    known = evidence()
    known.reference.covariances[:, 0, 0] = 0.0
    assert reference_error_sd(known) == pytest.approx(np.sqrt(4 / 8))
    assert variance_ratio(known) == pytest.approx(1.0)
    known = evidence()
    known.reference.covariances[0, 0, 0] = 0.0  # at one step only
    assert np.isfinite([reference_error_sd(known), variance_ratio(known)]).all()


def test_the_command_line_tells_of_the_models(path, tmp_path, monkeypatch):
    for place, nothing in (
        ("plotting.save_figures", []),
        ("report.page.inline", ""),
    ):  # planned, but not drawn
        monkeypatch.setattr(f"herdfilter.{place}", lambda *arguments, nothing=nothing: nothing)
    out = tmp_path / "out"
    done = run("compare", path, "--models", "3", "--workers", "1", "--out", out)
    assert done.exit_code == 0, done.output
    assert "A family: 3 runs of 3 models, seeds 0 to 2" in done.stdout
    assert max(map(len, (out / "table.txt").read_text().splitlines())) <= 80
    assert "(walk, d = 2)" in " ".join(done.stdout.split())
    assert "geometric mean of 3 models" in " ".join(done.stdout.split())
    models = pd.read_csv(out / "models.csv")
    assert models["exponent"].notna().all()
    assert "3 runs of 3 models" in (out / "report.html").read_text()
    shown = run("show", out, "--wide")
    for words in ("exponent", "reference uncertain", "90 %"):
        assert set(words.split()) <= set(shown.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ungm", "--models", "3"], "models: expected none, since scenario 'ungm' has one model, got 3"),
        (["ungm", "--first-model", "3"], "first_model: expected none, since scenario 'ungm' has one model"),
        (["PATH", "--models", "0"], "models: expected an integer of at least 1, got 0"),
        (["PATH", "--first-model", "-1"], "first_model: expected an integer of at least 0, got -1"),
        (["PATH", "--runs", "0"], "runs: expected an integer of at least 1, got 0"),
    ],
)
def test_what_does_not_fit_is_named(path, arguments, message):
    refused = run("compare", *(path if one == "PATH" else one for one in arguments))
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"Error: {message}")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("models = 2", "models = 0", "models: expected an integer of at least 1, got 0"),
        ('"drawn.py:Drawn"', '"drawn.py:Drawn"\nseed = 3', r"\[model\]: seed: expected none beside models"),
        ('"drawn.py:Drawn"', '"UNGM"', "unknown 'seed'"),
        (
            '["sqmc", "bootstrap"]',
            '["sqmc", "ekf"]',
            "filter: expected a particle filter that draws at random",
        ),
        ('["sqmc", "bootstrap"]', "[]", "filter: expected at least one name, got none"),
        ('["sqmc", "bootstrap"]', '["sqmcc"]', "did you mean 'sqmc'"),
    ],
)
def test_a_file_that_does_not_fit_is_named(path, old, new, message):
    other = path.with_name("other.toml")
    other.write_text(FAMILY.replace(old, new))
    with pytest.raises(ValueError, match=message):
        plan_study(other)


def test_a_model_that_cannot_be_made_is_a_failure_of_its_own_runs(path):
    broken = path.with_name("broken.py")
    broken.write_text(MODEL.replace("self.seed = seed", "self.seed = seed\n        assert seed != 1"))
    scenario = load_scenario(path)
    scenario = dataclasses.replace(scenario, model={"type": "broken.py:Drawn"}, models=3)
    table = hf.compare(scenario, ["bootstrap"], **COUNT)
    assert (table["error"] != "").tolist() == [False, True, False]
    assert hf.study.over_models(table)[["models", "compared", "unknown"]].to_numpy().tolist() == [[3, 2, 1]]
