"""The board: its definition is frozen, its numbers are those of the runs, and every kind of filter can be entered."""

import hashlib
import pickle
import sys
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import herdfilter as hf
from herdfilter.cli import main
from herdfilter.models.from_functions import cloudpickle
from herdfilter.study import board
from herdfilter.study.board import BASELINE, DEFINITION, entrant, first_seed, in_time, numbers

FROZEN = {1: "ee8977964872"}
"""Version of the board -> digest of its definition. Whoever changes the definition adds a version."""
MODELS = {
    10_000_000: ("03ff8e01b48b", 2.183341926),
    749_947_002: ("a9976d49b40f", -0.1214629868),
    990_000_125: ("2b9a084ead24", 1.524582431),
}
"""Seed of a model -> digest of its equations, and the first observation simulated with seed 0, as of version 1."""

MINE = '''
import numpy as np
from types import SimpleNamespace

from herdfilter.models import contract


class Mine:
    """Particles that are moved and weighed, and resampled at every step."""

    def __init__(self, model, n, rng):
        self.model, self.n, self.rng = model, n, rng

    def run(self, observations):
        x, means = self.model.initial.sample(self.n, self.rng), []
        for step, z in enumerate(observations, start=1):
            x = contract.sample_transition(self.model, x, self.rng, 1.0, None, step)
            w = np.exp(contract.log_likelihood(self.model, z, x, step)) + 1e-300
            means.append(w @ x / w.sum())
            x = x[self.rng.choice(self.n, self.n, p=w / w.sum())]
        return SimpleNamespace(means=np.array(means))


class Empty(Mine):
    def run(self, observations):
        return SimpleNamespace(mean=0.0)


class Flat(Mine):
    def run(self, observations):
        return SimpleNamespace(means=np.zeros(len(observations)))


def nothing(model, n, rng):
    return 3
'''


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def test_the_definition_is_that_of_its_version():
    assert FROZEN[DEFINITION.version] == digest(f"{DEFINITION} {BASELINE}")


@pytest.mark.parametrize("seed", MODELS)
def test_models_are_those_for_which_the_board_was_made(seed):
    model = hf.models.random_model(seed)
    equations, first = MODELS[seed]
    assert digest(str(model)) == equations
    assert hf.simulate(model, 1, rng=0)[1][0, 0] == pytest.approx(first, rel=1e-6)


def test_each_day_has_models_of_its_own():
    assert first_seed("2026-11-27") == first_seed(date(2026, 11, 27)) == 749_947_000
    assert first_seed("2026-11-28") - first_seed("2026-11-27") == DEFINITION.seeds_per_day >= DEFINITION.models
    assert first_seed("0001-01-01") > 10_000_000
    assert first_seed(11) == first_seed("11") == 11


def table(own, base, **columns):
    """Return runs of `mine` and of bootstrap, whose error at n = 50 and 100 is `base` and its half; two of each model."""
    rows = []
    for model, (mine, bootstrap) in enumerate(zip(own, base, strict=True)):
        errors = {("mine", 50): mine, (BASELINE, 50): bootstrap, (BASELINE, 100): bootstrap / 2}
        times = {("mine", 50): 1.25, (BASELINE, 50): 1.0, (BASELINE, 100): 1.75}
        for run in (2 * model, 2 * model + 1):
            rows += [
                {"filter": key[0], "n_particles": key[1], "model": model, "run": run, "error": "", "diverged": False}
                | {"reference_error_sd": error, "reference_uncertainty": 0.0, "ms_per_step": times[key]}
                | {"variance_ratio": 1.0, "log_likelihood_error": error**2}
                for key, error in errors.items()
            ]
    return pd.DataFrame(rows).assign(**columns)


@pytest.fixture
def short_ladder(monkeypatch):
    monkeypatch.setattr(board, "DEFINITION", replace(DEFINITION, ladder=(50, 100)))


