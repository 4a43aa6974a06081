"""Many targets: distances of sets over time, what GOSPA is made of, and the paths with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from herdfilter._checks import Array
from herdfilter.pictures.figures import INK, QUIET
from herdfilter.plotting.drawing import Drawing, Panel
from herdfilter.plotting.limits import path_limits
from herdfilter.plotting.style import dimension_label, styles
from herdfilter.study.results import StudyResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

OVER_TIME = {
    "gospa": "GOSPA",
    "ospa": "OSPA",
    "cardinality": "Number of estimates minus number of targets",
}
"""Series -> title of its panel."""

PARTS = {"localisation": "#0072B2", "missed": "#D55E00", "false": "#8f8f8f"}
"""Part of GOSPA -> colour."""

LABEL_COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#B5179E", "#B97F00", "#6A3D9A"),
    *("#3392CC", "#8E2457", "#C466A0", "#5C7F00", "#A0522D", "#007C91"),
)
"""Colours of labels, over and over again."""


def over_time(result: StudyResult, steps: pd.DataFrame) -> Drawing | None:
    """Distances and the error of the number of targets at every step, all filters in one panel; None of one target."""
    if steps.empty or not steps["gospa"].notna().any():
        return None
    unit = f" ({result.study.scenario.unit})" if result.study.scenario.unit else ""
    return Drawing(
        tuple(
            Panel(title if name == "cardinality" else title + unit, partial(_over_time, result, steps, name))
            for name, title in OVER_TIME.items()
        ),
        (4.6, 2.9),
        title=f"Mean of {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}",
        xlabel=result.study.scenario.time_label,
        share=False,
        legend=True,
    )


def _over_time(result: StudyResult, steps: pd.DataFrame, name: str, ax: Axes) -> None:
    times, look = result.trajectory.recording.times, styles(result.study.filters)
    if name == "cardinality":
        ax.axhline(0, color=INK, linewidth=0.8)
    for key, rows in steps.groupby("filter", sort=False):
        style = look[str(key)]
        ax.plot(times, rows[name], color=style.color, linestyle=style.linestyle, linewidth=1.4, label=str(key))
    if name != "cardinality":
        ax.set_ylim(bottom=0)


def parts(summary: pd.DataFrame) -> Drawing | None:
    """Divide GOSPA at the largest particle count into its parts, by their shares in its power; None of one target."""
    rows = summary[summary["n_particles"] == summary["n_particles"].max()]
    rows = rows[rows["gospa"].notna()]
    if rows.empty:
        return None
    return Drawing(
        (Panel("", partial(_parts, rows)),),
        (6.4, 0.34 * len(rows) + 1.2),
        height=0.34 * len(rows) + 1.1,
        title=f"GOSPA, n = {rows['n_particles'].iloc[0]}: mean over runs, divided as its parts divide its power",
        xlabel="GOSPA",
        legend=True,
    )


def _parts(rows: pd.DataFrame, ax: Axes) -> None:
    squares = np.array([rows[f"gospa_{name}"] for name in PARTS]) ** 2
    widths = rows["gospa"].to_numpy() * squares / np.maximum(squares.sum(axis=0), 1e-300)
    left, places = np.zeros(len(rows)), np.arange(len(rows))[::-1]
    for (name, color), width in zip(PARTS.items(), widths, strict=True):
        ax.barh(places, width, left=left, color=color, height=0.7, label=name)
        left += width
    ax.set_yticks(places, rows["filter"])
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def paths(result: StudyResult, names: Sequence[str]) -> Drawing:
    """Draw true paths, estimates in the colours of their labels, and detections, one panel per filter."""
    shown, scenario = result.trajectory, result.study.scenario
    plane = list(scenario.plane)
    truth = shown.recording.truth[..., plane]
    nowhere = np.empty((0, 2))  # false estimates may be anywhere
    limits = path_limits(truth[np.isfinite(truth).all(axis=2)], nowhere, nowhere)
    return Drawing(
        tuple(Panel(f"{name}, n = {shown.n_particles}", partial(_paths, result, name, limits)) for name in names),
        (4.8, 4.6),
        xlabel=dimension_label(scenario.labels, plane[0]),
        ylabel=dimension_label(scenario.labels, plane[1]),
        legend=True,
        height=4.0,
    )


def _paths(result: StudyResult, name: str, limits: tuple[Array, Array], ax: Axes) -> None:
    shown, plane = result.trajectory, list(result.study.scenario.plane)
    mark_detections(ax, shown.positions)
    for i, path in enumerate(np.moveaxis(shown.recording.truth[..., plane], 1, 0)):
        there = np.flatnonzero(np.isfinite(path).all(axis=1))
        first = i == 0
        ax.plot(*path.T, color=INK, linewidth=1.1, label="truth" if first else None)
        if len(there):
            ring, square = path[there[0]], path[there[-1]]
            ax.plot(*ring, "o", color=INK, markersize=7, mfc="none", ls="none", label="start" if first else None)
            ax.plot(*square, "s", color=INK, markersize=6, mfc="none", ls="none", label="end" if first else None)
    for i, path in enumerate(np.moveaxis(shown.estimates[name][..., plane], 1, 0)):
        color = LABEL_COLORS[i % len(LABEL_COLORS)]
        label = "estimates, a colour for each label" if i == 0 else None
        ax.plot(*path.T, ".-", color=color, markersize=3.5, linewidth=0.9, label=label)
    ax.set(xlim=(limits[0][0], limits[1][0]), ylim=(limits[0][1], limits[1][1]))
    ax.set_aspect("equal")


def mark_detections(ax: Axes, positions: Sequence[Array] | None) -> None:
    """Draw the detections of all scans as light dots, where they are positions."""
    if positions is not None:
        dots = np.concatenate(positions).T
        ax.plot(*dots, ".", color=QUIET, markersize=1.5, alpha=0.6, rasterized=True, zorder=1, label="detections")
