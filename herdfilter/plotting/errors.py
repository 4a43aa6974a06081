"""Errors against what they cost: particle count, computing time; and compared run by run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from herdfilter.pictures.figures import INK, QUIET, Style, log_axis
from herdfilter.plotting.drawing import Drawing, Panel
from herdfilter.plotting.limits import HIGHEST_RATIO, point_beyond
from herdfilter.plotting.style import styles
from herdfilter.study.columns import BY_NAME, error_measure, error_measures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def over_particles(
    summary: pd.DataFrame,
    unit: str = "",
    slopes: dict[str, pd.DataFrame] | None = None,
    highest: float = np.inf,
) -> Drawing:
    """Error against particle count, log-log, with the fitted slopes by measure (`fitted_slopes`)."""
    return Drawing(
        tuple(
            Panel(
                BY_NAME[measure].title,
                partial(_over_particles, summary, measure, (slopes or {}).get(measure), highest),
            )
            for measure in error_measures(summary)
        ),
        (4.4, 3.9),
        xlabel="particles",
        ylabel=error_label(unit, "GOSPA" if error_measure(summary) == "gospa" else "error"),
        share=False,
        legend=True,
        height=3.6,
    )


def over_seconds(summary: pd.DataFrame, unit: str = "", highest: float = np.inf) -> Drawing:
    """Error against time per step, log-log, with the Pareto front."""
    return Drawing(
        tuple(
            Panel(BY_NAME[measure].title, partial(_over_seconds, summary, measure, highest))
            for measure in error_measures(summary)
        ),
        (4.4, 3.9),
        xlabel="milliseconds per step, median over runs",
        ylabel=error_label(unit, "GOSPA" if error_measure(summary) == "gospa" else "error"),
        share=False,
        legend=True,
        height=3.6,
    )


def ratios(summary: pd.DataFrame) -> Drawing | None:
    """Ratios to the baseline at the largest particle count, as in the table; None where there is nothing to compare.

    Of one model medians over runs, of the table over the models of a family geometric means over models.
    """
    n, base = summary["n_particles"].max(), summary["baseline"].iloc[0]
    rows = summary[(summary["n_particles"] == n) & (summary["filter"] != base)]
    rows = rows[rows["ratio"] > 0]
    if rows.empty:
        return None
    over = f"geometric mean over {rows['models'].max()} models" if "models" in rows else "median over runs"
    return Drawing(
        (Panel("", partial(_ratios, rows.sort_values("ratio", ascending=False), summary["filter"])),),
        (6.4, 0.34 * len(rows) + 0.9),
        height=0.34 * len(rows) + 0.8,
        title=f"Error divided by that of {base} in the same run, n = {n}: {over} and 95 % interval",
        xlabel=f"ratio to {base}, n = {n}, {over}",
    )


def pareto(summary: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Rows that no other row beats in both median error and time per step, from the fastest to the slowest.

    Where more than half of the runs failed, the median is that of a few lucky ones, and the row is left out.
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


def error_label(unit: str, name: str = "error") -> str:
    """Label of an axis of errors."""
    return f"{name}, median over runs" + (f" ({unit})" if unit else "")


def _over_particles(summary: pd.DataFrame, measure: str, slopes: pd.DataFrame | None, highest: float, ax: Axes) -> None:
    counts = sorted(summary["n_particles"].unique())
    look = styles(summary["filter"].unique())
    log_axis(ax, "y")
    for i, (name, rows) in enumerate(summary.groupby("filter", sort=False)):
        dodge = 1.012 ** (i - (len(look) - 1) / 2)
        style, x = look[str(name)], rows["n_particles"] * dodge
        slope = np.nan if slopes is None else float(slopes.set_index("filter")["slope"][name])
        if np.isfinite(slope):
            _fitted_line(ax, x.to_numpy(), rows[f"{measure}_median"].to_numpy(), slope, highest, style)
            style = style._replace(linestyle="none")
        _error_line(ax, rows, measure, x, highest, style)
    if len(counts) > 1 and measure == "reference_error":
        _half_slope(ax, summary)
    ax.set_xscale("log")
    ax.set_xticks(counts, [str(n) for n in counts])
    ax.set_xlim(0.85 * counts[0], 1.18 * counts[-1])
    ax.minorticks_off()


def _fitted_line(ax: Axes, x: np.ndarray, medians: np.ndarray, slope: float, highest: float, style: Style) -> None:
    """Draw a slope through the middle of the medians."""
    some = np.isfinite(medians) & (medians > 0)
    if some.any():
        middle = np.log(medians[some]).mean() - slope * np.log(x[some]).mean()
        line = np.minimum(np.exp(middle + slope * np.log(x)), highest)
        ax.plot(x, line, color=style.color, linestyle=style.linestyle, linewidth=1.5)


def _over_seconds(summary: pd.DataFrame, measure: str, highest: float, ax: Axes) -> None:
    look = styles(summary["filter"].unique())
    log_axis(ax, "x")
    log_axis(ax, "y")
    column = f"{measure}_median"
    front = pareto(summary, measure)
    front = front.assign(**{column: front[column].clip(upper=highest)})
    ax.plot(
        front["ms_per_step"],
        front[column],
        color=QUIET,
        linewidth=7,
        alpha=0.28,
        solid_capstyle="round",
        drawstyle="steps-post",
        zorder=0,
    )
    ax.plot(
        front["ms_per_step"],
        front[column],
        "o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=INK,
        markeredgewidth=1,
        label="Pareto front",
    )
    for name, rows in summary.groupby("filter", sort=False):
        _error_line(ax, rows, measure, rows["ms_per_step"], highest, look[str(name)])
    times = summary["ms_per_step"]
    ax.set_xlim(times.min() / 1.4, times.max() * 1.8)
    ax.margins(y=0.12)
    _name_counts(ax, summary.assign(**{column: summary[column].clip(upper=highest)}), column)


def _name_counts(ax: Axes, summary: pd.DataFrame, column: str) -> None:
    """Write the particle counts beside the markers of the filter whose times lie farthest apart."""
    times = summary.dropna(subset=column).groupby("filter", sort=False)["ms_per_step"]
    rows = summary[summary["filter"] == (times.max() / times.min()).idxmax()]
    low, high = np.log(ax.get_xlim())
    last = -np.inf
    for n, x, y in sorted(zip(rows["n_particles"], rows["ms_per_step"], rows[column], strict=True)):
        if np.log(x) - last < 0.16 * (high - low):  # no room
            continue
        last = np.log(x)
        ax.annotate(f"n = {n}", (x, y), (8, -4), textcoords="offset points", va="top", color=INK, fontsize="small")


def _error_line(ax: Axes, rows: pd.DataFrame, measure: str, x: pd.Series[float], highest: float, style: Style) -> None:
    error, low, high = (
        np.minimum(rows[f"{measure}_median{end}"].to_numpy(dtype=float), highest) for end in ("", "_low", "_high")
    )
    spread = np.array([error - low, high - error])
    ax.errorbar(
        x,
        error,
        np.maximum(np.nan_to_num(spread), 0),
        label=rows["filter"].iloc[0],
        elinewidth=1,
        **style.line,
    )
    largest = np.fmax(rows[f"{measure}_median"], rows[f"{measure}_median_high"])
    point_beyond(ax, x, largest, highest, style.color)


def _half_slope(ax: Axes, summary: pd.DataFrame) -> None:
    """Draw the rate of independent draws, one over the root of n, below the best filter."""
    medians = summary["reference_error_median"]
    if not (medians > 0).any():
        return
    counts = np.array(sorted(summary["n_particles"].unique()), dtype=float)
    y = medians[medians > 0].min() * 0.7 * np.sqrt(counts[-1] / counts)
    ax.plot(counts, y, color=QUIET, linewidth=1, linestyle="--", zorder=0, label="independent draws")
    ax.set_ylim(bottom=min(ax.get_ylim()[0], 0.7 * y[-1]))  # room for the letters
    ax.annotate("slope \u22121/2", (counts[-1], 0.96 * y[-1]), color=INK, ha="right", va="top", fontsize="small")


def _ratios(rows: pd.DataFrame, names: pd.Series[str], ax: Axes) -> None:
    look = styles(names.unique())
    log_axis(ax, "x")
    ax.axvline(1, color=INK, linewidth=1)
    for place, (_, row) in enumerate(rows.iterrows()):
        style = look[row["filter"]]
        middle, low, high = np.minimum(row[["ratio", "ratio_low", "ratio_high"]].astype(float), HIGHEST_RATIO)
        if np.isfinite(low) and low > 0:
            ax.plot([low, high], [place, place], color=style.color, linewidth=2.4)
        ax.plot(middle, place, style.marker, color=style.color, markersize=8, mec="white", mew=0.6)
        point_beyond(ax, np.fmax(row["ratio"], row["ratio_high"]), place, HIGHEST_RATIO, style.color, "x")
    ax.set_yticks(range(len(rows)), rows["filter"])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, 0.8), max(high, 1.25))
