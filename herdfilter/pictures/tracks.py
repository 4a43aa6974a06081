"""Paths of a state with their uncertainty: ellipses in the plane, a band over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.pictures import axes
from herdfilter.pictures.plane import gaussian_radius, plot_ellipse

MOST_ELLIPSES = 20  # largest number of ellipses along a path if `every` is None


def plot_track(
    means: ArrayLike,
    covariances: ArrayLike | None = None,
    ax: Axes | None = None,
    dims: Sequence[int] = (0, 1),
    mass: float = 0.95,
    every: int | None = None,
    circular: Sequence[int] = (),
    ends: bool = False,
    **style: Any,
) -> Axes:
    """Draw a path in the plane, with ellipses along it that hold a given probability.

    Parameters
    ----------
    means : array_like, shape (T, d)
        The path: estimates, or a truth.
    covariances : array_like, shape (T, d, d), optional
    ax : matplotlib.axes.Axes, optional
    dims : (int, int)
        Dimensions to draw.
    mass : float
        Probability inside an ellipse.
    every : int, optional
        Draw an ellipse every `every` steps, from the first on; by default about twenty altogether.
    circular : sequence of int
        Dimensions that are angles: the path is broken where one wraps.
    ends : bool
        Mark the start by a ring and the end by a square.
    **style
        Keywords of ``Axes.plot``.

    Examples
    --------
    >>> model = hf.models.BearingsTracking()
    >>> truth, z = hf.simulate(model, 10, rng=1)
    >>> result = hf.make_filter("ekf", model).run(z)
    >>> ax = hf.plotting.plot_track(result.means, result.covariances, every=5)
    >>> ax = hf.plotting.plot_track(truth, ax=ax, color="black")
    >>> len(ax.lines), len(ax.patches)  # two paths, two ellipses
    (2, 2)
    """
    path = _checks.as_array("means", means, (None, None), finite=False)
    steps, d = path.shape
    plane = axes.check_dims(dims, d)
    if len(plane) != 2:
        raise ValueError(
            f"dims: expected two dimensions, got {dims!r}; plot_state_over_time draws one"
        )
    path = path[:, plane]
    if covariances is not None:
        covariances = _checks.as_array("covariances", covariances, (steps, d, d), finite=False)
        covariances = covariances[:, plane][:, :, plane]
    at = np.unique(np.linspace(0, steps - 1, min(steps, MOST_ELLIPSES)).astype(int))
    if every is not None:
        at = np.arange(0, steps, _checks.check_count("every", every))
    mass = axes.as_mass("mass", mass)
    ax = axes.axes_or_new(ax)
    colour = axes.pop_colour(ax, style)
    if covariances is not None:
        # A path of a lost or absent target has gaps.
        at = at[np.isfinite(path[at]).all(axis=1) & np.isfinite(covariances[at]).all(axis=(1, 2))]
        plot_ellipse(path[at], covariances[at], ax, mass, color=colour, linewidth=0.7)
    angles = [k for k, dim in enumerate(plane) if dim in circular]
    line = axes.insert_gaps(path, axes.wrap_steps(path, angles))
    ax.plot(*line.T, **({"color": colour} | style))
    # The ring is hollow, so that it does not hide a path that returns.
    if ends and steps:
        ax.plot(*path[0], "o", color=colour, markerfacecolor="none", markersize=7, label="start")
        ax.plot(*path[-1], "s", color=colour, markersize=5, label="end")
    axes.name_axes(ax, *(f"x{i}" for i in plane))
    return ax


def plot_state_over_time(
    result: Any,
    dim: int = 0,
    ax: Axes | None = None,
    truth: ArrayLike | None = None,
    mass: float | Sequence[float] | None = 0.95,
    circular: Sequence[int] | None = None,
    **style: Any,
) -> Axes:
    """Draw one dimension of the state over time: the mean, a band that holds a given probability, and the truth.

    Parameters
    ----------
    result : FilterResult, GridResult, Trajectories or Forecast
        Anything with ``means`` (T, d), and perhaps ``covariances``, ``times`` or ``steps``.
    dim : int
        Dimension to draw.
    ax : matplotlib.axes.Axes, optional
    truth : array_like, shape (T, d) or (T,), optional
    mass : float or sequence of float, optional
        Probability inside the band, or inside each of several: between quantiles of a `Forecast`, else of a Gaussian with
        that mean and variance; None for no band.
    circular : sequence of int, optional
        Dimensions that are angles, by default those of `result`: the line is broken where one wraps.
    **style
        Keywords of ``Axes.plot``.

    Examples
    --------
    >>> truth, z = hf.simulate(hf.models.UNGM(), 10, rng=1)
    >>> result = hf.make_filter("bootstrap", hf.models.UNGM(), 50, rng=1).run(z)
    >>> ax = hf.plotting.plot_state_over_time(result, truth=truth)
    >>> ax.get_xlabel()
    'time'
    """
    means = _checks.as_array("means", result.means, (None, None), finite=False)
    (dim,) = axes.check_dims((dim,), means.shape[1])
    angles = getattr(result, "circular", ()) if circular is None else circular
    angle = [0] if dim in angles else []
    mean = means[:, [dim]]
    actual = None if truth is None else check_truth(truth, (dim,), means.shape[1])
    if actual is not None and len(actual) != len(means):
        raise ValueError(f"truth: expected one per step, {len(means)}, got {len(actual)}")
    shares: Any = [] if mass is None else np.atleast_1d(mass)
    masses = [axes.as_mass("mass", share) for share in shares]
    ax = axes.axes_or_new(ax)
    times, time_label = plot_times(result, len(means))
    colour = axes.pop_colour(ax, style)

    def broken(values: Array, gaps: Any) -> tuple[Array, Array]:
        """Return times and values with NaN before the rows `gaps`; a gap has the time of the row after it."""
        return np.insert(times, gaps, times[gaps]), axes.insert_gaps(values, gaps)

    wraps = axes.wrap_steps(mean, angle)
    t, line = broken(mean, wraps)
    covariances = getattr(result, "covariances", None)
    for share in masses:
        if hasattr(result, "quantiles"):
            band = result.quantiles([0.5 - share / 2, 0.5 + share / 2])[:, :, dim]
        elif covariances is not None:
            variances = _checks.as_numbers("covariances", covariances, (None, None, None))[
                :, dim, dim
            ]
            half_width = gaussian_radius(share, 1) * np.sqrt(np.maximum(variances, 0.0))
            band = mean + half_width[:, None] * [-1, 1]
        else:
            break
        _, ends = broken(band, wraps)
        # The band of a single step has no area, only an edge.
        width = 2 if len(t) == 1 else 0
        ax.fill_between(t, *ends.T, color=colour, alpha=0.18, linewidth=width)
    if actual is not None:
        # The truth wraps at other steps than the estimate.
        true_line = broken(actual, axes.wrap_steps(actual, angle))
        ax.plot(*true_line, color=axes.text_colour(), linewidth=1, label="truth")
    ax.plot(t, line, **({"color": colour, "label": "estimate"} | style))
    axes.name_axes(ax, time_label, f"x{dim}")
    return ax


def check_truth(truth: ArrayLike, dims: Sequence[int], dim: int) -> Array:
    """Return the dimensions `dims` of a truth, which has either all `dim` dimensions of the state or only these."""
    values = _checks.as_numbers("truth", truth, (None, None))
    if values.ndim == 1:
        values = values[:, None]
    values = _checks.as_array("truth", values, (None, None), finite=False)
    # Of a state with as many dimensions as are drawn, both readings agree.
    if values.shape[1] == dim:
        return values[:, list(dims)]
    if values.shape[1] != len(dims):
        raise ValueError(
            f"truth: expected shape (T, {dim}) or (T, {len(dims)}), got {values.shape}"
        )
    return values


def plot_times(result: Any, steps: int) -> tuple[np.ndarray, str]:
    """Return times (T,), or else step numbers, and their label; durations are in seconds: matplotlib cannot draw them."""
    for name, label in (("times", "time"), ("steps", "step")):
        values = getattr(result, name, None)
        if values is not None:
            times = np.asarray(values)
            if times.dtype.kind == "m" or any(isinstance(time, timedelta) for time in times[:1]):
                times = times.astype("m8[us]") / np.timedelta64(1, "s")
            return times, label
    return np.arange(1, steps + 1), "step"
