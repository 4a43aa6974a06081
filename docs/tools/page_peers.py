"""The tables of the page on the filters of other libraries."""

from __future__ import annotations

from functools import partial

import pandas as pd
from page_format import interval, markdown, number, read

SCENARIOS = ("ungm", "bearings", "linear_chain")
EXACT = 1e-6
"""Error below which a filter is exact: it is shown as 0."""


def budget(scenario: str) -> str:
    """Least errors within budgets of time, with intervals; a `<` where the largest count takes less than the budget."""
    table = read("peers_budget").query("scenario == @scenario")
    budgets, cells = sorted(table["budget"].unique()), table.set_index(["filter", "budget"])
    particles = set(read("peers_filters").query("n > 0")["filter"])
    rows = []
    for name in [name for name in dict.fromkeys(table["filter"]) if name in particles]:
        found = [cells.loc[(name, b)] for b in budgets]
        rows.append(
            [
                f"`{name}`",
                *(
                    "< " * bool(c["to_spare"] and c["error"] > EXACT) + interval(c, "error")
                    for c in found
                ),
            ]
        )
    return markdown(["filter", *(f"{b:g} ms" for b in budgets)], rows, "peers_budget")


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


def agreement() -> str:
    """Errors of bootstrap filters over those of ours, with intervals."""
    table = read("peers_agreement").query("filter != 'compiled-bootstrap'")
    scenarios, cells = SCENARIOS, table.set_index(["filter", "scenario"])
    rows = [
        [f"`{name}`", *(interval(cells.loc[(name, s)], "ratio") for s in scenarios)]
        for name in dict.fromkeys(table["filter"])
    ]
    return markdown(["filter", *(f"`{s}`" for s in scenarios)], rows, "peers_agreement")


TABLES = {
    **{f"peers_budget_{name}": partial(budget, name) for name in SCENARIOS[:2]},
    "peers_ahead": ahead,
    "peers_agreement": agreement,
}
