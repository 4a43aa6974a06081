"""The tables of the page of published figures: how many agree, and the list of those that have a number on both sides."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from page_format import Table, markdown, number, read

SOURCES = ("as_published", "as_published_dapper")
VERDICTS = ("agrees", "differs", "other filter")


def compared() -> pd.DataFrame:
    """Return the rows in which their figure is known."""
    return pd.concat([read(source) for source in SOURCES]).dropna(subset="theirs")


def pairs() -> Table:
    """Their figures beside ours, with the interval of ours."""
    rows = [
        [
            row.paper,
            row.place,
            row.quantity,
            number(row.theirs, 4),
            with_interval(row),
            row.runs,
            row.verdict,
            "" if pd.isna(row.note) else row.note,
        ]
        for row in compared().itertuples()
    ]
    return ["paper", "place", "quantity", "theirs", "ours", "runs", "verdict", "note"], rows


def with_interval(row) -> str:
    """Write our figure with its interval."""
    text = number(row.ours, 4)
    return text if row.low == row.high else f"{text} ({number(row.low, 4)}, {number(row.high, 4)})"


def summary() -> str:
    """Write how many figures of each paper agree."""
    table = compared()
    counts = table.groupby(["paper", "verdict"], sort=False).size()
    papers = dict.fromkeys(table["paper"])
    rows = [[name, *(counts.get((name, verdict), 0) for verdict in VERDICTS)] for name in papers]
    return markdown(["paper", *VERDICTS], rows, *SOURCES)


TABLES: dict[str, Callable[[], str]] = {"published_papers": summary}
