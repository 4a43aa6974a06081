"""Style of every figure: colours of the filters, of text and grids, logarithmic axes, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, LogLocator

INK = "#1b1b1b"  # colour of the truth and of text
QUIET = "#8f8f8f"  # colour of things to compare with
FAINT = "#dedede"  # colour of grids

LETTER_WIDTH = 0.075  # in inches, of a legend


class Style(NamedTuple):
    """Colour, marker and line of a filter or sampler, the same in every figure.

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
        """Keywords for a line with markers that are equally visible."""
        size = {"*": 11, "P": 8, "X": 8}.get(self.marker, 6.5)
        return {
            **self._asdict(),
            "markersize": size,
            "markeredgecolor": "white",
            "markeredgewidth": 0.6,
        }


@contextmanager
def figures() -> Iterator[Callable[..., tuple[Figure, Any]]]:
    """Set the style and yield a function (rows, columns, size, ...) -> figure without a window, array of axes."""

    def new(
        rows: int, columns: int, size: tuple[float, float], **options: Any
    ) -> tuple[Figure, Any]:
        figure = Figure(figsize=size)
        return figure, figure.subplots(rows, columns, squeeze=False, **options)

    with style.context("herdfilter.plotting.look"):
        yield new


def save(figure: Figure, *paths: Path) -> None:
    """Write a figure into files; equal figures give equal files, because no date is written."""
    with laid_out(figure):
        for path in paths:
            figure.savefig(
                path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None
            )


@contextmanager
def laid_out(figure: Figure) -> Iterator[None]:
    """Set the style and lay a figure out once for all files written inside the block; each would do so otherwise."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    with figures(), mpl.rc_context({"figure.constrained_layout.use": False}):
        # Writing a file would turn it on again.
        figure.set_layout_engine(None)
        yield


def log_axis(ax: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers, also between the decades if there are at most two."""
    ax.set(**{f"{which}scale": "log"})
    axis = getattr(ax, f"{which}axis")
    axis.set_major_formatter(PlainNumbers())
    axis.set_minor_locator(LogLocator(subs=(2, 3, 5, 7)))
    axis.set_minor_formatter(PlainNumbers(minor_thresholds=(2, 0.5)))


class PlainNumbers(LogFormatter):
    """Labels without powers in mathematical type, which take more time than all else of a figure."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the number, if its tick has a label."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """Put one legend for some axes above the figure."""
    entries = {
        name: handle
        for ax in axes
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    entry_width = LETTER_WIDTH * (8 + max(map(len, entries)))
    columns = max(1, min(len(entries), int(figure.get_figwidth() / entry_width)))
    figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=columns)


# The hue tells how points are drawn; marker and shade tell from which mixture. A random counterpart of a herded filter is
# pale and dotted. Nothing is dashed: dashes are for references. The colours were found by search: of the filters that a
# scenario compares, any two differ by 12 in CAM02-UCS or more, in each kind of colour vision, on white and mirrored on black
# (`tests/plotting/test_colours.py`).
GREY = "#6b6b6b"  # random
BLACK = "#000000"  # quasi-random
RED = "#a51e3c"  # the default
GREEN = "#69965a"  # ranked and quantile points
MAUVE = "#a587a5"  # Kalman filters
BLUE = "#0072b2"  # kernel herding, as the next two
SKY = "#3c96e1"
NAVY = "#001e87"
ORANGE = "#d55e00"  # herded Gibbs, as brown
BROWN = "#4b3c00"
PALE = "#8a8a8a"  # random counterparts
VIVID = [BLUE, ORANGE, GREEN, RED, SKY, BROWN, NAVY, MAUVE]
STYLES = {
    name: Style(color, marker, ":" if color == PALE else "-")
    for color, filters in {
        GREY: "X bootstrap, X lmb-bootstrap, D guided",
        BLACK: "* sqmc, h sqmc-guided, D augmented-sobol, p s2kf",
        RED: "P auto, P lmb-auto",
        BLUE: "o herded-kh, p guided-augmented-gauss-kh, d ledh-weighted",
        SKY: "^ mixture-kh, ^ lmb-bp, p ledh",
        NAVY: "D augmented-kh, d augmented-gauss-kh",
        ORANGE: "s herded-chg, s lmb-herded-gibbs, d augmented-chg",
        BROWN: "v mixture-chg, P rb-auto, p mkf, o edh, d edh-weighted",
        GREEN: "> ranked, < ranked-unguided, o herded-quantile, h kalman-mixture-quantile, p enkf, v auxiliary"
        ", X rb-bootstrap",
        MAUVE: "p ukf, p lmb-ukf, d ekf, h ckf, s imm, 8 kalman-mixture-kh",
        PALE: "o herded-random, ^ mixture-random, D augmented-random, P auto-random, X auto-random-modes"
        ", s lmb-random-gibbs",
    }.items()
    for marker, name in map(str.split, filters.split(","))
}
"""Name of a filter of the catalogue -> its style; a tracker has the style of the filter or sampler inside it."""


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Return the style of every filter: the catalogue's own, and free colours for other names.

    Examples
    --------
    >>> styles = hf.plotting.styles(["bootstrap", "my-own"])
    >>> styles["bootstrap"].color, styles["my-own"].color != styles["bootstrap"].color
    ('#6b6b6b', True)
    """
    names = list(names)
    used = {STYLES[name].color for name in names if name in STYLES}
    free = [color for color in VIVID if color not in used] or VIVID
    uncatalogued = [name for name in names if name not in STYLES]
    looks = STYLES | {
        name: Style(free[i % len(free)], "<8H"[i % 3], "-") for i, name in enumerate(uncatalogued)
    }
    return {name: looks[name] for name in names}


def dimension_label(labels: tuple[str, ...], dim: int) -> str:
    """Return the label of a dimension of the state."""
    return labels[dim] if dim < len(labels) else f"state {dim + 1}"