def test_numbers_of_a_row(short_ladder):
    """Errors of 0.1 to 0.6 of bootstrap's; in 5/4 of the time bootstrap has 4/3 of the particles."""
    shares = np.arange(1, 7) / 10
    row = numbers(table(0.5 * shares, np.full(6, 0.5)), "mine", [50])
    logs = np.log(shares)
    half = 2.5706 * logs.std(ddof=1) / np.sqrt(6)  # Student's t with five degrees of freedom
    assert row["error_50"] == pytest.approx(np.exp(logs.mean()))
    assert row["error_50_high"] == pytest.approx(np.exp(logs.mean() + half), rel=1e-4)
    assert row["equal_time_50"] == pytest.approx(np.exp(logs.mean()) * 4 / 3)
    assert row["log_likelihood_50"] == pytest.approx(np.exp(2 * logs.mean()))
    assert (row["time_50"], row["beyond_50"], row["variance_right_50"]) == (1.25, 0.0, 1.0)
    assert (row["lost_50"], row["failures_50"], row["uncertain_50"], row["compared_50"]) == (0.0, 0, 0.0, 6)


def test_a_filter_is_as_good_as_itself(short_ladder):
    runs = table(np.full(6, 0.5), np.linspace(0.1, 0.6, 6))
    row = numbers(runs[runs["filter"] == BASELINE], BASELINE, [50])
    assert [row[f"{name}_50"] for name in ("error", "raw", "equal_time", "time")] == pytest.approx([1.0] * 4)


def test_the_error_of_the_reference_is_taken_out(short_ladder):
    """3-4-5: an error of 5 to a reference that is 3 off is one of 4; where the reference has most of it, half stays."""
    own, base, off = np.full(6, 5.0), np.full(6, 50.0), np.full(6, 3.0)
    off[0] = 4.5
    runs = table(own, base)
    row = numbers(runs.assign(reference_uncertainty=off[runs["model"]]), "mine", [50])
    bases = np.sqrt(50**2 - off**2)
    errors = np.array([5 / np.sqrt(2), *5 * [4.0]])
    assert row["error_50"] == pytest.approx(np.exp(np.log(errors / bases).mean()))
    assert row["raw_50"] == pytest.approx(0.1)
    assert row["uncertain_50"] == pytest.approx(1 / 6)


def test_failed_and_lost_runs_are_counted_and_open_the_interval(short_ladder):
    runs = table(np.full(7, 0.5), np.full(7, 1.0))
    mine = runs["filter"] == "mine"
    runs.loc[mine & (runs["run"] == 0), ["error", "reference_error_sd", "log_likelihood_error"]] = [
        "ValueError",
        np.nan,
        np.nan,
    ]
    runs.loc[mine & (runs["run"] == 3), "diverged"] = True
    runs.loc[runs["run"] == 5, "diverged"] = True  # bootstrap, too
    row = numbers(runs, "mine", [50])
    assert (row["failures_50"], row["compared_50"], row["lost_50"]) == (1, 6, 2 / 7)
    assert (row["error_50"], row["error_50_high"]) == (pytest.approx(0.5), np.inf)
    runs.loc[mine & (runs["run"] == 1), "error"] = "ValueError"
    runs.loc[mine & (runs["model"] == 0), "ms_per_step"] = np.nan
    assert numbers(runs, "mine", [50])["equal_time_50_high"] == np.inf
    runs.loc[~mine & (runs["run"] == 2), "error"] = "ValueError"  # a model that bootstrap fails on is not compared
    assert numbers(runs, "mine", [50])["error_50"] == pytest.approx(0.5)


