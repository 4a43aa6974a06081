"""Figures of the summary: errors against their cost, ratios, consistency, and the parts of GOSPA."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from herdfilter.plotting.drawing import (
    HIGHEST_RATIO,
    Drawing,
    Panel,
    error_label,
    highest_error,
    highest_ratio,
)
from herdfilter.plotting.style import BLUE, INK, ORANGE, QUIET, Style, log_axis, styles
from herdfilter.study.columns import BY_NAME, COLUMNS, error_measures
from herdfilter.study.results import StudyResult

GOSPA_PARTS = {"localisation": BLUE, "missed": ORANGE, "false": QUIET}
"""Part of GOSPA -> colour."""


def cost_drawings(result: StudyResult) -> dict[str, Drawing]:
    """Return the figures of the error against particle count, time per step and evaluations of the model, log-log.

    Medians over runs have 95 % intervals.
    """
    summary = result.summary
    measures = error_measures(summary)
    highest = highest_error(result)
    errors = [f"{measure}_median{end}" for measure in measures for end in ("", "_low", "_high")]
    summary = summary.assign(**summary[errors].clip(upper=highest))
    ylabel = error_label(result.study.scenario.unit, measures[0])

    def drawing(draw: Any, xlabel: str) -> Drawing:
        panels = [Panel(BY_NAME[name].title, partial(draw, summary, name)) for name in measures]
        labels: Any = {"xlabel": xlabel, "ylabel": ylabel, "legend": True}
        return Drawing(tuple(panels), (4.4, 3.9), share=False, highest=highest, **labels)

    plans = {
        "error_over_particles": drawing(partial(_particles_panel, result.slopes), "particles"),
        "error_over_seconds": drawing(
            partial(_cost_panel, "ms_per_step"), "milliseconds per step, median over runs"
        ),
    }
    if summary["evaluations"].notna().any():
        plans["error_over_evaluations"] = drawing(
            partial(_cost_panel, "evaluations"),
            "evaluations of the model per step, median over runs",
        )
    return plans


def _particles_panel(
    slopes: dict[str, pd.DataFrame], summary: pd.DataFrame, measure: str, ax: Axes
) -> None:
    counts = np.sort(summary["n_particles"].unique())
    # Slopes are fitted only with enough particle counts.
    fitted = dict(slopes[measure][["filter", "slope"]].to_numpy()) if measure in slopes else {}
    looks = styles(summary["filter"].unique())
    log_axis(ax, "x")
    log_axis(ax, "y")
    # First, as a single count has no limits of its own.
    ax.set_xlim(0.85 * counts[0], 1.18 * counts[-1])
    for i, (name, rows) in enumerate(summary.groupby("filter", sort=False)):
        style = looks[str(name)]
        # Filters are set slightly apart, so that their intervals do not cover each other.
        x = rows["n_particles"] * (1.012 ** (i - (len(looks) - 1) / 2) if len(counts) > 1 else 1.0)
        slope = fitted.get(name, np.nan)
        if np.isfinite(slope):
            # The line goes through the middle of the medians.
            medians = np.log(rows[f"{measure}_median"].where(rows[f"{measure}_median"] > 0))
            height = medians.mean() - slope * np.log(x[medians.notna()]).mean()
            line = np.exp(height + slope * np.log(x))
            ax.plot(x, line, color=style.color, linestyle=style.linestyle)
            style = style._replace(linestyle="none")
        _error_line(ax, rows, measure, x, style)
    best = summary[f"{measure}_median"].where(summary[f"{measure}_median"] > 0).min()
    if len(counts) > 1 and measure == "reference_error" and best > 0:
        # The rate of independent draws, 1 / sqrt(n), drawn below the best filter.
        y = best * 0.7 * np.sqrt(counts[-1] / counts)
        ax.plot(counts, y, color=QUIET, linewidth=1, linestyle="--", label="independent draws")
    ax.set_xticks(counts, [str(n) for n in counts])
    ax.set_xticks([], minor=True)


def _cost_panel(cost: str, summary: pd.DataFrame, measure: str, ax: Axes) -> None:
    """Draw the error against a column of costs, with the Pareto front."""
    columns = [cost, f"{measure}_median"]
    looks = styles(summary["filter"].unique())
    log_axis(ax, "x")
    log_axis(ax, "y")
    # A broad pale staircase below the lines, so that it hides none of them.
    front = pareto(summary, measure, cost)[columns].to_numpy().T
    ax.plot(*front, color=QUIET, linewidth=7, alpha=0.28, drawstyle="steps-post")
    ax.plot(*front, "o", color=INK, markersize=11, mfc="none", label="Pareto front")
    for name, rows in summary.groupby("filter", sort=False):
        _error_line(ax, rows, measure, rows[cost], looks[str(name)])
    low = summary[cost].min()
    high = summary[cost].max()
    # room for a number to the left of the cheapest marker
    low /= max(1.4, 1.1 * (high / low) ** 0.15)
    high *= 1.8
    ax.set_xlim(low, high)
    ax.margins(y=0.12)
    # Particle counts beside the markers of the filter whose costs lie farthest apart, where there is room for a number.
    costs = summary.dropna(subset=columns).groupby("filter", sort=False)[cost]
    widest = summary[summary["filter"] == (costs.max() / costs.min()).idxmax()]
    last = -np.inf
    for n, x, median in widest[["n_particles", *columns]].itertuples(index=False):
        if np.log(x) - last >= 0.16 * np.log(high / low):
            last = np.log(x)
            # The last number goes beyond the end of the line, the others to the left of what falls.
            side = 1 if n == widest["n_particles"].iloc[-1] else -1
            beside: Any = {"xytext": (8 * side, -4), "textcoords": "offset points", "va": "top"}
            beside["ha"] = "left" if side > 0 else "right"
            ax.annotate(f"n = {n}", (x, median), fontsize="small", **beside)


def pareto(summary: pd.DataFrame, measure: str, cost: str = "ms_per_step") -> pd.DataFrame:
    """Return the rows that no other row beats in both median error and a column of costs, the cheapest first.

    Filters that failed in more than half of their runs are left out: they may have been lucky in the others.
    """
    error = f"{measure}_median"
    finishing = summary[2 * summary["failures"] <= summary["runs"]]
    # From the cheapest to the dearest, each row on the front is better than all before it.
    ordered = finishing.dropna(subset=[error, cost]).sort_values([cost, error])
    return ordered[ordered[error] < ordered[error].cummin().shift(fill_value=np.inf)]


def _error_line(
    ax: Axes, rows: pd.DataFrame, measure: str, x: pd.Series[float], style: Style
) -> None:
    """Draw the medians of one filter with their intervals."""
    column = f"{measure}_median"
    ax.vlines(x, rows[f"{column}_low"], rows[f"{column}_high"], color=style.color, linewidth=1)
    ax.plot(x, rows[column], label=rows["filter"].iloc[0], **style.line)


def ratios_drawing(summary: pd.DataFrame) -> Drawing | None:
    """Return the figure of the ratios to the baseline at the largest particle count, or None without ratios.

    A ratio is a median over runs or, from the table over the models of a family, a geometric mean over models.
    """
    base = summary["baseline"].iloc[0]
    rows = _largest_count(summary).query("filter != @base and ratio > 0")
    if rows.empty:
        return None
    over = "median over runs"
    if "models" in rows:
        over = f"geometric mean over {rows['models'].max()} models"
    n = rows["n_particles"].iloc[0]
    title = f"Error divided by that of {base} in the same run, n = {n}: {over} and 95 % interval"
    looks = styles(summary["filter"].unique())
    rows = rows.sort_values("ratio", ascending=False)
    return _intervals_drawing(rows, {"ratio": ""}, looks, HIGHEST_RATIO, title, f"ratio to {base}")


def consistency_drawing(summary: pd.DataFrame) -> Drawing | None:
    """Return the figure of ANEES and NIS at the largest particle count, with intervals and bands; None if not measured."""
    rows = _largest_count(summary).iloc[::-1]
    # The axis is logarithmic, and a filter may have no covariance.
    titles = {
        column.name: column.title
        for column in COLUMNS
        if column.figure == "consistency" and (rows[column.name] > 0).any()
    }
    if not titles:
        return None
    highest = max(highest_ratio(rows[name]) for name in titles)
    title = f"n = {rows['n_particles'].iloc[0]}: mean, 95 % interval over runs, and 95 % chi-square band (grey)"
    xlabel = "1 is right; above, too sure of itself"
    # Own filters get their colours in the order of the summary, as in all figures.
    looks = styles(summary["filter"].unique())
    return _intervals_drawing(rows, titles, looks, highest, title, xlabel)


def _largest_count(summary: pd.DataFrame) -> pd.DataFrame:
    return summary.query("n_particles == n_particles.max()")


def _intervals_drawing(
    rows: pd.DataFrame,
    titles: dict[str, str],
    looks: dict[str, Style],
    highest: float,
    title: str,
    xlabel: str,
) -> Drawing:
    """Return a figure of numbers near 1, a panel for each column: a row for each filter, from the bottom up."""
    columns = [f"{name}{end}" for name in titles for end in ("", "_low", "_high")]
    rows = rows.assign(**rows[columns].clip(upper=highest))

    def draw(name: str, ax: Axes) -> None:
        log_axis(ax, "x")
        ax.axvline(1, color=INK, linewidth=1)
        for y, row in enumerate(rows.to_dict("records")):
            style = looks[row["filter"]]
            band = [row.get(f"{name}_band_{end}", np.nan) for end in ("low", "high")]
            ax.fill_betweenx([y - 0.32, y + 0.32], *band, color=QUIET, alpha=0.3, linewidth=0)
            ends = [row[f"{name}_low"], row[f"{name}_high"]]
            if ends[0] > 0:  # the axis is logarithmic
                ax.plot(ends, [y, y], color=style.color, linewidth=2.4)
            ax.plot(row[name], y, style.marker, color=style.color, markersize=8)
        low, high = ax.get_xlim()
        ax.set_xlim(min(low, 0.8), max(high, 1.25))
        ax.set_yticks(range(len(rows)), rows["filter"])
        ax.set_ylim(-0.6, len(rows) - 0.4)
        ax.grid(visible=False, axis="y")

    panels = tuple(Panel(text, partial(draw, name)) for name, text in titles.items())
    size = (4.6, 0.34 * len(rows) + 0.8)
    options: Any = {"title": title, "xlabel": xlabel, "highest": highest}
    return Drawing(panels, size, share=False, across=True, **options)


def gospa_drawing(summary: pd.DataFrame) -> Drawing | None:
    """Return the figure of GOSPA at the largest particle count, divided into its parts; None for one target."""
    rows = _largest_count(summary).iloc[::-1].dropna(subset="gospa")
    if rows.empty:
        return None
    # Of order 2: the squares of the parts sum to the square of GOSPA, and each gets its share of the bar.
    powers = rows[[f"gospa_{name}" for name in GOSPA_PARTS]].to_numpy() ** 2
    widths = rows["gospa"].to_numpy() * powers.T / np.maximum(powers.sum(axis=1), 1e-300)

    def panel(ax: Axes) -> None:
        for (name, color), width, end in zip(
            GOSPA_PARTS.items(), widths, widths.cumsum(axis=0), strict=True
        ):
            ax.barh(rows["filter"], width, left=end - width, color=color, height=0.7, label=name)
        ax.grid(visible=False, axis="y")

    xlabel = f"GOSPA, n = {rows['n_particles'].iloc[0]}: mean over runs, divided as its parts divide its power"
    return Drawing((Panel("", panel),), (4.6, 0.34 * len(rows) + 0.8), xlabel=xlabel, legend=True)
