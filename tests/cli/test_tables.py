"""Tables as text lose nothing, whatever the width."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import herdfilter as hf
from herdfilter._repr import in_blocks
from herdfilter.cli import main
from herdfilter.cli.terminal import echo, write_csv
from herdfilter.filters import progress

HEADS = ["filter", "n", "median error to the reference (m)", "ratio to bootstrap", "diverged"]
ROWS = [
    ["bootstrap", "20", "3.76 (2.61, 4.90)", "1.00", "0 %"],
    ["bootstrap", "100", "1.19 (1.14, 1.25)", "1.00", "5 %"],
    ["guided-augmented-gauss-kh", "20", "0.00123 (0.00100, 0.00145)", "0.000123 (0.000100, 0.000150)", "100 %"],
]


@pytest.mark.parametrize("width", [40, 80, None])
def test_every_cell_is_there_and_lines_fit(width):
    lines = in_blocks(HEADS, ROWS, keys=2, width=width)
    text = "\n".join(lines)
    for row in ROWS:
        assert all(cell in text for cell in row)
    if width is not None and width >= 80:
        assert max(map(len, lines)) <= width


def test_texts_are_no_formulas_in_a_spreadsheet_and_numbers_stay(tmp_path):
    names = ["=1+1", "+a", "-b", "@c", "plain", "a=b", "\tx", "-1.5"]
    table = pd.DataFrame({"filter": names, "rmse": [-1.5, -0.0, 1e-9, 2, np.nan, -np.inf, 3, 4], "n": range(-3, 5)})
    write_csv(table, tmp_path / "a.csv")
    read = pd.read_csv(tmp_path / "a.csv")
    assert [name.removeprefix("'") for name in read["filter"]] == names
    assert [name[0] == "'" for name in read["filter"]] == [True] * 4 + [False] * 2 + [True] * 2
    pd.testing.assert_frame_equal(read[["rmse", "n"]], table[["rmse", "n"]])


@pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\u2028"])
def test_no_sign_of_a_name_steers_the_terminal(sign, tmp_path, capsys):
    with pytest.raises(ValueError, match="filters: name: expected at most 200 printable characters"):
        hf.compare("linear_gaussian", {f"a{sign}b": "bootstrap"}, runs=1)
    echo(f"a{sign}b, é 滤波器\tc\n")
    progress.say(f"{sign}begin")
    told = capsys.readouterr()
    assert sign not in told.out + told.err
    assert "b, é 滤波器\tc\n" in told.out
    path = tmp_path / "evil.toml"
    source = json.dumps(f"by {sign}someone")
    path.write_text(f'title = "a"\nsource = {source}\n[model]\ntype = "UNGM"\n')
    shown = CliRunner().invoke(main, ["scenarios", str(path)]).output
    assert "someone" in shown
    assert sign not in shown
