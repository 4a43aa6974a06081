"""The tables of the guide that say what n changes, what determinism promises, and where herding loses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from page_default import DEFAULT, mean
from page_format import interval, markdown, number, percent, read
from page_guide import RANDOM_DRAWS, N


def counts() -> str:
    """Write what more particles change for the default."""
    table = read("default").query("filter == @DEFAULT")
    times = read("default_times").query("filter == @DEFAULT").set_index("n")["mean"]
    rows = [
        [
            row["n"],
            interval(row, "to_bootstrap"),
            percent(row["variance_right"]),
            number(row["log_likelihood"]),
            number(times.get(row["n"], np.nan)),
        ]
        for _, row in table.iterrows()
    ]
    return markdown(
        ["n", "error", "models with the right variance", "error of the log-likelihood", "time per step"],
        rows,
        "default",
        "default_times",
    )


def losses() -> str:
    """Write where herding loses, or does not gain what was hoped for."""
    equal, models = read("default").set_index(["filter", "n"]), read("default_models")
    growth = read("default_growth").set_index(["filter", "n"]).loc[DEFAULT]
    exponent = read("default_exponent").set_index("filter")
    budget = read("default_budget").query("budget == 1 and us_per_particle == 0").set_index("filter")
    again = read("default_again")
    clutter = read("clutter").query("in_gate == 1").set_index(["filter", "n"])
    named = read("default_scenarios").set_index(["scenario", "n"])
    bearings, robot = named.loc["bearings_only"], named.loc[("plaza", 300)]
    boats = read("harbour").query("recording == 4 and vessel == 1").set_index("filter")["lost"]
    meeting = read("trackers").query("scenario == 'meeting'").set_index("tracker")
    simulable = models[models["kind"].str.contains("only simulable")][DEFAULT]
    own, many = budget.loc[DEFAULT], growth.index.max()
    times = read("default_times").set_index(["filter", "n"]).loc[(DEFAULT, many)]
    lost = f"{clutter.loc[(DEFAULT, N), 'lost']} tracks lost of {clutter['runs'].iloc[0]}"
    wrong = [percent(1 - equal.loc[(name, N), "variance_right"]) for name in (DEFAULT, RANDOM_DRAWS)]
    rows = [
        [
            "[equal time, cheap model](herding.md#within-a-budget-of-time)",
            f"within 1 ms per step {interval(own, 'ratio')} of the error of the best random filter; on {own['none']} of "
            f"{own['models']} models no count fits",
        ],
        [
            "[very many particles](herding.md#more-particles)",
            f"n = {many:,}: {number(times['mean'])} times the time of `bootstrap`, "
            f"{number(times['largest'])} at worst; error {number(growth.loc[many, 'to_bootstrap'])}",
        ],
        [
            "the rate",
            f"error as n to the power {number(exponent.loc[DEFAULT, 'exponent_50'])}, `bootstrap` "
            f"{number(exponent.loc[RANDOM_DRAWS, 'exponent_50'])}: the gain is a factor and no exponent",
        ],
        [
            "a transition that can only be simulated",
            f"error {number(mean(simulable))} of `bootstrap`'s, more on {percent((simulable > 1).mean())} of the models",
        ],
        [
            "[few particles, bearings only](herding.md#the-named-scenarios)",
            f"n = 50: {interval(bearings.loc[50], 'to_bootstrap')} of the error of `bootstrap`; n = 100: "
            f"{interval(bearings.loc[100], 'to_bootstrap')}",
        ],
        [
            "[a robot that must find itself](herding.md#the-named-scenarios)",
            f"n = 300: found in {percent(1 - robot['lost'])} of the runs, error {interval(robot, 'to_mixture-kh')} of "
            "`mixture-kh`'s",
        ],
        [
            "[sparse clutter](clutter.md#what-it-is-worth)",
            f"{lost}; `mkf` {clutter.loc[('mkf', N), 'lost']}, `bootstrap` with 1,000 particles "
            f"{clutter.loc[(RANDOM_DRAWS, 1000), 'lost']}",
        ],
        [
            "[two boats side by side, one filter](harbour.md#one-vessel)",
            f"{percent(boats[DEFAULT])} of the runs lost, `bootstrap` {percent(boats[RANDOM_DRAWS])}: without chance all "
            "runs make the same mistake",
        ],
        [
            "[the variance](herding.md#what-is-claimed)",
            f"not within 0.8 and 1.25 of the true one on {wrong[0]} of the models, `bootstrap` {wrong[1]}",
        ],
        [
            "[single models](herding.md#where-it-loses)",
            f"shown to be worse than `bootstrap` on {again['stay'].max()} of {again['models'].max()}, by up to "
            f"{number(again['worst'].max())} times, over all n",
        ],
        [
            "[association where targets meet](many_targets.md#measured)",
            f"GOSPA {interval(meeting.loc['lmb-herded-gibbs'], 'gospa', 3)}; with random Gibbs sampling "
            f"{interval(meeting.loc['lmb-random-gibbs'], 'gospa', 3)}",
        ],
    ]
    return markdown(["where", f"`{DEFAULT}`, n = {N} unless said"], rows)


def kernels() -> str:
    """Write how many results are the same in other kernels of OpenBLAS."""
    table = read("kernels")
    write: dict[str, Callable[[float], str]] = {
        "same": str,
        "close": str,
        "largest": lambda x: f"{x:.1e}" if x < 1e-6 else number(x),
        "energy": percent,
    }
    rows = [
        [
            "`{}`{}{}".format(*name.partition(", ")),
            group["sets"].max(),
            *(", ".join(map(f, group[column])).strip(", ") for column, f in write.items()),
        ]
        for name, group in table.groupby("what", sort=False)
    ]
    against = f"{table['kernel'].iloc[0]} against {', '.join(table['other'].unique())}:\n\n"
    heads = ["", "sets or runs", "the same", "to 1e-4", "largest, sd", "energy distance"]
    return against + markdown(heads, rows, "kernels")


TABLES: dict[str, Callable[[], str]] = {
    "guide_counts": counts,
    "guide_losses": losses,
    "guide_kernels": kernels,
}
