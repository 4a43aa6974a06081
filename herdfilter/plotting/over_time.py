"""Figures over time: errors, consistency and distances of sets at every step, and the paths of the first run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.plotting.drawing import Drawing, Panel, error_label, highest_error, highest_ratio, path_limits, point_beyond
from herdfilter.plotting.style import INK, QUIET, Style, dimension_label, log_axis, styles
from herdfilter.study.columns import BY_NAME, SERIES, error_measure, error_measures
from herdfilter.study.results import StudyResult, Trajectory
from herdfilter.study.scenario import Scenario
from herdfilter.study.statistics import normalised_over_time
from herdfilter.study.summary import over_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NORMALISED_SQUARES = tuple(series.name for series in SERIES if series.over_time is normalised_over_time)
"""Names of the series of normalised squares: NEES and NIS."""

LONGEST_WINDOW = 30  # most steps drawn of a one-dimensional trajectory
PARTICLE_TIMES = 6  # number of times at which the particles of a path in the plane are drawn

LABEL_COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#B5179E", "#B97F00", "#6A3D9A"),
    *("#3392CC", "#8E2457", "#C466A0", "#5C7F00", "#A0522D", "#007C91"),
)
"""Colours of labels; they repeat."""

SENSOR_ATTRIBUTES = {"sensors": "sensor", "sensor": "sensor", "radar": "radar", "landmarks": "landmark", "beacons": "beacon"}
"""Attribute of a model -> name of the sensors whose places it holds."""

SENSOR_AT_ORIGIN = {"BearingsOnly": "sensor", "CoordinatedTurn": "radar"}
"""Model whose only sensor stands at the origin -> name of the sensor."""


def steps_at(result: StudyResult, n_particles: int | None = None) -> pd.DataFrame:
    """Return the series of all filters at one particle count, the largest unless given."""
    n = max(result.study.particles) if n_particles is None else n_particles
    return over_time({key: result.series[key] for key in result.series if key[1] == n})


def errors_drawing(result: StudyResult, steps: pd.DataFrame) -> Drawing | None:
    """Return the figure of the error at every step: a panel for each filter, the first one in grey; None without steps."""
    if steps.empty:
        return None
    measure = error_measures(steps)[0]
    groups = {str(name): rows for name, rows in steps.groupby("filter", sort=False)}
    times, look = result.trajectory.recording.times, styles(result.study.filters)
    width = max(1, len(times) // 12) | 1
    first = next(iter(groups))
    baseline = moving_mean(groups[first][f"{measure}_median"].to_numpy(), width)
    highest = highest_error(result)
    thick = f"mean of {width} steps (thick); " if width > 1 else ""

    def panel(name: str, ax: Axes) -> None:
        style = look[name]
        middle, low, high = (groups[name][f"{measure}_{end}"].to_numpy() for end in ("median", "low", "high"))
        log_axis(ax, "y")
        thin = {"linewidth": 0.8, "alpha": 0.55} if width > 1 else {"linewidth": 2}
        ax.plot(times, np.minimum(middle, highest), color=style.color, **thin)
        band = np.minimum(low, highest), np.minimum(high, highest)
        ax.fill_between(times, *band, color=style.color, alpha=0.16, linewidth=0)
        if name != first:
            ax.plot(times, np.minimum(baseline, highest), color=QUIET, linewidth=1.5)
        if width > 1:
            ax.plot(times, np.minimum(moving_mean(middle, width), highest), color=style.color, linewidth=2)
        point_beyond(ax, times, np.fmax(middle, high), highest, style.color, every=width)

    return Drawing(
        tuple(Panel(name, partial(panel, name), look[name].color) for name in groups),
        (3.2, 2.1),
        title=f"{BY_NAME[measure].title}, {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}\n"
        f"median (thin) and middle half of the runs; {thick}{first} in grey",
        xlabel=result.study.scenario.time_label,
        ylabel=error_label(result.study.scenario.unit, measure),
    )


def moving_mean(values: Array, width: int) -> Array:
    """Return the mean over a window of an odd number of steps, cut off at the ends; NaN are left out."""
    known, ones = np.isfinite(values), np.ones(width)
    count = np.convolve(known.astype(float), ones, "same")
    return np.convolve(np.where(known, values, 0.0), ones, "same") / np.where(count > 0, count, np.nan)


def squares_drawing(result: StudyResult, steps: pd.DataFrame, name: str) -> Drawing | None:
    """Return the figure of NEES or NIS at every step with the chi-square band; None if no filter has them."""
    if steps.empty:
        return None
    groups = {str(key): rows for key, rows in steps.groupby("filter", sort=False) if rows[name].notna().any()}
    if not groups:
        return None
    times, look = result.trajectory.recording.times, styles(result.study.filters)
    highest = highest_ratio([rows[name].median() for rows in groups.values()])

    def panel(rows: pd.DataFrame, style: Style, ax: Axes) -> None:
        log_axis(ax, "y")
        ax.fill_between(times, rows[f"{name}_band_low"], rows[f"{name}_band_high"], color=QUIET, alpha=0.3, linewidth=0)
        ax.axhline(1, color=INK, linewidth=0.8)
        positive = rows[name].where(rows[name] > 0).to_numpy()
        ax.plot(times, np.minimum(positive, highest), color=style.color, linewidth=1.2)
        point_beyond(ax, times, positive, highest, style.color, every=max(1, len(times) // 12))

    return Drawing(
        tuple(Panel(key, partial(panel, rows, look[key]), look[key].color) for key, rows in groups.items()),
        (3.2, 2.1),
        title=f"{name.upper()}, mean of {result.study.runs} runs, n = {steps['n_particles'].iloc[0]}\n"
        "grey: 95 % chi-square band of a filter with the right covariances",
        xlabel=result.study.scenario.time_label,
        ylabel=f"{name.upper()} / degrees of freedom",
    )


def sets_drawing(result: StudyResult, steps: pd.DataFrame) -> Drawing | None:
    """Return the figure of the error of the number of targets, a panel for each tracker; None for one target."""
    if steps.empty or not steps["gospa"].notna().any():
        return None
    times, look = result.trajectory.recording.times, styles(result.study.filters)
    groups = {str(key): rows["cardinality"].to_numpy() for key, rows in steps.groupby("filter", sort=False)}
    width = max(1, len(times) // 12) | 1

    def panel(name: str, ax: Axes) -> None:
        ax.axhline(0, color=INK, linewidth=0.8)
        ax.fill_between(times, 0, groups[name], color=look[name].color, alpha=0.25, linewidth=0)
        ax.plot(times, moving_mean(groups[name], width), color=look[name].color, linewidth=2)

    return Drawing(
        tuple(Panel(name, partial(panel, name), look[name].color) for name in groups),
        (3.2, 2.1),
        title=f"Number of estimates minus number of targets, mean of {result.study.runs} runs, "
        f"n = {steps['n_particles'].iloc[0]}\nat every step (filled), and mean of {width} steps (line)",
        xlabel=result.study.scenario.time_label,
        ylabel="estimates \u2212 targets",
    )


def is_over_time(result: StudyResult) -> bool:
    """Return True if the trajectory is drawn against time, False if in the plane."""
    return result.study.scenario.view == "time" or result.trajectory.recording.truth.shape[-1] == 1


def first_and_best(result: StudyResult) -> list[str]:
    """Return the names of the first filter and the best of the others, by median error."""
    known = [name for name in result.study.filters if name in result.trajectory.estimates]
    summary = result.summary
    medians = summary[summary["n_particles"] == result.trajectory.n_particles].set_index("filter")
    ranked = medians[f"{error_measure(summary)}_median"].reindex(known[1:]).dropna().sort_values()
    return known[:1] + list(ranked.index[:1])


def trajectory_drawing(result: StudyResult, names: Sequence[str] | None = None) -> Drawing:
    """Return the figure of the first run, a panel for each filter; `first_and_best` unless named."""
    shown, scenario = result.trajectory, result.study.scenario
    names = list(names or first_and_best(result))
    few, many = len(names) < 3, shown.recording.many
    timed = is_over_time(result) and not many
    dims = (0,) if timed else scenario.plane
    colours = {} if many else {name: look.color for name, look in styles(result.study.filters).items()}
    if many:
        draw = partial(_labels_panel, result)
    elif timed:
        draw = partial(_time_panel, result, _limits(result, names, dims, None))
    else:
        sensors = scenario_sensors(scenario)
        limits = _limits(result, names, dims, None if sensors is None else sensors[1])
        draw = partial(_plane_panel, result, limits, sensors)
    return Drawing(
        tuple(Panel(f"{name}, n = {shown.n_particles}", partial(draw, name), colours.get(name)) for name in names),
        ((9.0 if few else 5.4, 2.6) if timed else (4.8, 4.6)),
        columns=(1 if few else 2) if timed else 3,
        xlabel=scenario.time_label if timed else dimension_label(scenario.labels, dims[0]),
        ylabel=dimension_label(scenario.labels, dims[-1]),
        legend=True,
        height=2.9 if timed else 4.0,
    )


def _limits(result: StudyResult, names: Sequence[str], dims: Sequence[int], sensors: Array | None) -> tuple[Array, Array]:
    """Return the limits of the axes in the dimensions drawn, the same for all filters."""
    shown, index = result.trajectory, list(dims)
    window = slice(LONGEST_WINDOW if is_over_time(result) else None)
    drawn = [shown.estimates[name][window][:, index] for name in names]
    particles = [shown.particles[name][window] for name in names if name in shown.particles]
    drawn += [x[..., index].reshape(-1, len(index)) for x in particles]
    places = np.empty((0, len(index))) if sensors is None else sensors
    return path_limits(shown.recording.truth[window][:, index], np.concatenate(drawn), places)


def _time_panel(result: StudyResult, limits: tuple[Array, Array], name: str, ax: Axes) -> None:
    """Draw the first dimension against time."""
    shown, style = result.trajectory, styles(result.study.filters)[name]
    window = slice(min(len(shown.recording), LONGEST_WINDOW))
    times = shown.recording.times[window]
    _scatter_particles(ax, shown, name, window, (0,), times[:, None], color=style.color, marker="_", s=34, linewidths=1)
    ax.plot(times, shown.recording.truth[window, 0], "x", color=INK, markersize=5, label="truth")
    if shown.reference is not None:
        mean = shown.reference.means[window, 0]
        ax.plot(times, mean, color=INK, linewidth=1, linestyle="--", label="reference posterior mean")
    ax.plot(times, shown.estimates[name][window, 0], color=style.color, linewidth=1.8, label="estimate")
    ax.set_ylim(limits[0][0], limits[1][0])


def _plane_panel(
    result: StudyResult, limits: tuple[Array, Array], sensors: tuple[str, Array] | None, name: str, ax: Axes
) -> None:
    """Draw the path in the plane, with particles at a few times and the sensors."""
    shown, plane, style = result.trajectory, list(result.study.scenario.plane), styles(result.study.filters)[name]
    truth = shown.recording.truth
    _mark_detections(ax, shown.positions)
    moments = np.unique(np.linspace(0, len(truth) - 1, PARTICLE_TIMES).astype(int))
    _scatter_particles(ax, shown, name, moments, plane, color=style.color, marker="o", s=9, linewidths=0)
    ax.plot(*truth[:, plane].T, color=INK, linewidth=1.1, linestyle="--", label="truth")
    ax.plot(*shown.estimates[name][:, plane].T, color=style.color, linewidth=1.6, label="estimate")
    ax.plot(*truth[moments][:, plane].T, "o", color=INK, markersize=4, label="when the particles are shown")
    mark_ends(ax, truth[:, plane])
    if sensors is not None:
        mark_sensors(ax, *sensors)
    ax.set(xlim=(limits[0][0], limits[1][0]), ylim=(limits[0][1], limits[1][1]), aspect="equal")


def _scatter_particles(
    ax: Axes, shown: Trajectory, name: str, steps: Any, dims: Sequence[int], times: Array | None = None, **options: Any
) -> None:
    """Draw the particles of a filter at some steps, the heavier the more solid; as pixels, since there are thousands."""
    if name in shown.particles:
        particles = shown.particles[name][steps]
        y = particles[..., dims[-1]]
        x = np.broadcast_to(particles[..., dims[0]] if times is None else times, y.shape)
        share = shown.weights[name][steps] * y.shape[-1] if name in shown.weights else np.ones(y.shape)
        alpha: Any = np.clip(0.5 * share, 0.06, 0.85).ravel()
        ax.scatter(x.ravel(), y.ravel(), alpha=alpha, rasterized=True, **options)


def _labels_panel(result: StudyResult, name: str, ax: Axes) -> None:
    """Draw the true paths of many targets, estimates in the colours of their labels, and detections."""
    shown, plane = result.trajectory, list(result.study.scenario.plane)
    truth = shown.recording.truth[..., plane]
    _mark_detections(ax, shown.positions)
    for i, path in enumerate(np.moveaxis(truth, 1, 0)):
        alive = path[np.isfinite(path).all(axis=1)]
        first = i == 0
        ax.plot(*path.T, color=INK, linewidth=1.1, label="truth" if first else None)
        if len(alive):
            hollow: Any = {"color": INK, "mfc": "none", "ls": "none"}
            ax.plot(*alive[0], "o", markersize=7, label="start" if first else None, **hollow)
            ax.plot(*alive[-1], "s", markersize=6, label="end" if first else None, **hollow)
    for i, path in enumerate(np.moveaxis(shown.estimates[name][..., plane], 1, 0)):
        color = LABEL_COLORS[i % len(LABEL_COLORS)]
        label = "estimates, a colour for each label" if i == 0 else None
        ax.plot(*path.T, ".-", color=color, markersize=3.5, linewidth=0.9, label=label)
    nowhere = np.empty((0, 2))  # the limits are of the truth alone: false estimates may be anywhere
    low, high = path_limits(truth[np.isfinite(truth).all(axis=2)], nowhere, nowhere)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")


def _mark_detections(ax: Axes, positions: Sequence[Array] | None) -> None:
    """Draw the detections of all scans as light dots if they are positions."""
    if positions is not None:
        dots = np.concatenate(positions).T
        ax.plot(*dots, ".", color=QUIET, markersize=1.5, alpha=0.6, rasterized=True, zorder=1, label="detections")


def mark_ends(ax: Axes, path: Array) -> None:
    """Mark the start of a path (T, 2) by a ring and its end by a square."""
    ax.plot(*path[0], "o", color=INK, markerfacecolor="none", markersize=9, mew=1.4, ls="none", label="start")
    ax.plot(*path[-1], "s", color=INK, markerfacecolor="none", markersize=8, mew=1.4, ls="none", label="end")


def mark_sensors(ax: Axes, name: str, places: Array) -> None:
    """Mark the places (m, 2) of sensors."""
    several = name + "s" * (len(places) > 1)
    ax.plot(*places.T, "^", color=INK, markersize=8, mec="white", mew=0.8, ls="none", label=several, zorder=3)


def model_sensors(model: Any) -> tuple[str, Array] | None:
    """Return the name of a model's sensors and their places (m, 2) in the plane, or None if the model has none."""
    name = SENSOR_AT_ORIGIN.get(type(model).__name__)
    if name is not None:
        return name, np.zeros((1, 2))
    for attribute, name in SENSOR_ATTRIBUTES.items():
        try:
            places = np.atleast_2d(np.asarray(getattr(model, attribute), dtype=float))
        except (AttributeError, TypeError, ValueError):
            continue
        if places.ndim == 2 and len(places) and places.shape[1] in (2, 3) and np.isfinite(places).all():
            return name, places[:, :2]
    return None


def scenario_sensors(scenario: Scenario) -> tuple[str, Array] | None:
    """Return the sensors of a scenario with a model of the package; a report runs no code that a scenario names."""
    own = str(scenario.model["type"]).isidentifier() and not scenario.imports
    if not own or scenario.models is not None or scenario.data is not None:
        return None
    return model_sensors(scenario.build_model())
