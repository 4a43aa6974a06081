"""The board: its definition is frozen, its numbers are those of the runs, and a filter of one's own can be entered."""

import hashlib
from dataclasses import replace

import pandas as pd
from helpers import command

from herdfilter.study import board
from herdfilter.study.board import BASELINE, DEFINITION

FROZEN = {1: "ee8977964872"}
"""Version of the board -> digest of its definition. Whoever changes the definition adds a version."""

MINE = """
import herdfilter as hf

def mine(model, n, rng):
    return hf.ParticleFilter(model, n, rng=rng)
"""


def test_the_definition_is_that_of_its_version():
    assert FROZEN[DEFINITION.version] == hashlib.sha256(f"{DEFINITION} {BASELINE}".encode()).hexdigest()[:12]


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
