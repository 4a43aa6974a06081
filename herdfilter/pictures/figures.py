"""What every figure of the package shares: letters and grids, logarithmic axes, and how a figure becomes a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, QUIET, FAINT = "#1b1b1b", "#8f8f8f", "#dedede"
"""Truth and letters, what is there for comparison, and grids and bands."""


class Style(NamedTuple):
    """How a filter or sampler is drawn, the same in every figure.

    Examples
    --------
    >>> from herdfilter.plotting import Style
    >>> style = Style("#0072B2", "o", "-")
    >>> style.color, style.marker, style.linestyle
    ('#0072B2', 'o', '-')
    """

    color: str
    marker: str
    linestyle: str

    @property
    def line(self) -> dict[str, Any]:
        """Keywords for a line with markers."""
        return {**self._asdict(), "markeredgecolor": "white", "markeredgewidth": 0.6}


_RC: Any = {
    "figure.constrained_layout.use": True,
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "svg.hashsalt": "herdfilter",  # the same figure is the same file
}


@contextmanager
def figures() -> Iterator[Any]:
    """Set the style, and give a function (rows, columns, size, ...) -> figure of no window and array of axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    def new(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
        figure = Figure(figsize=size)
        return figure, figure.subplots(rows, columns, squeeze=False, **options)

    with mpl.rc_context(_RC):
        yield new


def save(figure: Figure, *paths: Path) -> None:
    """Write a figure into files, equal figures as equal files."""
    with figures(), settled(figure):
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


@contextmanager
def settled(figure: Figure) -> Iterator[None]:
    """Lay a figure out once for all files that are made of it meanwhile; else each would have it drawn twice."""
    import matplotlib as mpl

    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    with mpl.rc_context({"figure.constrained_layout.use": False}):  # which a file that is written puts back
        figure.set_layout_engine(None)
        yield


def log_axis(ax: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5, or where these are too many or too few."""
    from matplotlib.ticker import FuncFormatter, Locator, NullLocator

    class Places(Locator):
        def __call__(self) -> Any:
            return self.tick_values(*self.axis.get_view_interval())  # type: ignore[union-attr]

        def tick_values(self, vmin: float, vmax: float) -> Any:
            return log_places(vmin, vmax)

    ax.set(**{f"{which}scale": "log"})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(Places())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+0", "e").replace("e+", "e")))
    axis.set_minor_locator(NullLocator())


def log_places(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, some three to seven of them where there is room."""
    low, high = sorted((low, high))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        stride = max(1, math.ceil((last - first) / 6)) if mantissas == (1,) else 1
        found = [float(f"{m}e{k}") for k in range(first, last + 1) if k % stride == 0 for m in mantissas]
        found = [value for value in found if low <= value <= high]
        if len(found) > 2:
            return found
    step = 10 ** math.floor(math.log10(high - low)) / 2 if high > low else 1.0  # less than a factor of two
    step *= math.ceil((high - low) / step / 5)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def legend(figure: Figure, ax: Axes) -> None:
    """Put the legend of one of the axes, for all of them, below the figure."""
    handles, names = ax.get_legend_handles_labels()
    width = figure.get_figwidth() / 1.7  # inches that an entry takes
    figure.legend(handles, names, loc="outside lower center", ncols=max(1, min(len(names), int(width))))
