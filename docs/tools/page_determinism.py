"""Tables of the page about determinism: filters over a million steps of one series, from `bench_known.py long`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
from page_format import markdown, read

MODELS = ["zeros", "linear", "growth", "bearing", "two wells"]
FILTERS = ["bootstrap", "ranked, blind", "ranked", "auto"]
STEPS = 1_000_000
"""Steps of a run that is complete."""


def by_model(table: pd.DataFrame, cell: Callable[[pd.DataFrame], str], *sources: str) -> str:
    """Write one cell for each filter with its n, down, and each model, across; only of n that all models have."""
    models = table.groupby("n")["model"].nunique()
    table = table[table["n"].isin(models.index[models == len(MODELS)])]
    steps, rows = (
        read("long_runs").query("n in @table.n").groupby("model")["steps"].min()[MODELS],
        [],
    )
    for n in sorted(table["n"].unique()):
        for name in FILTERS:
            own = table[(table["filter"] == name) & (table["n"] == n)]
            shown = f"`{name}`" if ", " not in name else f"`{name.replace(', ', '`, ')}"
            rows.append([shown, n, *(cell(own[own["model"] == model]) for model in MODELS)])
    heads = [
        model if count == STEPS else f"{model}, {count:,} steps" for model, count in steps.items()
    ]
    return markdown(["filter", "n", *heads], rows, *sources)


def count(*columns: str) -> str:
    """Write columns of the figures, whole numbers."""
    return by_model(
        read("long_runs"),
        lambda rows: "; ".join(f"{rows[name].iloc[0]:,}" for name in columns),
        "long_runs",
    )


TABLES: dict[str, Callable[[], str]] = {
    "long_losses": partial(count, "beyond_2", "loss_2"),
}
