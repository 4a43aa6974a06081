"""A figure of panels: as a whole for a file, and panel by panel for a page that arranges them itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import TYPE_CHECKING, Any

from herdfilter.pictures.figures import figures, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Drawing", "Panel"]


PART = 4.2  # width of a panel by itself, in inches: as wide as a phone shows with readable letters


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    title : str
    draw : callable
        Draws into the axes it is given.
    color : str, optional
        Of the title.

    Examples
    --------
    >>> from herdfilter.plotting.drawing import Drawing, Panel
    >>> x = np.linspace(0, 1, 5)
    >>> square = Panel("square", lambda ax: ax.plot(x, x**2))
    >>> root = Panel("root", lambda ax: ax.plot(x, x**0.5))
    >>> figure = Drawing((square, root), size=(3.0, 2.0)).figure()
    >>> [ax.get_title() for ax in figure.axes]
    ['square', 'root']
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
        Panels side by side, at most.
    title, xlabel, ylabel : str
    share : bool
        Whether all panels have the same limits.
    legend : bool
        Whether the whole figure has a legend, that of its first panel.
    height : float
        Of a panel by itself, `PART` inches wide.

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
        columns = min(self.columns, len(self.panels))
        rows = -(-len(self.panels) // columns)
        size = (self.size[0] * columns + 0.4, self.size[1] * rows + 0.7)
        with figures() as new:
            figure, axes = new(rows, columns, size, sharex=self.share, sharey=self.share)
            for ax, panel in zip(axes.flat, self.panels, strict=False):
                panel.draw(ax)
                if panel.color is None:
                    ax.set_title(panel.title)
                else:
                    ax.set_title(panel.title, color=panel.color, fontweight="bold")
            for ax in axes.flat[len(self.panels) :]:
                ax.set_axis_off()
            if self.share and len(self.panels) < rows * columns:  # the axis above a gap keeps its numbers
                for ax in axes[-2][len(self.panels) % columns :] if rows > 1 else ():
                    ax.xaxis.set_tick_params(labelbottom=True)
            figure.suptitle(wrapped(self.title, size[0]), fontsize="medium")
            if self.legend:  # it stands where a label of the whole would
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
        """Draw every panel by itself, without title and legend, with the limits that it has in the whole."""
        limits: Any = None
        if self.share and len(self.panels) > 1:
            ax = self.whole.axes[0]
            limits = ax.get_xlim(), ax.get_ylim()
        for panel in self.panels:
            with figures() as new:
                figure, axes = new(1, 1, (PART, self.height))
                ax = axes.flat[0]
                panel.draw(ax)
                if limits is not None:
                    ax.set(xlim=limits[0], ylim=limits[1])
                ax.set_xlabel(wrapped(self.xlabel, PART - 1))
                ax.set_ylabel(self.ylabel)
            yield panel, figure


def wrapped(text: str, width: float) -> str:
    """Break lines that do not fit into so many inches."""
    return "\n".join(fill(line, max(24, int(13 * width))) for line in text.splitlines())
