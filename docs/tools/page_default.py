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
FEWEST, WORST = 3, 6
"""Models of a kind that the table of kinds tells of; kinds on the page."""
FIRST_CLAIMED = 1_000_000
"""Seed of a model, from which on there are claims."""
BASES = ("bootstrap", "sqmc", "auto-random")
ERRORS = [
    *(head for base in BASES for head in (f"to `{base}`", "raw")),
    "from 10 to 90 % of models",
    "above 1",
]
BESIDE = ["variance right", "log-likelihood", "lost"]
SCALES = {"reference_error": "posterior", "rmse": "truth", "gospa": "truth (GOSPA)"}
"""Errors of named scenarios, and what they are to."""
LESS_KNOWN = {"likelihood-only": 0.5, "simulation-only": 1.0}
"""Kinds of models of which less is known, and the ratio of errors that was asked there."""
COMPILED_COUNTS = (100, 500, 2000)
Wanted = tuple[str, object, object, object, Callable[[float], str]]
"""What is measured, the numbers of particles, what was asked, what was found, and how numbers are written."""
BUDGETS = {7.0: 0.75, 14.0: 0.6, 36.0: 0.53}
"""Milliseconds per step, and what was asked of the default then."""


def over(table: pd.DataFrame) -> pd.DataFrame:
    """Put the rows of a table in the order of the pages."""
    names = [name for name in ORDER if name in set(table["filter"])]
    return table.set_index("filter").loc[names].reset_index()


def default(n: int = SHOWN) -> str:
    """Write errors over random models with as many particles, and what is measured beside the error of the mean."""
    table = over(read("default").query("n == @n"))
    rows = [
        [
            f"`{row['filter']}`",
            *(interval(row, f"to_{base}") for base in BASES),
            *_errors(row)[-2:],
            *_beside(row),
        ]
        for _, row in table.iterrows()
    ]
    heads = [*(f"to `{base}`" for base in BASES), *ERRORS[-2:], *BESIDE]
    return f"{_models(table)}\n\n" + markdown(["filter", *heads], rows, "default")


def _errors(row: pd.Series) -> list[str]:
    ratios = [(interval(row, f"to_{base}"), number(row[f"raw_{base}"])) for base in BASES]
    return [
        *(cell for both in ratios for cell in both),
        f"{number(row['ratio_10'])} to {number(row['ratio_90'])}",
        percent(row["above"]),
    ]


def default_all() -> Table:
    """All that the page has of one number of particles, with all of them."""
    rows = [
        [f"`{row['filter']}`", row["n"], *_errors(row), *_beside(row)]
        for _, row in over(read("default")).iterrows()
    ]
    return ["filter", "n", *ERRORS, *BESIDE], rows


def _models(table: pd.DataFrame) -> str:
    first, worst = table.iloc[0], table["uncertain"].max()
    return f"n = {first['n']}; {first['models']} models; the reference is too uncertain on {worst}."


def default_targets() -> str:
    """Write what was asked of the default, and what was found."""
    equal, again = (_own(name).set_index("n") for name in ("default", "default_again"))
    exponent, budget = _own("default_exponent").iloc[0], _own("default_budget").set_index("budget")
    budget = budget[(budget["us_per_particle"] == 0) & budget.index.isin(BUDGETS)]
    times, n = _own("default_times"), _listed(equal.index)
    within = f"in the time of {_listed(int(steps) for steps in budget.index)} steps of `bootstrap`"
    times = times[times["n"].isin([100, 1000, 10_000])]
    step, counts = "CPU time of a step over `bootstrap`'s", _listed(times["n"])
    wanted: list[Wanted] = [
        ("error over `bootstrap`'s", n, 0.25, equal["to_bootstrap"], number),
        (
            f"error over the best random filter's {within}",
            SHOWN,
            [*BUDGETS.values()],
            budget["ratio"],
            number,
        ),
        (f"{step}, mean", counts, [2.5, 2, 2][: len(times)], times["mean"], number),
        (f"{step}, worst", counts, [5, 4, 4][: len(times)], times["largest"], number),
        (
            "exponent of the error, median and slowest",
            "",
            [-0.6, -0.4],
            [exponent["exponent_50"], exponent["slowest"]],
            number,
        ),
        ("models shown to be worse than with `bootstrap`", n, 0.01, again["share"], percent),
        ("largest ratio in new runs", n, 1.3, again["worst"].fillna(0).max(), number),
        ("models with a run lost that `bootstrap` keeps", n, 0, equal["lost"], percent),
        (
            "models with a wrong variance",
            SHOWN,
            0.1,
            1 - equal.loc[SHOWN, "variance_right"],
            percent,
        ),
        *_asked_of_other_kinds(),
    ]
    models = read("default_models")["model"]
    heads = ["what", "n", "at most", "found", "met"]
    files = (
        "default",
        "default_exponent",
        "default_times",
        "default_budget",
        "default_other_kinds",
    )
    tuning = ", which are for tuning: a trial, and no claim" if models.min() < FIRST_CLAIMED else ""
    return f"Seeds {models.min()} to {models.max()}{tuning}.\n\n" + markdown(
        heads, (_met(*w) for w in wanted), *files
    )


