"""Tables as text lose nothing, whatever the width."""

import pytest

from herdfilter.cli.tables import definitions, in_blocks, with_text

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


@pytest.mark.parametrize("width", [40, 60, 80, 120, None])
def test_every_cell_is_there_and_lines_fit(width):
    lines = in_blocks(HEADS, ROWS, keys=2, width=width)
    text = "\n".join(lines)
    for row in ROWS:
        assert all(cell in text for cell in row)
    if width is not None and width >= 80:
        assert max(map(len, lines)) <= width
    blocks = sum(set(line) == {"-"} for line in lines)
    assert (blocks > 1) == (width is not None and width < 120)


def test_each_block_names_its_rows():
    lines = in_blocks(HEADS, ROWS, keys=2, width=40)
    rules = [i for i, line in enumerate(lines) if set(line) == {"-"}]
    for i in rules:
        assert lines[i + 1].split()[:2] == ["bootstrap", "20"]


def test_running_text_takes_the_lines_it_needs():
    lines = with_text(["name", "what it is"], [["a", "word " * 40], ["longer-name", "short"]], width=50)
    assert max(map(len, lines)) <= 50
    assert " ".join(lines).count("word") == 40
    assert definitions([("a", "word " * 40)], 50)[1].startswith("   word")
