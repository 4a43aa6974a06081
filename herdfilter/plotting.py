"""Figures of a comparison: error against time, particle count and computing time, and one trajectory.

Every function returns a `matplotlib.figure.Figure` that belongs to no window and no global state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from herdfilter._checks import Array
from herdfilter.evaluation.study import StudyResult, Trace
from herdfilter.evaluation.summary import error_measure, summarise

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, QUIET = "#000000", "#a8a8a8"
MEASURES = {"rmse": "against the truth", "reference_error": "against the reference posterior mean"}
MAX_COLUMNS = 3
LONGEST_WINDOW = 30  # steps of a one-dimensional trajectory that still read well
SNAPSHOTS = 6  # times at which the particles of a path in the plane are drawn


class Style(NamedTuple):
    """How a filter is drawn, the same in every figure."""

    color: str
    marker: str
    linestyle: str

    @property
    def line(self) -> dict[str, Any]:
        """Keywords for a line with markers."""
        return {**self._asdict(), "markeredgecolor": "white", "markeredgewidth": 0.6}


# Colours of Okabe and Ito (2008), told apart by every kind of colour vision. The marker is the place of the
# herding: circle prediction, square resampling, triangle state and noise together, diamond where the observation is in view.
STYLES = {
    "bootstrap": Style("#6b6b6b", "X", "-"),
    "bootstrap-multinomial": Style("#6b6b6b", "P", ":"),
    "bootstrap-stratified": Style("#6b6b6b", "d", ":"),
    "bootstrap-residual": Style("#6b6b6b", "v", ":"),
    "bootstrap-ssp": Style("#6b6b6b", "*", ":"),
    "bootstrap-transport": Style("#6b6b6b", "D", "--"),
    "herded-kh": Style("#0072B2", "o", "-"),
    "herded-chg": Style("#56B4E9", "o", "-"),
    "herded-random": Style("#a8a8a8", "o", ":"),
    "mixture-kh": Style("#D55E00", "s", "-"),
    "mixture-chg": Style("#E69F00", "s", "-"),
    "mixture-random": Style("#a8a8a8", "s", ":"),
    "augmented-kh": Style("#009E73", "^", "-"),
    "augmented-chg": Style("#CC79A7", "^", "-"),
    "augmented-sobol": Style("#000000", "^", "-"),
    "augmented-random": Style("#a8a8a8", "^", ":"),
    "kalman-mixture-kh": Style("#0072B2", "D", "--"),
    "guided-augmented-gauss-kh": Style("#009E73", "D", "--"),
    "sqmc": Style("#000000", "*", "-."),
}


def styles(names: Iterable[str]) -> dict[str, Style]:
    """Style of every filter: the catalogue's own, and for others what the catalogue leaves over."""
    names = list(names)
    free = [s for name, s in STYLES.items() if name not in names and s.linestyle == "-"] or list(
        STYLES.values()
    )
    others = [name for name in names if name not in STYLES]
    own = {
        name: free[i % len(free)]._replace(marker="DPv*"[i % 4], linestyle="--")
        for i, name in enumerate(others)
    }
    return {name: own.get(name) or STYLES[name] for name in names}


def save_figures(result: StudyResult, folder: Path) -> list[Path]:
    """Draw what a study has to show into a folder as PNG, and return the paths."""
    summary, unit = summarise(result.runs), result.study.scenario.unit
    figures: dict[str, Figure] = {}
    if result.traces:  # some filter finished a run
        figures["error_over_time"] = error_over_time(result)
        figures["error_over_particles"] = error_over_particles(summary, unit)
        figures["error_over_seconds"] = error_over_seconds(summary, unit)
    if result.trajectory.estimates:
        figures["trajectory"] = trajectory(result)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths


