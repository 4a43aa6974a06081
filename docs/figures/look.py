"""What the figures share: colours, letters, and the mixture of the samplers' pages."""

from __future__ import annotations

from collections.abc import Iterable

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

import herdfilter as hf
from herdfilter.plotting import STYLES, style

INK, FAINT, GREY = style.INK, style.FAINT, style.GREY
BLUE, SKY, NAVY = style.BLUE, style.SKY, style.NAVY  # kernel herding
ORANGE, BROWN = style.ORANGE, style.BROWN  # herded Gibbs sampling: the package's, and as published
GREEN = style.GREEN  # ranks and quantiles
QUIET = "#6e6e6e"  # letters, too
SAMPLERS = {
    "kernel herding": STYLES["herded-kh"],
    "herded Gibbs": STYLES["herded-chg"],
    "random": STYLES["bootstrap"],
}
"""The samplers that pages show side by side: each has the colour and the marker of its filter."""
LOOK = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",  # readable on a dark page
}

# The five components of the example in Wolf and Baum (2021).
MIXTURE = hf.GaussianMixture(
    [0.3, 0.1, 0.2, 0.3, 0.1],
    [[6, 5], [7, 2], [1, 3], [7, 6], [2, 8]],
    [
        [[5, 3], [3, 5]],
        [[1, 0.3], [0.3, 1]],
        [[4, 3], [3, 4]],
        [[2, 0.5], [0.5, 3]],
        [[1, 0], [0, 3]],
    ],
)
X, Y = np.linspace(-5, 13, 300), np.linspace(-3.2, 13.2, 280)
"""Where the density of `MIXTURE` is drawn."""


def mirrored(color: str) -> str:
    """Return the colour "#rrggbb" that dark pages show for a colour: the same hue, with light and dark exchanged.

    It equals the result of ``filter: invert(1) hue-rotate(180deg)`` in CSS (Filter Effects Module Level 1), so that pictures
    and text of one page agree.
    """
    rotation = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
    return to_hex(np.clip(rotation @ (1 - np.array(to_rgb(color))), 0, 1))


def plane(ax: Axes, x: np.ndarray = X, y: np.ndarray = Y) -> np.ndarray:
    """Make an axes a piece of the plane without ticks; return the places of a grid on it, (len(x) * len(y), 2)."""
    ax.set(aspect="equal", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def shade(ax: Axes, mixture: hf.GaussianMixture, x: np.ndarray = X, y: np.ndarray = Y) -> None:
    """Draw the density of a mixture in grey."""
    density = np.exp(mixture.log_density(plane(ax, x, y))).reshape(len(y), len(x))
    levels = density.max() * np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 1.01])
    ax.contourf(
        x,
        y,
        density,
        levels,
        colors=mpl.colormaps["Greys"](np.linspace(0.06, 0.42, len(levels) - 1)),
    )


def dots(ax: Axes, x: np.ndarray, colour: str, size: float = 4.6, marker: str = "o") -> None:
    """Draw points (n, 2)."""
    ax.plot(
        *x.T, marker, color=colour, markersize=size, markeredgecolor="white", markeredgewidth=0.5
    )


def counts(ax: Axes, n: Iterable[int], label: str = "points n") -> None:
    """Give an axes two logarithmic scales, these numbers of points as ticks, and a grid."""
    ax.set(xscale="log", yscale="log", xlabel=label)
    ax.minorticks_off()
    ax.set_xticks(list(n), [str(count) for count in n])
    low, high = ax.get_ylim()
    ticks = [m * 10.0**p for p in range(-6, 4) for m in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    if len(inside) > 8:
        inside = [tick for tick in inside if f"{tick:e}"[0] == "1"]
    ax.set_yticks(inside, [f"{tick:g}" for tick in inside])
    ax.grid(axis="y", color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)
