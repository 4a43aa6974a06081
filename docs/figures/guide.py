"""The guide's claims in pictures, each narrow enough for a phone, from the results files and the choices of its tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from page_format import read
from page_guide import HERDED, PROBLEMS, RANDOM_DRAWS, SHOWN, N, over_bootstrap
from page_samplers import over_families
from scipy.stats import binomtest

from herdfilter.plotting import style, styles

from .look import FAINT, INK, QUIET, counts

WIDTH = 4.2
"""Inches: letters are legible where the page is a hand wide."""
ENDLESS = 1e3
"""Drawn for an interval without an upper end: beyond every axis."""
KERNELS = {"KernelHerding": "herded-kh", "ContinuousHerdedGibbs": "herded-chg"}
"""Sampler -> the filter whose style it has."""


def equal() -> Figure:
    """Draw the errors over that of bootstrap with as many particles, for each problem of the table."""
    figure = Figure(figsize=(WIDTH, 4.2))
    ax, look = figure.subplots(), styles(SHOWN)
    for i, name in enumerate(SHOWN):
        ratios = [over_bootstrap(problem).get(name) for problem in PROBLEMS]
        places = [place + 0.24 * (i - 1) for place, ratio in enumerate(ratios) if ratio]
        bars(
            ax,
            [ratio for ratio in ratios if ratio],
            places,
            **look[name].line | {"linestyle": "none"},
            label=name,
        )
    rows(ax, PROBLEMS)
    ratio_axis(ax, [0.03, 0.1, 0.3, 1, 2], f"error over {RANDOM_DRAWS}'s, n = {N}")
    legend(figure, ax)
    return figure


def time() -> Figure:
    """Draw the least error in the time of steps of bootstrap over the best random filter's, for both costs of a model."""
    table, names = read("default_budget"), ["auto", "ranked-unguided", RANDOM_DRAWS]
    figure, look = Figure(figsize=(WIDTH, 3.4)), styles(names)
    for ax, us, title in zip(
        figure.subplots(1, 2, sharey=True), (0, 2), ("cheap model", "expensive model"), strict=True
    ):
        for i, name in enumerate(names):
            found = table[(table["us_per_particle"] == us) & (table["filter"] == name)]
            ms = found["budget"] * 1.05 ** (i - 1)
            line = look[name].line
            span = [found["ratio"] - found["ratio_low"], found["ratio_high"] - found["ratio"]]
            ax.errorbar(ms, found["ratio"], span, elinewidth=1.2, label=name, **line)
            some = found["none"] > 0  # models on which no number of particles fits
            hollow = {
                "linestyle": "none",
                "markerfacecolor": "white",
                "markeredgecolor": line["color"],
                "zorder": 5,
            }
            ax.plot(ms[some], found["ratio"][some], **line | hollow | {"markeredgewidth": 1.2})
        ax.set(xscale="log", yscale="log", ylim=(0.08, 5), xlabel="steps of bootstrap")
        ax.set_title(title, fontsize=10)
        ax.minorticks_off()
        ax.set_xticks([7, 14, 36], ["7", "14", "36"])
        ax.set_yticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
        ax.axhline(1, color=INK, linewidth=1, linestyle="--")
        grid(ax, "y")
    figure.axes[0].set_ylabel("error over that of\nthe best random filter")
    legend(figure, figure.axes[0])
    return figure


