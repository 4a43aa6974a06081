"""Gaussian mixtures: contours of given probability in the plane, the density on the line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture, as_mixture
from herdfilter.pictures._axes import Dims, as_mass, axes_or_new, chosen, colour_of, name_axes, state_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWS = 4000
"""Points by which a probability is found: right to a hundredth."""

CELLS = 400
"""Most places of an axis at which a density is computed."""


def plot_mixture(
    mixture: GaussianMixture,
    ax: Axes | None = None,
    dims: Dims = (0, 1),
    levels: Sequence[float] = (0.5, 0.95),
    **style: Any,
) -> Axes:
    """Draw the smallest regions of the plane that hold given probabilities of a mixture; on the line, its density.

    Parameters
    ----------
    mixture : GaussianMixture
        Of any dimension: its marginal is drawn.
    ax : matplotlib.axes.Axes, optional
    dims : int or (int, int)
        Dimensions to draw.
    levels : sequence of float
        Probabilities of the regions, found from a sample of fixed seed to within a hundredth.
    **style
        Keywords of ``Axes.contour``, or of ``Axes.plot`` in one dimension.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If it is no mixture, a dimension does not exist, a level is no probability, or the marginal has no density.

    Examples
    --------
    >>> mixture = hf.GaussianMixture([0.5, 0.5], [[-2, 0], [2, 0]], np.eye(2))
    >>> ax = hf.plotting.plot_mixture(mixture)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'x1')
    """
    shown_dims = chosen(dims, as_mixture("mixture", mixture).dim)
    masses = sorted({as_mass("levels", level) for level in levels}, reverse=True)
    marginal, ax = mixture.marginal(shown_dims), axes_or_new(ax)
    colour, places = colour_of(ax, style), [_places(marginal, i) for i in range(len(shown_dims))]
    if len(shown_dims) == 1:
        density = np.exp(marginal.log_density(places[0][:, None]))
        ax.plot(places[0], density, **({"color": colour} | style))
        name_axes(ax, state_label((), shown_dims[0]), "density")
        return ax
    grid = np.stack(np.meshgrid(*places), axis=-1)
    log_density = marginal.log_density(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    heights = np.quantile(marginal.log_density(marginal.sample(DRAWS, 0)), [1 - mass for mass in masses])
    widths = np.linspace(0.9, 1.8, len(masses))
    look: dict[str, Any] = {"colors": [colour], "linewidths": widths, "linestyles": "solid"}
    ax.contour(*places, log_density, np.unique(heights), **(look | style))
    name_axes(ax, state_label((), shown_dims[0]), state_label((), shown_dims[1]))
    return ax


def _places(mixture: GaussianMixture, dim: int) -> Array:
    """Places on an axis, close together where a component is narrow."""
    heavy = mixture.weights > 1e-6
    means = mixture.means[heavy, dim]
    sds = np.sqrt(mixture.covariances[heavy, dim, dim])
    each = max(CELLS // len(means), 9)
    if len(means) * each > CELLS:
        return np.linspace((means - 4 * sds).min(), (means + 4 * sds).max(), CELLS)
    return np.unique(means[:, None] + sds[:, None] * np.linspace(-4, 4, each))
