"""The tables of the pages that are about the herded default, from what `benchmarks/bench_default.py` leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from page_format import Table, interval, markdown, number, percent, read

DEFAULT = "auto"
ORDER = ("bootstrap", "sqmc", "ranked", "auto-random", "auto")
SHOWN = 100
"""Number of particles that the page tells of; all others are in the data files."""
FEWEST, WORST, BEST = 3, 7, 4
"""Models of a kind that the table of kinds tells of; kinds on the page."""
FIRST_CLAIMED = 1_000_000
"""Seed of a model, from which on there are claims."""
ERRORS = ["to `bootstrap`", "to `sqmc`", "to `auto-random`", "from 10 to 90 % of models", "above 1"]
BESIDE = ["variance right", "log-likelihood", "lost", "time (90 %, worst)"]
SCALES = {"reference_error": "posterior", "rmse": "truth", "gospa": "truth (GOSPA)"}
"""Errors of named scenarios, and what they are to."""
BUDGETS = {1.0: 0.7, 5.0: 0.5}
"""Milliseconds per step, and what was asked of the default then."""


def over(table: pd.DataFrame) -> pd.DataFrame:
    """Put the rows of a table in the order of the pages."""
    names = [name for name in ORDER if name in set(table["filter"])]
    return table.set_index("filter").loc[names].reset_index()


def default(n: int = SHOWN) -> str:
    """Write errors over random models with as many particles."""
    table = over(read("default").query("n == @n"))
    rows = [[f"`{row['filter']}`", *_errors(row)] for _, row in table.iterrows()]
    return f"{_models(table)}\n\n" + markdown(["filter", *ERRORS], rows, "default")


def _errors(row: pd.Series) -> list[str]:
    ratios = [interval(row, f"to_{base}") for base in ("bootstrap", "sqmc", "auto-random")]
    return [*ratios, f"{number(row['ratio_10'])} to {number(row['ratio_90'])}", percent(row["above"])]


def default_all() -> Table:
    """All that the page has of one number of particles, with all of them."""
    rows = [[f"`{row['filter']}`", row["n"], *_errors(row), *_beside(row)] for _, row in over(read("default")).iterrows()]
    return ["filter", "n", *ERRORS, *BESIDE], rows


def _models(table: pd.DataFrame) -> str:
    first = table.iloc[0]
    text = f"n = {first['n']}; {first['models']} models, {first['compared']} of them compared; "
    text += f"the reference is uncertain at {table['uncertain'].max()}"
    if "uncertain_share" not in table:  # measured before errors were debiased
        return f"{text}."
    own = table[table["filter"] == DEFAULT].iloc[0]
    text += f" ({percent(table['uncertain_share'].max())}). Errors are without the reference's own; with it `{DEFAULT}` has "
    return text + f"{number(own['raw_bootstrap'])} of the error of `bootstrap`."


def default_targets() -> str:
    """Write what was asked of the default, and what was found."""
    names = ("default", "default_again", "default_growth")
    equal, again, growth = (_own(name).set_index("n") for name in names)
    exponent, budget = _own("default_exponent").iloc[0], _own("default_budget").set_index("budget")
    budget = budget[(budget["us_per_particle"] == 0) & budget.index.isin(BUDGETS)]
    few, growth = growth["models"].max(), growth.drop(index=SHOWN, errors="ignore")
    n, grown = _listed(equal.index), _listed([SHOWN, *growth.index])
    times = pd.concat([equal.loc[[SHOWN]], growth])  # of one count there is one time, that over all models
    ms = f"within {_listed(budget.index)} ms"
    step = f"time of a step over that of `bootstrap`, n = {grown} (from {growth.index.min():,} on {few} models)"
    wanted: list[tuple[str, object, object, Callable[[float], str]]] = [
        (f"error over that of `bootstrap`, n = {n}", 0.3, equal["to_bootstrap"], number),
        (f"error over that of `sqmc`, n = {n}", 0.45, equal["to_sqmc"], number),
        (f"models shown to be worse than with `bootstrap`, n = {n}", 0.02, again["share"], percent),
        ("largest ratio in new runs, any n", 1.2, again["worst"].fillna(0).max(), number),
        (f"error over that of the best random filter {ms}", [*BUDGETS.values()], budget["ratio"], number),
        (f"models on which no count fits {ms}", 0, budget["none"], number),
        (
            "exponent of the error, median and slowest",
            [-0.7, -0.4],
            [exponent["exponent_50"], exponent["slowest"]],
            number,
        ),
        (f"{step}, median", [3, 4, 4][: len(times)], times["time"], number),
        (f"{step}, worst", 8, times["time_worst"], number),
        (f"models with a wrong variance, n = {n}", 0.05, 1 - equal["variance_right"], percent),
        (f"distance of the log-likelihood, n = {n}", 0.4, equal["log_likelihood"], number),
        (f"models with a run lost that `bootstrap` keeps, n = {n}", 0.05, equal["lost"], percent),
    ]
    models = read("default_models")["model"]
    heads = ["what", "at most", "found", "met"]
    files = ("default", "default_exponent", "default_budget")
    tuning = ", which are for tuning: a trial, and no claim" if models.min() < FIRST_CLAIMED else ""
    return f"Seeds {models.min()} to {models.max()}{tuning}.\n\n" + markdown(heads, (_met(*w) for w in wanted), *files)


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


def default_beside(n: int = SHOWN) -> str:
    """Write what is measured beside the error of the mean, with as many particles."""
    table = over(read("default").query("n == @n"))
    rows = [[f"`{row['filter']}`", *_beside(row)] for _, row in table.iterrows()]
    return markdown(["filter", *BESIDE], rows)


def _beside(row: pd.Series) -> list[str]:
    shares = [percent(row["variance_right"]), number(row["log_likelihood"]), percent(row["lost"])]
    return [*shares, f"{number(row['time'])} ({number(row['time_90'])}, {number(row['time_worst'])})"]


def default_again() -> str:
    """Models at which the default is worse than bootstrap."""
    rows = [
        [
            row.n,
            row.models,
            row.above,
            row.stay,
            percent(row.share),
            "" if pd.isna(row.largest) else row.largest.split("; ")[0],
        ]
        for row in read("default_again").itertuples()
    ]
    heads = ["n", "models", "above 1 at first", "shown above 1", "share", "largest in new runs"]
    return markdown(heads, rows, "default_again")


def default_kinds() -> str:
    """Geometric mean of the ratios to bootstrap by kind of model: the worst for the default, and the best."""
    heads, rows = kinds()
    text = f"n = {read('default_models')['n'].iloc[0]}, the {WORST} worst of {len(rows)} kinds, and the {BEST} best.\n\n"
    return text + markdown(heads, rows[:WORST] + rows[-BEST:], "default_models")


def kinds() -> Table:
    """All kinds of model, the worst for the default first."""
    table = read("default_models")
    labels = table["kind"].str.split(", ")
    of_kind = {kind: table[[kind in one for one in labels]] for kind in sorted(set(labels.explode()))}
    rows = {kind: models for kind, models in of_kind.items() if len(models) >= FEWEST}
    names = [name for name in ORDER[1:] if name in table]
    cells = [
        [kind, len(rows[kind]), *(number(mean(rows[kind][name])) for name in names), _above(rows[kind])]
        for kind in sorted(rows, key=lambda kind: -mean(rows[kind][DEFAULT]))
    ]
    return ["kind", "models", *(f"`{name}`" for name in names), f"`{DEFAULT}` above 1"], cells


def mean(ratios: pd.Series[float]) -> float:
    """Geometric mean of the ratios that are known."""
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
            row.worst.split("; ")[0],
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
    """Write on which named scenarios the default is not the best."""
    table = read("default_scenarios").sort_values(["scenario", "n"])
    shown, behind = table["ratio_low"] > 1, table["ratio"] > 1
    lines = [
        f"- not the best within its interval: {_places(table[shown])}",
        f"- behind the best, but not shown to be: {_places(table[behind & ~shown])}",
        f"- more runs lost than by the best: {_places(table[table['lost'] > table['lost_best']])}",
    ]
    return f"`{DEFAULT}` on {table['scenario'].nunique()} scenarios:\n\n" + "\n".join(lines) + "\n"


def scenarios_all() -> Table:
    """All named scenarios, with as many particles."""
    others = ("bootstrap", "ranked", "mixture-kh", "sqmc")
    rows = [
        [
            f"`{row['scenario']}`",
            row["n"],
            SCALES[row["error"]],
            row["runs"],
            f"`{row['best']}`",
            interval(row, "ratio"),
            percent(row["lost"]),
            percent(row["lost_best"]),
            *(number(row[f"to_{other}"]) for other in others),
        ]
        for _, row in read("default_scenarios").sort_values(["scenario", "n"]).iterrows()
    ]
    heads = ["scenario", "n", "error to", "runs", "best other", "ratio", "lost", "lost by the other"]
    return [*heads, *(f"to `{other}`" for other in others)], rows


def _places(table: pd.DataFrame) -> str:
    """Name scenarios with the numbers of particles, or say that there are none."""
    counts = table.groupby("scenario")["n"].agg(lambda n: ", ".join(map(str, n)))
    return "; ".join(f"`{name}` (n = {n})" for name, n in counts.items()) or "none"


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
