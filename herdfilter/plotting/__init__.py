"""Figures of a comparison, and pictures of points, mixtures and paths.

The figures are `matplotlib.figure.Figure` objects that belong to no window and no global state. The pictures, ``plot_...``,
take and return axes; shapes, dimensions and probabilities that do not fit raise ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from herdfilter._repr import listing_of
from herdfilter.pictures import plot_ellipse, plot_mixture, plot_points, plot_state_over_time, plot_track
from herdfilter.plotting import over_time, summaries
from herdfilter.plotting.drawing import Drawing, highest_error
from herdfilter.plotting.style import STYLES, Style, save, styles
from herdfilter.study.results import StudyResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "STYLES",
    "Style",
    "drawings",
    "error_over_particles",
    "error_over_seconds",
    "error_over_time",
    "plot_ellipse",
    "plot_mixture",
    "plot_points",
    "plot_state_over_time",
    "plot_track",
    "save_figures",
    "styles",
    "trajectory",
]
__dir__ = listing_of(globals())


def drawings(result: StudyResult) -> dict[str, Drawing]:
    """Return the figures of a study by the names of their files, without those that have nothing to show.

    The models of a family differ in units and lengths, so a family has no figure over time.

    Examples
    --------
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap"], particles=[20, 40], runs=1)
    >>> result = hf.study.engine.run_study(study)
    >>> plans = hf.plotting.drawings(result)
    >>> "error_over_particles" in plans, "sets_over_time" in plans
    (True, False)
    """
    import pandas as pd

    summary, unit = result.summary, result.study.scenario.unit
    plans: dict[str, Drawing | None] = {}
    if len(result.series):  # some filter finished a run
        highest = highest_error(result)
        steps = over_time.steps_at(result) if result.study.family is None else pd.DataFrame()
        plans = {
            "ratios": summaries.ratios_drawing(summary if result.models is None else result.models),
            "error_over_particles": summaries.particles_drawing(summary, unit, result.slopes, highest),
            "error_over_seconds": summaries.seconds_drawing(summary, unit, highest),
            "error_over_time": over_time.errors_drawing(result, steps),
            "sets_over_time": over_time.sets_drawing(result, steps),
            "gospa_parts": summaries.gospa_drawing(summary),
            "consistency": summaries.consistency_drawing(summary),
            **{f"{name}_over_time": over_time.squares_drawing(result, steps, name) for name in over_time.NORMALISED_SQUARES},
        }
    if result.trajectory.estimates:
        names = [name for name in result.study.filters if name in result.trajectory.estimates]
        plans["trajectory"] = over_time.trajectory_drawing(result, names)
    return {name: plan for name, plan in plans.items() if plan is not None}


def save_figures(result: StudyResult, folder: Path, plans: dict[str, Drawing] | None = None) -> list[Path]:
    """Write the figures of a study, or some of them, `plans`, into a folder as PNG and SVG, and return the paths.

    Examples
    --------
    >>> from pathlib import Path
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1)
    >>> result = hf.study.engine.run_study(study)
    >>> plans = {"paths": hf.plotting.drawings(result)["trajectory"]}
    >>> [path.name for path in hf.plotting.save_figures(result, Path("."), plans)]
    ['paths.png', 'paths.svg']
    """
    paths = []
    for name, plan in (drawings(result) if plans is None else plans).items():
        files = [folder / f"{name}{suffix}" for suffix in (".png", ".svg")]
        save(plan.whole, *files)
        paths += files
    return paths


def error_over_time(result: StudyResult, n_particles: int | None = None) -> Figure:
    """Draw the error at every step, at the largest particle count unless given; ValueError if no run was finished there.

    Each filter has a panel with the median and the middle half of the runs; the first filter is grey.

    Examples
    --------
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap", "ukf"], particles=[20], runs=1)
    >>> result = hf.study.engine.run_study(study)
    >>> figure = hf.plotting.error_over_time(result)
    >>> len(figure.axes)  # a panel for each filter
    2
    """
    plan = over_time.errors_drawing(result, over_time.steps_at(result, n_particles))
    if plan is None:
        raise ValueError(f"n_particles: expected a count at which a run was finished, got {n_particles!r}")
    return plan.figure()


def error_over_particles(summary: pd.DataFrame, unit: str = "") -> Figure:
    """Draw the error against particle count, log-log: medians over runs with 95 % intervals (from six runs on).

    Parameters
    ----------
    summary : pandas.DataFrame
        As `herdfilter.study.summarise` returns it.
    unit : str
        Unit of the error.

    Examples
    --------
    >>> table = hf.compare("linear_gaussian", ["bootstrap"], particles=[20, 40], runs=1)
    >>> figure = hf.plotting.error_over_particles(hf.study.summarise(table))
    >>> len(figure.axes)  # against the truth, and against the exact posterior
    2
    """
    return summaries.particles_drawing(summary, unit).figure()


def error_over_seconds(summary: pd.DataFrame, unit: str = "") -> Figure:
    """Draw the error against wall-clock time per step, log-log: medians over runs with 95 % intervals.

    Rings mark the Pareto front: no other filter and particle count is both faster and more accurate.

    Examples
    --------
    >>> table = hf.compare("linear_gaussian", ["bootstrap"], particles=[20, 40], runs=1)
    >>> figure = hf.plotting.error_over_seconds(hf.study.summarise(table))
    >>> figure.axes[0].get_xscale()
    'log'
    """
    return summaries.seconds_drawing(summary, unit).figure()


def trajectory(result: StudyResult, names: Sequence[str] | None = None) -> Figure:
    """Draw the first run, a panel for each filter: truth, estimates and particles; with many targets, detections.

    Unless `names` of filters are given, these are the first one and the best of the others, by median error.

    Examples
    --------
    >>> study = hf.study.plan.plan_study("linear_gaussian", ["bootstrap"], particles=[20], runs=1)
    >>> result = hf.study.engine.run_study(study)
    >>> figure = hf.plotting.trajectory(result)
    >>> len(figure.axes)
    1
    """
    return over_time.trajectory_drawing(result, names).figure()
