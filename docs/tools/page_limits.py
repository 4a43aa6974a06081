"""The tables of the guide that say what n changes, what determinism promises, and where herding loses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
from page_default import DEFAULT
from page_format import markdown, number, percent, read
from page_guide import RANDOM_DRAWS, N, models_of, on_one_line, within

from herdfilter.study.statistics import geometric_mean


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
    """Return where the error of the default is not below that of another filter, or not by much: ratios with intervals."""
    named = read("default_scenarios").set_index(["scenario", "n"])
    simulable = geometric_mean("ratio", models_of("only simulation possible")[DEFAULT].to_numpy())
    robot, budget = (
        "[a robot that must find itself](claims.md#the-named-scenarios)",
        within(7.0, 0.0).loc[DEFAULT],
    )
    found: list[tuple[str, object, str, Mapping[str, float], str]] = [
        (
            "[equal time, cheap model](#with-equal-time)",
            "",
            "the best random one",
            budget,
            "ratio",
        ),
        (
            "[only simulation possible](model.md#the-contract)",
            N,
            f"`{RANDOM_DRAWS}`",
            simulable,
            "ratio",
        ),
        *(
            (
                "[bearings only](claims.md#the-named-scenarios)",
                n,
                f"`{RANDOM_DRAWS}`",
                named.loc[("bearings_only", n)],
                "to_bootstrap",
            )
            for n in (50, 100)
        ),
        (robot, 300, "`mixture-kh`", named.loc[("plaza", 300)], "to_mixture-kh"),
    ]
    return [
        {"where": where, "n": n, "over": over}
        | {f"ratio{end}": row[f"{name}{end}"] for end in ("", "_low", "_high")}
        for where, n, over, row, name in found
    ]


def loss_ratios() -> str:
    """Write where the error of the default is not below that of another filter, or not by much."""
    rows = [
        [row["where"], row["n"], row["over"], on_one_line(pd.Series(row), "ratio")]
        for row in losses()
    ]
    return markdown(["where", "n", "other filter", f"`{DEFAULT}`'s error over its"], rows)


def loss_counts() -> str:
    """Write how many models, tracks or runs the default loses, beside another filter."""
    equal, again = read("default").set_index(["filter", "n"]), read("default_again")
    clutter = read("clutter").set_index(["in_gate", "filter", "n"])
    boats = read("harbour").query("recording == 4 and vessel == 1").set_index("filter")
    budget, robot = (
        within(7.0, 0.0),
        read("default_scenarios").set_index(["scenario", "n"]).loc[("plaza", 300)],
    )
    simulable = models_of("only simulation possible")[DEFAULT]
    models, random = equal.loc[(DEFAULT, N), "models"], f"`{RANDOM_DRAWS}`"
    wrong = [
        round(models * (1 - equal.loc[(name, N), "variance_right"]))
        for name in (DEFAULT, RANDOM_DRAWS)
    ]
    named, sides = (
        "claims.md#the-named-scenarios",
        "[two boats side by side](harbour.md#one-vessel)",
    )
    rows: list[list[object]] = [
        [
            "equal time, cheap model",
            "models that no n fits",
            "",
            *budget.loc[DEFAULT, ["models", "none"]],
            "`ranked`",
            budget.loc["ranked", "none"],
        ],
        [
            "only simulation possible",
            "models with a larger error",
            N,
            len(simulable),
            (simulable > 1).sum(),
            "",
            "",
        ],
        *(
            [
                "[single models](claims.md#where-it-loses)",
                "shown to be worse",
                row.n,
                row.models,
                row.stay,
                "",
                "",
            ]
            for row in again.itertuples()
        ),
        [
            "[the variance](claims.md#what-is-claimed)",
            "models off by a fifth",
            N,
            models,
            wrong[0],
            random,
            wrong[1],
        ],
        [
            f"[a robot that must find itself]({named})",
            "runs that do not",
            300,
            robot["runs"],
            round(robot["runs"] * robot["lost"]),
            "`mixture-kh`",
            round(robot["runs"] * robot["lost_mixture-kh"]),
        ],
        [
            sides,
            "runs lost",
            *boats.loc[DEFAULT, ["n", "runs"]],
            number(boats.loc[DEFAULT, "lost"] * boats.loc[DEFAULT, "runs"]),
            random,
            number(boats.loc[RANDOM_DRAWS, "lost"] * boats.loc[RANDOM_DRAWS, "runs"]),
        ],
        *(
            [
                f"[{kind} clutter](one_target.md#what-it-is-worth)",
                "tracks lost",
                N,
                *clutter.loc[(in_gate, DEFAULT, N), ["runs", "lost"]],
                f"`{RANDOM_DRAWS}`, n = 1,000",
                clutter.loc[(in_gate, RANDOM_DRAWS, 1000), "lost"],
            ]
            for in_gate, kind in ((1, "sparse"), (5, "dense"))
        ),
    ]
    return markdown(["where", "counted", "n", "of", f"`{DEFAULT}`", "beside", "its count"], rows)


def kernels() -> str:
    """Write how many results are the same in other kernels of OpenBLAS: in the kernel with the fewest."""
    table = read("kernels")
    rows = [
        [
            "`{}`{}{}".format(*name.partition(", ")),
            *(group["sets"].max(), group["same"].min(), group["close"].min()),
            f"{group['largest'].max():.1g}"
            if group["largest"].max() < 1e-3
            else number(group["largest"].max()),
            percent(group["energy"].max()),
        ]
        for name, group in table.groupby("what", sort=False)
    ]
    against = f"{table['kernel'].iloc[0]} against {' or '.join(table['other'].unique())}, the worse of the two:\n\n"
    heads = ["", "sets or runs", "the same", "to 1e-4 sd", "largest, sd", "energy distance"]
    return against + markdown(heads, rows, "kernels")


TABLES: dict[str, Callable[[], str]] = {
    "guide_counts": counts,
    "guide_losses": loss_ratios,
    "guide_lost": loss_counts,
    "guide_kernels": kernels,
}
