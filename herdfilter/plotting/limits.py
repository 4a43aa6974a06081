"""Where axes end: a lost run may be off by any amount, and must not flatten all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.study.columns import error_measure
from herdfilter.study.results import StudyResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

HIGHEST_RATIO = 1e4
"""Largest ratio drawn: of squared errors to what a filter holds them to be, and of errors to those of the baseline."""

EXTENTS = 100
"""An error of so many times the extent of the true path says that the target is lost, however large it is."""

HIGHEST_SCALED = 1e3
"""Largest error drawn of a family of models, in posterior standard deviations."""


def highest_ratio(levels: ArrayLike) -> float:
    """Return the largest ratio worth drawing, given one for each filter; the smallest is always below it."""
    finite = np.asarray(levels, dtype=float)
    finite = finite[np.isfinite(finite)]
    return max(HIGHEST_RATIO, 10 * finite.min()) if len(finite) else HIGHEST_RATIO


def highest_error(result: StudyResult) -> float:
    """Return the largest error worth drawing; the best filter is always below it."""
    if result.study.family is not None:
        return HIGHEST_SCALED
    if result.trajectory.recording.many:
        return np.inf  # distances of sets are cut off
    truth = result.trajectory.recording.truth
    extent = np.linalg.norm(np.ptp(truth[:, list(result.study.scenario.dims(truth.shape[1]))], axis=0))
    medians: pd.Series[Any] = result.summary.groupby("filter")[f"{error_measure(result.summary)}_median"].max()
    highest = EXTENTS * max(float(extent), float(medians.min()))
    return highest if 0 < highest < np.inf else np.inf


def point_beyond(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    highest: float,
    color: str,
    which: Literal["x", "y"] = "y",
    every: int = 1,
) -> None:
    """Draw a triangle that points beyond the highest value wherever one is above it, at every so many of these places."""
    from matplotlib.transforms import offset_copy

    x, y = np.broadcast_arrays(np.atleast_1d(np.asarray(x, float)), np.asarray(y, float))
    beyond = (y if which == "y" else x) > highest
    if beyond.any():
        places = np.column_stack([x, y])[beyond][::every]
        places[:, 1 if which == "y" else 0] = highest
        up, marker = (1, "^") if which == "y" else (0, ">")
        # Beside the marker of the value itself.
        figure: Any = ax.figure
        away = offset_copy(ax.transData, figure, 8 * (1 - up), 8 * up, units="points")
        look: Any = {"color": color, "markersize": 6.5, "mec": "white", "mew": 0.4, "clip_on": False}
        ax.plot(*places.T, marker, transform=away, **look)


def path_limits(truth: Array, others: Array, places: Array) -> tuple[Array, Array]:
    """Limits (k,) of axes that hold a true path (T, k) with room about it, and as much of what strays as is within its span.

    Parameters
    ----------
    truth : ndarray, shape (T, k)
    others : ndarray, shape (n, k)
        Estimates and particles; NaN are left out.
    places : ndarray, shape (m, k)
        Sensors: those within three spans are in view.
    """
    low, high = truth.min(axis=0), truth.max(axis=0)
    span = (high - low).max() + 1e-9
    for points, reach in ((others[np.isfinite(others).all(axis=1)], 1.0), (places, 3.0)):
        near = ((points > low - reach * span) & (points < high + reach * span)).all(axis=1)
        if reach == 1.0:  # what strays is cut off, and what is far away is out of view
            points = np.clip(points, truth.min(axis=0) - span, truth.max(axis=0) + span)
            near[:] = True
        if near.any():
            low = np.minimum(low, points[near].min(axis=0))
            high = np.maximum(high, points[near].max(axis=0))
    room = np.maximum(0.06 * (high - low), (0.6 * (high - low).max() - (high - low)) / 2)
    return low - room, high + room