def compiled() -> Figure:
    """Draw errors over times of a step, geometric means over models that are also compiled, relative to bootstrap."""
    table = read("compiled_cases")
    names = ["auto", "ranked-unguided", "sqmc", RANDOM_DRAWS]
    figure, look = Figure(figsize=(WIDTH, 3.8)), styles(names)
    # bootstrap's own numbers are what those of another filter are compared with
    base = table[table["filter"] == "sqmc"].copy()
    base["error"] /= base["equal_n"]
    forms = {"us_numpy": "NumPy", "us_compiled": "compiled"}
    for form in forms:
        base[form] /= base[form.replace("us", "steps")]
    table = pd.concat([table, base.assign(filter=RANDOM_DRAWS)])
    unit = base[base["n"] == N].set_index("case")
    for ax, (form, title) in zip(figure.subplots(1, 2, sharey=True), forms.items(), strict=True):
        for name in names:
            part = table[(table["filter"] == name) & table[form].notna()]
            ratios = pd.DataFrame({"n": part["n"]})
            for column in ("error", form):
                ratios[column] = np.log(part[column] / part["case"].map(unit[column]))
            means = np.exp(ratios.groupby("n")[["error", form]].mean())
            ax.plot(means[form], means["error"], **look[name].line, label=name)
        ax.set(xscale="log", yscale="log", xlabel=f"time, steps of {RANDOM_DRAWS}")
        ax.set_title(title, fontsize=10)
        grid(ax, "y")
    figure.axes[0].set_ylabel(f"error over {RANDOM_DRAWS}'s, n = {N}")
    legend(figure, figure.axes[0])
    return figure


def exponent() -> Figure:
    """Draw the errors over that of bootstrap as n grows, and the exponents of the errors."""
    growth, study = read("default_growth"), read("study")
    names = ["auto", "sqmc", "herded-quantile", RANDOM_DRAWS]
    look, figure = styles(names), Figure(figsize=(WIDTH, 5.0))
    above, below = figure.subplots(2, 1, height_ratios=[2.4, 1])
    lines = [
        (
            "auto",
            growth[growth["filter"] == "auto"],
            f"auto, {growth['models'].max()} random models",
            {},
        ),
        ("sqmc", growth[growth["filter"] == "sqmc"], "sqmc, the same models", {}),
    ]
    for scenario, title, line in (
        ("linear-d1", "a linear model", {}),
        ("ungm", "UNGM", {"markerfacecolor": "white", "markeredgecolor": style.GREEN}),
    ):
        found = study[(study["scenario"] == scenario) & (study["filter"] == "herded-quantile")]
        lines.append(("herded-quantile", found, f"herded-quantile, {title} (d = 1)", line))
    for i, (name, found, label, line) in enumerate(lines):
        low, middle, high = (
            found[f"to_bootstrap{end}"].replace(np.inf, ENDLESS) for end in ("_low", "", "_high")
        )
        n = found["n"] * 1.04 ** (i - 1.5)
        above.errorbar(
            n,
            middle,
            [middle - low, high - middle],
            label=label,
            elinewidth=1.2,
            **look[name].line | line,
        )
    above.axhline(1, color=INK, linewidth=1, linestyle="--")
    above.set_ylim(0.008, 2)
    counts(above, [], "particles n")
    above.set_xticks([20, 100, 1000, 10_000], ["20", "100", "1,000", "10,000"])
    above.set_yticks([0.01, 0.03, 0.1, 0.3, 1], ["0.01", "0.03", "0.1", "0.3", "1"])
    above.set_ylabel(f"error over that of {RANDOM_DRAWS}")
    figure.legend(loc="outside upper center", fontsize=9)
    slopes = read("default_exponent").set_index("filter").loc[["auto", "sqmc", RANDOM_DRAWS]]
    for place, (name, row) in enumerate(slopes.iterrows()):
        ends = {f"ratio{end}": row[f"exponent_50{end}"] for end in ("", "_low", "_high")}
        bars(below, [ends], [place], **look[name].line | {"linestyle": "none"})
    rows(below, slopes.index)
    below.axvline(-0.5, color=INK, linewidth=1, linestyle="--")
    below.set(xlim=(-0.73, -0.4), xticks=[-0.7, -0.6, -0.5], xlabel="exponent of n in the error")
    grid(below, "x")
    return figure


