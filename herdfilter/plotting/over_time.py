"""What happens from step to step: errors, and the consistency of covariances."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from herdfilter._checks import Array
from herdfilter.pictures.figures import INK, QUIET, Style, log_axis
from herdfilter.plotting.drawing import Drawing, Panel
from herdfilter.plotting.errors import error_label
from herdfilter.plotting.limits import highest_error, highest_ratio, point_beyond
from herdfilter.plotting.style import styles
from herdfilter.study.columns import BY_NAME, COLUMNS, SERIES, error_measures
from herdfilter.study.results import StudyResult
from herdfilter.study.statistics import normalised_over_time
from herdfilter.study.summary import over_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def steps_at(result: StudyResult, n_particles: int | None = None) -> pd.DataFrame:
    """`over_time` of all filters at one particle count, the largest unless given."""
    n = max(result.study.particles) if n_particles is None else n_particles
    return over_time({key: result.series[key] for key in result.series if key[1] == n})


def errors(result: StudyResult, steps: pd.DataFrame) -> Drawing | None:
    """Error at every step: one panel per filter, in each the first one in grey; None where no filter has any."""
    if steps.empty:
        return None
    measure = error_measures(steps)[0]
    groups = {str(name): rows for name, rows in steps.groupby("filter", sort=False)}
    times, look = result.trajectory.recording.times, styles(result.study.filters)
    width = max(1, len(times) // 12) | 1
    first = next(iter(groups))
    baseline = moving_mean(groups[first][f"{measure}_median"].to_numpy(), width)
    highest = highest_error(result)
    thick = f"mean of {width} steps (thick); " if width > 1 else ""
    return Drawing(
        tuple(
            Panel(
                name,
                partial(
                    _errors,
                    times,
                    rows,
                    measure,
                    look[name],
                    None if name == first else baseline,
                    width,
                    highest,
                ),
                look[name].color,
            )
            for name, rows in groups.items()
        ),
        (3.2, 2.1),
        title=f"{BY_NAME[measure].title}, {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}\n"
        f"median (thin) and middle half of the runs; {thick}{first} in grey",
        xlabel=result.study.scenario.time_label,
        ylabel=error_label(result.study.scenario.unit, "GOSPA" if measure == "gospa" else "error"),
    )


def _errors(
    times: Array,
    rows: pd.DataFrame,
    measure: str,
    style: Style,
    baseline: Array | None,
    width: int,
    highest: float,
    ax: Axes,
) -> None:
    middle, low, high = (rows[f"{measure}_{what}"].to_numpy() for what in ("median", "low", "high"))
    log_axis(ax, "y")
    thin = {"linewidth": 0.8, "alpha": 0.55} if width > 1 else {"linewidth": 2}
    ax.plot(times, np.minimum(middle, highest), color=style.color, **thin)
    ax.fill_between(
        times,
        np.minimum(low, highest),
        np.minimum(high, highest),
        color=style.color,
        alpha=0.16,
        linewidth=0,
    )
    if baseline is not None:
        ax.plot(times, np.minimum(baseline, highest), color=QUIET, linewidth=1.5)
    if width > 1:
        ax.plot(times, np.minimum(moving_mean(middle, width), highest), color=style.color, linewidth=2)
    point_beyond(ax, times, np.fmax(middle, high), highest, style.color, every=width)


def moving_mean(values: Array, width: int) -> Array:
    """Mean over a window of `width` steps, odd, cut off at the ends; of the values that are not NaN."""
    known, ones = np.isfinite(values), np.ones(width)
    count = np.convolve(known.astype(float), ones, "same")
    return np.convolve(np.where(known, values, 0.0), ones, "same") / np.where(count > 0, count, np.nan)


SQUARES = tuple(series.name for series in SERIES if series.over_time is normalised_over_time)
"""Names of the series of normalised squares."""


def squares(result: StudyResult, steps: pd.DataFrame, name: str) -> Drawing | None:
    """Normalised squares, NEES or NIS, at every step, with the chi-square band; None where no filter has them."""
    if steps.empty:
        return None
    groups = {str(key): rows for key, rows in steps.groupby("filter", sort=False) if rows[name].notna().any()}
    if not groups:
        return None
    times, look = result.trajectory.recording.times, styles(result.study.filters)
    highest = highest_ratio([rows[name].median() for rows in groups.values()])
    return Drawing(
        tuple(
            Panel(key, partial(_squares, times, rows, name, look[key], highest), look[key].color)
            for key, rows in groups.items()
        ),
        (3.2, 2.1),
        title=f"{name.upper()}, mean of {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}\n"
        "grey: 95 % chi-square band of a filter with the right covariances",
        xlabel=result.study.scenario.time_label,
        ylabel=f"{name.upper()} / degrees of freedom",
    )


def _squares(times: Array, rows: pd.DataFrame, name: str, style: Style, highest: float, ax: Axes) -> None:
    log_axis(ax, "y")
    ax.fill_between(times, rows[f"{name}_band_low"], rows[f"{name}_band_high"], color=QUIET, alpha=0.3, linewidth=0)
    ax.axhline(1, color=INK, linewidth=0.8)
    positive = rows[name].where(rows[name] > 0).to_numpy()
    ax.plot(times, np.minimum(positive, highest), color=style.color, linewidth=1.2)
    point_beyond(ax, times, positive, highest, style.color, every=max(1, len(times) // 12))


def consistency(summary: pd.DataFrame) -> Drawing | None:
    """ANEES and NIS of every filter at the largest particle count, with intervals and bands; None where not measured."""
    rows = summary[summary["n_particles"] == summary["n_particles"].max()]
    panels = tuple(
        Panel(column.title, partial(_consistency, rows, column.name))
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


def _consistency(rows: pd.DataFrame, name: str, ax: Axes) -> None:
    look, highest = styles(rows["filter"]), highest_ratio(rows[name])
    log_axis(ax, "x")
    ax.axvline(1, color=INK, linewidth=1)
    for place, (_, row) in enumerate(rows.iloc[::-1].iterrows()):
        style, band = look[row["filter"]], (row[f"{name}_band_low"], row[f"{name}_band_high"])
        if np.isfinite(band).all():
            ax.fill_betweenx([place - 0.32, place + 0.32], *band, color=QUIET, alpha=0.3, linewidth=0)
        if row[f"{name}_low"] > 0:
            ends = np.minimum([row[f"{name}_low"], row[f"{name}_high"]], highest)
            ax.plot(ends, [place, place], color=style.color, linewidth=2.4)
        if row[name] > 0:
            middle = min(row[name], highest)
            ax.plot(middle, place, style.marker, color=style.color, markersize=8, mec="white", mew=0.6)
        point_beyond(ax, np.fmax(row[name], row[f"{name}_high"]), place, highest, style.color, "x")
    ax.set_yticks(range(len(rows)), rows["filter"][::-1])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, 0.8), max(high, 1.25))
