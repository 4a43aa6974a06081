"""Weighted points as dots whose area is their weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array
from herdfilter.pictures._axes import Dims, axes_or_new, chosen, colour_of, name_axes, state_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AREA = 18.0
"""Of a dot of average weight, in square points."""


def plot_points(
    points: Any, ax: Axes | None = None, dims: Dims = (0, 1), weights: ArrayLike | None = None, **style: Any
) -> Axes:
    """Draw weighted points: dots whose area is their weight; in one dimension sticks whose height is.

    Parameters
    ----------
    points : Points, Particles, ParticleFilter or array_like of shape (n, d) or (n,)
        Anything with ``x`` or ``particles``, and ``weights``, will do.
    ax : matplotlib.axes.Axes, optional
    dims : int or (int, int)
        Dimensions to draw.
    weights : array_like, shape (n,), optional
        In place of the points' own; equal unless there are any. Dots of negative weight are hollow.
    **style
        Keywords of ``Axes.scatter``, or of ``Axes.vlines`` in one dimension.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If shapes do not fit or a dimension does not exist.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-2, 0], [2, 0]], np.eye(2))
    >>> ax = hf.plotting.plot_mixture(mixture)
    >>> ax = hf.plotting.plot_points(hf.KernelHerding().sample(mixture, 20), ax=ax)
    >>> ax.figure.savefig("points.png")
    """
    x, w = located(points, weights)
    shown_dims, ax = chosen(dims, x.shape[1]), axes_or_new(ax)
    colour = colour_of(ax, style)
    if len(shown_dims) == 1:
        ax.vlines(x[:, shown_dims[0]], 0, w, **({"color": colour, "linewidth": 1.2} | style))
        name_axes(ax, state_label((), shown_dims[0]), "weight")
        return ax
    from matplotlib.colors import to_rgba

    faces = np.tile(to_rgba(colour, 0.7), (len(x), 1))
    faces[w < 0, 3] = 0.0
    look: dict[str, Any] = {
        "s": AREA * len(w) * np.abs(w),
        "facecolors": faces,
        "edgecolors": [colour],
        "linewidths": 0.5,
    }
    ax.scatter(x[:, shown_dims[0]], x[:, shown_dims[1]], **(look | style))
    name_axes(ax, state_label((), shown_dims[0]), state_label((), shown_dims[1]))
    return ax


def located(points: Any, weights: ArrayLike | None) -> tuple[Array, Array]:
    """Return locations (n, d) and weights (n,) of whatever holds them."""
    found: Any = points
    for name in ("particles", "x"):
        if hasattr(points, name):
            found, own = getattr(points, name), getattr(points, "weights", None)
            weights = own if weights is None else weights
            break
    x = as_array("points", found, (None,) if np.ndim(found) == 1 else (None, None))
    x = x[:, None] if x.ndim == 1 else x
    if len(x) == 0:
        raise ValueError("points: expected at least one point, got none")
    if weights is None:
        return x, np.full(len(x), 1.0 / len(x))
    return x, as_array("weights", weights, (len(x),))
