"""Kernel herding in pictures: its step, its points, its bandwidth, and one dimension."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import herdfilter as hf
from herdfilter.bandwidths import kernel_covariance
from herdfilter.kernels import expected_kernel

from .look import BLUE, GREEN, INK, MIXTURE, NAVY, QUIET, SKY, X, Y, counts, dots, plane, shade

SO_FAR = 5
KERNEL = kernel_covariance("auto", MIXTURE, 20)
"""As wide as the rule has it for twenty points."""
SHADES = mpl.colors.LinearSegmentedColormap.from_list("shades", ["white", "#6f6f6f"])


def _kernels(places: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Sum of the kernels at points (t, d), at places (n, d); (n,)."""
    factor = np.linalg.inv(np.linalg.cholesky(KERNEL)).T
    away = (places[:, None] - x) @ factor
    return np.exp(-0.5 * (away**2).sum(axis=2)).sum(axis=1)


def step() -> Figure:
    """Draw what the sixth point maximises: the smoothed mixture less the kernels at the first five."""
    x = hf.KernelHerding(KERNEL).sample(MIXTURE, SO_FAR + 1).x
    figure = Figure(figsize=(9.6, 3.2))
    axes = figure.subplots(1, 3)
    places = np.stack(np.meshgrid(X, Y), axis=-1).reshape(-1, 2)
    wanted = expected_kernel(MIXTURE, places, KERNEL)
    there = _kernels(places, x[:SO_FAR]) / (SO_FAR + 1)
    shown = {
        "wanted: the smoothed mixture": wanted,
        "there: the kernels at 5 points": there,
        "missing: the difference": wanted - there,
    }
    for ax, (name, values) in zip(axes, shown.items(), strict=True):
        plane(ax)
        grey = ax is not axes[2]
        top = max(wanted.max(), there.max()) if grey else abs(values).max()
        levels = np.linspace(0 if grey else -top, top, 12)
        ax.contourf(X, Y, values.reshape(len(Y), len(X)), levels, cmap=SHADES if grey else "PuOr_r")
        dots(ax, x[:SO_FAR], INK, 6)
        ax.set_title(name, fontsize=11)
    for s, place in enumerate(x[:SO_FAR]):
        axes[1].annotate(str(s + 1), place, (5, 4), textcoords="offset points", fontsize=9)
    axes[2].plot(*x[SO_FAR], "*", color="white", markersize=17, markeredgecolor=INK)
    axes[2].annotate(
        "6", x[SO_FAR], (8, 5), textcoords="offset points", color="white", fontweight="bold"
    )
    return figure


def points() -> Figure:
    """Draw the first 5, 20 and 80 points of one sequence."""
    sizes = (5, 20, 80)
    x = hf.KernelHerding(kernel_covariance("auto", MIXTURE, sizes[-1])).sample(MIXTURE, sizes[-1]).x
    figure = Figure(figsize=(9.6, 3.3))
    before = 0
    for ax, n in zip(figure.subplots(1, 3), sizes, strict=True):
        shade(ax, MIXTURE)
        dots(ax, x[:before], INK, 4.2)
        dots(ax, x[before:n], BLUE, 5.2)
        ax.set_title(f"t = {n}", fontsize=11)
        own, drawn = (
            hf.energy_distance(hf.Points(x[:n]), MIXTURE),
            hf.expected_energy_distance(MIXTURE, n),
        )
        ax.set_xlabel(
            f"energy distance {own:.2g}, of random draws {drawn:.2g}", color=INK, fontsize=9
        )
        before = n
    return figure


def bandwidth(n: int = 100) -> Figure:
    """Draw points herded in kernels that are too narrow, right, and too wide, and the energy distance over the width."""
    right = hf.bandwidths.scale_rule(n, 2)

    def drawn(factor: float) -> tuple[np.ndarray, float]:
        found = hf.KernelHerding(factor**2 * kernel_covariance("auto", MIXTURE, n)).sample(
            MIXTURE, n
        )
        return found.x, hf.energy_distance(found, MIXTURE) / hf.expected_energy_distance(MIXTURE, n)

    figure = Figure(figsize=(11.4, 3.15))
    grid = figure.add_gridspec(1, 4, width_ratios=[1, 1, 1, 1.15])
    shown = {"too narrow": (0.1, SKY), "the rule": (1.0, BLUE), "too wide": (6.0, NAVY)}
    factors = np.geomspace(0.05, 10, 24)
    last = figure.add_subplot(grid[3])
    last.plot(factors * right, [drawn(f)[1] for f in factors], color=QUIET, linewidth=1.5)
    last.axhline(1, color=QUIET, linewidth=1, linestyle="--")
    last.annotate("random draws", (0.5, 1), (0, 3), xycoords=("axes fraction", "data"), ha="center",
                  textcoords="offset points", fontsize=9, color=QUIET)  # fmt: skip
    for k, (name, (factor, colour)) in enumerate(shown.items()):
        ax = figure.add_subplot(grid[k])
        x, ratio = drawn(factor)
        shade(ax, MIXTURE)
        dots(ax, x, colour)
        ax.set_title(
            f"{name}: h = {factor * right:.2g}", color=colour, fontweight="bold", fontsize=11
        )
        last.plot(factor * right, ratio, "o", color=colour, markersize=8, zorder=3)
    counts(last, [0.02, 0.1, 0.5, 2], "width h, in standard deviations")
    last.set_title("energy distance over random", fontsize=10)
    return figure


def line(n: int = 8) -> Figure:
    """Draw quantiles as the points of least energy distance on a line, and the distance over their number."""
    mixture = hf.GaussianMixture([0.4, 0.6], [[-2.0], [1.5]], [[[0.5]], [[1.2]]])
    x = np.linspace(-5, 5.5, 1200)
    density = np.exp(mixture.log_density(x[:, None]))
    whole = np.cumsum(density) * (x[1] - x[0])
    at = hf.QuantileSampling().sample(mixture, n).x[:, 0]
    steps = (at <= x[:, None]).mean(axis=1)
    figure = Figure(figsize=(9.6, 3.3))
    left, right = figure.subplots(1, 2)
    left.fill_between(x, whole, steps, color=GREEN, alpha=0.3, linewidth=0)
    left.plot(x, whole, color=QUIET, linewidth=2, label="mixture")
    left.plot(x, steps, color=GREEN, linewidth=1.4, label=f"{n} quantiles")
    left.plot(at, np.zeros(n), "s", color=GREEN, markersize=6, clip_on=False, zorder=3)
    left.set_yticks([0, 0.5, 1])
    left.set(xlabel="x", ylabel="distribution function", ylim=(0, 1.02), xlim=(x[0], x[-1]))
    left.legend(loc="upper left")
    sizes = [5, 10, 20, 50, 100, 200]
    curves = {
        "random draws, expected": (
            INK,
            "--",
            [hf.expected_energy_distance(mixture, m) for m in sizes],
        ),
        "kernel herding": (BLUE, "o-", _distances(hf.KernelHerding(), mixture, sizes)),
        "quantiles": (GREEN, "s-", _distances(hf.QuantileSampling(), mixture, sizes)),
    }
    for name, (colour, style, values) in curves.items():
        right.plot(sizes, values, style, color=colour, markersize=5, label=name)
    counts(right, sizes)
    right.set_ylabel("energy distance")
    right.legend(loc="lower left")
    return figure


def _distances(
    sampler: hf.samplers.Sampler, mixture: hf.GaussianMixture, sizes: list[int]
) -> list[float]:
    return [hf.energy_distance(sampler.sample(mixture, n), mixture) for n in sizes]