def test_errors_in_a_time_follow_the_ladder():
    """A step takes 1 ms and 0.01 ms for each particle; the error is 1 over the root of n but at n = 400, which failed."""
    counts = np.array([100.0, 400.0, 900.0, 1600.0])
    ladder = pd.DataFrame({"time": 1 + counts / 100, "error": counts**-0.5}, pd.Index(counts, name="n_particles"))
    ladder.loc[400, "error"] = np.inf
    for ms, n in {0.1: 100, 2.0: 100, 5.0: 400, 10.0: 900, 17.0: 1600, 101.0: 10_000, np.nan: 100}.items():
        assert in_time(ms, ladder) == (pytest.approx(n), pytest.approx(n**-0.5))
    assert np.isnan(in_time(1.0, ladder.assign(error=np.inf))).all()


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """One run of each model, a short ladder, and a file with filters; model 11 has an exact reference on a small grid."""
    monkeypatch.setattr(board, "DEFINITION", replace(DEFINITION, ladder=(50, 500), runs=1))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)


def test_a_class_in_a_file_gets_its_row(quick, tmp_path):
    command = [
        "board",
        "mine.py:Mine",
        "--models",
        "1",
        "--seed",
        "11",
        "--particles",
        "50",
        "--workers",
        "1",
        "--out",
        "out",
    ]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert "This is a trial; a row of the board has 200 models" in result.stdout
    (row,) = pd.read_csv("out/board.csv").to_dict("records")
    assert (row["filter"], row["board"], row["seed"], row["trial"]) == ("mine.py:Mine", 1, 11, True)
    assert 0.3 < row["error_50"] < 3  # a bootstrap filter, too
    assert np.isnan(row["variance_right_50"])
    assert "there are" in CliRunner().invoke(main, command).stderr
    result = CliRunner().invoke(main, [*command, "--resume"])
    first, again = pd.read_csv("out/board.csv").to_dict("records")
    assert pd.Series(first).equals(pd.Series(again))
    assert "finished" not in result.stderr


def test_a_row_in_python(quick):
    row = hf.board("bootstrap", models=1, seed=11, particles=50)
    assert row["error_50"] == row["raw_50"] == row["time_50"] == 1.0
    assert row["trial"]


def test_a_class_of_a_file_goes_to_other_processes(quick):
    name, factory = entrant("mine.py:Mine")
    data = cloudpickle().dumps(factory)
    del sys.modules["herdfilter_user_mine"]
    again = pickle.loads(data)(hf.models.linear_chain(1), 50, np.random.default_rng(0))
    assert name == "mine.py:Mine"
    assert again.run(np.zeros((2, 1)), dt=1.0, controls=None).means.shape == (2, 1)


def no_filter(model, n, rng):
    return SimpleNamespace(run=lambda z: None)


REFUSED = {
    "autto": "filter: unknown 'autto'; did you mean 'auto'",
    "lmb-auto": "filter lmb-auto: .*needs births",
    "mine.py:Min": ".*unknown 'Min'; did you mean 'Mine'",
    "other.py:Mine": "no file other.py",
    "mine.py:Empty": "filter mine.py:Empty: run: expected a result with means",
    "mine.py:Flat": "filter mine.py:Flat: means: expected shape",
    "mine.py:nothing": "filter mine.py:nothing: returned: expected an object with run, got 3",
}


@pytest.mark.parametrize("entry", REFUSED)
def test_what_is_no_filter_is_answered_in_one_line(quick, entry):
    result = CliRunner().invoke(main, ["board", entry, "--models", "1"])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=REFUSED[entry]):
        entrant(entry)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"filter": no_filter}, "filter no_filter: run: expected a result with means"),
        (
            {"filter": {"bootstrap": {"resampling": "SSPResampling()"}}},
            "filter: expected one, and no other called bootstrap",
        ),
        ({"filter": {"a": "auto", "b": "ukf"}}, "filter: expected one, and"),
        ({"particles": [50, 70]}, "particles: unknown '70'"),
        ({"models": 2000}, "models: expected an integer"),
        ({"seed": "2026-13-01"}, "seed: expected a date such as 2026-11-27, or an integer"),
        ({"seed": -1}, "seed: expected an integer of at least 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_arguments_are_checked(given, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        hf.board(**{"filter": "ukf", "models": 1} | given)