def error_over_time(result: StudyResult, n_particles: int | None = None) -> Figure:
    """Error at every step, median over runs: a panel a filter, before the first filter in grey.

    Parameters
    ----------
    result : StudyResult
    n_particles : int, optional
        Particle count; the largest unless given.
    """
    study = result.study
    n = max(study.particles) if n_particles is None else n_particles
    traces = {name: result.traces[name, n] for name in study.filters if (name, n) in result.traces}
    referenced = any(trace.reference is not None for trace in traces.values())
    measure = "reference_error" if referenced else "rmse"
    times = result.trajectory.recording.times
    look = styles(study.filters)
    width = max(1, len(times) // 12) | 1
    with _figure() as new:
        columns = min(MAX_COLUMNS, len(traces))
        rows = -(-len(traces) // columns)
        figure, axes = new(rows, columns, (3.2 * columns + 0.6, 2.1 * rows + 0.9), sharex=True, sharey=True)
        first, baseline = next(iter(traces.items()))
        for ax, (name, trace) in zip(axes.flat, traces.items(), strict=False):
            errors = _errors(trace, measure)
            ax.plot(times, errors, color=look[name].color, linewidth=0.7, alpha=0.4)
            if name != first:
                ax.plot(times, _moving_mean(_errors(baseline, measure), width), color=QUIET, linewidth=1.4)
            ax.plot(times, _moving_mean(errors, width), color=look[name].color, linewidth=1.8)
            ax.set_title(name, color=look[name].color, fontweight="bold")
        for ax in axes.flat[len(traces) :]:
            ax.set_axis_off()
        _log_axis(axes.flat[0], "y")
        figure.supxlabel(study.scenario.time_label, fontsize="medium")
        figure.supylabel(_error_label(study.scenario.unit), fontsize="medium")
        figure.suptitle(
            f"Error {MEASURES[measure]}, {study.runs} runs, n = {n}\n"
            f"every step (thin), mean of {width} steps (thick); {first} in grey"
        )
    return figure


def _moving_mean(errors: Array, width: int) -> Array:
    """Mean over a window of `width` steps, odd, cut off at the ends."""
    ones = np.ones(width)
    return np.convolve(errors, ones, "same") / np.convolve(np.ones_like(errors), ones, "same")


def _errors(trace: Trace, measure: str) -> Array:
    if measure == "rmse":
        return trace.truth
    return np.full_like(trace.truth, np.nan) if trace.reference is None else trace.reference


def error_over_particles(summary: pd.DataFrame, unit: str = "") -> Figure:
    """Error against particle count, log-log: medians over runs with 95 % intervals (of six runs or more).

    Parameters
    ----------
    summary : pandas.DataFrame
        What `summarise` returns.
    unit : str
        Unit of the error.
    """
    counts = sorted(summary["n_particles"].unique())
    with _figure() as new:
        figure, panels = _measure_panels(new, summary, unit)
        for measure, ax in panels.items():
            look = styles(summary["filter"].unique())
            for i, (name, rows) in enumerate(summary.groupby("filter", sort=False)):
                dodge = 1.012 ** (i - (len(look) - 1) / 2)
                _error_line(ax, rows, measure, rows["n_particles"] * dodge, look[str(name)])
            if len(counts) > 1 and measure == "reference_error":
                _half_slope(ax, summary)
            ax.set_xscale("log")
            ax.set_xticks(counts, [str(n) for n in counts])
            ax.set_xlim(0.85 * counts[0], 1.18 * counts[-1])
            ax.minorticks_off()
            ax.set_xlabel("particles")
        _legend(figure, next(iter(panels.values())))
    return figure


def error_over_seconds(summary: pd.DataFrame, unit: str = "") -> Figure:
    """Error against wall-clock time a step, log-log: medians over runs with 95 % intervals; a marker a particle count."""
    with _figure() as new:
        figure, panels = _measure_panels(new, summary, unit)
        for measure, ax in panels.items():
            look = styles(summary["filter"].unique())
            for name, rows in summary.groupby("filter", sort=False):
                _error_line(ax, rows, measure, rows["ms_per_step"], look[str(name)])
            _name_counts(ax, summary, f"{measure}_median")
            _log_axis(ax, "x")
            ax.margins(x=0.2, y=0.1)
            ax.set_xlabel("milliseconds a step")
        _legend(figure, next(iter(panels.values())))
    return figure


def _name_counts(ax: Axes, summary: pd.DataFrame, column: str) -> None:
    """Write the particle counts beside the markers of the filter whose times lie farthest apart."""
    times = summary.groupby("filter", sort=False)["ms_per_step"]
    rows = summary[summary["filter"] == (times.max() / times.min()).idxmax()]
    for n, x, y in zip(rows["n_particles"], rows["ms_per_step"], rows[column], strict=True):
        ax.annotate(
            f"n = {n}",
            (x, y),
            (5, -4),
            textcoords="offset points",
            va="top",
            color="#777777",
            fontsize="small",
        )


def _measure_panels(new: Any, summary: pd.DataFrame, unit: str) -> tuple[Figure, dict[str, Axes]]:
    measures = ["rmse"] if error_measure(summary) == "rmse" else ["reference_error", "rmse"]
    figure, axes = new(1, len(measures), (4.3 * len(measures) + 0.4, 4.4))
    for measure, ax in zip(measures, axes.flat, strict=True):
        ax.set_title(f"Error {MEASURES[measure]}")
        _log_axis(ax, "y")
    axes.flat[0].set_ylabel(_error_label(unit))
    return figure, dict(zip(measures, axes.flat, strict=True))


def _log_axis(ax: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    ax.set(**{f"{which}scale": "log"})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


def _error_line(ax: Axes, rows: pd.DataFrame, measure: str, x: pd.Series[float], style: Style) -> None:
    error = rows[f"{measure}_median"]
    spread = np.array([error - rows[f"{measure}_median_low"], rows[f"{measure}_median_high"] - error])
    ax.errorbar(
        x,
        error,
        np.maximum(np.nan_to_num(spread), 0),
        label=rows["filter"].iloc[0],
        elinewidth=1,
        **style.line,
    )


def _half_slope(ax: Axes, summary: pd.DataFrame) -> None:
    """Draw the rate of independent draws, one over the root of n, below the best filter."""
    counts = np.array(sorted(summary["n_particles"].unique()), dtype=float)
    y = summary["reference_error_median"].min() * 0.8 * np.sqrt(counts[-1] / counts)
    ax.plot(counts, y, color=QUIET, linewidth=0.8, linestyle="--", zorder=0)
    ax.annotate("$n^{-1/2}$", (counts[0], 0.95 * y[0]), color="#777777", va="top")


def _legend(figure: Figure, ax: Axes) -> None:
    """Put the legend of one of the axes, for all of them, below the figure."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 6))


def trajectory(result: StudyResult, names: Sequence[str] | None = None) -> Figure:
    """Draw the first run: truth, estimates and particles of two filters one beside the other.

    Parameters
    ----------
    result : StudyResult
    names : sequence of str, optional
        Filters to draw; unless given, the first one and the best of the others, by median error.
    """
    shown = list(names or _first_and_best(result))
    if result.study.scenario.view == "time" or result.trajectory.recording.truth.shape[1] == 1:
        return _over_time(result, shown)
    return _in_plane(result, shown)


def _first_and_best(result: StudyResult) -> list[str]:
    known = [name for name in result.study.filters if name in result.trajectory.estimates]
    summary = summarise(result.runs)
    medians = summary[summary["n_particles"] == result.trajectory.n_particles].set_index("filter")
    ranked = medians[f"{error_measure(summary)}_median"].reindex(known[1:]).dropna().sort_values()
    return known[:1] + list(ranked.index[:1])


def _over_time(result: StudyResult, names: list[str]) -> Figure:
    """First dimension against time, a panel below the other."""
    shown, scenario, look = result.trajectory, result.study.scenario, styles(result.study.filters)
    window = slice(min(len(shown.recording), LONGEST_WINDOW))
    times = shown.recording.times[window]
    with _figure() as new:
        figure, axes = new(len(names), 1, (9.0, 2.6 * len(names) + 0.7), sharex=True, sharey=True)
        for ax, name in zip(axes.flat, names, strict=True):
            color = look[name].color
            if name in shown.particles:
                ax.plot(times, shown.particles[name][window, :, 0], "_", color=color, markersize=6, alpha=0.6)
            ax.plot(times, shown.recording.truth[window, 0], "x", color=BLACK, markersize=5, label="truth")
            if shown.reference is not None:
                mean = shown.reference.means[window, 0]
                ax.plot(times, mean, color=BLACK, linewidth=1, label="reference posterior mean")
            ax.plot(times, shown.estimates[name][window, 0], color=color, linewidth=1.8, label="estimate")
            ax.set_title(f"{name}, n = {shown.n_particles}", color=color, fontweight="bold")
            ax.set_ylabel(_label(scenario.labels, 0))
        axes.flat[-1].set_xlabel(scenario.time_label)
        _legend(figure, axes.flat[-1])
    return figure


def _in_plane(result: StudyResult, names: list[str]) -> Figure:
    """Path in the plane of the scenario's two dimensions, with particles at a few times."""
    shown, scenario, look = result.trajectory, result.study.scenario, styles(result.study.filters)
    plane, truth = list(scenario.plane), shown.recording.truth
    moments = np.unique(np.linspace(0, len(truth) - 1, SNAPSHOTS).astype(int))
    with _figure() as new:
        figure, axes = new(1, len(names), (4.8 * len(names), 5.2), sharex=True, sharey=True)
        for ax, name in zip(axes.flat, names, strict=True):
            color = look[name].color
            if name in shown.particles:
                cloud = shown.particles[name][moments].reshape(-1, truth.shape[1])
                ax.plot(*cloud[:, plane].T, ".", color=color, markersize=3.5, alpha=0.5, markeredgewidth=0)
            ax.plot(*truth[:, plane].T, color=BLACK, linewidth=1, label="truth")
            ax.plot(*shown.estimates[name][:, plane].T, color=color, linewidth=1.6, label="estimate")
            ax.plot(
                *truth[moments][:, plane].T,
                "o",
                color=BLACK,
                markersize=4,
                label="when the particles are shown",
            )
            ax.set_title(f"{name}, n = {shown.n_particles}", color=color, fontweight="bold")
            ax.set_xlabel(_label(scenario.labels, plane[0]))
            ax.set_aspect("equal")
        axes.flat[0].set_ylabel(_label(scenario.labels, plane[1]))
        _legend(figure, axes.flat[-1])
    return figure


def _label(labels: Sequence[str], dim: int) -> str:
    return labels[dim] if dim < len(labels) else f"state {dim + 1}"


def _error_label(unit: str) -> str:
    return "error, median over runs" + (f" ({unit})" if unit else "")


_RC: Any = {
    "figure.constrained_layout.use": True,
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
}


@contextmanager
def _figure() -> Iterator[Any]:
    """Set the style, and give a function (rows, columns, size, ...) -> figure and array of axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    def new(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
        figure = Figure(figsize=size)
        return figure, figure.subplots(rows, columns, squeeze=False, **options)

    with mpl.rc_context(_RC):
        yield new
