"""The five figures of Wolf and Baum, "Continuous Herded Gibbs Sampling" (arXiv:2106.06430), from fresh computation.

A figure is a class with a `title` and four methods: ``compute(seed, quick)`` makes it, with fewer points, mixtures and
dimensions if `quick`; ``draw`` gives a matplotlib figure, ``table`` the table for the terminal beside the paper's values,
``numbers`` everything that is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdfilter._checks import check_count, one_of
from herdfilter.paper.fig1 import HerdedPoints
from herdfilter.paper.fig2 import HerdingWeights
from herdfilter.paper.fig3 import ErrorCurves
from herdfilter.paper.fig4 import ConvergingAndStalling
from herdfilter.paper.fig5 import TimePerPoint
from herdfilter.plotting.style import save

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Reproduction", "reproduce"]

FIGURES: dict[str, Any] = {
    "fig1": HerdedPoints,
    "fig2": HerdingWeights,
    "fig3": ErrorCurves,
    "fig4": ConvergingAndStalling,
    "fig5": TimePerPoint,
}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One figure of the paper, computed anew.

    Attributes
    ----------
    name, title : str
    figure : matplotlib.figure.Figure
    table : pandas.DataFrame
        The comparison, in a few lines; its last columns hold the paper's values.
    numbers : pandas.DataFrame
        Everything that the figure shows.

    Examples
    --------
    >>> from herdfilter.paper import reproduce
    >>> reproduction = reproduce("fig2", quick=True)
    >>> reproduction.name, reproduction.table.columns[-1]
    ('fig2', 'paper')
    """

    name: str
    title: str
    figure: Figure
    table: pd.DataFrame
    numbers: pd.DataFrame

    def save(self, folder: Path) -> list[Path]:
        """Write the figure as PNG and SVG and the numbers as CSV into a folder; return the paths."""
        paths = [folder / f"{self.name}.{ending}" for ending in ("png", "svg", "csv")]
        save(self.figure, *paths[:2])
        self.numbers.to_csv(paths[2], index=False)
        return paths


def figure_names(names: tuple[str, ...]) -> list[str]:
    """Return the names asked for in the paper's order; all names for an empty tuple or ``"all"``."""
    asked = {one_of("figure", name, [*FIGURES, "all"]) for name in names} or {"all"}
    return [name for name in FIGURES if name in asked or "all" in asked]


def reproduce(name: str, seed: int = 0, quick: bool = False) -> Reproduction:
    """Compute and draw one figure.

    Parameters
    ----------
    name : {"fig1", "fig2", "fig3", "fig4", "fig5"}
    seed : int
        Root of the random mixtures and random draws.
    quick : bool
        Take fewer points, mixtures and dimensions: a look at the output in seconds.

    Examples
    --------
    >>> from herdfilter.paper import reproduce
    >>> reproduction = reproduce("fig2", quick=True)
    >>> reproduction.title
    'Fig. 2: the herding weight function of one coordinate'
    """
    figure = FIGURES[one_of("figure", name, FIGURES)].compute(check_count("seed", seed, 0, None), quick)
    return Reproduction(name, figure.title, figure.draw(), figure.table(), figure.numbers())
