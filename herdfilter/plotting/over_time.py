"""Figures of the steps: errors, the consistency of covariances, and distances of sets of targets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from herdfilter._checks import Array
from herdfilter.plotting.drawing import Drawing, Panel, error_label, highest_error, highest_ratio, point_beyond
from herdfilter.plotting.style import INK, QUIET, Style, log_axis, styles
from herdfilter.study.columns import BY_NAME, SERIES, error_measures
from herdfilter.study.results import StudyResult
from herdfilter.study.statistics import normalised_over_time
from herdfilter.study.summary import over_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NORMALISED_SQUARES = tuple(series.name for series in SERIES if series.over_time is normalised_over_time)
"""Names of the series of normalised squares: NEES and NIS."""

SET_SERIES = {"gospa": "GOSPA", "ospa": "OSPA", "cardinality": "Number of estimates minus number of targets"}
"""Series of sets of targets -> title of its panel."""


def steps_at(result: StudyResult, n_particles: int | None = None) -> pd.DataFrame:
    """Return the series of all filters at one particle count, the largest unless given."""
    n = max(result.study.particles) if n_particles is None else n_particles
    return over_time({key: result.series[key] for key in result.series if key[1] == n})


def errors_drawing(result: StudyResult, steps: pd.DataFrame) -> Drawing | None:
    """Return the figure of the error at every step: a panel for each filter, the first one in grey; None without steps."""
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

    def panel(name: str, ax: Axes) -> None:
        style = look[name]
        middle, low, high = (groups[name][f"{measure}_{end}"].to_numpy() for end in ("median", "low", "high"))
        log_axis(ax, "y")
        thin = {"linewidth": 0.8, "alpha": 0.55} if width > 1 else {"linewidth": 2}
        ax.plot(times, np.minimum(middle, highest), color=style.color, **thin)
        band = np.minimum(low, highest), np.minimum(high, highest)
        ax.fill_between(times, *band, color=style.color, alpha=0.16, linewidth=0)
        if name != first:
            ax.plot(times, np.minimum(baseline, highest), color=QUIET, linewidth=1.5)
        if width > 1:
            ax.plot(times, np.minimum(moving_mean(middle, width), highest), color=style.color, linewidth=2)
        point_beyond(ax, times, np.fmax(middle, high), highest, style.color, every=width)

    return Drawing(
        tuple(Panel(name, partial(panel, name), look[name].color) for name in groups),
        (3.2, 2.1),
        title=f"{BY_NAME[measure].title}, {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}\n"
        f"median (thin) and middle half of the runs; {thick}{first} in grey",
        xlabel=result.study.scenario.time_label,
        ylabel=error_label(result.study.scenario.unit, measure),
    )


def moving_mean(values: Array, width: int) -> Array:
    """Return the mean over a window of an odd number of steps, cut off at the ends; NaN are left out."""
    known, ones = np.isfinite(values), np.ones(width)
    count = np.convolve(known.astype(float), ones, "same")
    return np.convolve(np.where(known, values, 0.0), ones, "same") / np.where(count > 0, count, np.nan)


def squares_drawing(result: StudyResult, steps: pd.DataFrame, name: str) -> Drawing | None:
    """Return the figure of NEES or NIS at every step with the chi-square band; None if no filter has them."""
    if steps.empty:
        return None
    groups = {str(key): rows for key, rows in steps.groupby("filter", sort=False) if rows[name].notna().any()}
    if not groups:
        return None
    times, look = result.trajectory.recording.times, styles(result.study.filters)
    highest = highest_ratio([rows[name].median() for rows in groups.values()])

    def panel(rows: pd.DataFrame, style: Style, ax: Axes) -> None:
        log_axis(ax, "y")
        ax.fill_between(times, rows[f"{name}_band_low"], rows[f"{name}_band_high"], color=QUIET, alpha=0.3, linewidth=0)
        ax.axhline(1, color=INK, linewidth=0.8)
        positive = rows[name].where(rows[name] > 0).to_numpy()
        ax.plot(times, np.minimum(positive, highest), color=style.color, linewidth=1.2)
        point_beyond(ax, times, positive, highest, style.color, every=max(1, len(times) // 12))

    return Drawing(
        tuple(Panel(key, partial(panel, rows, look[key]), look[key].color) for key, rows in groups.items()),
        (3.2, 2.1),
        title=f"{name.upper()}, mean of {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}\n"
        "grey: 95 % chi-square band of a filter with the right covariances",
        xlabel=result.study.scenario.time_label,
        ylabel=f"{name.upper()} / degrees of freedom",
    )


def sets_drawing(result: StudyResult, steps: pd.DataFrame) -> Drawing | None:
    """Return the figure of the distances of sets and the error of their number at every step; None for one target."""
    if steps.empty or not steps["gospa"].notna().any():
        return None
    unit = f" ({result.study.scenario.unit})" if result.study.scenario.unit else ""
    times, look = result.trajectory.recording.times, styles(result.study.filters)

    def panel(name: str, ax: Axes) -> None:
        if name == "cardinality":
            ax.axhline(0, color=INK, linewidth=0.8)
        for key, rows in steps.groupby("filter", sort=False):
            style = look[str(key)]
            ax.plot(times, rows[name], color=style.color, linestyle=style.linestyle, linewidth=1.4, label=str(key))
        if name != "cardinality":
            ax.set_ylim(bottom=0)

    titles = {name: title if name == "cardinality" else title + unit for name, title in SET_SERIES.items()}
    return Drawing(
        tuple(Panel(title, partial(panel, name)) for name, title in titles.items()),
        (4.6, 2.9),
        title=f"Mean of {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}",
        xlabel=result.study.scenario.time_label,
        share=False,
        legend=True,
    )
