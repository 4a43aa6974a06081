"""Figures of the summary: errors against their cost, ratios, consistency, and the parts of GOSPA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter.plotting.drawing import HIGHEST_RATIO, Drawing, Panel, error_label, highest_ratio, point_beyond
from herdfilter.plotting.style import INK, QUIET, Style, log_axis, styles
from herdfilter.study.columns import BY_NAME, COLUMNS, error_measure, error_measures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

GOSPA_PARTS = {"localisation": "#0072B2", "missed": "#D55E00", "false": "#8f8f8f"}
"""Part of GOSPA -> colour."""


def particles_drawing(
    summary: pd.DataFrame, unit: str = "", slopes: dict[str, pd.DataFrame] | None = None, highest: float = np.inf
) -> Drawing:
    """Return the figure of the error against particle count, log-log, with the slopes fitted to each measure."""
    panels = {
        measure: partial(_particles_panel, summary, measure, (slopes or {}).get(measure), highest)
        for measure in error_measures(summary)
    }
    return _cost_drawing(summary, unit, panels, "particles")


def seconds_drawing(summary: pd.DataFrame, unit: str = "", highest: float = np.inf) -> Drawing:
    """Return the figure of the error against time per step, log-log, with the Pareto front."""
    panels = {measure: partial(_seconds_panel, summary, measure, highest) for measure in error_measures(summary)}
    return _cost_drawing(summary, unit, panels, "milliseconds per step, median over runs")


def _cost_drawing(summary: pd.DataFrame, unit: str, draw: Mapping[str, Callable[[Axes], None]], xlabel: str) -> Drawing:
    panels = tuple(Panel(BY_NAME[name].title, one) for name, one in draw.items())
    label = error_label(unit, error_measure(summary))
    return Drawing(panels, (4.4, 3.9), xlabel=xlabel, ylabel=label, share=False, legend=True, height=3.6)


def _particles_panel(summary: pd.DataFrame, measure: str, slopes: pd.DataFrame | None, highest: float, ax: Axes) -> None:
    counts = sorted(summary["n_particles"].unique())
    look = styles(summary["filter"].unique())
    log_axis(ax, "y")
    for i, (name, rows) in enumerate(summary.groupby("filter", sort=False)):
        dodge = 1.012 ** (i - (len(look) - 1) / 2) if len(counts) > 1 else 1.0
        style, x = look[str(name)], rows["n_particles"] * dodge
        slope = np.nan if slopes is None else float(slopes.set_index("filter")["slope"][name])
        if np.isfinite(slope):
            medians = rows[f"{measure}_median"].to_numpy()
            positive = np.isfinite(medians) & (medians > 0)
            if positive.any():  # the line goes through the middle of the medians
                middle = np.log(medians[positive]).mean() - slope * np.log(x.to_numpy()[positive]).mean()
                line = np.minimum(np.exp(middle + slope * np.log(x.to_numpy())), highest)
                ax.plot(x, line, color=style.color, linestyle=style.linestyle, linewidth=1.5)
            style = style._replace(linestyle="none")
        _error_line(ax, rows, measure, x, highest, style)
    best = summary[f"{measure}_median"].where(summary[f"{measure}_median"] > 0).min()
    if len(counts) > 1 and measure == "reference_error" and best > 0:  # the rate of independent draws, below the best filter
        y = best * 0.7 * np.sqrt(counts[-1] / np.array(counts, dtype=float))
        ax.plot(counts, y, color=QUIET, linewidth=1, linestyle="--", zorder=0, label="independent draws")
        ax.set_ylim(bottom=min(ax.get_ylim()[0], 0.7 * y[-1]))  # room for the letters
        ax.annotate("slope \u22121/2", (counts[-1], 0.96 * y[-1]), color=INK, ha="right", va="top", fontsize="small")
    ax.set_xscale("log")
    ax.set_xticks(counts, [str(n) for n in counts])
    ax.set_xlim(0.85 * counts[0], 1.18 * counts[-1])
    ax.minorticks_off()


def _seconds_panel(summary: pd.DataFrame, measure: str, highest: float, ax: Axes) -> None:
    look, column = styles(summary["filter"].unique()), f"{measure}_median"
    log_axis(ax, "x")
    log_axis(ax, "y")
    front = pareto(summary, measure)
    x, y = front["ms_per_step"], front[column].clip(upper=highest)
    band: Any = {"linewidth": 7, "alpha": 0.28, "solid_capstyle": "round", "drawstyle": "steps-post", "zorder": 0}
    ring: Any = {"markersize": 11, "markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1}
    ax.plot(x, y, color=QUIET, **band)
    ax.plot(x, y, "o", label="Pareto front", **ring)
    for name, rows in summary.groupby("filter", sort=False):
        _error_line(ax, rows, measure, rows["ms_per_step"], highest, look[str(name)])
    times = summary["ms_per_step"]
    ax.set_xlim(times.min() / 1.4, times.max() * 1.8)
    ax.margins(y=0.12)
    # particle counts beside the markers of the filter whose times lie farthest apart
    spans = summary.dropna(subset=column).groupby("filter", sort=False)["ms_per_step"]
    rows = summary[summary["filter"] == (spans.max() / spans.min()).idxmax()]
    low, high = np.log(ax.get_xlim())
    last = -np.inf
    for n, time, error in sorted(
        zip(rows["n_particles"], rows["ms_per_step"], rows[column].clip(upper=highest), strict=True)
    ):
        if np.log(time) - last >= 0.16 * (high - low):
            last, place = np.log(time), (time, error)
            ax.annotate(f"n = {n}", place, (8, -4), textcoords="offset points", va="top", color=INK, fontsize="small")


def pareto(summary: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the rows that no other row beats in both median error and time per step, the fastest first.

    Filters that failed in more than half of their runs are left out: they may have been lucky in the others.
    """
    column = f"{measure}_median"
    if "failures" in summary:
        summary = summary[2 * summary["failures"] <= summary["runs"]]
    front, best = [], np.inf
    for index, row in summary.dropna(subset=[column, "ms_per_step"]).sort_values(["ms_per_step", column]).iterrows():
        if row[column] < best:
            front.append(index)
            best = row[column]
    return summary.loc[front]


