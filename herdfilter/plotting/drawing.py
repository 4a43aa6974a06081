"""Figures of panels, as a whole for a file and panel by panel for a page, and limits that hide errors of lost runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.plotting.style import figures, legend
from herdfilter.study.columns import error_measure
from herdfilter.study.results import StudyResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Drawing", "Panel"]

PANEL_WIDTH = 4.2  # width of a panel by itself in inches, readable on a phone
HIGHEST_RATIO = 1e4  # largest ratio drawn: of errors to the baseline's, and of squared errors to their variances
LOST_EXTENTS = 100  # largest error drawn, in extents of the true path: a filter this far off has lost the target
HIGHEST_SCALED_ERROR = 1e3  # largest error drawn of a family of models, in posterior standard deviations


@dataclass(frozen=True, eq=False)
class Panel:
    """A pair of axes: the title, the function that draws into the axes, and the colour of the title.

    Examples
    --------
    >>> from herdfilter.plotting.drawing import Panel
    >>> panel = Panel("square", lambda ax: ax.plot([0, 1, 2], [0, 1, 4]))
    """

    title: str
    draw: Callable[[Axes], None]
    color: str | None = None


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
        Draw the legend of the first panel below the figure.
    height : float
        Height of a panel by itself, `PANEL_WIDTH` inches wide.

    Examples
    --------
    >>> from herdfilter.plotting.drawing import Drawing, Panel
    >>> panel = Panel("square", lambda ax: ax.plot([0, 1, 2], [0, 1, 4]))
    >>> drawing = Drawing((panel,), size=(3.0, 2.0), xlabel="x")
    >>> drawing.figure().savefig("square.png")
    """

    panels: tuple[Panel, ...]
    size: tuple[float, float]
    columns: int = 3
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    share: bool = True
    legend: bool = False
    height: float = 2.9

    def figure(self) -> Figure:
        """Draw all panels into one figure."""
        rows = -(-len(self.panels) // self.columns)
        columns = -(-len(self.panels) // rows)
        size = (self.size[0] * columns + 0.4, self.size[1] * rows + 0.7)
        with figures() as new:
            figure, axes = new(rows, columns, size, sharex=self.share, sharey=self.share)
            for ax, panel in zip(axes.flat, self.panels, strict=False):
                panel.draw(ax)
                look: Any = {} if panel.color is None else {"color": panel.color, "fontweight": "bold"}
                ax.set_title(panel.title, **look)
            for ax in axes.flat[len(self.panels) :]:
                ax.set_axis_off()
            if self.share and len(self.panels) < rows * columns:  # the axis above a gap keeps its numbers
                for ax in axes[-2][len(self.panels) % columns :] if rows > 1 else ():
                    ax.xaxis.set_tick_params(labelbottom=True)
            figure.suptitle(wrapped(self.title, size[0]), fontsize="medium")
            if self.legend:  # it takes the place of a common label
                for ax in axes[-1]:
                    ax.set_xlabel(self.xlabel)
                for ax in axes[:, 0]:
                    ax.set_ylabel(self.ylabel)
                legend(figure, axes.flat[0])
            else:
                figure.supxlabel(wrapped(self.xlabel, size[0]), fontsize="medium")
                figure.supylabel(self.ylabel, fontsize="medium")
        return figure

    @cached_property
    def whole(self) -> Figure:
        """The figure of all panels, drawn once."""
        return self.figure()

    def parts(self) -> Iterator[tuple[Panel, Figure]]:
        """Draw every panel by itself, without title and legend, with its limits in the whole figure."""
        limits: Any = None
        if self.share and len(self.panels) > 1:
            ax = self.whole.axes[0]
            limits = ax.get_xlim(), ax.get_ylim()
        for panel in self.panels:
            with figures() as new:
                figure, axes = new(1, 1, (PANEL_WIDTH, self.height))
                ax = axes.flat[0]
                panel.draw(ax)
                if limits is not None:
                    ax.set(xlim=limits[0], ylim=limits[1])
                ax.set_xlabel(wrapped(self.xlabel, PANEL_WIDTH - 1))
                ax.set_ylabel(self.ylabel)
            yield panel, figure


def wrapped(text: str, width: float) -> str:
    """Break lines that do not fit into `width` inches."""
    return "\n".join(fill(line, max(24, int(13 * width))) for line in text.splitlines())


def error_label(unit: str, measure: str) -> str:
    """Return the label of an axis of errors, or of GOSPA."""
    name = "GOSPA" if measure == "gospa" else "error"
    return f"{name}, median over runs" + (f" ({unit})" if unit else "")


def highest_ratio(ratios: ArrayLike) -> float:
    """Return the largest ratio worth drawing, given one for each filter; the smallest is always below it."""
    finite = np.asarray(ratios, dtype=float)
    finite = finite[np.isfinite(finite)]
    return max(HIGHEST_RATIO, 10 * finite.min()) if len(finite) else HIGHEST_RATIO


def highest_error(result: StudyResult) -> float:
    """Return the largest error worth drawing; the best filter is always below it."""
    if result.study.family is not None:
        return HIGHEST_SCALED_ERROR
    if result.trajectory.recording.many:
        return np.inf  # distances of sets are bounded
    truth = result.trajectory.recording.truth
    extent = np.linalg.norm(np.ptp(truth[:, list(result.study.scenario.dims(truth.shape[1]))], axis=0))
    medians: pd.Series[Any] = result.summary.groupby("filter")[f"{error_measure(result.summary)}_median"].max()
    highest = LOST_EXTENTS * max(float(extent), float(medians.min()))
    return highest if 0 < highest < np.inf else np.inf


def point_beyond(
    ax: Axes, x: ArrayLike, y: ArrayLike, highest: float, color: str, which: Literal["x", "y"] = "y", every: int = 1
) -> None:
    """Draw a triangle at the edge for values above the highest one drawn, at every `every`-th of them."""
    from matplotlib.transforms import offset_copy

    x, y = np.broadcast_arrays(np.atleast_1d(np.asarray(x, float)), np.asarray(y, float))
    beyond = (y if which == "y" else x) > highest
    if beyond.any():
        places = np.column_stack([x, y])[beyond][::every]
        places[:, 1 if which == "y" else 0] = highest
        up, marker = (1, "^") if which == "y" else (0, ">")
        figure: Any = ax.figure
        beside = offset_copy(ax.transData, figure, 8 * (1 - up), 8 * up, units="points")  # of the value's own marker
        look: Any = {"color": color, "markersize": 6.5, "mec": "white", "mew": 0.4, "clip_on": False}
        ax.plot(*places.T, marker, transform=beside, **look)


def path_limits(truth: Array, others: Array, places: Array) -> tuple[Array, Array]:
    """Return limits (k,) of a picture with a true path (T, k), estimates and particles (n, k), and sensors (m, k).

    Estimates and particles are cut off one span of the path away from it; sensors within three spans are in view.
    """
    low, high = truth.min(axis=0), truth.max(axis=0)
    span = (high - low).max() + 1e-9
    others = np.clip(others[np.isfinite(others).all(axis=1)], low - span, high + span)
    if len(others):
        low, high = np.minimum(low, others.min(axis=0)), np.maximum(high, others.max(axis=0))
    near = places[((places > low - 3 * span) & (places < high + 3 * span)).all(axis=1)]
    if len(near):
        low, high = np.minimum(low, near.min(axis=0)), np.maximum(high, near.max(axis=0))
    room = np.maximum(0.06 * (high - low), (0.6 * (high - low).max() - (high - low)) / 2)
    return low - room, high + room
