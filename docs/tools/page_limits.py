"""The tables that say what n changes, on the page of the claims, and where herding loses, in the guide."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from page_default import DEFAULT
from page_format import markdown, number, percent, read
from page_guide import RANDOM_DRAWS, N, models_of, on_one_line, within


def counts() -> str:
    """Write what more particles change for the default: few on all models, many on those of the exponents."""
    few, many = (read(name).query("filter == @DEFAULT") for name in ("default", "default_growth"))
    times = read("default_times").query("filter == @DEFAULT").set_index("n")
    rows = []
    for _, row in pd.concat([few, many[many["n"] > few["n"].max()]]).iterrows():
        time = times.reindex([row["n"]]).iloc[0]
        cells = [
            on_one_line(row, "to_bootstrap"),
            percent(row["variance_right"]),
            number(row["log_likelihood"]),
        ]
        rows.append(
            [f"{row['n']:,}", row["models"], *cells, number(time["mean"]), number(time["largest"])]
        )
    heads = [
        "n",
        "models",
        "error",
        "right variance",
        "log-likelihood",
        "time per step",
        "at worst",
    ]
    return markdown(heads, rows, "default", "default_growth", "default_times")


def losses() -> list[dict[str, object]]:
    """Return where the default is shown to have a larger error than another filter: ratios with their intervals."""
    named = (
        read("default_scenarios")
        .query("ratio_low > 1 and ratio > 1.02")
        .sort_values("ratio", ascending=False)
    )
    again = read("default_again").query("n == @N").iloc[0]
    timed = read("compiled").query("filter == @DEFAULT and n == @N").iloc[0]
    rays = read("dear_model").query("filter == @DEFAULT and n == @N").set_index("beams")
    pendulum = read("choices").set_index("scenario").loc["pendulum"]
    found: list[tuple[str, object, str, Mapping[str, float], str]] = [
        (
            f"[worst of {again['models']} random models](claims.md#where-it-loses)",
            N,
            RANDOM_DRAWS,
            {"ratio": again["worst"]},
            "ratio",
        ),
        *(
            (f"`{row['scenario']}`", row["n"], row["best"], row, "ratio")
            for _, row in named.iterrows()
        ),
        (
            "`pendulum`, [a millisecond a step](#choose)",
            "",
            pendulum["chosen"],
            {"ratio": 1 / pendulum["over_auto"]},
            "ratio",
        ),
        (
            f"`{timed['of']}`, [compiled, equal time](claims.md#where-the-model-is-compiled)",
            N,
            RANDOM_DRAWS,
            {"ratio": timed["largest"]},
            "ratio",
        ),
        (
            "[rays on a map](claims.md#expensive-models), equal evaluations",
            N,
            RANDOM_DRAWS,
            rays.loc[36],
            "at_poses",
        ),
    ]
    return [
        {"where": where, "n": n, "over": over}
        | {f"ratio{end}": row.get(f"{name}{end}", np.nan) for end in ("", "_low", "_high")}
        for where, n, over, row, name in found
    ]


def loss_ratios() -> str:
    """Write where the default is shown to have a larger error than another filter."""
    rows = [
        [row["where"], row["n"], f"`{row['over']}`", on_one_line(pd.Series(row), "ratio")]
        for row in losses()
    ]
    return markdown(["where", "n", "other filter", f"`{DEFAULT}`'s error over its"], rows)


def loss_counts() -> str:
    """Write how many models, tracks or runs the default loses, beside another filter."""
    equal, again = read("default").set_index(["filter", "n"]), read("default_again").set_index("n")
    clutter = read("clutter").set_index(["in_gate", "filter", "n"])
    boats = read("harbour").query("recording == 4 and vessel == 1").set_index("filter")
    robot = read("default_scenarios").set_index(["scenario", "n"]).loc[("plaza", 300)]
    simulable = models_of("only simulation possible")[DEFAULT]
    models, random = equal.loc[(DEFAULT, N), "models"], f"`{RANDOM_DRAWS}`"
    wrong = [
        round(models * (1 - equal.loc[(name, N), "variance_right"]))
        for name in (DEFAULT, RANDOM_DRAWS)
    ]
    budget = within(7.0, 0.0)
    rows: list[list[object]] = [
        [
            "models shown to be worse than `bootstrap`",
            *(N, again.loc[N, "models"], again.loc[N, "stay"]),
            "",
            "",
        ],
        [
            "[simulation only](model.md#the-contract): models with a larger error",
            *(N, len(simulable), (simulable > 1).sum()),
            "",
            "",
        ],
        [
            "[models too slow for 7 steps of `bootstrap`](claims.md#within-a-budget-of-time)",
            "",
            *budget.loc[DEFAULT, ["models", "none"]],
            *("`ranked`", budget.loc["ranked", "none"]),
        ],
        [
            "[models with a variance off by a fifth](claims.md#what-is-claimed)",
            *(N, models, wrong[0], random, wrong[1]),
        ],
        [
            "[runs of a robot that does not find itself](claims.md#the-named-scenarios)",
            *(300, robot["runs"], round(robot["runs"] * robot["lost"])),
            *("`mixture-kh`", round(robot["runs"] * robot["lost_mixture-kh"])),
        ],
        [
            "[two boats side by side](harbour.md#one-vessel): runs lost",
            *boats.loc[DEFAULT, ["n", "runs"]],
            number(boats.loc[DEFAULT, "lost"] * boats.loc[DEFAULT, "runs"]),
            random,
            number(boats.loc[RANDOM_DRAWS, "lost"] * boats.loc[RANDOM_DRAWS, "runs"]),
        ],
        *(
            [
                f"[{kind} clutter](one_target.md#what-it-is-worth): tracks lost",
                N,
                *clutter.loc[(in_gate, DEFAULT, N), ["runs", "lost"]],
                f"{random}, n = 1,000",
                clutter.loc[(in_gate, RANDOM_DRAWS, 1000), "lost"],
            ]
            for in_gate, kind in ((1, "sparse"), (5, "dense"))
        ),
    ]
    return markdown(["counted", "n", "of", f"`{DEFAULT}`", "beside", "its count"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "default_counts": counts,
    "guide_losses": loss_ratios,
    "guide_lost": loss_counts,
}
