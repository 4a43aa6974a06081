"""Ellipses, mixtures and weighted points in the plane; mixtures and points on the line, too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_array
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.pictures import axes

# Number of draws that determine the height of a contour: its probability is right to a hundredth.
LEVEL_DRAWS = 4000
# Largest number of grid points on an axis at which a density is computed.
MOST_GRID_POINTS = 400
DOT_AREA = 18.0  # area, in square points, of a dot of average weight


def gaussian_radius(mass: float, dim: int = 2) -> float:
    """Return the radius, in standard deviations, of the region that holds a share `mass` of a Gaussian."""
    # The squared radius is chi-square with `dim` degrees of freedom.
    return math.sqrt(scipy.special.chdtri(dim, 1 - mass))


def plot_ellipse(
    mean: ArrayLike, covariance: ArrayLike, ax: Axes | None = None, mass: float = 0.95, **style: Any
) -> Axes:
    """Draw the ellipse that holds a given probability of a Gaussian in the plane, or several ellipses.

    Parameters
    ----------
    mean : array_like, shape (2,) or (m, 2)
    covariance : array_like, shape (2, 2) or (m, 2, 2)
        Singular ones are drawn as lines.
    ax : matplotlib.axes.Axes, optional
    mass : float
        Probability inside: 0.95 lies within 2.45 standard deviations, 0.39 within one.
    **style
        Keywords of `matplotlib.patches.Ellipse`.

    Examples
    --------
    >>> ax = hf.plotting.plot_ellipse([1.0, 2.0], np.diag([4.0, 1.0]), mass=0.95)
    >>> ellipse = ax.patches[0]
    >>> print(np.sort([ellipse.width, ellipse.height]).round(2))  # twice 2.45 standard deviations
    [4.9  9.79]
    """
    means = np.atleast_2d(as_array("mean", mean, (2,) if np.ndim(mean) == 1 else (None, 2)))
    # One covariance serves all means.
    several = (2, 2) if np.ndim(covariance) == 2 else (len(means), 2, 2)
    covariances = np.broadcast_to(as_array("covariance", covariance, several), (len(means), 2, 2))
    scale = 2 * gaussian_radius(axes.as_mass("mass", mass))
    ax = axes.axes_or_new(ax)
    colour = axes.pop_colour(ax, style)
    label = style.pop("label", None)
    look = {"facecolor": to_rgba(colour, 0.12), "edgecolor": colour, "linewidth": 1.0} | style
    # The axes of the ellipse are the eigenvectors; rounding may make an eigenvalue negative.
    values, vectors = np.linalg.eigh(covariances)
    widths = scale * np.sqrt(np.maximum(values, 0.0))
    angles = np.degrees(np.arctan2(vectors[:, 1, 0], vectors[:, 0, 0]))
    for centre, sides, angle in zip(means.tolist(), widths, angles, strict=True):
        # One entry in the legend stands for all ellipses: the others have no label.
        ax.add_patch(Ellipse(centre, *sides, angle=angle, label=label, **look))
        label = None
    ax.autoscale_view()
    return ax


def plot_mixture(
    mixture: GaussianMixture,
    ax: Axes | None = None,
    dims: axes.Dims = (0, 1),
    levels: Sequence[float] = (0.5, 0.95),
    **style: Any,
) -> Axes:
    """Draw the smallest regions of the plane that hold given probabilities of a mixture; on the line, its density.

    Parameters
    ----------
    mixture : GaussianMixture
        Its marginal in `dims` is drawn.
    ax : matplotlib.axes.Axes, optional
    dims : int or (int, int)
        Dimensions to draw.
    levels : sequence of float
        Probabilities of the regions, found from a sample of fixed seed to within a hundredth.
    **style
        Keywords of ``Axes.contour``, or of ``Axes.plot`` in one dimension.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-2, 0], [2, 0]], np.eye(2))
    >>> ax = hf.plotting.plot_mixture(mixture)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'x1')
    """
    axis_dims = axes.check_dims(dims, as_mixture("mixture", mixture).dim)
    masses = sorted({axes.as_mass("levels", level) for level in levels}, reverse=True)
    marginal = mixture.marginal(axis_dims)
    ax = axes.axes_or_new(ax)
    axes.name_axes(ax, *(f"x{i}" for i in axis_dims), "density")
    colour = axes.pop_colour(ax, style)
    axis_grids = [_axis_grid(marginal, i) for i in range(marginal.dim)]
    grid = np.stack(np.meshgrid(*axis_grids), axis=-1)
    log_density = marginal.log_density(grid.reshape(-1, marginal.dim)).reshape(grid.shape[:-1])
    # One axis gives a curve, two give contours.
    if marginal.dim == 1:
        ax.plot(*axis_grids, np.exp(log_density), **({"color": colour} | style))
        return ax
    # The smallest region of probability p is where the density exceeds its (1 - p)-quantile among draws.
    heights = np.quantile(
        marginal.log_density(marginal.sample(LEVEL_DRAWS, 0)), [1 - mass for mass in masses]
    )
    widths = np.linspace(0.9, 1.8, len(masses))
    look: dict[str, Any] = {"colors": [colour], "linewidths": widths, "linestyles": "solid"}
    ax.contour(*axis_grids, log_density, np.unique(heights), **(look | style))
    return ax


def _axis_grid(mixture: GaussianMixture, dim: int) -> Array:
    """Return grid points on an axis, close together where a component is narrow."""
    heavy = mixture.weights > 1e-6
    means = mixture.means[heavy, dim]
    sds = np.sqrt(mixture.covariances[heavy, dim, dim])
    # At least nine points resolve a component; with many components an even grid follows.
    points_each = max(MOST_GRID_POINTS // len(means), 9)
    grid = np.unique(means + sds * np.linspace(-4, 4, points_each)[:, None])
    if len(grid) > MOST_GRID_POINTS:
        return np.linspace(grid[0], grid[-1], MOST_GRID_POINTS)
    return grid


def plot_points(
    points: Any,
    ax: Axes | None = None,
    dims: axes.Dims = (0, 1),
    weights: ArrayLike | None = None,
    **style: Any,
) -> Axes:
    """Draw weighted points as dots whose area is proportional to the weight; in one dimension as sticks of that height.

    Parameters
    ----------
    points : Points, Particles, ParticleFilter or array_like of shape (n, d) or (n,)
        Or any object with ``x`` or ``particles``, and ``weights``.
    ax : matplotlib.axes.Axes, optional
    dims : int or (int, int)
        Dimensions to draw.
    weights : array_like, shape (n,), optional
        Used instead of the points' own weights; equal if neither exist. Dots of negative weight are hollow.
    **style
        Keywords of ``Axes.scatter``, or of ``Axes.vlines`` in one dimension.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-2, 0], [2, 0]], np.eye(2))
    >>> ax = hf.plotting.plot_mixture(mixture)
    >>> ax = hf.plotting.plot_points(hf.KernelHerding().sample(mixture, 20), ax=ax)
    >>> ax.figure.savefig("points.png")
    """
    values: Any = getattr(points, "particles", getattr(points, "x", points))
    if values is not points and weights is None:
        weights = getattr(points, "weights", None)
    x = as_array("points", values, (None,) if np.ndim(values) == 1 else (None, None))
    x = x[:, None] if x.ndim == 1 else x
    n, d = x.shape
    if n == 0:
        raise ValueError("points: expected at least one point, got none")
    w = np.full(n, 1.0 / n) if weights is None else as_array("weights", weights, (n,))
    axis_dims = axes.check_dims(dims, d)
    columns = x.T[list(axis_dims)]
    ax = axes.axes_or_new(ax)
    axes.name_axes(ax, *(f"x{i}" for i in axis_dims), "weight")
    colour = axes.pop_colour(ax, style)
    if len(columns) == 1:
        ax.vlines(columns[0], 0, w, **({"color": colour, "linewidth": 1.2} | style))
        return ax
    # Signed weights, as of some quadrature rules: a negative dot is hollow.
    faces = np.tile(to_rgba(colour, 0.7), (n, 1))
    faces[w < 0, 3] = 0.0
    look = {
        "s": DOT_AREA * n * np.abs(w),
        "facecolors": faces,
        "edgecolors": [colour],
        "linewidths": 0.5,
    }
    ax.scatter(*columns, **(look | style))
    return ax
