"""The board: its definition is frozen, its numbers are those of the runs, and a filter of one's own can be entered."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import command

from herdfilter.study import board
from herdfilter.study.board import BASELINE, DEFINITION, numbers

FROZEN = {1: "ee8977964872"}
"""Version of the board -> digest of its definition. Whoever changes the definition adds a version."""

MINE = """
import herdfilter as hf

def mine(model, n, rng):
    return hf.ParticleFilter(model, n, rng=rng)
"""


def test_the_definition_is_that_of_its_version():
    assert FROZEN[DEFINITION.version] == hashlib.sha256(f"{DEFINITION} {BASELINE}".encode()).hexdigest()[:12]


def test_numbers_of_a_row(monkeypatch):
    """Errors of 0.1 to 0.6 of bootstrap's; in 5/4 of the time bootstrap has 4/3 of the particles."""
    monkeypatch.setattr(board, "DEFINITION", replace(DEFINITION, ladder=(50, 100)))
    shares, rows = np.arange(1, 7) / 10, []
    for run, share in enumerate(np.repeat(shares, 2)):
        for name, n, error, ms in (("mine", 50, 0.5 * share, 1.25), (BASELINE, 50, 0.5, 1.0), (BASELINE, 100, 0.25, 1.75)):
            rows.append(
                {"filter": name, "n_particles": n, "model": run // 2, "run": run, "error": "", "diverged": False}
                | {"reference_error_sd": error, "reference_uncertainty": 0.0, "ms_per_step": ms}
                | {"variance_ratio": 1.0, "log_likelihood_error": error**2}
            )
    row = numbers(pd.DataFrame(rows), "mine", [50])
    logs = np.log(shares)
    half = 2.5706 * logs.std(ddof=1) / np.sqrt(6)  # Student's t with five degrees of freedom
    assert row["error_50"] == pytest.approx(np.exp(logs.mean()))
    assert row["error_50_high"] == pytest.approx(np.exp(logs.mean() + half), rel=1e-4)
    assert row["equal_time_50"] == pytest.approx(np.exp(logs.mean()) * 4 / 3)
    assert row["log_likelihood_50"] == pytest.approx(np.exp(2 * logs.mean()))
    assert (row["time_50"], row["beyond_50"], row["variance_right_50"]) == (1.25, 0.0, 1.0)
    assert (row["lost_50"], row["failures_50"], row["uncertain_50"], row["compared_50"]) == (0.0, 0, 0.0, 6)


def test_a_filter_in_a_file_gets_its_row(monkeypatch, tmp_path):
    """Model 11 has an exact reference on a small grid."""
    monkeypatch.setattr(board, "DEFINITION", replace(DEFINITION, ladder=(50, 500), runs=1))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    options = ("--models", "1", "--seed", "11", "--particles", "50", "--workers", "1", "--out", "out")
    result = command("board", "mine.py:mine", *options)
    assert result.exit_code == 0, result.output
    assert "This is a trial; a row of the board has 200 models" in result.stdout
    (row,) = pd.read_csv("out/board.csv").to_dict("records")
    assert (row["filter"], row["board"], row["seed"], row["trial"]) == ("mine.py:mine", 1, 11, True)
    assert 0.3 < row["error_50"] < 3  # a bootstrap filter, too
