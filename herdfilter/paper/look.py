"""What the figures share: the samplers, their names and their styles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from herdfilter._checks import Array
from herdfilter.bandwidths import Bandwidth
from herdfilter.mixture import GaussianMixture
from herdfilter.plotting.style import Style
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, Sampler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KH, CHG, SMOOTHED, RANDOM = "kernel herding", "CHG, as published", "CHG, smoothed", "random"

# Colours of Okabe and Ito (2008), as in `herdfilter.plotting`.
STYLES = {
    KH: Style("#0072B2", "o", "-"),
    CHG: Style("#D55E00", "s", "-"),
    SMOOTHED: Style("#009E73", "^", "-"),
    RANDOM: Style("#6b6b6b", "X", "-"),
}
INK, QUIET = "#222222", "#777777"


def herding_samplers(bandwidth: Bandwidth) -> dict[str, Sampler]:
    """Kernel herding, and continuous herded Gibbs as published and with its repairs."""
    return {
        KH: KernelHerding(bandwidth=bandwidth),
        CHG: ContinuousHerdedGibbs(target="paper", bandwidth=bandwidth),
        SMOOTHED: ContinuousHerdedGibbs(bandwidth=bandwidth),
    }


def shade_density(ax: Axes, mixture: GaussianMixture, x: Array, y: Array) -> None:
    """Draw the density of a mixture in the plane as filled contours in grey, and its axes with equal scales."""
    import matplotlib as mpl

    grid = np.stack(np.meshgrid(x, y), axis=-1)
    density = np.exp(mixture.log_density(grid.reshape(-1, 2))).reshape(grid.shape[:2])
    levels = density.max() * np.array([0.01, 0.03, 0.08, 0.18, 0.34, 0.55, 0.78, 1.01])
    ax.contourf(x, y, density, levels, colors=mpl.colormaps["Greys"](np.linspace(0.06, 0.42, len(levels) - 1)))
    ax.set(aspect="equal", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    ax.grid(visible=False)


def draw_curve(ax: Axes, values: Array, name: str) -> None:
    """Draw an error against the number of points in the style of a sampler, on logarithmic axes."""
    style = STYLES[name]
    marks = np.unique(np.geomspace(1, len(values), 9).astype(int) - 1)
    ax.plot(
        np.arange(1, len(values) + 1),
        values,
        label=name,
        linewidth=1.4,
        markersize=5,
        markevery=list(marks),
        **style.line,
    )
    ax.set(xscale="log", yscale="log")
