"""The figure of the first screen: ten runs of a bootstrap filter beside the one that a filter without chance has."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from herdfilter.plotting import styles

from .look import FAINT, INK, QUIET

EXAMPLE = Path(__file__).parents[1] / "gallery" / "02_filter_in_a_loop.py"


def ten_runs() -> Figure:
    """Draw the distances from the reference that the gallery's example of a filter in a loop finds."""
    found = runpy.run_path(str(EXAMPLE))
    plt.close("all")
    time, look = found["time"], styles(["bootstrap", "auto"])
    figure = Figure(figsize=(9.6, 3.1))
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, name, runs, title in (
        (left, "bootstrap", found["away"], "bootstrap filter, ten runs"),
        (right, "auto", found["herded"][None], "auto, every run"),
    ):
        ax.plot(
            time,
            runs.T,
            color=look[name].color,
            linewidth=0.7 if len(runs) > 1 else 1.8,
            alpha=0.75 if len(runs) > 1 else 1,
        )
        ax.set_title(title, color=look[name].color, fontweight="bold", fontsize=11)
        text = f"root mean square {np.sqrt(np.mean(runs**2)):.2g}"
        ax.text(0.03, 0.95, text, ha="left", va="top", transform=ax.transAxes, color=INK)
        ax.set(xlim=(0, time[-1]), xlabel="time (s)")
        ax.grid(axis="y", color=FAINT, linewidth=0.7)
        ax.set_axisbelow(True)
    left.set_ylim(bottom=0)
    left.set_ylabel("distance from the posterior mean\n(standard deviations)", color=QUIET)
    return figure
