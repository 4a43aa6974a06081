"""The table of gains of quasi-Monte Carlo: filters in columns."""

from __future__ import annotations

from collections.abc import Callable

from page_format import markdown, number, read

SOURCE = "as_published"
PAPER = "Gerber and Chopin (2015), by their library"
FILTERS = ("sqmc", "randomised ranked", "ranked", "ranked, unguided", "auto")
HEADS = ("`sqmc`", "randomised `ranked`", "`ranked`", "unguided `ranked`", "`auto`")


def gains() -> str:
    """Write the gain of each filter over the bootstrap filter: theirs, the verdict on ours, and ours."""
    table = read(SOURCE).query("paper == @PAPER")
    table[["filter", "measure"]] = table["quantity"].str.extract(r"gain of (.*) in the (.*)")
    table[["model", "n"]] = table["place"].str.extract(r"(.*), n = (.*)")
    rows = []
    for (model, n, measure), cells in table.groupby(["model", "n", "measure"], sort=False):
        own = cells.set_index("filter")
        ours = [f"{number(own.ours[f])} ({number(own.low[f])}, {number(own.high[f])})" for f in FILTERS]
        rows.append([model, n, measure, number(own.theirs["sqmc"]), own.verdict["sqmc"], *ours])
    return markdown(["model", "n", "of the", "their SQMC", "verdict", *HEADS], rows, SOURCE)


TABLES: dict[str, Callable[[], str]] = {"published_gains": gains}
