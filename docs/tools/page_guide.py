"""The tables of the guide that say what to take for which problem; see page_limits.py for the others.

A filter is chosen as the candidate with the smallest error in its results file, and is written out where there is one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from page_default import DEFAULT, ORDER, mean
from page_format import markdown, number, read
from page_samplers import over_families

RANDOM_DRAWS = "bootstrap"
N = 100
"""Number of particles, and of points, that the tables tell of."""
Row = list[object]


def filters() -> str:
    """Write which filter to take, and what it is worth."""
    one_mode = ("linear sensor",), ("multimodal prior",)
    rows = [
        _random("a model you know little of", "herding.md"),
        _nearly_linear(),
        _random("one mode, linear sensor", "herding.md#where-it-loses", *one_mode),
        _random("a state of one dimension", "one_dimension.md", dims=1),
        _random(
            "several far modes",
            "filters.md#fits",
            ("wells", "multimodal prior"),
        ),
        _random(
            "counts, or heavy tails",
            "model.md#noise-that-depends-on-the-state",
            ("counts", "heavy-tailed"),
        ),
        _random("only simulation possible", "model.md#the-contract", ("only simulable",)),
        _jumps(),
        _clutter(),
        _targets(),
        _budget("little time, cheap model", 1.0, 0.0),
        _budget("little time, dear model", 5.0, 2.0),
    ]
    return markdown(["your problem", "take", "measured; errors over that of `bootstrap`"], rows)


def _random(what: str, page: str, kinds: Iterable[str] = (), without: Iterable[str] = (), dims: int = 0) -> Row:
    """Choose on the random models that are of one of the kinds, or of so many dimensions."""
    table = read("default_models")
    labels = [set(one.split(", ")) for one in table["kind"]]
    wanted = [(not kinds or one & set(kinds)) and not one & set(without) for one in labels]
    table = table[np.array(wanted, dtype=bool) & ((table["d"] == dims) | (dims == 0))]
    names = [name for name in ORDER if name != "auto-random"]  # it is there for what it says of the points
    ratios = {name: mean(table[name]) for name in names if np.isfinite(table[name]).mean() > 0.5}
    best = min(ratios, key=lambda name: ratios[name])
    others = [name for name in ratios if name not in (best, RANDOM_DRAWS)]
    beside = "".join(f", `{name}` {number(ratios[name])}" for name in others)
    return [f"[{what}]({page})", f"`{best}`", f"error {number(ratios[best])}{beside}; {len(table)} models"]


def _nearly_linear() -> Row:
    """Compare the Kalman filter with the default where neither lost a run: real radar."""
    table = read("harbour").query("lost == 0").set_index(["filter", "recording", "vessel"])
    ours, kalman = table.loc[DEFAULT], table.loc["ukf"]
    ratio = (kalman["rmse"] / ours["rmse"]).max()
    time = (kalman["ms"] / ours["ms"]).mean()
    text = f"real radar: {ratio:.2f} of `{DEFAULT}`'s error at most, {number(time)} of its time"
    return ["[linear, or nearly so](kalman.md)", "`ukf`", text]


def _jumps(n: int = 50) -> Row:
    table = read("modes").query("n in (0, @n)")
    table = table[~table["filter"].str.contains("random")]
    errors = {family: group.set_index("filter")["error"] for family, group in table.groupby("family")}
    best = {family: found.idxmin() for family, found in errors.items()}
    own = " and ".join(number(errors[family][name]) for family, name in best.items())
    random = " and ".join(number(errors[family][RANDOM_DRAWS]) for family in best)
    linear, other = best["linear"], best["nonlinear"]
    names = f"`{other}`" if linear == other else f"`{linear}` if linear, else `{other}`"
    return ["[jumps between motions](manoeuvres.md)", names, f"off by {own} sd; `{RANDOM_DRAWS}` {random}"]


def _clutter() -> Row:
    lost = read("clutter").query("n <= @N").groupby("filter")["lost"].sum()
    sparse = read("clutter").query("in_gate == 1").set_index(["filter", "n"])
    best = lost.idxmin()
    beside = ", ".join(f"`{name}` {sparse.loc[(name, N), 'lost']}" for name in (DEFAULT, RANDOM_DRAWS))
    text = f"{sparse.loc[(best, N), 'lost']} of {sparse['runs'].iloc[0]} tracks lost, if sparse; {beside}"
    return ["[one target in clutter](clutter.md)", f"`{best}`", text]


def _targets(scenario: str = "meeting") -> Row:
    """Choose among the trackers of ours that cannot be told from the best one: the first that needs no random number."""
    table = read("trackers").query("scenario == @scenario").set_index("tracker")
    ours = table[table.index.str.startswith("lmb-")].sort_values("gospa")
    equal = ours.loc[ours["gospa_low"] <= ours["gospa_high"].iloc[0], "gospa"]
    best = next((name for name in equal.index if "random" not in name), equal.index[0])
    theirs = table.loc["JPDA (Stone Soup)"]
    beside = "".join(f"`{name}` {number(ours.loc[name, 'gospa'])}, " for name in ("lmb-random-gibbs", "lmb-ukf"))
    text = f"GOSPA {number(equal[best])}; {beside}JPDA {number(theirs['gospa'])}"
    return ["[many targets](many_targets.md#measured)", f"`{best}`", text]


def _budget(what: str, ms: float, us: float) -> Row:
    table = read("default_budget").query("budget == @ms and us_per_particle == @us")
    table = table[table["filter"] != "auto-random"].set_index("filter")
    best = table.loc[table["none"] == 0, "ratio"].idxmin()
    beside = DEFAULT if best != DEFAULT else table["ratio"].drop(DEFAULT).idxmin()
    more = f" at {us:g} us more per particle" if us else ""
    ours, theirs = (number(table.loc[name, "ratio"]) for name in (best, beside))
    text = f"error in {ms:g} ms{more}: {ours} of the best random one's, `{beside}` {theirs}"
    return [f"[{what}](herding.md#within-a-budget-of-time)", f"`{best}`", text]


def samplers() -> str:
    """Write which sampler to take, and what it is worth."""
    median = over_families(read("quality").query("n == @N"))["median"].droplevel("n")
    far = read("far").query("distance == 1000 and d == 2").set_index("sampler")["farthest"]
    hostile = read("hostile").set_index("sampler")
    peers = read("peers").query("target == 'N(0, I), d = 2' and n == 64").dropna(subset="energy_distance")
    single = peers.groupby("method")["energy_distance"].min()
    us = read("speed_samplers").set_index(["sampler", "d"])["median"]

    def both(d: int) -> str:
        return f"d = {d}: {number(median[d, 'kh'])}, {number(median[d, 'chg'])}"

    def fewer(d: int) -> str:
        return number(1 / min(median[d, "kh"], median[d, "chg"]))

    row = hostile.loc["mapped-kh"]
    mapped = f"worse than random draws on {row['worse']:.0f} of {row['mixtures']:,.0f} mixtures"
    ours = " or ".join(("`KernelHerding()`", "`ContinuousHerdedGibbs()`"))
    rows = [
        [
            "[one dimension](one_dimension.md)",
            "`QuantileSampling()`",
            "the least energy distance there is",
        ],
        ["[several dimensions](discrepancy.md#measured)", ours, f"{both(2)}; {both(4)}"],
        ["eight dimensions and more", ours, f"{both(8)}; {both(16)}"],
        [
            "[modes far apart](discrepancy.md#mixtures-that-samplers-fail-on)",
            "the same, with the bandwidth `auto`",
            f"farthest point {number(far['kh'])} sd from its mode; {number(far['kh-one-kernel'])} with one kernel for all",
        ],
        [
            "[a few Gaussians, again and again](samplers.md#mapped-sampling)",
            "`MappedSampling(KernelHerding())`",
            f"takes an affine map; {mapped}",
        ],
        [
            "[one Gaussian](kernels.md#optimal-gaussian-points)",
            "`LCDSampling()`",
            f"d = 2, n = 64: {number(single['LCDSampling'] / single['i.i.d. random'])}, "
            f"`KernelHerding` {number(single['KH'] / single['i.i.d. random'])}",
        ],
        [
            "[points cost you nothing](benchmarks.md#samplers)",
            "`RandomSampling()`",
            f"as good with {fewer(2)} times as many points (d = 2), {fewer(8)} (d = 8), {fewer(16)} (d = 16); "
            f"herding takes {number(us['KH, auto bandwidth', 2])} us per point",
        ],
    ]
    return markdown(["your mixture", "take", f"measured, n = {N}; energy distances over that of random draws"], rows)


TABLES: dict[str, Callable[[], str]] = {"guide_filters": filters, "guide_samplers": samplers}
