"""Tables as text lose nothing, whatever the width."""

import json

import pytest
from helpers import cases, command

import herdfilter as hf
from herdfilter._repr import in_blocks
from herdfilter.cli.terminal import echo
from herdfilter.filters import progress

HEADS = ["filter", "n", "median error to the reference (m)", "ratio to bootstrap", "diverged"]
ROWS = [
    ["bootstrap", "20", "3.76 (2.61, 4.90)", "1.00", "0 %"],
    ["bootstrap", "100", "1.19 (1.14, 1.25)", "1.00", "5 %"],
    [
        "guided-augmented-gauss-kh",
        "20",
        "0.00123 (0.00100, 0.00145)",
        "0.000123 (0.000100, 0.000150)",
        "100 %",
    ],
]


@cases("width", 40, 80, None)
def test_every_cell_is_there_and_lines_fit(width):
    lines = in_blocks(HEADS, ROWS, keys=2, width=width)
    text = "\n".join(lines)
    for row in ROWS:
        assert all(cell in text for cell in row)
    if width is not None and width >= 80:
        assert max(map(len, lines)) <= width


@cases("sign", "\u202e", "\x1b", "\u2028")
def test_no_sign_of_a_name_steers_the_terminal(sign, tmp_path, capsys):
    with pytest.raises(
        ValueError, match="filters: name: expected at most 200 printable characters"
    ):
        hf.compare("linear_gaussian", {f"a{sign}b": "bootstrap"}, runs=1)
    echo(f"a{sign}b, é 滤波器\tc\n")
    progress.say(f"{sign}begin")
    told = capsys.readouterr()
    assert sign not in told.out + told.err
    assert "b, é 滤波器\tc\n" in told.out
    path = tmp_path / "evil.toml"
    source = json.dumps(f"by {sign}someone")
    path.write_text(f'title = "a"\nsource = {source}\n[model]\ntype = "UNGM"\n')
    shown = command("scenarios", path).output
    assert "someone" in shown
    assert sign not in shown
