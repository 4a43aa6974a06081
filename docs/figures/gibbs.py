"""Herded Gibbs sampling in pictures: finite sets, why the published continuous recursion stalls, and its repairs."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import herdfilter as hf
from herdfilter.paper.common import narrow_component, rotated_mixture
from herdfilter.paper.fig2 import WeightFunction

from .look import BLUE, BROWN, FAINT, INK, ORANGE, QUIET, counts, dots, shade

PAPER, REPAIRED = BROWN, ORANGE


def repaired(
    bandwidth: object, count: bool = False, component: bool = False
) -> hf.ContinuousHerdedGibbs:
    """Return herded Gibbs sampling with the smoothed target, and with the other repairs if told."""
    return hf.ContinuousHerdedGibbs(
        "smoothed", bandwidth, effective_count=count, component_herding=component
    )


def discrete(longest: int = 20_000, chains: int = 20) -> Figure:
    """Draw the distance of herded and of random Gibbs sampling to a joint distribution of four bits, over the sweeps."""
    table = np.random.default_rng(0).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    sizes = np.unique(np.geomspace(10, longest, 28).astype(int))
    herded = _distances(hf.discrete.HerdedGibbs.from_joint(table).sample(longest), table, sizes)
    random = [_distances(_chain(table, longest, seed), table, sizes) for seed in range(chains)]
    figure = Figure(figsize=(9.6, 3.3))
    ax = figure.subplots()
    ax.plot(
        sizes,
        np.median(random, axis=0),
        color=INK,
        linestyle="--",
        label="random Gibbs sampling, median",
    )
    ax.plot(sizes, herded, "s-", color=ORANGE, markersize=4, label="herded Gibbs sampling")
    ax.plot(sizes, herded[0] * sizes[0] / sizes, color=QUIET, linewidth=0.9, label="$1/n$")
    counts(ax, (10, 100, 1000, 10_000), "sweeps n")
    ax.set_ylabel("total variation distance")
    ax.legend(loc="lower left")
    return figure


def _distances(states: np.ndarray, table: np.ndarray, sizes: np.ndarray) -> list[float]:
    seen = np.ravel_multi_index(tuple(states.T), table.shape)
    shares = (np.bincount(seen[:n], minlength=table.size) / n for n in sizes)
    return [0.5 * float(np.abs(share - table.ravel()).sum()) for share in shares]


def _chain(table: np.ndarray, n: int, seed: int) -> np.ndarray:
    """States of random Gibbs sampling of bits, one row after every sweep."""
    rng, x, states = np.random.default_rng(seed), [0] * table.ndim, np.empty((n, table.ndim), int)
    for t, uniform in enumerate(rng.random((n, table.ndim)).tolist()):
        for i, u in enumerate(uniform):
            off, on = (table[(*x[:i], value, *x[i + 1 :])] for value in (0, 1))
            x[i] = int(u * (off + on) < on)
        states[t] = x
    return states


def target(n: int = 1000, sigma_k: float = 0.2, at: float = 0.5) -> Figure:
    """Draw the two terms of the published recursion along a slice, and points before and after the first repair."""
    mixture = narrow_component()
    draws = mixture.sample(40_000, np.random.default_rng(0))
    x = np.linspace(-0.5, 1.5, 400)
    place = np.array([0.0, at])
    smooth = mixture.convolve(sigma_k**2 * np.eye(2))
    along = np.exp(smooth.log_density(np.column_stack([x, np.full(len(x), at)])))
    wanted = WeightFunction(mixture, draws, place, 0, sigma_k)
    # of the conditional, times the volume under the kernel: its height is that of the other two curves
    level = along / _integral(smooth, at) * sigma_k * np.sqrt(2 * np.pi)
    figure = Figure(figsize=(10.6, 3.3))
    axes = figure.subplots(1, 3, width_ratios=[1.25, 1, 1])
    axes[0].plot(
        x, wanted.expectation(x), color=PAPER, linewidth=2, label="$p$ conditioned, then smoothed"
    )
    axes[0].plot(x, level, color=REPAIRED, linewidth=2, label="$p$ smoothed, then conditioned")
    axes[0].plot(
        x,
        wanted.kernel_sum(x),
        ":",
        color=INK,
        linewidth=2,
        label="kernels at 40,000 draws from $p$",
    )
    axes[0].set(xlabel=f"$x_1$ on the slice $x_2$ = {at:g}", ylim=(0, 1.05), yticks=[0, 0.5, 1])
    axes[0].legend(loc="upper left", fontsize=9)
    for ax, sampler, name, colour in (
        (axes[1], hf.ContinuousHerdedGibbs("paper", sigma_k), "as published", PAPER),
        (axes[2], repaired(sigma_k), "smoothed target", REPAIRED),
    ):
        _ridge(ax, sampler.sample(mixture, n).x[n // 2 :], colour)
        ax.set_title(name, color=colour, fontweight="bold", fontsize=11)
    axes[1].set_ylabel("across the long component")
    return figure


def _integral(mixture: hf.GaussianMixture, at: float) -> float:
    return float(np.exp(mixture.marginal([1]).log_density(np.array([[at]])))[0])


def _ridge(ax: Axes, x: np.ndarray, colour: str) -> None:
    """Draw the points on the long component in its own axes, over its one and two standard deviations."""
    along, across = x.sum(axis=1) / np.sqrt(2), (x[:, 0] - x[:, 1]) / np.sqrt(2)
    there = np.abs(across) < 0.6
    angle = np.linspace(0, 2 * np.pi, 200)
    for radius in (1, 2):
        ax.fill(
            2 * radius * np.cos(angle),
            np.sqrt(0.02) * radius * np.sin(angle),
            color="#888888",
            alpha=0.22,
        )
    dots(ax, np.column_stack([along, across])[there], colour, 4)
    ax.set(xlim=(-5, 5), ylim=(-0.5, 0.5), xlabel="along it", yticks=[-0.4, -0.2, 0, 0.2, 0.4])


def count(n: int = 200, dims: tuple[int, ...] = (1, 2, 4, 8, 12, 16)) -> Figure:
    """Draw points of a normal distribution before and after the second repair, and how wide they lie over the dimension."""
    samplers = {
        "count $t$": (repaired(hf.bandwidths.Whitened()), PAPER, "v-"),
        "effective count": (repaired(hf.bandwidths.Whitened(), count=True), REPAIRED, "s-"),
    }
    figure = Figure(figsize=(10.2, 3.3))
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.2])
    circle = np.array(
        [np.cos(np.linspace(0, 2 * np.pi, 200)), np.sin(np.linspace(0, 2 * np.pi, 200))]
    )
    for ax, (name, (sampler, colour, style)) in zip(axes, samplers.items(), strict=False):
        found = {d: sampler.sample(_normal(d), n) for d in dims}
        for radius in (1, 2):
            ax.plot(*radius * circle, color=QUIET, linewidth=0.9)
        dots(ax, found[dims[-1]].x[:, :2], colour, 4)
        ax.set(
            aspect="equal", xlim=(-3.6, 3.6), ylim=(-3.6, 3.6), xticks=[-2, 0, 2], yticks=[-2, 0, 2]
        )
        ax.set_title(name, color=colour, fontweight="bold", fontsize=11)
        ax.set_xlabel(f"two of {dims[-1]} dimensions")
        wide = [np.trace(p.covariance) / d for d, p in found.items()]
        axes[2].plot(dims, wide, style, color=colour, label=name)
    axes[2].axhline(1, color=QUIET, linewidth=1, linestyle="--")
    axes[2].set(xlabel="dimension", xticks=dims, ylim=(0.6, 2))
    axes[2].set_title("average variance of the points; right is 1", fontsize=10)
    axes[2].grid(axis="y", color=FAINT, linewidth=0.7)
    axes[2].legend(loc="upper left")
    return figure


def _normal(dim: int) -> hf.GaussianMixture:
    return hf.GaussianMixture([1.0], np.zeros((1, dim)), np.eye(dim))


def jump(n: int = 100, apart: float = 6.0, sigma_k: float = 0.5) -> Figure:
    """Draw two modes that no coordinate leads between, before and after the third repair, and the share of one over t."""
    mixture = hf.GaussianMixture([0.7, 0.3], [[0.0, 0.0], [apart, apart]], np.eye(2))
    figure = Figure(figsize=(9.8, 3.3))
    axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.2])
    x = np.linspace(-3.6, apart + 3.6, 200)
    for ax, component, name, colour, style in (
        (axes[0], False, "one chain", PAPER, "-"),
        (axes[1], True, "component herding", REPAIRED, "-"),
    ):
        points = repaired(sigma_k, True, component).sample(mixture, n).x
        shade(ax, mixture, x, x)
        dots(ax, points, colour, 4.2)
        ax.set_title(name, color=colour, fontweight="bold", fontsize=11)
        share = np.cumsum(points.sum(axis=1) > apart) / np.arange(1, n + 1)
        axes[2].plot(np.arange(1, n + 1), share, style, color=colour, linewidth=1.6, label=name)
    axes[2].axhline(0.3, color=QUIET, linewidth=1, linestyle="--")
    axes[2].set(xlabel="points t", ylim=(-0.02, 0.6), yticks=[0, 0.3, 0.6])
    axes[2].set_title("share of the upper mode; right is 0.3", fontsize=10)
    axes[2].legend(loc="upper right")
    return figure


def together(sizes: tuple[int, ...] = (20, 50, 100, 200, 400), mixtures: int = 11) -> Figure:
    """Draw the energy distance over that of random draws, repair by repair, in two and in eight dimensions."""
    rule = hf.bandwidths.Whitened()
    steps = {
        "as published": (hf.ContinuousHerdedGibbs("paper", rule), PAPER, "v-"),
        "smoothed target": (repaired(rule), "#8a6a00", "^-"),
        "... and effective count": (repaired(rule, True), "#b08a50", "D-"),
        "... and component herding": (repaired(rule, True, True), ORANGE, "s-"),
        "kernel herding": (hf.KernelHerding(rule), BLUE, "o-"),
    }
    figure = Figure(figsize=(9.6, 4.0))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, d in zip(axes, (2, 8), strict=True):
        cases = [rotated_mixture(d, np.random.default_rng(seed)) for seed in range(mixtures)]
        for name, (sampler, colour, style) in steps.items():
            values = [np.median([_ratio(sampler, case, n) for case in cases]) for n in sizes]
            ax.plot(sizes, values, style, color=colour, markersize=5, label=name)
        ax.axhline(1, color=QUIET, linewidth=1)
        ax.set_title(f"d = {d}", fontsize=11)
        counts(ax, sizes)
    axes[0].set_ylabel("energy distance over that of\nas many random draws")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _ratio(sampler: hf.samplers.Sampler, mixture: hf.GaussianMixture, n: int) -> float:
    """Energy distance to the mixture, in coordinates in which its covariance is I, over that of random draws."""
    w = np.linalg.inv(np.linalg.cholesky(mixture.covariance))
    target = hf.GaussianMixture(mixture.weights, mixture.means @ w.T, w @ mixture.covariances @ w.T)
    return hf.energy_distance(sampler.sample(target, n), target) / hf.expected_energy_distance(
        target, n
    )
