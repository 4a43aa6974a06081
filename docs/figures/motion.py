"""Herding in motion: three samplers place their points one by one, as a picture that moves and as data for the player."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

import herdfilter as hf
from herdfilter.bandwidths import kernel_covariance

from .look import INK, MIXTURE, QUIET, SAMPLERS, counts, shade

LONGEST = 100
"""Points of each sequence."""
DRAWS = 101
"""Random sequences, of which the one with the median distance at the end is shown."""
COLOURS = 64
SLOW, QUICK, LAST = 320, 110, 5000
"""Milliseconds of a picture: of the first ten, of the others, of the last."""


class Sequence(NamedTuple):
    """Points (n, 2) in the order in which they are placed, and the energy distance of the first 1, 2, ... n."""

    x: np.ndarray
    distances: list[float]


def sequence(x: np.ndarray) -> Sequence:
    """Measure every beginning of a sequence of points (n, 2)."""
    return Sequence(
        x, [hf.energy_distance(hf.Points(x[:n]), MIXTURE) for n in range(1, len(x) + 1)]
    )


def sequences(n: int = LONGEST) -> dict[str, Sequence]:
    """Return a sequence of each sampler; the kernel is that of the automatic rule for n points and stays the same."""
    kernel = kernel_covariance("auto", MIXTURE, n)
    drawn = [MIXTURE.sample(n, seed) for seed in range(DRAWS)]
    order = np.argsort([hf.energy_distance(hf.Points(x), MIXTURE) for x in drawn])
    found = {
        "kernel herding": hf.KernelHerding(kernel).sample(MIXTURE, n).x,
        "herded Gibbs": hf.ContinuousHerdedGibbs(bandwidth=kernel).sample(MIXTURE, n).x,
        "random": drawn[order[DRAWS // 2]],
    }
    return {name: sequence(found[name]) for name in SAMPLERS}


def motion(path: Path) -> None:
    """Draw the sequences as they grow, with the energy distance under each, and write them as one GIF that moves."""
    shown = sequences()
    sizes = np.arange(1, LONGEST + 1)
    figure = Figure(figsize=(9.6, 4.75), dpi=120)
    canvas = FigureCanvasAgg(figure)
    figure.get_layout_engine().set(hspace=0.09, rect=(0, 0, 1, 0.975))
    grid = figure.add_gridspec(2, 3, height_ratios=[1, 0.42])
    below = figure.add_subplot(grid[1, :])
    expected = [hf.expected_energy_distance(MIXTURE, n) for n in sizes]
    below.plot(sizes, expected, "--", color=QUIET, linewidth=1.2, label="independent draws, mean")
    distances = np.concatenate([s.distances for s in shown.values()])
    below.set(xlim=(1, LONGEST * 1.06), ylim=(distances.min() / 1.5, distances.max() * 1.5))
    counts(below, (1, 2, 5, 10, 20, 50, 100))
    below.set_ylabel("energy distance")
    below.legend(loc="lower left", fontsize=9)
    moving = []
    for k, (name, style) in enumerate(SAMPLERS.items()):
        ax = figure.add_subplot(grid[0, k])
        shade(ax, MIXTURE)
        ax.set_title(name, color=style.color, fontweight="bold", fontsize=12)
        look = {"color": style.color, "markeredgecolor": "white", "markeredgewidth": 0.5}
        size = 6.2 if style.marker == "X" else 5.2
        (points,) = ax.plot([], [], style.marker, markersize=size, **look)
        (newest,) = ax.plot([], [], style.marker, markersize=2 * size, **look)
        ax.set_xlabel(" ")
        label = ax.text(0.5, -0.01, "", ha="center", va="top", transform=ax.transAxes, color=INK)
        (line,) = below.plot([], [], color=style.color, linewidth=1.4)
        (tip,) = below.plot([], [], style.marker, markersize=size + 1, **look)
        moving.append((shown[name], points, newest, label, line, tip))
    number = below.text(
        0.985,
        0.9,
        "",
        ha="right",
        va="top",
        transform=below.transAxes,
        fontweight="bold",
        color=INK,
    )
    artists = [number, *(artist for _, *some in moving for artist in some)]
    for artist in artists:
        artist.set_animated(True)
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)
    pictures = []
    for n in sizes:
        canvas.restore_region(still)
        number.set_text(f"{n} point{'s' if n > 1 else ''}")
        for (x, distance), points, newest, label, line, tip in moving:
            points.set_data(*x[: n - 1].T)
            newest.set_data(*x[n - 1 : n].T)
            label.set_text(f"energy distance {distance[n - 1]:#.2g}")
            line.set_data(sizes[:n], distance[:n])
            tip.set_data(sizes[n - 1 : n], distance[n - 1 : n])
        for artist in artists:
            figure.draw_artist(artist)
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba()).copy()).convert("RGB"))
    pictures = _indexed(pictures)
    times = [SLOW if n < 10 else QUICK for n in sizes[:-1]] + [LAST]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=times, loop=0)


def _indexed(pictures: list[Image.Image]) -> list[Image.Image]:
    """Give pictures one palette: the most frequent colours of the last, and to every other colour the nearest of them."""
    frequent = sorted(pictures[-1].getcolors(2**24) or [], reverse=True)[:COLOURS]
    palette = np.array([colour for _, colour in frequent])
    found = []
    for picture in pictures:
        pixels = np.asarray(picture).reshape(-1, 3)
        codes, places = np.unique(pixels @ np.array([65_536, 256, 1]), return_inverse=True)
        colours = np.column_stack([codes >> 16, codes >> 8 & 255, codes & 255])
        nearest = ((colours[:, None] - palette) ** 2).sum(axis=2).argmin(axis=1)
        indexed = Image.fromarray(
            nearest[places].reshape(picture.height, picture.width).astype(np.uint8), "P"
        )
        indexed.putpalette(palette.astype(np.uint8).tobytes())
        found.append(indexed)
    return found
