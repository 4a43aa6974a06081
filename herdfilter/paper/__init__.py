"""The five figures of Wolf and Baum, "Continuous Herded Gibbs Sampling" (arXiv:2106.06430), from fresh computation.

A figure is a module with a `TITLE` and ``reproduce(seed, quick)``, which takes fewer points, mixtures and dimensions if
`quick`.
"""

from __future__ import annotations

from typing import Any

from herdfilter._checks import check_count, one_of
from herdfilter.paper import fig1, fig2, fig3, fig4, fig5
from herdfilter.paper.common import Reproduction

__all__ = ["Reproduction", "reproduce"]

FIGURES: dict[str, Any] = {"fig1": fig1, "fig2": fig2, "fig3": fig3, "fig4": fig4, "fig5": fig5}


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
    module = FIGURES[one_of("figure", name, FIGURES)]
    reproduction: Reproduction = module.reproduce(check_count("seed", seed, 0, None), quick)
    return reproduction
