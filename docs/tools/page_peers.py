"""The tables of the page on the filters of other libraries."""

from __future__ import annotations

import pandas as pd
from page_format import interval, markdown, number, read

SCENARIOS = ("ungm", "bearings", "linear_chain")
EXACT = 1e-6
"""Error below which a filter is exact: it is shown as 0."""


def ahead() -> str:
    """Best of ours and best of the others within each budget, and the fastest step of both at the largest count."""
    table, times = (
        _by_scenario(read("peers_budget")).dropna(subset="error"),
        _by_scenario(read("peers_filters")),
    )
    rows = []
    for (scenario, milliseconds), own in table.groupby(
        ["scenario", "budget"], sort=True, observed=True
    ):
        pair = [
            _best(own[(own["library"] == "herdfilter") == mine], "error") for mine in (True, False)
        ]
        known = min(one["error"] for one in pair) > EXACT
        cells = [f"`{one['filter']}` {interval(one, 'error')}" for one in pair]
        ratio = number(pair[1]["error"] / pair[0]["error"]) if known else ""
        rows.append([f"`{scenario}`, {milliseconds:g} ms", *cells, ratio])
    most = times["n"].max()
    for scenario, own in times[times["n"] == most].groupby("scenario", observed=True):
        pair = [
            _best(own[(own["library"] == "herdfilter") == mine], "ms_per_step")
            for mine in (True, False)
        ]
        cells = [f"`{one['filter']}` {number(one['ms_per_step'])} ms" for one in pair]
        ratio = number(pair[1]["ms_per_step"] / pair[0]["ms_per_step"])
        rows.append([f"`{scenario}`, step at n = {most:,}", *cells, ratio])
    return markdown(["", "best of ours", "best of the others", "ratio"], rows, "peers_budget")


def _by_scenario(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(scenario=pd.Categorical(table["scenario"], SCENARIOS))


def _best(table: pd.DataFrame, column: str) -> pd.Series:
    return table.loc[table[column].idxmin()]


TABLES = {"peers_ahead": ahead}
