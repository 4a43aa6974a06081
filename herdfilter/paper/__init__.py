"""The five figures of Wolf and Baum, "Continuous Herded Gibbs Sampling" (arXiv:2106.06430), from fresh computation.

A figure is a module of its own with four functions: ``compute(seed, quick)`` gives a result, ``draw(result)`` a matplotlib
figure, ``table(result)`` the table for the terminal beside what the paper states, ``numbers(result)`` all that is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from herdfilter._checks import check_count, one_of
from herdfilter.plotting.style import save

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Reproduction", "reproduce"]

FIGURES = {
    "fig1": "Fig. 1: points from a mixture of five Gaussians, sigma_k = 0.5",
    "fig2": "Fig. 2: the herding weight function of one coordinate",
    "fig3": "Fig. 3: herding error and L2 error against the number of points, random mixtures",
    "fig4": "Fig. 4: a mixture on which the published recursion converges, and one on which it stalls",
    "fig5": "Fig. 5: computing time per point against the dimension, sigma_k = 0.1",
}
NOT_STATED = "not stated"  # what the column "paper" says where no source at hand gives the paper's value


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One figure of the paper, computed anew.

    Attributes
    ----------
    name, title : str
    figure : matplotlib.figure.Figure
    table : pandas.DataFrame
        The comparison, in a few lines; its last column is what the paper states.
    numbers : pandas.DataFrame
        Everything the figure shows.

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
    """Names of the figures asked for, in the paper's order; all of them for none or ``"all"``.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
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
        Fewer points, mixtures and dimensions: a look at the output in seconds.

    Raises
    ------
    ValueError
        If the name is unknown or the seed is not a non-negative integer.

    Examples
    --------
    >>> from herdfilter.paper import reproduce
    >>> reproduction = reproduce("fig2", quick=True)
    >>> reproduction.title
    'Fig. 2: the herding weight function of one coordinate'
    """
    one_of("figure", name, FIGURES)
    part = import_module(f"herdfilter.paper.{name}")
    result = part.compute(seed=check_count("seed", seed, 0, None), quick=quick)
    return Reproduction(name, FIGURES[name], part.draw(result), part.table(result), part.numbers(result))
