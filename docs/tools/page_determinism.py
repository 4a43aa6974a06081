"""Tables of the page about determinism: filters over a million steps of one series, from `bench_known.py long`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
from page_format import markdown, number, read

STEPS = 1_000_000
"""Steps of a run that is complete."""

WINDOW = 1_000
"""Length of the windows whose largest errors are shown beside those of the whole run."""


def by_model(table: pd.DataFrame, cell: Callable[[pd.DataFrame], str], *sources: str) -> str:
    """Write one cell for each filter with its n, down, and each model, across."""
    steps = read("long_runs").groupby("model", sort=False)["steps"].min()
    models, rows = list(steps.index), []
    for n in sorted(table["n"].unique()):
        for name in dict.fromkeys(table["filter"]):
            own = table[(table["filter"] == name) & (table["n"] == n)]
            shown = f"`{name}`" if ", " not in name else f"`{name.replace(', ', '`, ')}"
            rows.append([shown, n, *(cell(own[own["model"] == model]) for model in models)])
    heads = [model if count == STEPS else f"{model}, {count:,} steps" for model, count in steps.items()]
    return markdown(["filter", "n", *heads], rows, *sources)


def count(column: str) -> str:
    """Write a column of the figures, whole numbers."""
    return by_model(read("long_runs"), lambda rows: f"{int(rows[column].iloc[0]):,}", "long_runs")


def growth(column: str) -> str:
    """Write the largest value in a window, mean over windows, and in the longest one."""

    def cell(rows: pd.DataFrame) -> str:
        values = rows.set_index("t")[column]
        return f"{number(values[WINDOW])}, {number(values.iloc[-1])}"

    return by_model(read("long_records"), cell, "long_records")


TABLES: dict[str, Callable[[], str]] = {
    "long_losses": partial(count, "beyond_2"),
    "long_free": partial(count, "free_2"),
    "long_growth": partial(growth, "largest_distance"),
}
