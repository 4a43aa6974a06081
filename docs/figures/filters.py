"""Errors of filters on random models."""

from __future__ import annotations

import numpy as np
from common import RESULTS, load
from matplotlib.figure import Figure

from herdfilter.plotting import styles

from .look import FAINT, QUIET

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
