"""Ellipses that hold a given probability of a Gaussian."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import as_array
from herdfilter.pictures._axes import as_mass, axes_or_new, colour_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def radius(mass: float, dim: int = 2) -> float:
    """Return how many standard deviations about its mean hold a share `mass` of a Gaussian, on the line or in the plane.

    The square root of the quantile of chi-square with `dim` degrees of freedom, 1 or 2.
    """
    if dim == 1:
        return NormalDist().inv_cdf((1 + mass) / 2)
    return math.sqrt(-2 * math.log1p(-mass))


def plot_ellipse(mean: ArrayLike, covariance: ArrayLike, ax: Axes | None = None, mass: float = 0.95, **style: Any) -> Axes:
    """Draw the ellipse about the mean that holds a given probability of a Gaussian in the plane, or several of them.

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

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If a shape does not fit, or `mass` is no probability.

    Examples
    --------
    >>> ax = hf.plotting.plot_ellipse([1.0, 2.0], np.diag([4.0, 1.0]), mass=0.95)
    >>> ellipse = ax.patches[0]
    >>> print(np.sort([ellipse.width, ellipse.height]).round(2))  # twice 2.45 standard deviations
    [4.9  9.79]
    """
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Ellipse

    means = np.atleast_2d(as_array("mean", mean, (2,) if np.ndim(mean) == 1 else (None, 2)))
    several = (2, 2) if np.ndim(covariance) == 2 else (len(means), 2, 2)
    covariances = np.broadcast_to(as_array("covariance", covariance, several), (len(means), 2, 2))
    scale, ax = 2 * radius(as_mass("mass", mass)), axes_or_new(ax)
    colour, label = colour_of(ax, style), style.pop("label", None)
    look = {"facecolor": to_rgba(colour, 0.12), "edgecolor": colour, "linewidth": 1.0} | style
    values, vectors = np.linalg.eigh(covariances)
    widths = scale * np.sqrt(np.maximum(values, 0.0))
    angles = np.degrees(np.arctan2(vectors[:, 1, 0], vectors[:, 0, 0]))
    for k, (centre, (width, height), angle) in enumerate(zip(means, widths, angles, strict=True)):
        named = {"label": label} if label is not None and k == 0 else {}
        ax.add_patch(Ellipse((centre[0], centre[1]), width, height, angle=angle, **look, **named))
    ax.autoscale_view()
    return ax
