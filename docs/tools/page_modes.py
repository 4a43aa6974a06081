"""The table of the page about linear parts, from what `benchmarks/bench_known.py` leaves."""

from __future__ import annotations

from collections.abc import Callable

from page_format import interval, markdown, number, read


def linear_parts(least: int = 100, most: int = 300) -> str:
    """Write errors of Rao-Blackwellised filters over those of plain ones."""
    rows = []
    for _, row in (
        read("linear_parts").query("n in (@least, @most) and filter != 'herded'").iterrows()
    ):
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
    return markdown(heads, rows, "linear_parts")


TABLES: dict[str, Callable[[], str]] = {"linear_parts": linear_parts}
