"""The tables of the page of published figures: one for each paper, and how many of its figures agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pandas as pd
from page_format import markdown, measured, number, read

SOURCE = "as_published"
SOURCES = (SOURCE, "as_published_dapper")
VERDICTS = ("agrees", "differs", "other filter", "not read")
MOST_ROWS = 12
"""Of a table on a page."""


def paper(name: str, part: str = "") -> str:
    """Write the figures of one paper, or of one of its examples, beside ours; below them the notes on single rows."""
    table = read(SOURCE).query("paper == @name and place.str.startswith(@part)")
    notes = list(dict.fromkeys(table["note"].dropna()))
    rows = [
        [row.place, row.quantity, number(row.theirs, 4), with_interval(row), row.runs, row.verdict]
        + ([f"{notes.index(row.note) + 1}" if row.note in notes else ""] if notes else [])
        for row in table.itertuples()
    ]
    heads = ["place", "quantity", "theirs", "ours", "runs", "verdict"] + (["note"] if notes else [])
    below = "".join(f"{k}. {note}\n" for k, note in enumerate(notes, 1))
    return f"{markdown(heads, rows)}\n{below}\n{measured(SOURCE)}\n"


def with_interval(row) -> str:
    """Write our figure with its interval."""
    text = number(row.ours, 4)
    return text if row.low == row.high else f"{text} ({number(row.low, 4)}, {number(row.high, 4)})"


def summary() -> str:
    """Write how many figures of each paper agree."""
    table = pd.concat([read(source) for source in SOURCES])
    counts = table.groupby(["paper", "verdict"], sort=False).size()
    papers = dict.fromkeys(table["paper"])
    rows = [[name, *(counts.get((name, verdict), 0) for verdict in VERDICTS)] for name in papers]
    return markdown(["paper", *VERDICTS], rows, *SOURCES)


def tables() -> dict[str, Callable[[], str]]:
    """Return a table for each paper; for each example of a paper, the place before a comma, where one would be too long.

    "Gordon, Salmond and Smith (1993)" is `published_gordon_1993`, its example of bearings `published_gordon_1993_bearings`.
    """
    made: dict[str, Callable[[], str]] = {"published_papers": summary}
    for name, rows in read(SOURCE).groupby("paper", sort=False):
        author, year = re.match(r"\w+", name)[0].lower(), re.search(r"\d{4}", name)[0]
        parts = (
            [""] if len(rows) <= MOST_ROWS else dict.fromkeys(rows["place"].str.partition(",")[0])
        )
        for part in parts:
            example = f"_{part.split()[0].lower()}" if part else ""
            made[f"published_{author}_{year}{example}"] = partial(paper, name, part)
    return made


TABLES = tables()
