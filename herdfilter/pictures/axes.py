"""Axes, dimensions and colours that the pictures share, and gaps in paths where an angle wraps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from herdfilter._checks import Array, as_number, short_repr

Dims = int | Sequence[int]
MOST_PANELS = 4  # dimensions drawn over time, one below the other, unless some are named


def axes_or_new(ax: Any) -> Any:
    """Return the axes, or those of a new pyplot figure if there are none."""
    if ax is None:
        return _new_axes()
    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax: expected Axes of matplotlib or None, got {short_repr(ax)}; from an array of axes, give one"
        )
    return ax


def _new_axes(rows: int = 1, **options: Any) -> Any:
    import matplotlib.pyplot as plt  # only here: other figures need no window

    return plt.subplots(rows, sharex=True, layout="constrained", **options)[1]


def panels(
    ax: Any, dims: Dims | None, dim: int, positions: tuple[int, ...]
) -> list[tuple[Axes | None, tuple[int, ...]]]:
    """Return pairs of axes and the dimensions to draw into them: two in the plane, or one over time; see `Views.plot`."""
    # A model that names two positions is drawn in their plane.
    dims = positions if dims is None and len(positions) == 2 else dims
    if dims is not None:
        return [(ax, check_dims(dims, dim))]
    count = min(dim, MOST_PANELS)
    if ax is None and count > 1:
        ax = _new_axes(count, figsize=(6.4, 1.2 + 1.6 * count))
    # No axes stay None, for a figure of one panel.
    axes: list[Any] = np.ravel(np.array(ax, dtype=object)).tolist()
    if len(axes) not in (1, count):
        raise ValueError(
            f"ax: expected {count} axes, one for each dimension, or one for the first, got {len(axes)}"
        )
    return [(panel, (i,)) for i, panel in enumerate(axes)]


def check_dims(dims: Dims, dim: int) -> tuple[int, ...]:
    """Return one or two indices of a state of `dim` dimensions; the default (0, 1) becomes (0,) if there is only one."""
    indices: tuple[Any, ...] = tuple(dims) if isinstance(dims, Iterable) else (dims,)
    if indices == (0, 1) and dim == 1:
        return (0,)
    if len(indices) not in (1, 2) or not all(
        isinstance(i, int | np.integer) and i in range(dim) for i in indices
    ):
        raise ValueError(
            f"dims: expected one or two indices from 0 to {dim - 1}, got {short_repr(dims)}"
        )
    return tuple(map(int, indices))


def as_mass(name: str, value: Any) -> float:
    """Return a probability between 0 and 1."""
    return as_number(name, value, "a probability between 0 and 1", lambda mass: 0 < mass < 1)


def name_axes(ax: Axes, x: str, y: str, *_: str) -> None:
    """Label axes that have no label yet; what one dimension leaves for y, as its density, comes last."""
    ax.set(xlabel=ax.get_xlabel() or x, ylabel=ax.get_ylabel() or y)


def pop_colour(ax: Axes, style: dict[str, Any]) -> Any:
    """Remove and return the colour of a style; without one return the next colour of the axes."""
    for name in ("color", "c"):
        if style.get(name) is not None:
            return style.pop(name)
    # Only drawing a line advances the cycle of colours.
    (line,) = ax.plot([], [])
    line.remove()
    return line.get_color()


def text_colour() -> Any:
    """Return the colour of text, in which the truth is drawn: it stands out on the background in use."""
    return mpl.rcParams["text.color"]


def wrap_steps(values: Array, circular: Sequence[int]) -> np.ndarray:
    """Return the rows (m,) of a path (T, k) before which an angle wraps."""
    wrapped = np.abs(np.diff(values[:, list(circular)], axis=0)) > np.pi
    return np.flatnonzero(wrapped.any(axis=1)) + 1


def insert_gaps(values: Array, at: np.ndarray) -> Array:
    """Insert NaN into a path (T, ...) before the rows `at`, so that no line joins the rows around them."""
    return np.insert(np.asarray(values, dtype=float), at, np.nan, axis=0)