def _asked_of_other_kinds() -> list[Wanted]:
    """Errors where less of the model is known, and targets lost that bootstrap keeps, with the fewest particles measured."""
    table = _own("default_other_kinds")
    table = table[table["n"] == table["n"].min()].set_index("kind")
    wanted: list[Wanted] = [
        (
            f"error over `bootstrap`'s, {kind}",
            table["n"].iloc[0],
            most,
            table.loc[kind, "to_bootstrap"],
            number,
        )
        for kind, most in LESS_KNOWN.items()
        if kind in table.index
    ]
    others = table[~table.index.isin(LESS_KNOWN)]
    lost = f"models with a run lost, {', '.join(others.index)}"
    return [*wanted, (lost, table["n"].iloc[0], 0, others["lost"], percent)]


def _own(name: str) -> pd.DataFrame:
    table = read(name)
    return table[table["filter"] == DEFAULT]


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:,g}" for value in values)


def _met(
    what: str, n: object, asked: object, found: object, write: Callable[[float], str]
) -> list[str]:
    limits, values = np.atleast_1d(asked), np.atleast_1d(found)
    count = int((values <= limits).sum())
    verdict = {len(values): "yes", 0: "no"}.get(count, f"{count} of {len(values)}")
    return [what, str(n), ", ".join(map(write, limits)), ", ".join(map(write, values)), verdict]


def _beside(row: pd.Series) -> list[str]:
    return [percent(row["variance_right"]), number(row["log_likelihood"]), percent(row["lost"])]


def default_again() -> str:
    """Models at which the default is worse than bootstrap."""
    rows = [
        [
            row.n,
            row.models,
            row.above,
            row.stay,
            "" if pd.isna(row.largest) else row.largest.split(" (")[0],
        ]
        for row in read("default_again").itertuples()
    ]
    heads = ["n", "models", "above 1 at first", "shown above 1", "model: largest in new runs"]
    return markdown(heads, rows, "default_again")


def default_kinds() -> str:
    """Geometric mean of the ratios to bootstrap by kind of model: the worst for the default."""
    heads, rows = kinds()
    shown = [
        heads.index(name) for name in ("kind", "models", "`ranked`", f"`{DEFAULT}`", heads[-1])
    ]
    heads, rows = [heads[i] for i in shown], [[row[i] for i in shown] for row in rows]
    text = f"n = {read('default_models')['n'].iloc[0]}, the {WORST} worst of {len(rows)} kinds.\n\n"
    return text + markdown(heads, rows[:WORST], "default_models")


def kinds() -> Table:
    """All kinds of model, the worst for the default first."""
    table = read("default_models")
    labels = table["kind"].str.split(", ")
    of_kind = {
        kind: table[[kind in one for one in labels]] for kind in sorted(set(labels.explode()))
    }
    rows = {kind: models for kind, models in of_kind.items() if len(models) >= FEWEST}
    names = [name for name in ORDER[1:] if name in table]
    cells = [
        [
            kind,
            len(rows[kind]),
            *(number(mean(rows[kind][name])) for name in (*names, "raw")),
            _above(rows[kind]),
        ]
        for kind in sorted(rows, key=lambda kind: -mean(rows[kind][DEFAULT]))
    ]
    return [
        "kind",
        "models",
        *(f"`{name}`" for name in names),
        "raw",
        f"`{DEFAULT}` above 1",
    ], cells