def processors() -> Figure:
    """Draw the shares of sets and runs that are the same with the kernels of other processors."""
    table = read("kernels").groupby("what", sort=False)[["sets", "same", "close"]].min()
    figure = Figure(figsize=(WIDTH, 3.6))
    ax = figure.subplots()
    for place, (what, row) in enumerate(table.iterrows()):
        name = str(what).partition(",")[0]
        own = KERNELS.get(name, name)
        line = styles([own])[own].line | {"linestyle": "none"}
        bars(ax, [share(row["close"], row["sets"])], [place], **line)
        bars(
            ax,
            [share(row["same"], row["sets"])],
            [place + 0.25],
            color=QUIET,
            marker="|",
            markersize=8,
        )
    rows(ax, [str(what).replace(", ", "\n") for what in table.index])
    ax.set(xlim=(-3, 103), xlabel="% the same to 1e-4 sd\n(grey: to the last bit)")
    grid(ax, "x")
    return figure


def share(count: int, of: int) -> dict[str, float]:
    """Return a share in per cent with its interval."""
    ends = binomtest(int(count), int(of)).proportion_ci(method="wilson")
    return {"ratio": 100 * count / of, "ratio_low": 100 * ends.low, "ratio_high": 100 * ends.high}


def points() -> Figure:
    """Draw energy distances of herded points over those of random ones against the dimension."""
    table = over_families(read("quality").query("n == @N")).droplevel("n")
    figure = Figure(figsize=(WIDTH, 3.2))
    ax, look = figure.subplots(), styles(["herded-kh", "herded-chg"])
    for i, (key, name, label) in enumerate(zip(("kh", "chg"), look, HERDED, strict=True)):
        rows = table.xs(key, level="sampler").loc[[2, 4, 8, 16]]
        d = rows.index * 1.05 ** (2 * i - 1)
        span = [0 * rows["median"], rows["worst"] - rows["median"]]
        ax.errorbar(
            d, rows["median"], span, label=label.strip("`"), elinewidth=1.2, **look[name].line
        )
    ax.axhline(1, color=INK, linewidth=1, linestyle="--")
    ax.set_ylim(0.05, 1.6)
    counts(ax, [2, 4, 8, 16], "dimension d")
    ax.set_ylabel(f"energy distance over\nthat of random draws, n = {N}")
    legend(figure, ax)
    return figure


def bars(
    ax: Axes, found: Iterable[dict[str, float]], places: Iterable[float], **line: object
) -> None:
    """Draw values with their intervals at these heights."""
    table = pd.DataFrame(list(found)).replace(np.inf, ENDLESS)
    span = [table["ratio"] - table["ratio_low"], table["ratio_high"] - table["ratio"]]
    ax.errorbar(table["ratio"], list(places), xerr=span, elinewidth=1.4, **line)


def rows(ax: Axes, names: Iterable[str]) -> None:
    """Name the rows from the top down."""
    names = [
        name.replace(", or", ",\nor")
        .replace("you know", "you\nknow")
        .replace("mode, ", "mode,\n")
        .replace("of one", "of\none")
        .replace(" simul", "\nsimul")
        for name in names
    ]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.6)
    ax.tick_params(axis="y", length=0, labelcolor=INK)


def ratio_axis(ax: Axes, ticks: list[float], label: str) -> None:
    """Give an axes a logarithmic scale of ratios, with a line at 1."""
    ax.set(xscale="log", xlim=(0.8 * ticks[0], 1.2 * ticks[-1]), xlabel=label)
    ax.minorticks_off()
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.axvline(1, color=INK, linewidth=1, linestyle="--")
    grid(ax, "x")


def grid(ax: Axes, axis: str) -> None:
    """Draw a grid behind everything."""
    ax.grid(axis=axis, color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)


def legend(figure: Figure, ax: Axes) -> None:
    """Put the legend below everything, once for each name; four names stand in two lines."""
    handles, names = ax.get_legend_handles_labels()
    columns = len(names) if len(names) < 4 else 2
    figure.legend(handles, names, loc="outside lower center", ncols=columns)
