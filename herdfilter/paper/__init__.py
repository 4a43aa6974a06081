"""The five figures of Wolf and Baum, "Continuous Herded Gibbs Sampling" (arXiv:2106.06430), from fresh computation.

A figure is a module with one main function of `seed` and `quick`, which takes fewer points, mixtures and dimensions if
`quick`.
"""

from __future__ import annotations

from collections.abc import Callable

from herdfilter._checks import check_count, one_of
from herdfilter.paper.common import Reproduction
from herdfilter.paper.fig1 import sampled_points
from herdfilter.paper.fig2 import weight_function
from herdfilter.paper.fig3 import errors_of_prefixes
from herdfilter.paper.fig4 import stalling_recursion
from herdfilter.paper.fig5 import times_per_point

__all__ = ["Reproduction", "reproduce"]

FIGURES: dict[str, Callable[[int, bool], Reproduction]] = {
    "fig1": sampled_points,
    "fig2": weight_function,
    "fig3": errors_of_prefixes,
    "fig4": stalling_recursion,
    "fig5": times_per_point,
}


def figure_names(names: tuple[str, ...]) -> list[str]:
    """Return the requested names in the paper's order; all names for an empty tuple or ``"all"``."""
    # Unknown names are errors even beside ``all``.
    requested = {one_of("figure", name, [*FIGURES, "all"]) for name in names} or {"all"}
    return [name for name in FIGURES if name in requested or "all" in requested]


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
    figure = FIGURES[one_of("figure", name, FIGURES)]
    return figure(check_count("seed", seed, 0, None), quick)