def mean(ratios: pd.Series[float]) -> float:
    """Geometric mean of the ratios that are known."""
    known = ratios[np.isfinite(ratios) & (ratios > 0)]
    return float(np.exp(np.log(known).mean()))


def _above(table: pd.DataFrame) -> str:
    return percent((table[DEFAULT].dropna() > 1).mean())


def default_other_kinds() -> str:
    """Errors, variances and lost targets on random models of other kinds."""
    table, rows = read("default_other_kinds"), []
    table, names = (
        table[table["n"] == SHOWN],
        [name for name in ORDER[1:] if name in set(table["filter"])],
    )
    for kind, cells in table.groupby("kind", sort=False):
        of = cells.set_index("filter")
        own, ratios = (
            of.loc[DEFAULT],
            of["to_bootstrap"].reindex([name for name in names if name != DEFAULT]),
        )
        lost = [
            percent(of.loc["bootstrap", "diverged"]),
            percent(own["diverged"]),
            percent(own["lost"]),
        ]
        ours = [interval(own, "to_bootstrap"), own["uncertain"]]
        rows.append(
            [
                kind,
                own["models"],
                *map(number, ratios),
                *ours,
                percent(own["variance_right"]),
                *lost,
            ]
        )
    heads = [
        "kind",
        "models",
        *(f"`{name}`" for name in names),
        "reference uncertain",
        "variance right",
    ]
    heads += [
        "runs lost by `bootstrap`",
        f"by `{DEFAULT}`",
        "models with one that `bootstrap` keeps",
    ]
    return f"n = {SHOWN}.\n\n" + markdown(heads, rows, "default_other_kinds")


def default_budget() -> str:
    """Write the least error within a budget of time over that of the best of bootstrap and SQMC."""
    table = over(read("default_budget"))
    names = [name for name in dict.fromkeys(table["filter"]) if name != "auto-random"]
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
            more = [percent(own["above"]), own["none"]]
            rows.append([f"{budget:g} steps", f"{cost:g} us" if cost else "", *ratios, *more])
    heads = [
        *(f"`{name}`" for name in names),
        f"`{DEFAULT}` above 1",
        "none fits",
    ]
    text = f"{table['models'].max()} models.\n\n"
    return text + markdown(["budget", "cost more by", *heads], rows, "default_budget")


def compiled_means() -> str:
    """Write errors at equal counts and times, and times of a step, of NumPy models and of the same models compiled."""
    table = read("compiled")
    rows = [
        [
            f"`{row['filter']}`",
            row["n"],
            interval(row, "equal_n"),
            number(row["steps_numpy"]),
            number(row["steps_compiled"]),
            interval(row, "equal_numpy"),
            interval(row, "equal_compiled"),
            f"{number(row['largest'])} ({row['of']})",
        ]
        for _, row in table.sort_values(["n", "filter"]).iterrows()
        if row["n"] in COMPILED_COUNTS and row["filter"] == DEFAULT
    ]
    heads = ["filter", "n", "error, equal n", "step, NumPy", "step, compiled"]
    heads += ["error, equal time, NumPy", "error, equal time, compiled", "largest, compiled"]
    return f"{table['cases'].max()} models.\n\n" + markdown(heads, rows, "compiled")


def compiled_cases() -> Table:
    """Each of the models that are also compiled, by itself."""
    table = read("compiled_cases")
    columns = ["error", "equal_n", "us_numpy", "us_compiled", "equal_numpy", "equal_compiled"]
    rows = [
        [row["case"], f"`{row['filter']}`", row["n"], *(number(row[c]) for c in columns)]
        for _, row in table.iterrows()
    ]
    heads = ["model", "filter", "n", "error, sd", "error over bootstrap's", "us, NumPy"]
    return [*heads, "us, compiled", "equal time, NumPy", "equal time, compiled"], rows


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
    heads = [
        "scenario",
        "n",
        "error to",
        "runs",
        "best other",
        "ratio",
        "lost",
        "lost by the other",
    ]
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
        default_again,
        default_kinds,
        default_other_kinds,
        default_budget,
        compiled_means,
        default_scenarios,
    )
}
