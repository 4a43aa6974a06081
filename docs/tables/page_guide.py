"""The tables of the guide: what to take for which problem, by the results files, and where herding loses.

Each choice is the candidate with the smallest error in its results file; a name is only written out where there is one candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pandas as pd
from page_default import DEFAULT, ORDER, mean
from page_format import interval, markdown, number, percent, read
from page_samplers import over_families

RANDOM_DRAWS = "bootstrap"
N = 100
"""Number of particles, and of points, that the tables tell of."""
Row = list[object]


def filters() -> str:
    """Write which filter to take, and what it is worth."""
    one_mode = ("linear sensor",), ("multimodal prior",)
    rows = [
        _random("a model you know little of"),
        _nearly_linear(),
        _random("one mode, sensor linear in the state", *one_mode),
        _random("a state of one dimension", dims=1),
        _random("several modes: wells, or a prior of far Gaussians", ("wells", "multimodal prior")),
        _random("counts, or noise of heavy tails", ("counts", "heavy-tailed")),
        _random("a transition that can only be simulated", ("only simulable",)),
        _jumps(),
        _clutter(),
        _targets(),
        _budget("little time per step, cheap model", 1.0, 0.0),
        _budget("little time per step, dear model", 5.0, 2.0),
    ]
    return markdown(["your problem", "take", "measured", "more"], rows)


def _named(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _random(what: str, kinds: Iterable[str] = (), without: Iterable[str] = (), dims: int = 0) -> Row:
    """Choose on the random models that are of one of the kinds, or of so many dimensions."""
    table = read("default_models")
    labels = [set(one.split(", ")) for one in table["kind"]]
    wanted = [(not kinds or one & set(kinds)) and not one & set(without) for one in labels]
    table = table[np.array(wanted, dtype=bool) & ((table["d"] == dims) | (dims == 0))]
    names = [name for name in ORDER if name != "auto-random"]  # it is there for what it says of the points
    ratios = {name: mean(table[name]) for name in names if np.isfinite(table[name]).mean() > 0.5}
    best = min(ratios, key=lambda name: ratios[name])
    others = [name for name in ratios if name not in (best, RANDOM_DRAWS)]
    beside = "; " + ", ".join(f"`{name}` {number(ratios[name])}" for name in others)
    if best == RANDOM_DRAWS:
        text = f"nothing has a smaller error{beside}"
    else:
        text = f"error {number(ratios[best])} of `{RANDOM_DRAWS}`'s{beside}"
    return [what, f"`{best}`", f"{text}; {len(table)} models", "[random models](herding.md)"]


def _nearly_linear() -> Row:
    """Compare the Kalman filter with the default where neither lost a run: real radar."""
    table = read("harbour").query("lost == 0").set_index(["filter", "recording", "vessel"])
    ours, kalman = table.loc[DEFAULT], table.loc["ukf"]
    ratio = (kalman["rmse"] / ours["rmse"]).max()
    time = (kalman["ms"] / ours["ms"]).mean()
    text = f"real radar: error at most {ratio:.2f} of `{DEFAULT}`'s, in {number(time)} of its time"
    return ["linear or nearly so, Gaussian noise", "`ukf`", text, "[Kalman filters](kalman.md)"]


def _jumps(n: int = 50) -> Row:
    table = read("modes").query("n in (0, @n)")
    table = table[~table["filter"].str.contains("random")]
    errors = {family: group.set_index("filter")["error"] for family, group in table.groupby("family")}
    best = {family: found.idxmin() for family, found in errors.items()}
    names = f"`{best['linear']}` if the modes are linear, else `{best['nonlinear']}`"
    text = "; ".join(
        f"{family}: {number(found[best[family]])} sd from the exact mean, `{RANDOM_DRAWS}` {number(found[RANDOM_DRAWS])}"
        for family, found in errors.items()
    )
    return ["jumps between modes of motion", names, text, "[manoeuvres](manoeuvres.md)"]


def _clutter() -> Row:
    table = read("clutter").query("n <= @N")
    lost = table.groupby("filter")["lost"].sum().sort_values()
    sparse = read("clutter").query("in_gate == 1").set_index(["filter", "n"])
    best = lost.index[0]
    others = [(DEFAULT, N), ("ukf", 1), (RANDOM_DRAWS, N)]
    beside = ", ".join(f"`{name}` {sparse.loc[(name, n), 'lost']}" for name, n in others)
    text = f"{sparse.loc[(best, N), 'lost']} tracks lost of {sparse['runs'].iloc[0]} in sparse clutter, {beside}"
    return ["one target in clutter", f"`{best}`", text, "[clutter](clutter.md)"]


def _targets(scenario: str = "meeting") -> Row:
    """All trackers of ours that cannot be told from the best one."""
    table = read("trackers").query("scenario == @scenario").set_index("tracker")
    ours = table[table.index.str.startswith("lmb-")].sort_values("gospa")
    equal = ours[ours["gospa_low"] <= ours["gospa_high"].iloc[0]]
    theirs = table.loc["JPDA (Stone Soup)"]
    text = f"six that meet: GOSPA {number(equal['gospa'].iloc[0])}, `lmb-ukf` {number(ours.loc['lmb-ukf', 'gospa'])}"
    text += f", JPDA of Stone Soup {number(theirs['gospa'])}"
    return ["many targets", _named(sorted(equal.index)), text, "[trackers](many_targets.md#measured)"]


def _budget(what: str, ms: float, us: float) -> Row:
    table = read("default_budget").query("budget == @ms and us_per_particle == @us")
    table = table[table["filter"] != "auto-random"].set_index("filter")
    best = table.loc[table["none"] == 0, "ratio"].idxmin()
    ours = interval(table.loc[DEFAULT], "ratio")
    more = f" ({us:g} us more for each particle)" if us else ""
    text = f"{ms:g} ms{more}: {number(table.loc[best, 'ratio'])} of the best random filter's error, `{DEFAULT}` {ours}"
    return [what, f"`{best}`", text, "[budget](herding.md#within-a-budget-of-time)"]


def samplers() -> str:
    """Write which sampler to take, and what it is worth."""
    median = over_families(read("quality").query("n == @N"))["median"].droplevel("n")
    far = read("far").query("distance == 1000 and d == 2").set_index("sampler")["farthest"]
    hostile = read("hostile").set_index("sampler")
    peers = read("peers").query("target == 'N(0, I), d = 2' and n == 64").dropna(subset="energy_distance")
    single = peers.groupby("method")["energy_distance"].min()
    us = read("speed_samplers").set_index(["sampler", "d"])["median"]

    def both(d: int) -> str:
        return f"d = {d}: {number(median[d, 'kh'])} and {number(median[d, 'chg'])} of random draws'"

    def fewer(d: int) -> str:
        return number(1 / min(median[d, "kh"], median[d, "chg"]))

    mapped = f"worse than random draws on {hostile.loc['mapped-kh', 'worse']} of {hostile.loc['mapped-kh', 'mixtures']:,} mixtures"
    ours = " or ".join(("`KernelHerding()`", "`ContinuousHerdedGibbs()`"))
    rows = [
        [
            "one dimension",
            "`QuantileSampling()`",
            "the least energy distance there is",
            "[one dimension](one_dimension.md)",
        ],
        ["several dimensions", ours, f"{both(2)}; {both(4)}", "[figures](discrepancy.md#measured)"],
        ["eight dimensions and more", ours, f"{both(8)}; {both(16)}", "[figures](discrepancy.md#measured)"],
        [
            "modes far apart",
            "the same, with the bandwidth `auto`",
            f"farthest point {number(far['kh'])} sd from its mode; {number(far['kh-one-kernel'])} sd with one kernel for all",
            "[far modes](discrepancy.md#mixtures-that-samplers-fail-on)",
        ],
        [
            "a few Gaussians, again at every step",
            "`MappedSampling(KernelHerding())`",
            f"an affine map; {mapped}",
            "[mapped](samplers.md#mapped-sampling)",
        ],
        [
            "one Gaussian",
            "`LCDSampling()`",
            f"{number(single['LCDSampling'] / single['i.i.d. random'])} of random draws', `KernelHerding` {number(single['KH'] / single['i.i.d. random'])}",
            "[optimal points](kernels.md#optimal-gaussian-points)",
        ],
        [
            "points cost you nothing",
            "`RandomSampling()`",
            f"as good with {fewer(2)} times as many points (d = 2), {fewer(8)} (d = 8), {fewer(16)} (d = 16); "
            f"herding takes {number(us['KH, auto bandwidth', 2])} us per point",
            "[times](benchmarks.md#samplers)",
        ],
    ]
    return markdown(["the mixture", "take", f"measured, energy distance, n = {N}", "more"], rows)


def counts() -> str:
    """Write what more particles change for the default."""
    table = read("default").query("filter == @DEFAULT")
    rows = [
        [
            row["n"],
            interval(row, "to_bootstrap"),
            percent(row["variance_right"]),
            number(row["log_likelihood"]),
            number(row["time"]),
        ]
        for _, row in table.iterrows()
    ]
    return markdown(
        ["n", "error", "models with the right variance", "error of the log-likelihood", "time per step"],
        rows,
        "default",
    )


def losses() -> str:
    """Write where herding loses, or does not gain what was hoped for."""
    equal, models = read("default").set_index(["filter", "n"]), read("default_models")
    growth = read("default_growth").set_index(["filter", "n"]).loc[DEFAULT]
    exponent = read("default_exponent").set_index("filter")
    budget = read("default_budget").query("budget == 1 and us_per_particle == 0").set_index("filter")
    again = read("default_again")
    clutter = read("clutter").query("in_gate == 1").set_index(["filter", "n"])
    bearings = read("default_scenarios").query("scenario == 'bearings_only'").set_index("n")
    boats = read("harbour").query("recording == 4 and vessel == 1").set_index("filter")["lost"]
    meeting = read("trackers").query("scenario == 'meeting'").set_index("tracker")
    simulable = models[models["kind"].str.contains("only simulable")][DEFAULT]
    own, many = budget.loc[DEFAULT], growth.index.max()
    lost = f"{clutter.loc[(DEFAULT, N), 'lost']} tracks lost of {clutter['runs'].iloc[0]}"
    wrong = [percent(1 - equal.loc[(name, N), "variance_right"]) for name in (DEFAULT, RANDOM_DRAWS)]
    rows = [
        [
            "equal time, cheap model",
            f"within 1 ms per step {interval(own, 'ratio')} of the error of the best random filter; on {own['none']} of "
            f"{own['models']} models no count fits",
        ],
        [
            "very many particles",
            f"n = {many:,}: {number(growth.loc[many, 'time'])} times the time of `bootstrap`, "
            f"{number(growth.loc[many, 'time_worst'])} at worst; error {number(growth.loc[many, 'to_bootstrap'])}",
        ],
        [
            "the rate",
            f"error as n to the power {number(exponent.loc[DEFAULT, 'exponent_50'])}, `bootstrap` "
            f"{number(exponent.loc[RANDOM_DRAWS, 'exponent_50'])}: the gain is a factor and no exponent",
        ],
        [
            "a transition that can only be simulated",
            f"error {number(mean(simulable))} of `bootstrap`'s, above it on {percent((simulable > 1).mean())} of the models",
        ],
        [
            "few particles, bearings only, d = 4",
            f"n = 50: {interval(bearings.loc[50], 'to_bootstrap')} of the error of `bootstrap`; n = 100: "
            f"{interval(bearings.loc[100], 'to_bootstrap')}",
        ],
        [
            "sparse clutter",
            f"{lost}; `mkf` {clutter.loc[('mkf', N), 'lost']}, `bootstrap` with 1,000 particles {clutter.loc[(RANDOM_DRAWS, 1000), 'lost']}",
        ],
        [
            "two boats side by side, one filter",
            f"{percent(boats[DEFAULT])} of the runs lost, `bootstrap` {percent(boats[RANDOM_DRAWS])}: without chance all runs "
            "make the same mistake",
        ],
        ["the variance", f"not within 0.8 and 1.25 of the true one on {wrong[0]} of the models, `bootstrap` {wrong[1]}"],
        [
            "single models",
            f"shown to be worse than `bootstrap` on {again['stay'].max()} of {again['models'].max()}, by up to "
            f"{number(again['worst'].max())} times",
        ],
        [
            "association where targets meet",
            f"GOSPA {interval(meeting.loc['lmb-herded-gibbs'], 'gospa', 3)}; with random Gibbs sampling "
            f"{interval(meeting.loc['lmb-random-gibbs'], 'gospa', 3)}",
        ],
    ]
    return markdown(["where", f"`{DEFAULT}`, n = {N} unless said"], rows)


def kernels() -> str:
    """Write how many results are the same in another kernel of OpenBLAS."""
    table = read("kernels")
    rows = [
        [f"`{row.what}`", f"{row.kernel}, {row.other}", row.sets, row.same, row.close, number(row.largest), percent(row.energy)]
        for row in table.itertuples()
    ]
    heads = ["", "kernels", "sets or runs", "the same", "to 1e-4", "largest, sd", "energy distance"]
    return markdown(heads, rows, "kernels")


TABLES: dict[str, Callable[[], str]] = {
    "guide_filters": filters,
    "guide_samplers": samplers,
    "guide_counts": counts,
    "guide_losses": losses,
    "guide_kernels": kernels,
}
