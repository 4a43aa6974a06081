"""The tables of the page on the board: a row for each filter, ratios to bootstrap and shares of models."""

from __future__ import annotations

import pandas as pd
from page_format import interval, markdown, read

COUNTS = (50, 500)


def rows() -> pd.DataFrame:
    """Return the rows of full size if there are any, else the trials; the smallest error with 500 particles comes first."""
    table = read("board")
    full = table[~table["trial"]]
    return (table if full.empty else full).sort_values("error_500")


def board() -> str:
    """Write errors over those of bootstrap, with intervals."""
    heads = [f"{name}, n = {n}" for name in ("error", "equal time") for n in COUNTS]
    keys = [f"{name}_{n}" for name in ("error", "equal_time") for n in COUNTS]
    body = [
        [f"`{row['filter']}`", row["models"], *(interval(row, key) for key in keys)]
        for _, row in rows().iterrows()
    ]
    return markdown(["filter", "models", *heads], body, "board")


TABLES = {"board": board}
