"""The table of DAPPER's settings without transition noise: its figures, the same filter with us, and filters of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from page_format import markdown, number, read

SOURCE = "as_published_dapper"
FILTERS = ("auto", "ranked", "enkf")


def dapper(system: str) -> str:
    """Write a line for each number of particles, in the settings of a system."""
    table = read(SOURCE).query("place.str.startswith(@system)")
    table[["filter", "method"]] = table["quantity"].str.extract(r"(.*), theirs (.*)")
    table[["setting", "n"]] = table["place"].str.extract(r"(.*), n = (.*)")
    rows = []
    for (setting, n), cells in table.groupby(["setting", "n"], sort=False):
        figures = dict.fromkeys(f"{row.method} {number(row.theirs)}" for row in cells.itertuples())
        by_filter = {row.filter: row for row in cells.itertuples()}
        check = by_filter.get("regularised")
        same = "" if check is None else f"{cell(check)}, {check.verdict}"
        ours = [cell(by_filter[name]) if name in by_filter else "" for name in FILTERS]
        rows.append([setting, n, ", ".join(figures), same, *ours])
    heads = ["setting", "n", "DAPPER", "its PartFilt with us", *(f"`{name}`" for name in FILTERS)]
    return markdown(heads, rows, SOURCE)


def cell(row) -> str:
    """Write our figure with its interval, and how many runs lost the track."""
    text = f"{number(row.ours)} ({number(row.low)}, {number(row.high)})"
    return f"{text}, {row.lost} lost" if row.lost else text


TABLES: dict[str, Callable[[], str]] = {
    "published_dapper_lorenz": partial(dapper, "Lorenz"),
    "published_dapper_pendulum": partial(dapper, "pendulum"),
}
