"""Figures of a comparison, and pictures of points, mixtures and paths.

The figures are `matplotlib.figure.Figure` objects that belong to no window and no global state. The pictures, ``plot_...``,
take and return axes; shapes, dimensions and probabilities that do not fit raise ValueError.
"""

from __future__ import annotations

from pathlib import Path

from herdfilter._repr import listing_of
from herdfilter.pictures import (
    plot_ellipse,
    plot_mixture,
    plot_points,
    plot_state_over_time,
    plot_track,
)
from herdfilter.plotting import over_time, summaries
from herdfilter.plotting.drawing import Drawing
from herdfilter.plotting.style import STYLES, Style, save, styles
from herdfilter.study.results import StudyResult

__all__ = [
    "STYLES",
    "Style",
    "drawings",
    "plot_ellipse",
    "plot_mixture",
    "plot_points",
    "plot_state_over_time",
    "plot_track",
    "save_figures",
    "styles",
]
__dir__ = listing_of(globals())


def drawings(result: StudyResult) -> dict[str, Drawing]:
    """Return the figures of a study by the names of their files, without those that have nothing to show.

    The models of a family differ in units and lengths, so a family has no figure over time.

    Examples
    --------
    >>> from herdfilter.study.engine import run_study
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap"], particles=[20, 40], runs=1)
    >>> result = run_study(study)
    >>> plans = hf.plotting.drawings(result)
    >>> "error_over_particles" in plans, "sets_over_time" in plans
    (True, False)
    """
    summary = result.summary
    plans: dict[str, Drawing | None] = {}
    if len(result.series):  # some filter finished a run
        plans = {
            "ratios": summaries.ratios_drawing(summary if result.models is None else result.models),
            **summaries.cost_drawings(result),
            "gospa_parts": summaries.gospa_drawing(summary),
            "consistency": summaries.consistency_drawing(summary),
            **(over_time.series_drawings(result) if result.study.family is None else {}),
        }
    if result.trajectory.estimates:
        plans["trajectory"] = over_time.trajectory_drawing(result)
    return {name: plan for name, plan in plans.items() if plan is not None}


def save_figures(
    result: StudyResult, folder: Path, plans: dict[str, Drawing] | None = None
) -> list[Path]:
    """Write the figures of a study, or some of them, `plans`, into a folder as PNG and SVG, and return the paths.

    Examples
    --------
    >>> from pathlib import Path
    >>> from herdfilter.study.engine import run_study
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1)
    >>> result = run_study(study)
    >>> plans = {"paths": hf.plotting.drawings(result)["trajectory"]}
    >>> [path.name for path in hf.plotting.save_figures(result, Path("."), plans)]
    ['paths.png', 'paths.svg']
    """
    paths = []
    for name, plan in (drawings(result) if plans is None else plans).items():
        # PNG for documents and screens, SVG for print and editing.
        files = [folder / f"{name}{suffix}" for suffix in (".png", ".svg")]
        save(plan.figure, *files)
        paths += files
    return paths
