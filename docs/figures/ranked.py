"""Ranked particles in pictures: ancestors at even steps along a curve, and noise that is balanced along it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from herdfilter.filters.resampling.base import ranked_members
from herdfilter.samplers.balanced import balanced_noise, hilbert_order

from .look import FAINT, GREEN, GREY, INK, QUIET, dots

BANANA = 0.35
"""How much the particles' cloud bends."""


def particles(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return particles (n, 2) of a bent cloud, with weights (n,) by an observation of the first coordinate."""
    x = np.random.default_rng(3).standard_normal((n, 2)) * [1.3, 0.6]
    x[:, 1] += BANANA * x[:, 0] ** 2
    weights = np.exp(-0.5 * ((x[:, 0] - 0.5) / 0.8) ** 2)
    return x, weights / weights.sum()


def order(n: int = 48) -> Figure:
    """Draw weighted particles along the sorting curve, and the even steps through their weights."""
    x, weights = particles(n)
    ranks, chosen = hilbert_order(x, weights), ranked_members(x, weights, (), n)
    taken = np.isin(np.arange(n), chosen)
    figure = Figure(figsize=(9.6, 3.6))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    left.plot(*x[ranks].T, color=QUIET, linewidth=1)
    for here, colour in ((taken, GREEN), (~taken, "#b5b5b5")):
        left.scatter(
            *x[here].T,
            s=12 + 2600 * weights[here],
            color=colour,
            edgecolor="white",
            zorder=3,
            linewidth=0.6,
        )
    left.set(xticks=[], yticks=[])
    left.spines[:].set_visible(False)
    left.set_title("in order along the Hilbert curve", fontsize=11)
    left.set_xlabel("areas: weights; green: taken as ancestors")
    whole = np.concatenate([[0], np.cumsum(weights[ranks])])
    right.stairs(whole[1:], np.arange(n + 1) + 0.5, color=INK, linewidth=1.4, baseline=None)
    place = np.empty(n, int)
    place[ranks] = np.arange(1, n + 1)
    levels = (np.arange(n) + 0.5) / n
    for level, rank in zip(levels, place[chosen], strict=True):
        right.plot([0, rank], [level, level], color="#c9dac3", linewidth=0.8)
    right.plot(place[chosen], levels, "o", color=GREEN, markersize=3.5, zorder=3)
    right.set(xlabel="rank of the particle", xlim=(0, n + 1), ylim=(0, 1), yticks=[0, 0.5, 1])
    right.set_title("cumulative weights, and even steps through them", fontsize=11)
    return figure


def noise(n: int = 64, run: int = 8) -> Figure:
    """Draw the noise of a run of successive ranks, balanced and random, and how wide runs are spread."""
    figure = Figure(figsize=(9.8, 3.3))
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.25])
    start = n // 2 - run // 2
    runs = np.array([4, 8, 16, 32, n])
    for ax, (name, (colour, sets)) in zip(axes, _noises(n).items(), strict=False):
        z = sets[0]
        _cloud(ax, z, slice(start, start + run), colour)
        ax.set_title(f"{name} noise", color=colour, fontweight="bold", fontsize=11)
        ax.set_xlabel(f"{run} successive of {n}")
        off = [np.sqrt(np.mean([_means(z, length) for z in sets])) for length in runs]
        axes[2].plot(runs, off, "o-", color=colour, markersize=4, label=name)
    axes[2].set(xscale="log", xlabel="length of the run", ylim=(0, None))
    axes[2].minorticks_off()
    axes[2].set_xticks(runs, [str(length) for length in runs])
    axes[2].grid(axis="y", color=FAINT, linewidth=0.7)
    axes[2].set_title("error of the mean over a run, RMS", fontsize=11)
    axes[2].legend()
    return figure


def _noises(n: int) -> dict[str, tuple[str, list[np.ndarray]]]:
    rng = np.random.default_rng(1)
    return {
        "balanced": (GREEN, [balanced_noise(n, 2, turn) for turn in range(8)]),
        "random": (GREY, [rng.standard_normal((n, 2)) for _ in range(400)]),
    }


def _cloud(ax: Axes, z: np.ndarray, shown: slice, colour: str) -> None:
    dots(ax, z, "#c4c4c4", 4.5)
    dots(ax, z[shown], colour, 7.5)
    ax.set(aspect="equal", xlim=(-3.1, 3.1), ylim=(-3.1, 3.1), xticks=[-2, 0, 2], yticks=[-2, 0, 2])


def _means(z: np.ndarray, length: int) -> float:
    """Mean square of the mean over runs of successive members."""
    sums = np.concatenate([np.zeros((1, z.shape[1])), np.cumsum(z, axis=0)])
    return float((((sums[length:] - sums[:-length]) / length) ** 2).mean())
