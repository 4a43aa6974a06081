"""The tables of the pages that are about the herded default, from what `benchmarks/bench_default.py` leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from page_format import interval, markdown, number, percent, read

DEFAULT = "auto-kh"
ORDER = ("bootstrap", "sqmc", "ranked", "auto-random", "auto-kh")
FEWEST = 3
"""Models of a kind that the table of kinds tells of."""
FIRST_CLAIMED = 1_000_000
"""Seed of a model, from which on there are claims."""
BUDGETS = {1.0: 0.7, 5.0: 0.5}
"""Milliseconds per step, and what was asked of the default then."""


def over(table: pd.DataFrame) -> pd.DataFrame:
    """Put the rows of a table in the order of the pages."""
    names = [name for name in ORDER if name in set(table["filter"])]
    return table.set_index("filter").loc[names].reset_index()


def default() -> str:
    """Write errors over random models with as many particles."""
    table = over(read("default"))
    rows = []
    for _, row in table.iterrows():
        ratios = [interval(row, f"to_{base}") for base in ("bootstrap", "sqmc", "auto-random")]
        spread = f"{number(row['ratio_10'])} to {number(row['ratio_90'])}"
        rows.append([f"`{row['filter']}`", row["n"], *ratios, spread, percent(row["above"])])
    heads = ["to `bootstrap`", "to `sqmc`", "to `auto-random`", "from 10 to 90 % of models", "above 1"]
    return f"{_models(table)}\n\n" + markdown(["filter", "n", *heads], rows, "default")


def _models(table: pd.DataFrame) -> str:
    first = table.iloc[0]
    text = f"{first['models']} models, {first['compared']} of them compared; the reference is uncertain at "
    each = table.groupby("n")["uncertain"].max()
    return text + ", ".join(f"{count} with n = {n}" for n, count in each.items()) + "."


def default_targets() -> str:
    """Write what was asked of the default, and what was found."""
    names = ("default", "default_again", "default_growth")
    equal, again, growth = (_own(name).set_index("n") for name in names)
    exponent, budget = _own("default_exponent").iloc[0], _own("default_budget").set_index("budget")
    budget = budget[(budget["us_per_particle"] == 0) & budget.index.isin(BUDGETS)]
    n, grown = _listed(equal.index), _listed(growth.index)
    ms = f"within {_listed(budget.index)} ms"
    times = f"time of a step over that of `bootstrap`, n = {grown}"
    wanted: list[tuple[str, object, object, Callable[[float], str]]] = [
        (f"error over that of `bootstrap`, n = {n}", 0.3, equal["to_bootstrap"], number),
        (f"error over that of `sqmc`, n = {n}", 0.45, equal["to_sqmc"], number),
        (f"models shown to be worse than with `bootstrap`, n = {n}", 0.02, again["share"], percent),
        ("largest ratio in new runs, any n", 1.2, again["worst"].fillna(0).max(), number),
        (f"error over that of the best random filter {ms}", [*BUDGETS.values()], budget["ratio"], number),
        (f"models on which no count fits {ms}", 0, budget["none"], number),
        ("exponent of the error, median", -0.7, exponent["exponent_50"], number),
        ("exponent of the error, slowest", -0.4, exponent["slowest"], number),
        (f"{times}, median", [3, 4, 4][: len(growth)], growth["time"], number),
        (f"{times}, worst", 8, growth["time_worst"], number),
        (f"models with a wrong variance, n = {n}", 0.05, 1 - equal["variance_right"], percent),
        (f"distance of the log-likelihood, n = {n}", 0.4, equal["log_likelihood"], number),
        (f"models with a run lost that `bootstrap` keeps, n = {n}", 0.05, equal["lost"], percent),
    ]
    models = read("default_models")["model"]
    heads = ["what", "at most", "found", "met"]
    files = ("default", "default_exponent", "default_budget")
    tuning = ", which are for tuning: a trial, and no claim" if models.min() < FIRST_CLAIMED else ""
    return f"Seeds {models.min()} to {models.max()}{tuning}.\n\n" + markdown(
        heads, (_met(*w) for w in wanted), *files
    )


def _own(name: str) -> pd.DataFrame:
    table = read(name)
    return table[table["filter"] == DEFAULT]


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:,g}" for value in values)


def _met(what: str, asked: object, found: object, write: Callable[[float], str]) -> list[str]:
    limits, values = np.atleast_1d(asked), np.atleast_1d(found)
    count = int((values <= limits).sum())
    verdict = {len(values): "yes", 0: "no"}.get(count, f"{count} of {len(values)}")
    return [what, ", ".join(map(write, limits)), ", ".join(map(write, values)), verdict]


def default_beside() -> str:
    """Write what is measured beside the error of the mean, with as many particles."""
    rows = []
    for _, row in over(read("default")).iterrows():
        shares = [percent(row["variance_right"]), number(row["log_likelihood"]), percent(row["lost"])]
        times = f"{number(row['time'])} ({number(row['time_90'])}, {number(row['time_worst'])})"
        rows.append([f"`{row['filter']}`", row["n"], *shares, times])
    heads = ["variance right", "log-likelihood", "lost", "time (90 %, worst)"]
    return markdown(["filter", "n", *heads], rows, "default")


def default_again() -> str:
    """Models at which the default is worse than bootstrap."""
    rows = [
        [
            row.n,
            row.models,
            row.above,
            row.stay,
            percent(row.share),
            "" if pd.isna(row.largest) else row.largest,
        ]
        for row in read("default_again").itertuples()
    ]
    heads = ["n", "models", "above 1 at first", "shown above 1", "share", "largest in new runs"]
    return markdown(heads, rows, "default_again")


def default_kinds() -> str:
    """Geometric mean of the ratios to bootstrap by kind of model, the worst for the default first."""
    table = read("default_models")
    labels = table["kind"].str.split(", ")
    kinds = sorted(set(labels.explode()))
    rows = {}
    for kind in kinds:
        of_kind = table[[kind in names for names in labels]]
        if len(of_kind) >= FEWEST:
            rows[kind] = of_kind
    ordered = sorted(rows, key=lambda kind: -_mean(rows[kind][DEFAULT]))
    names = [name for name in ORDER[1:] if name in table]
    cells = [
        [kind, len(rows[kind]), *(number(_mean(rows[kind][name])) for name in names), _above(rows[kind])]
        for kind in ordered
    ]
    heads = [f"`{name}`" for name in names] + [f"`{DEFAULT}` above 1"]
    text = f"n = {table['n'].iloc[0]}, kinds of at least {FEWEST} models.\n\n"
    return text + markdown(["kind", "models", *heads], cells, "default_models")


def _mean(ratios: pd.Series[float]) -> float:
    known = ratios[np.isfinite(ratios) & (ratios > 0)]
    return float(np.exp(np.log(known).mean()))


def _above(table: pd.DataFrame) -> str:
    return percent((table[DEFAULT].dropna() > 1).mean())


def default_exponent() -> str:
    """Slopes of log error in log n."""
    rows = [
        [
            f"`{row.filter}`",
            f"{row.used} of {row.models}",
            row.uncertain,
            row.solved,
            number(row.exponent_50),
            f"{number(row.exponent_10)} to {number(row.exponent_90)}",
            row.worst,
        ]
        for row in over(read("default_exponent")).itertuples()
    ]
    heads = ["models", "reference uncertain", "solved", "median", "10 to 90 %", "slowest"]
    return markdown(["filter", *heads], rows, "default_exponent")


def default_growth() -> str:
    """Errors and times over those of bootstrap as n grows."""
    table = over(read("default_growth"))
    counts = sorted(table["n"].unique())
    cells = table.set_index(["filter", "n"])
    rows = []
    for name in [name for name in dict.fromkeys(table["filter"]) if name != "bootstrap"]:
        of_n = [cells.loc[(name, n)] for n in counts]
        times = [f"{number(c['time'])} ({number(c['time_worst'])})" for c in of_n]
        rows.append([f"`{name}`", *(number(c["to_bootstrap"]) for c in of_n), *times])
    heads = [f"error, n = {n:,}" for n in counts] + [f"time (worst), n = {n:,}" for n in counts]
    return markdown(["filter", *heads], rows, "default_growth")


def default_budget() -> str:
    """Write the least error within a budget of time over that of the best of bootstrap and SQMC."""
    table = over(read("default_budget"))
    names = list(dict.fromkeys(table["filter"]))
    cells = table.set_index(["budget", "us_per_particle", "filter"])
    rows = []
    for cost in sorted(table["us_per_particle"].unique()):
        for budget in sorted(table["budget"].unique()):
            found = [cells.loc[(budget, cost, name)] for name in names]
            own = cells.loc[(budget, cost, DEFAULT)]
            ratios = [
                interval(row, "ratio") if name == DEFAULT else number(row["ratio"])
                for name, row in zip(names, found, strict=True)
            ]
            more = [percent(own["above"]), own["none"], own["uncertain"]]
            rows.append([f"{budget:g} ms", f"{cost:g} us" if cost else "", own["models"], *ratios, *more])
    heads = [f"`{name}`" for name in names] + [f"`{DEFAULT}` above 1", "none fits", "reference uncertain"]
    return markdown(["budget", "dearer by", "models", *heads], rows, "default_budget")


def default_scenarios() -> str:
    """Write the default's error over that of bootstrap on named scenarios, with as many particles."""
    table = read("default_scenarios")
    counts = sorted(table["n"].unique())
    cells = table.set_index(["scenario", "n"])
    rows = [
        [f"`{name}`", *(interval(cells.loc[(name, n)], "to_bootstrap") for n in counts)]
        for name in dict.fromkeys(table["scenario"])
    ]
    for base in ("bootstrap", "sqmc"):
        column = table[f"to_{base}"].where(table[f"to_{base}"] > 1e-6)
        means = np.log(column).groupby(table["n"]).mean()
        rows.append([f"geometric mean, to `{base}`", *(number(np.exp(means[n])) for n in counts)])
    return markdown(["scenario", *(f"n = {n}" for n in counts)], rows, "default_scenarios")


TABLES = {
    table.__name__: table
    for table in (
        default,
        default_targets,
        default_beside,
        default_again,
        default_kinds,
        default_exponent,
        default_growth,
        default_budget,
        default_scenarios,
    )
}