def _error_line(ax: Axes, rows: pd.DataFrame, measure: str, x: pd.Series[float], highest: float, style: Style) -> None:
    """Draw the medians of one filter with their intervals."""
    columns = (f"{measure}_median{end}" for end in ("", "_low", "_high"))
    error, low, high = (np.minimum(rows[column].to_numpy(dtype=float), highest) for column in columns)
    spread = np.maximum(np.nan_to_num(np.array([error - low, high - error])), 0)
    ax.errorbar(x, error, spread, label=rows["filter"].iloc[0], elinewidth=1, **style.line)
    largest = np.fmax(rows[f"{measure}_median"], rows[f"{measure}_median_high"])
    point_beyond(ax, x, largest, highest, style.color)


def ratios_drawing(summary: pd.DataFrame) -> Drawing | None:
    """Return the figure of the ratios to the baseline at the largest particle count, or None without ratios.

    A ratio is a median over runs or, from the table over the models of a family, a geometric mean over models.
    """
    n, base = summary["n_particles"].max(), summary["baseline"].iloc[0]
    rows = summary[(summary["n_particles"] == n) & (summary["filter"] != base)]
    rows = rows[rows["ratio"] > 0].sort_values("ratio", ascending=False)
    if rows.empty:
        return None
    over = f"geometric mean over {rows['models'].max()} models" if "models" in rows else "median over runs"
    return Drawing(
        (Panel("", partial(_interval_panel, rows, "ratio", HIGHEST_RATIO, styles(summary["filter"].unique()))),),
        (6.4, 0.34 * len(rows) + 0.9),
        height=0.34 * len(rows) + 0.8,
        title=f"Error divided by that of {base} in the same run, n = {n}: {over} and 95 % interval",
        xlabel=f"ratio to {base}, n = {n}, {over}",
    )


def consistency_drawing(summary: pd.DataFrame) -> Drawing | None:
    """Return the figure of ANEES and NIS at the largest particle count, with intervals and bands; None if not measured."""
    rows = summary[summary["n_particles"] == summary["n_particles"].max()]
    look, upwards = styles(rows["filter"]), rows.iloc[::-1]
    panels = tuple(
        Panel(column.title, partial(_interval_panel, upwards, column.name, highest_ratio(rows[column.name]), look))
        for column in COLUMNS
        if column.figure == "consistency" and (rows[column.name] > 0).any()
    )
    if not panels:
        return None
    return Drawing(
        panels,
        (4.6, 0.32 * len(rows) + 0.6),
        title=f"n = {rows['n_particles'].iloc[0]}: mean, 95 % interval over runs, and 95 % chi-square band (grey)",
        xlabel="1 is right; above, too sure of itself",
        share=False,
        height=0.34 * len(rows) + 0.8,
    )


def _interval_panel(rows: pd.DataFrame, name: str, highest: float, look: dict[str, Style], ax: Axes) -> None:
    """Draw a number of each filter with its interval, and its band if it has one, from the bottom up."""
    log_axis(ax, "x")
    ax.axvline(1, color=INK, linewidth=1)
    for place, (_, row) in enumerate(rows.iterrows()):
        style, value, low, high = look[row["filter"]], row[name], row[f"{name}_low"], row[f"{name}_high"]
        band = row.get(f"{name}_band_low", np.nan), row.get(f"{name}_band_high", np.nan)
        if np.isfinite(band).all():
            ax.fill_betweenx([place - 0.32, place + 0.32], *band, color=QUIET, alpha=0.3, linewidth=0)
        if low > 0:
            ax.plot(np.minimum([low, high], highest), [place, place], color=style.color, linewidth=2.4)
        if value > 0:
            ax.plot(min(value, highest), place, style.marker, color=style.color, markersize=8, mec="white", mew=0.6)
        point_beyond(ax, np.fmax(value, high), place, highest, style.color, "x")
    ax.set_yticks(range(len(rows)), rows["filter"])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    left, right = ax.get_xlim()
    ax.set_xlim(min(left, 0.8), max(right, 1.25))


def gospa_drawing(summary: pd.DataFrame) -> Drawing | None:
    """Return the figure of GOSPA at the largest particle count, divided into its parts; None for one target."""
    rows = summary[summary["n_particles"] == summary["n_particles"].max()]
    rows = rows[rows["gospa"].notna()]
    if rows.empty:
        return None
    squares = np.array([rows[f"gospa_{name}"] for name in GOSPA_PARTS]) ** 2
    widths = rows["gospa"].to_numpy() * squares / np.maximum(squares.sum(axis=0), 1e-300)

    def panel(ax: Axes) -> None:
        left, places = np.zeros(len(rows)), np.arange(len(rows))[::-1]
        for (name, color), width in zip(GOSPA_PARTS.items(), widths, strict=True):
            ax.barh(places, width, left=left, color=color, height=0.7, label=name)
            left += width
        ax.set_yticks(places, rows["filter"])
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)

    return Drawing(
        (Panel("", panel),),
        (6.4, 0.34 * len(rows) + 1.2),
        height=0.34 * len(rows) + 1.1,
        title=f"GOSPA, n = {rows['n_particles'].iloc[0]}: mean over runs, divided as its parts divide its power",
        xlabel="GOSPA",
        legend=True,
    )
