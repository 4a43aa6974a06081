"""Errors of filters, on scenarios and on random models."""

from __future__ import annotations

import numpy as np
from common import RESULTS, load
from matplotlib.figure import Figure

import herdfilter as hf
from herdfilter.plotting import styles
from herdfilter.study.scenario import load_scenario
from herdfilter.study.statistics import median_interval

from .look import FAINT, QUIET

SCENARIOS = ["ungm", "lorenz63", "bearings"]
FILTERS = ["bootstrap", "sqmc", "herded-kh", "augmented-kh", "auto"]
PARTICLES = [25, 50, 100, 200]


def filters(runs: int = 20) -> Figure:
    """Draw the median error against the reference posterior mean over the particle count, for three scenarios."""
    look = styles(FILTERS)
    figure = Figure(figsize=(9.6, 3.7))
    for ax, name in zip(figure.subplots(1, len(SCENARIOS)), SCENARIOS, strict=True):
        table = hf.compare(name, FILTERS, PARTICLES, runs=runs, workers=2, progress=True)
        for i, (who, rows) in enumerate(table.groupby("filter", sort=False)):
            groups = [
                (n, group["reference_error"].dropna()) for n, group in rows.groupby("n_particles")
            ]
            n = np.array([count for count, _ in groups]) * 1.03 ** (i - 1.5)
            middle = np.array([errors.median() for _, errors in groups])
            low, high = np.array([median_interval(errors.to_numpy()) for _, errors in groups]).T
            ax.errorbar(
                n, middle, [middle - low, high - middle], label=who, elinewidth=1, **look[who].line
            )
        ax.set(xscale="log", yscale="log", xlabel="particles")
        ax.set_title(
            load_scenario(name).title.replace("Univariate nonstationary growth model", "UNGM")
        )
        ax.set_xticks(PARTICLES, [str(count) for count in PARTICLES])
        ax.minorticks_off()
        ax.set_yticks(*_round_ticks(ax.get_ylim()))
        ax.grid(axis="y", color=FAINT, linewidth=0.7)
        ax.set_axisbelow(True)
    figure.axes[0].set_ylabel("median RMS error\nto the reference posterior mean")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(FILTERS)
    )
    return figure


def _round_ticks(limits: tuple[float, float]) -> tuple[list[float], list[str]]:
    """Positions 1, 2 and 5 times a power of ten inside the limits, and their labels."""
    ticks = [m * 10.0**p for p in range(-4, 4) for m in (1, 2, 5)]
    inside = [tick for tick in ticks if limits[0] <= tick <= limits[1]]
    return inside, [f"{tick:g}" for tick in inside]


SORTED = ["sqmc", "ranked", "auto-random", "auto"]


def random_models() -> Figure:
    """Draw the errors over those of bootstrap on random models, sorted, as `bench_default.py` found them."""
    table, look = load("default_models", RESULTS), styles(SORTED)
    figure = Figure(figsize=(7.2, 3.4))
    ax = figure.subplots()
    for who in SORTED:
        ratios = np.sort(table[who].dropna())
        share = 100 * (np.arange(len(ratios)) + 0.5) / len(ratios)
        ax.plot(share, ratios, label=who, **{**look[who].line, "marker": ""})
    ax.axhline(1, color=QUIET, linewidth=1)
    decades = np.arange(-4, 3)
    ax.set(
        yscale="log",
        xlim=(0, 100),
        ylim=(10.0 ** decades[0], 10.0 ** decades[-1]),
        xlabel="models, sorted (%)",
    )
    ax.set_ylabel(f"error over that of bootstrap\nn = {table['n'].iloc[0]}")
    ax.set_yticks(10.0**decades, [f"{10.0**decade:g}" for decade in decades])
    ax.minorticks_off()
    ax.grid(axis="y", color=FAINT, linewidth=0.7)
    ax.legend()
    return figure
