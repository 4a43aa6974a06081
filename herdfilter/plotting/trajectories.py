"""The first run: truth, estimates and particles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.pictures.figures import INK, Style
from herdfilter.plotting import sets
from herdfilter.plotting.drawing import Drawing, Panel
from herdfilter.plotting.limits import path_limits
from herdfilter.plotting.sensors import of_scenario
from herdfilter.plotting.style import dimension_label, styles
from herdfilter.study.columns import error_measure
from herdfilter.study.results import StudyResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_WINDOW = 30  # steps of a one-dimensional trajectory that still read well
SNAPSHOTS = 6  # times at which the particles of a path in the plane are drawn


def over_time(result: StudyResult) -> bool:
    """Whether a trajectory is drawn against time."""
    return result.study.scenario.view == "time" or result.trajectory.recording.truth.shape[-1] == 1


def paths(result: StudyResult, names: Sequence[str] | None = None) -> Drawing:
    """Truth, estimates and particles, one panel per filter; of the first filter and the best of the others unless named."""
    shown, scenario = result.trajectory, result.study.scenario
    look = styles(result.study.filters)
    timed = over_time(result)
    dims = (0,) if timed else scenario.plane
    shown_names = list(names or first_and_best(result))
    if shown.recording.many:
        return sets.paths(result, shown_names)
    draw = _against_time if timed else _in_plane
    places = None if timed else of_scenario(scenario)
    limits = _limits(result, shown_names, dims, None if places is None else places[1])
    return Drawing(
        tuple(
            Panel(
                f"{name}, n = {shown.n_particles}",
                partial(draw, result, name, look[name], limits, places),
                look[name].color,
            )
            for name in shown_names
        ),
        ((9.0 if len(shown_names) < 3 else 5.4, 2.6) if timed else (4.8, 4.6)),
        columns=(1 if len(shown_names) < 3 else 2) if timed else 3,
        xlabel=scenario.time_label if timed else dimension_label(scenario.labels, dims[0]),
        ylabel=dimension_label(scenario.labels, dims[-1]),
        legend=True,
        height=2.9 if timed else 4.0,
    )


def first_and_best(result: StudyResult) -> list[str]:
    """Names of the first filter and the best of the others, by median error."""
    known = [name for name in result.study.filters if name in result.trajectory.estimates]
    summary = result.summary
    medians = summary[summary["n_particles"] == result.trajectory.n_particles].set_index("filter")
    ranked = medians[f"{error_measure(summary)}_median"].reindex(known[1:]).dropna().sort_values()
    return known[:1] + list(ranked.index[:1])


def _particles(ax: Axes, x: Any, y: Array, weights: Array | None, style: Style, **options: Any) -> None:
    """Draw particles, the heavier the more solid; as pixels, since there are thousands."""
    share = np.ones(np.shape(y)) if weights is None else weights * weights.shape[-1]
    alpha: Any = np.clip(0.5 * share, 0.06, 0.85).ravel()
    ax.scatter(
        np.broadcast_to(x, np.shape(y)).ravel(),
        np.ravel(y),
        color=style.color,
        alpha=alpha,
        rasterized=True,
        **options,
    )


def _limits(result: StudyResult, names: Sequence[str], dims: Sequence[int], places: Array | None) -> tuple[Array, Array]:
    """Limits of the axes in the dimensions drawn, from what is drawn of all filters."""
    shown, index = result.trajectory, list(dims)
    window = slice(LONGEST_WINDOW if over_time(result) else None)
    drawn = [shown.estimates[name][window][:, index] for name in names]
    clouds = [shown.particles[name][window] for name in names if name in shown.particles]
    drawn += [particles[..., index].reshape(-1, len(index)) for particles in clouds]
    if places is None:
        places = np.empty((0, len(index)))
    return path_limits(shown.recording.truth[window][:, index], np.concatenate(drawn), places)


Limits = tuple[Array, Array]
Places = tuple[str, Array] | None


def _against_time(result: StudyResult, name: str, style: Style, limits: Limits, places: Places, ax: Axes) -> None:
    """First dimension against time."""
    shown = result.trajectory
    window = slice(min(len(shown.recording), LONGEST_WINDOW))
    times = shown.recording.times[window]
    if name in shown.particles:
        weights = shown.weights[name][window] if name in shown.weights else None
        y = shown.particles[name][window, :, 0]
        _particles(ax, times[:, None], y, weights, style, marker="_", s=34, linewidths=1)
    ax.plot(times, shown.recording.truth[window, 0], "x", color=INK, markersize=5, label="truth")
    if shown.reference is not None:
        mean = shown.reference.means[window, 0]
        ax.plot(times, mean, color=INK, linewidth=1, linestyle="--", label="reference posterior mean")
    ax.plot(times, shown.estimates[name][window, 0], color=style.color, linewidth=1.8, label="estimate")
    ax.set_ylim(limits[0][0], limits[1][0])


def _in_plane(result: StudyResult, name: str, style: Style, limits: Limits, places: Places, ax: Axes) -> None:
    """Path in the plane of the scenario's two dimensions, with particles at a few times and the sensors."""
    shown, plane = result.trajectory, list(result.study.scenario.plane)
    truth = shown.recording.truth
    sets.mark_detections(ax, shown.positions)
    moments = np.unique(np.linspace(0, len(truth) - 1, SNAPSHOTS).astype(int))
    if name in shown.particles:
        weights = shown.weights[name][moments] if name in shown.weights else None
        particles = shown.particles[name][moments]
        _particles(ax, particles[..., plane[0]], particles[..., plane[1]], weights, style, marker="o", s=9, linewidths=0)
    ax.plot(*truth[:, plane].T, color=INK, linewidth=1.1, linestyle="--", label="truth")
    ax.plot(*shown.estimates[name][:, plane].T, color=style.color, linewidth=1.6, label="estimate")
    ax.plot(*truth[moments][:, plane].T, "o", color=INK, markersize=4, label="when the particles are shown")
    mark_ends(ax, truth[:, plane])
    if places is not None:
        mark_sensors(ax, *places)
    ax.set(xlim=(limits[0][0], limits[1][0]), ylim=(limits[0][1], limits[1][1]))
    ax.set_aspect("equal")


def mark_ends(ax: Axes, path: Array, color: str = INK) -> None:
    """Mark the start of a path (T, 2) by a ring and its end by a square."""
    ax.plot(*path[0], "o", color=color, markerfacecolor="none", markersize=9, mew=1.4, ls="none", label="start")
    ax.plot(*path[-1], "s", color=color, markerfacecolor="none", markersize=8, mew=1.4, ls="none", label="end")


def mark_sensors(ax: Axes, name: str, places: Array) -> None:
    """Mark the places (m, 2) of sensors."""
    several = name + "s" * (len(places) > 1)
    ax.plot(*places.T, "^", color=INK, markersize=8, mec="white", mew=0.8, ls="none", label=several, zorder=3)
