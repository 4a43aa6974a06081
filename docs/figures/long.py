"""Records of errors over a million steps, as `bench_known.py long` left them."""

from __future__ import annotations

from common import RESULTS, load
from long_models import MODELS
from matplotlib.figure import Figure

from herdfilter.plotting import styles

from .look import FAINT

LINES = {
    name: {"color": style.color} for name, style in styles(["bootstrap", "ranked", "auto"]).items()
}
LINES["ranked, blind"] = {**LINES["ranked"], "linestyle": ":"}
LEAST = 3e-3
"""Errors below are not drawn, in posterior standard deviations."""


def records(n: int = 100) -> Figure:
    """Draw the largest error in a window over the length of the window, for each model."""
    table = load("long_records", RESULTS).query("n == @n")
    figure = Figure(figsize=(10.4, 2.9))
    for ax, model in zip(figure.subplots(1, len(MODELS), sharey=True), MODELS, strict=True):
        for who, line in LINES.items():
            rows = table[(table["model"] == model) & (table["filter"] == who)]
            ax.plot(rows["t"], rows["largest"], label=who, linewidth=1.6, **line)
        ax.set(xscale="log", yscale="log", xlabel="steps", ylim=(LEAST, 200), title=model)
        ax.minorticks_off()
        ax.set_xticks([10**p for p in (1, 3, 5)])
        ax.grid(axis="y", color=FAINT, linewidth=0.7)
        ax.set_axisbelow(True)
    figure.axes[0].set_ylabel(f"largest error of the mean, sd\nn = {n}")
    figure.axes[0].set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(LINES)
    )
    return figure
