"""Figures over time: errors, consistency and distances of sets at every step, and the paths of the first run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from herdfilter._checks import Array
from herdfilter.pictures import plot_track
from herdfilter.plotting.drawing import (
    Drawing,
    Panel,
    error_label,
    highest_error,
    highest_ratio,
    path_limits,
)
from herdfilter.plotting.style import INK, QUIET, VIVID, dimension_label, log_axis, styles
from herdfilter.study import results
from herdfilter.study.columns import BY_NAME, error_measure
from herdfilter.study.scenario import Scenario
from herdfilter.study.summary import over_time

# Largest number of steps of a one-dimensional trajectory that are drawn.
LONGEST_WINDOW = 30
# Number of times at which particles are drawn along a path in the plane.
PARTICLE_TIMES = 6

SENSOR_ATTRIBUTES = ("sensors", "sensor", "radar", "landmarks", "beacons")
"""Attributes of models that hold the positions of sensors."""

SENSOR_AT_ORIGIN = {"BearingsOnly": "sensor", "CoordinatedTurn": "radar"}
"""Class of a model whose only sensor stands at the origin -> name of the sensor."""


def series_drawings(result: results.StudyResult) -> dict[str, Drawing | None]:
    """Return the figures of the series at the largest particle count, with a panel for each filter that has values.

    Those that no filter has values for are None.
    """
    n = max(result.study.particles)
    steps = over_time({key: values for key, values in result.series.items() if key[1] == n})
    if steps.empty:
        return {}
    times = result.trajectory.recording.times
    width = max(1, len(times) // 12) | 1  # odd, so that the window is centred
    runs = f"of {result.study.runs} runs, n = {n}"
    measure = error_measure(steps)
    first = steps["filter"].iloc[0]
    largest_error = highest_error(result)
    looks = styles(result.study.filters)

    def smoothed(values: pd.Series[float]) -> pd.Series[float]:
        return values.rolling(width, center=True, min_periods=1).mean()

    # The first filter's errors are drawn in every panel for comparison.
    first_errors = steps[f"{measure}_median"][steps["filter"] == first]
    baseline = smoothed(first_errors.clip(upper=largest_error))

    def draw_errors(rows: pd.DataFrame, color: str, ax: Axes) -> None:
        median = rows[f"{measure}_median"]
        log_axis(ax, "y")
        ax.plot(times, median, color=color, linewidth=0.8, alpha=0.55)
        ends = rows[f"{measure}_low"], rows[f"{measure}_high"]
        ax.fill_between(times, *ends, color=color, alpha=0.16, linewidth=0)
        ax.plot(times, baseline, color=QUIET)
        ax.plot(times, smoothed(median), color=color, linewidth=2)

    def draw_cardinality(rows: pd.DataFrame, color: str, ax: Axes) -> None:
        ax.axhline(0, color=INK, linewidth=0.8)
        ax.fill_between(times, rows["cardinality"], color=color, alpha=0.25, linewidth=0)
        ax.plot(times, smoothed(rows["cardinality"]), color=color, linewidth=2)

    def draw_squares(name: str, rows: pd.DataFrame, color: str, ax: Axes) -> None:
        log_axis(ax, "y")
        band = rows[f"{name}_band_low"], rows[f"{name}_band_high"]
        ax.fill_between(times, *band, color=QUIET, alpha=0.3, linewidth=0)
        ax.axhline(1, color=INK, linewidth=0.8)
        ax.plot(times, rows[name].where(rows[name] > 0), color=color, linewidth=1.2)

    def drawing(
        column: str, draw: Any, title: str, label: str, highest: float = np.inf
    ) -> Drawing | None:
        # The value and the ends of its band are clipped alike.
        columns = [name for name in steps.columns if name.startswith(column)]
        clipped = steps.assign(**steps[columns].clip(upper=highest))
        panels = []
        for name, rows in clipped.groupby("filter", sort=False):
            if rows[columns].notna().any(axis=None):
                color = looks[str(name)].color
                panels.append(Panel(str(name), partial(draw, rows, color), color))
        xlabel = result.study.scenario.time_label
        options: Any = {"xlabel": xlabel, "ylabel": label, "highest": highest}
        return Drawing(tuple(panels), (3.2, 2.1), title=title, **options) if panels else None

    squares = {
        f"{name}_over_time": drawing(
            name,
            partial(draw_squares, name),
            f"{name.upper()}, mean {runs}; grey: 95 % chi-square band of a filter with the right covariances",
            f"{name.upper()} / degrees of freedom",
            highest_ratio(steps.groupby("filter")[name].median()),
        )
        for name in ("nees", "nis")
    }
    return {
        "error_over_time": drawing(
            measure,
            draw_errors,
            f"{BY_NAME[measure].title}, median {runs} (thin), its mean over {width} steps (thick), "
            f"middle half of the runs (band), {first} in grey",
            error_label(result.study.scenario.unit, measure),
            largest_error,
        ),
        "sets_over_time": drawing(
            "cardinality",
            draw_cardinality,
            f"Number of estimates minus number of targets, mean {runs}: "
            f"at every step (filled), over {width} steps (line)",
            "estimates \u2212 targets",
        ),
        **squares,
    }


def is_over_time(result: results.StudyResult) -> bool:
    """Return True if the first run is drawn against time, False if in the plane."""
    recording = result.trajectory.recording
    return not recording.many and (
        result.study.scenario.view == "time" or recording.truth.shape[-1] == 1
    )


def first_run_limits(
    result: results.StudyResult, dims: Sequence[int], steps: slice = slice(None)
) -> tuple[Array, Array]:
    """Return limits (k,) of pictures of the first run in some dimensions of the state, the same for all filters."""
    first_run = result.trajectory
    truth = first_run.recording.truth[steps][..., dims]
    truth = truth[np.isfinite(truth).all(axis=-1)]
    states = sensors = truth[:0]
    if not first_run.recording.many:
        paths = [*first_run.estimates.values(), *first_run.particles.values()]
        states = np.concatenate([x[steps][..., dims].reshape(-1, len(dims)) for x in paths])
        if len(dims) == 2 and (named := scenario_sensors(result.study.scenario)):
            sensors = named[1]
    return path_limits(truth, states, sensors)


def trajectory_drawing(result: results.StudyResult) -> Drawing:
    """Return the figure of the first run, a panel for each filter."""
    first_run = result.trajectory
    scenario = result.study.scenario
    labelled = first_run.recording.many
    timed = is_over_time(result)
    dims = [0] if timed else list(scenario.plane)
    low, high = first_run_limits(result, dims, slice(LONGEST_WINDOW if timed else None))
    draw = _time_panel if timed else _labels_panel if labelled else _plane_panel

    def draw_panel(name: str, color: str, ax: Axes) -> None:
        draw(result, name, color, ax)
        ax.set_ylim(low[-1], high[-1])
        if not timed:
            ax.set(xlim=(low[0], high[0]), aspect="equal")

    panels = []
    for name, look in styles(result.study.filters).items():
        if name in first_run.estimates:
            # Of many targets colours distinguish labels, not filters.
            color = "" if labelled else look.color
            title = f"{name}, n = {first_run.n_particles}"
            panels.append(Panel(title, partial(draw_panel, name, color), color))
    *xlabel, ylabel = (dimension_label(scenario.labels, dim) for dim in dims)
    return Drawing(
        tuple(panels),
        (5.4, 3.2) if timed else (4.8, 4.6),
        columns=2 if timed else 3,
        xlabel=xlabel[0] if xlabel else scenario.time_label,
        ylabel=ylabel,
        legend=True,
    )


def _time_panel(result: results.StudyResult, name: str, color: str, ax: Axes) -> None:
    """Draw the first dimension against time."""
    first_run = result.trajectory
    steps = slice(LONGEST_WINDOW)
    times = first_run.recording.times[steps]
    _scatter_particles(ax, first_run, name, steps, [0], color=color, marker="_")
    ax.plot(times, first_run.recording.truth[steps, 0], "x", color=INK, markersize=5, label="truth")
    if first_run.reference is not None:
        mean = first_run.reference.means[steps, 0]
        (line,) = ax.plot(times, mean, "--", color=INK, linewidth=1)
        line.set_label("reference posterior mean")
    estimate = first_run.estimates[name][steps, 0]
    ax.plot(times, estimate, color=color, linewidth=1.8, label="estimate")


def _plane_panel(result: results.StudyResult, name: str, color: str, ax: Axes) -> None:
    """Draw the path in the plane, with particles at a few times."""
    first_run = result.trajectory
    plane = result.study.scenario.plane
    truth = first_run.recording.truth[:, plane]
    # Particles at every step would hide the path.
    moments = np.unique(np.linspace(0, len(truth) - 1, PARTICLE_TIMES).astype(int))
    _mark_detections(ax, first_run.positions)
    _scatter_particles(ax, first_run, name, moments, plane, color=color, marker=".")
    plot_track(truth, None, ax, ends=True, color=INK, linewidth=1, linestyle="--", label="truth")
    plot_track(first_run.estimates[name], None, ax, plane, color=color, label="estimate")
    ax.plot(*truth[moments].T, "o", color=INK, markersize=4, label="when the particles are shown")
    if sensors := scenario_sensors(result.study.scenario):
        mark_sensors(ax, *sensors)


def _scatter_particles(
    ax: Axes,
    first_run: results.Trajectory,
    name: str,
    steps: Any,
    dims: Sequence[int],
    **style: Any,
) -> None:
    """Draw the particles of a filter at some steps, heavy ones more opaque; as pixels, since there are thousands."""
    if name in first_run.particles:
        particles = first_run.particles[name][steps]
        y = particles[..., dims[-1]]
        times = np.broadcast_to(first_run.recording.times[steps, None], y.shape)
        x = particles[..., dims[0]] if len(dims) > 1 else times
        n = y.shape[1]
        weights = first_run.weights.get(name)
        relative_weights = np.ones(y.shape) if weights is None else n * weights[steps]
        # No particle is invisible, and none hides all others.
        alpha: Any = np.clip(0.5 * relative_weights, 0.06, 0.85).ravel()
        ax.scatter(x.ravel(), y.ravel(), s=34, alpha=alpha, linewidths=1, rasterized=True, **style)


def _labels_panel(result: results.StudyResult, name: str, _: str, ax: Axes) -> None:
    """Draw the true paths of many targets, estimates in the colours of their labels, and detections."""
    first_run = result.trajectory
    plane = result.study.scenario.plane
    _mark_detections(ax, first_run.positions)
    for path in first_run.recording.truth[..., plane].swapaxes(0, 1):
        path = path[np.isfinite(path).all(axis=1)]
        plot_track(path, None, ax, ends=True, color=INK, linewidth=1, label="truth")
    label = "estimates, a colour for each label"
    paths = first_run.estimates[name][..., plane].swapaxes(0, 1)
    for color, path in zip(cycle(VIVID), paths, strict=False):
        ax.plot(*path.T, ".-", color=color, markersize=3, linewidth=1, label=label)


def _mark_detections(ax: Axes, positions: Sequence[Array] | None) -> None:
    """Draw the detections of all scans as light dots if they are positions."""
    if positions is not None:
        (dots,) = ax.plot(*np.concatenate(positions).T, ".", color=QUIET, label="detections")
        dots.set(markersize=1.5, alpha=0.6, rasterized=True)


def mark_sensors(ax: Axes, name: str, positions: Array) -> None:
    """Mark the positions (m, 2) of sensors."""
    ax.plot(*positions.T, "^", color=INK, markersize=8, mec="white", label=name, zorder=3)


def model_sensors(model: Any) -> tuple[str, Array] | None:
    """Return the name of a model's sensors and their positions (m, 2) in the plane, or None if the model has none."""
    if type(model).__name__ in SENSOR_AT_ORIGIN:
        # Such a model has no attribute for the position.
        return SENSOR_AT_ORIGIN[type(model).__name__], np.zeros((1, 2))
    for name in SENSOR_ATTRIBUTES:
        positions = getattr(model, name, None)
        if isinstance(positions, np.ndarray):
            return name, np.atleast_2d(positions)[:, :2]
    return None


def scenario_sensors(scenario: Scenario) -> tuple[str, Array] | None:
    """Return the sensors of a scenario with a model of the package; a report runs no code that a scenario names."""
    is_packaged = str(scenario.model["type"]).isidentifier() and not scenario.imports
    if not is_packaged or scenario.models is not None or scenario.data is not None:
        return None
    return model_sensors(scenario.build_model())
