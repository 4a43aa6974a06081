"""The table of the page about linear parts, from what `benchmarks/bench_known.py` leaves."""

from __future__ import annotations

from page_format import Table, interval, number, read


def linear_parts() -> Table:
    """Return errors of Rao-Blackwellised filters over those of plain ones."""
    rows: list[list[object]] = []
    for _, row in read("linear_parts").iterrows():
        cells = [
            number(row["plain"]),
            number(row["error"]),
            interval(row, "ratio"),
            interval(row, "in_time"),
        ]
        rows.append(
            [
                f"`{row['scenario']}`",
                f"`{row['filter']}`",
                row["n"],
                *cells,
                number(row["ms"] / row["ms_plain"]),
            ]
        )
    heads = [
        "scenario",
        "proposal",
        "n",
        "plain, sd",
        "error, sd",
        "ratio",
        "in the same time",
        "time",
    ]
    return heads, rows
