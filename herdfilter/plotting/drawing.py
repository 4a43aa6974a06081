"""Figures of panels, whole for a file or panel by panel for a page, and limits that keep lost runs out of the picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.plotting.style import INK, figures, legend
from herdfilter.study.columns import error_measure
from herdfilter.study.results import StudyResult

__all__ = ["Drawing", "Panel"]

PANEL_WIDTH = 4.2  # width in inches of a panel drawn by itself, readable on a phone
# Largest ratio drawn, both of errors to the baseline's and of squared errors to their variances.
HIGHEST_RATIO = 1e4
# Largest error drawn, in extents of the true path: a filter this far off has lost the target.
LOST_EXTENTS = 100
# Largest error drawn of a family of models, in posterior standard deviations.
HIGHEST_SCALED_ERROR = 1e3
MOST_TRIANGLES = 12  # largest number of triangles drawn for one line


class Panel(NamedTuple):
    """A pair of axes: the title, the function that draws into the axes, and the colour of a filter.

    Examples
    --------
    >>> from herdfilter.plotting.drawing import Panel
    >>> panel = Panel("square", lambda ax: ax.plot([0, 1, 2], [0, 1, 4]))
    """

    title: str
    draw: Callable[[Axes], Any]
    color: str = ""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure of panels.

    Attributes
    ----------
    panels : tuple of Panel
    size : tuple of float
        Width and height of a panel in inches.
    columns : int
        Panels side by side, at most; rows are of equal length if possible.
    title, xlabel, ylabel : str
    share : bool
        Give all panels the same limits.
    legend : bool
        Draw a legend of all panels above the figure, in place of a title.
    highest : float
        Values of lines from here on are marked by triangles at the edge, along y, or along x if `across`.

    Examples
    --------
    >>> from herdfilter.plotting.drawing import Drawing, Panel
    >>> panel = Panel("square", lambda ax: ax.plot([0, 1, 2], [0, 1, 4]))
    >>> drawing = Drawing((panel,), size=(3.0, 2.0), xlabel="x")
    >>> drawing.figure.savefig("square.png")
    """

    panels: tuple[Panel, ...]
    size: tuple[float, float]
    columns: int = 3
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    share: bool = True
    legend: bool = False
    highest: float = np.inf
    across: bool = False

    @cached_property
    def figure(self) -> Figure:
        """All panels in one figure, drawn once."""
        # Rounded up; then no more columns than rows of equal length need.
        rows = -(-len(self.panels) // self.columns)
        columns = -(-len(self.panels) // rows)
        width = self.size[0] * columns + 0.4
        height = self.size[1] * rows + 0.7
        with figures() as new:
            figure, axes = new(rows, columns, (width, height), sharex=self.share, sharey=self.share)
            for ax, panel in zip(axes.flat, self.panels, strict=False):
                self._draw_panel(panel, ax)
                ax.set_title(panel.title, color=panel.color or INK)
            for ax in axes.flat[len(self.panels) :]:
                ax.set_axis_off()
            if len(self.panels) < axes.size:
                # Shared axes have numbers only in the last row, which has a gap.
                for ax in axes.flat:
                    ax.tick_params(labelbottom=True)
            figure.suptitle(broken_lines(self.title, width))
            figure.supxlabel(broken_lines(self.xlabel, width))
            figure.supylabel(self.ylabel)
            if self.legend:
                legend(figure, axes.flat)
        return figure

    def parts(self) -> Iterator[tuple[Panel, Figure]]:
        """Draw every panel by itself, without title and legend, but with the limits that it has in the whole figure."""
        limits: dict[str, Any] = {}
        if self.share and len(self.panels) > 1:
            # Shared limits are known only when all panels are drawn.
            ax = self.figure.axes[0]
            limits = {"xlim": ax.get_xlim(), "ylim": ax.get_ylim()}
        for panel in self.panels:
            with figures() as new:
                figure, axes = new(1, 1, (PANEL_WIDTH, self.size[1] * PANEL_WIDTH / self.size[0]))
                self._draw_panel(panel, axes[0, 0])
                axes[0, 0].set(
                    xlabel=broken_lines(self.xlabel, PANEL_WIDTH - 1), ylabel=self.ylabel, **limits
                )
            yield panel, figure

    def description(self, panel: Panel) -> str:
        """Return a description of a panel in one line, for screen readers."""
        return f"{panel.title or self.title}: {self.ylabel or 'filters'} against {self.xlabel}"

    def _draw_panel(self, panel: Panel, ax: Axes) -> None:
        panel.draw(ax)
        ax.set(xlabel="", ylabel="")
        figure: Any = ax.figure
        along, marker, offset = (0, ">", (8, 0)) if self.across else (1, "^", (0, 8))
        # The triangle stands beside the marker of the value.
        beside = offset_copy(ax.transData, figure, *offset, units="points")
        # Point -> colour: of lines that end at the same point, the last one gives the triangle.
        colors: dict[Any, Any] = {}
        for line in ax.lines:
            points = np.array(line.get_data(), dtype=float).T
            points = points[points[:, along] >= self.highest]
            colors |= {
                tuple(point): line.get_color()
                for point in points[:: len(points) // MOST_TRIANGLES + 1]
            }
        for point, color in colors.items():
            ax.plot(*point, marker, color=color, transform=beside, clip_on=False)


def broken_lines(text: str, width: float) -> str:
    """Break a line that does not fit into `width` inches."""
    return fill(text, max(24, int(13 * width)))


def error_label(unit: str, measure: str) -> str:
    """Return the label of an axis of errors, or of GOSPA."""
    name = "GOSPA" if measure == "gospa" else "error"
    return f"{name}, median over runs" + (f" ({unit})" if unit else "")


def highest_ratio(ratios: ArrayLike) -> float:
    """Return the largest ratio worth drawing, given one for each filter; the smallest is always below it."""
    # If even the best filter is above the bound, the bound rises.
    return max(HIGHEST_RATIO, float(10 * np.fmin.reduce(np.asarray(ratios, dtype=float))))


def highest_error(result: StudyResult) -> float:
    """Return the largest error worth drawing; the best filter is always below it."""
    if result.study.family is not None:
        return HIGHEST_SCALED_ERROR
    if result.trajectory.recording.many:
        return np.inf  # distances of sets are bounded
    truth = result.trajectory.recording.truth
    extent = np.linalg.norm(
        np.ptp(truth[:, list(result.study.scenario.dims(truth.shape[1]))], axis=0)
    )
    # Of each filter at its worst particle count.
    worst = result.summary.groupby("filter")[f"{error_measure(result.summary)}_median"].max()
    highest = LOST_EXTENTS * max(float(extent), float(worst.min()))
    return highest if 0 < highest < np.inf else np.inf


def path_limits(truth: Array, states: Array, sensors: Array) -> tuple[Array, Array]:
    """Return limits (k,) of a picture with a true path (T, k), estimates and particles (n, k), and sensors (m, k).

    Estimates and particles are cut off at one span of the path away from it; sensors within three spans are in view.
    """
    low = truth.min(axis=0)
    high = truth.max(axis=0)
    span = (high - low).max() + 1e-9
    states = np.clip(states[np.isfinite(states).all(axis=1)], low - span, high + span)
    near = sensors[((sensors > low - 3 * span) & (sensors < high + 3 * span)).all(axis=1)]
    inside = np.concatenate([truth, states, near])
    low = inside.min(axis=0)
    high = inside.max(axis=0)
    # A margin of 6 %, and no side shorter than 0.6 of the longest.
    margin = np.maximum(0.06 * (high - low), (0.6 * (high - low).max() - (high - low)) / 2)
    return low - margin, high + margin
