"""Style of every figure: colours of the filters, letters and grids, logarithmic axes, and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, QUIET, FAINT = "#1b1b1b", "#8f8f8f", "#dedede"
"""Colours: truth and letters; things to compare with; grids and bands."""


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
        """Keywords for a line with markers, which are seen equally well."""
        size = {"*": 11, "P": 8, "X": 8}.get(self.marker, 6.5)
        return {**self._asdict(), "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.6}


_RC: Any = {
    "figure.constrained_layout.use": True,
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), QUIET),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "svg.hashsalt": "herdfilter",  # the same figure is the same file
}


@contextmanager
def figures() -> Iterator[Callable[..., tuple[Figure, Any]]]:
    """Set the style and yield a function (rows, columns, size, ...) -> figure without a window, array of axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    def new(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
        figure = Figure(figsize=size)
        return figure, figure.subplots(rows, columns, squeeze=False, **options)

    with mpl.rc_context(_RC):
        yield new


def save(figure: Figure, *paths: Path) -> None:
    """Write a figure into files; equal figures give equal files."""
    with figures(), laid_out(figure):
        for path in paths:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


@contextmanager
def laid_out(figure: Figure) -> Iterator[None]:
    """Lay a figure out once for all files written inside the block; otherwise every file would draw it twice."""
    import matplotlib as mpl

    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    with mpl.rc_context({"figure.constrained_layout.use": False}):  # writing a file would turn it on again
        figure.set_layout_engine(None)
        yield


def log_axis(ax: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5; at fewer or more places if these do not suit."""
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
    """Return round numbers between two positive ones, three to seven if possible."""
    low, high = sorted((low, high))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for mantissas in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        stride = max(1, math.ceil((last - first) / 6)) if mantissas == (1,) else 1
        found = [float(f"{m}e{k}") for k in range(first, last + 1) if k % stride == 0 for m in mantissas]
        found = [value for value in found if low <= value <= high]
        if len(found) > 2:
            return found
    # The limits differ by less than a factor of two: even steps.
    step = 10 ** math.floor(math.log10(high - low)) / 2 if high > low else 1.0
    step *= math.ceil((high - low) / step / 5)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def legend(figure: Figure, ax: Axes) -> None:
    """Put the legend of one of the axes below the figure, for all axes."""
    handles, names = ax.get_legend_handles_labels()
    width = figure.get_figwidth() / 1.7  # inches that an entry takes
    figure.legend(handles, names, loc="outside lower center", ncols=max(1, min(len(names), int(width))))


# The hue says how points are drawn: blue kernel herding, orange and brown herded Gibbs, green ranked and quantile points,
# red the default, grey random, black quasi-random, mauve Kalman filters. Marker and shade say where. Pale and dotted: the
# random counterpart of a herded filter. Nothing is dashed: dashes are for what filters are compared with. The colours were
# found by search: of the filters that a scenario compares, any two differ by 12 in CAM02-UCS or more, in each kind of colour
# vision, on white and mirrored on black (`tests/plotting/test_colours.py`).
GREY, BLACK, RED, GREEN, MAUVE = "#6b6b6b", "#000000", "#a51e3c", "#69965a", "#a587a5"
BLUE, SKY, NAVY, ORANGE, BROWN = "#0072b2", "#3c96e1", "#001e87", "#d55e00", "#4b3c00"
PALE = "#8a8a8a"
STYLES = {
    name: Style(color, marker, ":" if color == PALE else "-")
    for color, filters in {
        GREY: "X bootstrap, X lmb-bootstrap, D guided",
        BLACK: "* sqmc, D augmented-sobol, p s2kf",
        RED: "P auto, P lmb-auto",
        BLUE: "o herded-kh, p guided-augmented-gauss-kh, d ledh-weighted",
        SKY: "^ mixture-kh, ^ lmb-bp, p ledh",
        NAVY: "D augmented-kh, d augmented-gauss-kh",
        ORANGE: "s herded-chg, s lmb-herded-gibbs, d augmented-chg",
        BROWN: "v mixture-chg, P rb-auto, p mkf, o edh, d edh-weighted",
        GREEN: "> ranked, o herded-quantile, h kalman-mixture-quantile, p enkf, v auxiliary, X rb-bootstrap",
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
    vivid = (BLUE, ORANGE, GREEN, RED, SKY, BROWN, NAVY, MAUVE)
    free = [color for color in vivid if color not in used] or list(vivid)
    others = [name for name in names if name not in STYLES]
    own = {name: Style(free[i % len(free)], "<8H"[i % 3], "-") for i, name in enumerate(others)}
    return {name: own.get(name) or STYLES[name] for name in names}


def mirrored(color: str) -> str:
    """Return a colour "#rrggbb" as dark pages show it: the same hue, with light and dark exchanged.

    It is what ``filter: invert(1) hue-rotate(180deg)`` of CSS makes of it (Filter Effects Module Level 1), so that pictures
    and text of one page agree.

    Examples
    --------
    >>> from herdfilter.plotting.style import mirrored
    >>> mirrored("#ffffff"), mirrored("#0072b2")
    ('#000000', '#42b4f4')
    """
    import numpy as np

    inverse = 1 - np.frombuffer(bytes.fromhex(color[1:]), np.uint8) / 255
    turned = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]]) @ inverse
    return "#" + np.round(255 * np.clip(turned, 0, 1)).astype(np.uint8).tobytes().hex()


def dimension_label(labels: tuple[str, ...], dim: int) -> str:
    """Return the label of a dimension of the state."""
    return labels[dim] if dim < len(labels) else f"state {dim + 1}"
