"""Points of one mixture by three samplers."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import herdfilter as hf

from .look import INK, MIXTURE, SAMPLERS, dots, shade


def samplers(n: int = 100) -> Figure:
    """Draw n points from one mixture by three samplers."""
    drawn = {
        "random": hf.RandomSampling(),
        "kernel herding": hf.KernelHerding(),
        "herded Gibbs": hf.ContinuousHerdedGibbs(),
    }
    figure = Figure(figsize=(9.6, 3.35))
    for ax, (name, sampler) in zip(figure.subplots(1, 3), drawn.items(), strict=True):
        points, distance = _median_draw(sampler, n)
        style = SAMPLERS[name]
        shade(ax, MIXTURE)
        dots(ax, points.x, style.color, 5.4 if style.marker == "X" else 4.6, style.marker)
        ax.set_title(name, color=style.color, fontweight="bold", fontsize=12)
        ax.set_xlabel(f"energy distance {distance:.2g}", color=INK)
    return figure


def _median_draw(sampler: hf.RandomSampling, n: int, draws: int = 101) -> tuple[hf.Points, float]:
    """Points of the seed whose energy distance is the median: a typical draw of a random sampler."""
    seeds = range(draws if isinstance(sampler, hf.RandomSampling) else 1)
    points = [sampler.sample(MIXTURE, n, rng=seed) for seed in seeds]
    distances = [hf.energy_distance(p, MIXTURE) for p in points]
    middle = int(np.argsort(distances)[len(distances) // 2])
    return points[middle], distances[middle]
