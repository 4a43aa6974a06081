"""Tables of the pages about models that jump and about linear parts, from what `benchmarks/bench_known.py` leaves."""

from __future__ import annotations

from collections.abc import Callable

from page_format import Table, interval, markdown, number, percent, read


def modes(n: int = 50) -> str:
    """Write errors of filters against the exact posterior, and those of herded modes over random ones."""
    rows = []
    for _, row in read("modes").query("n in (0, @n)").iterrows():
        cells = [number(row[name]) for name in ("error", "error_90", "modes", "log_likelihood")]
        cells += [percent(row["within"]), interval(row, "ratio"), number(row["ms"])]
        name = (
            f"`{row['filter']}`"
            if ", " not in row["filter"]
            else f"`{row['filter'].replace(', ', '`, ')}"
        )
        rows.append([row["family"], row["models"], name, row["n"] or "", *cells])
    heads = [
        "modes",
        "models",
        "filter",
        "n",
        "mean, sd",
        "of 90 %",
        "probabilities",
        "log-likelihood",
    ]
    return markdown([*heads, "within 1 %", "to random modes", "ms per step"], rows, "modes")


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


TABLES: dict[str, Callable[[], str]] = {"modes": modes}
