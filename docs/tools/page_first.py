"""The numbers of the first screen: evaluations of the model, and what the default gains and costs; see bench_default.py."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from page_default import DEFAULT, SHOWN
from page_format import PARTS, RESULTS, interval, markdown, number, percent, read

HERDED = ("herded-kh", "herded-chg")
CASES = {
    "pendulum": "the pendulum",
    "Lorenz-63": "Lorenz-63",
    "range and bearing": "range and bearing",
    "squares": "squares",
}
"""Models whose functions are asked, and their names on the pages."""
TUNED = "*On models to tune on; the claim is to come.*\n"


def evaluations(n: int = SHOWN) -> str:
    """Write how many times as many evaluations of the model bootstrap needs for the same error."""
    models = read("evaluations").query("n == @n").set_index("filter")
    cases = read("evaluations_cases").query("n == @n").set_index(["filter", "case"])
    rows = []
    for name in (*HERDED, DEFAULT):
        cells = [cases.loc[name, case] for case in CASES]
        times = [number(models["times"][name]), *map(times_as_many, cells)]
        rows.append([f"`{name}`", *times])
    heads = [f"{models['models'].max()} random models", *CASES.values()]
    return markdown([f"{n} particles", *heads], rows) + claim_to_come()


def times_as_many(row: pd.Series) -> str:
    """Write a ratio of evaluations; a lower bound where bootstrap never reaches the error."""
    return f"{'over ' * bool(row['beyond'])}{number(row['times'])}"


def evaluations_models(n: int = SHOWN) -> str:
    """Write errors on random models over bootstrap's at equal evaluations."""
    table = read("evaluations").query("n == @n")
    rows = [
        [
            f"`{row['filter']}`",
            row["models"],
            number(row["evaluations_50"]),
            interval(row, "ratio"),
            percent(row["below"]),
            number(row["times"]),
        ]
        for _, row in table.sort_values("times", ascending=False).iterrows()
    ]
    heads = ["filter", "models", "evaluations for each particle", "error over `bootstrap`'s"]
    heads += ["below 1", "times fewer"]
    return markdown(heads, rows, "evaluations") + claim_to_come()


def claim_to_come() -> str:
    """Say that the numbers are of models to tune on, if the command of the claim has not made them."""
    command = read("measured").set_index("table")["command"]["evaluations_cases"]
    return "" if command == PARTS["evaluations"].command else f"\n{TUNED}"


def first_numbers() -> str:
    """Write what the default gains and costs over bootstrap, in five numbers."""
    gain = read("default").query("filter == @DEFAULT and n == @SHOWN").iloc[0]
    asked = read("evaluations").query("filter == @DEFAULT and n == @SHOWN").iloc[0]
    cost = read("default_times").query("filter == @DEFAULT and n == @SHOWN").iloc[0]
    timed = read("compiled").query("filter == @DEFAULT and n == @SHOWN").iloc[0]
    rows = [
        [f"error with as many particles, {gain['models']} models", interval(gain, "to_bootstrap")],
        [
            f"error with as many evaluations of the model, {asked['models']} models",
            interval(asked, "ratio"),
        ],
        [
            f"time of a step, {cost['models']} models",
            f"{number(cost['mean'])}, at most {number(cost['largest'])}",
        ],
        [
            f"error in as much time, {timed['cases']} models in NumPy",
            interval(timed, "equal_numpy"),
        ],
        ["the same, models of compiled functions", interval(timed, "equal_compiled")],
    ]
    return markdown(["", f"`{DEFAULT}` over `bootstrap`"], rows)


def verdict() -> str:
    """Write the last sentence of the demo."""
    text = (RESULTS / "demo.txt").read_text(encoding="utf-8")
    sentence = " ".join(text[text.rindex("With ") :].split())
    return f"> {sentence}\n"


TABLES: dict[str, Callable[[], str]] = {
    "first_numbers": first_numbers,
    "verdict": verdict,
    "evaluations": evaluations,
    "evaluations_models": evaluations_models,
}
