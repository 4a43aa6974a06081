"""Write the points that the page herding_live.md shows, into _static/herding_data.js: ``python docs/make_live.py``.

They are the package's own, and so are the energy distances; it takes half a minute. For each mixture, sampler and bandwidth
there is one sequence of points, of which the page shows the beginning, and for the automatic bandwidth, which depends on
the number of points, one set for each number. The file is JSON behind an assignment, so that a page can read it from disk.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from figures.look import MIXTURE, SAMPLERS, mirrored
from figures.motion import LONGEST, Sequence, sequences
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline

import herdfilter as hf
from herdfilter.bandwidths import scale_rule
from herdfilter.samplers.herding.frame import far_groups, unlike_groups

DATA = Path(__file__).parent / "_static" / "herding_data.js"
HEAD = "globalThis.herdingData = "
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 80, 100, 126, 160, 200)
WIDTHS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Widths h of the kernel h^2 C, with C the covariance of the mixture."""
DRAWS = 4
SHARES = (0.99, 0.95, 0.85, 0.7, 0.5, 0.3, 0.1)
"""Probability inside each outline of a density."""
WIDTH, HEIGHT = 1000, 900
"""Size of a picture, in the units of outlines and kernels."""
LARGEST_CODE = 65_535
HERDED = {"kernel herding": hf.KernelHerding, "herded Gibbs": hf.ContinuousHerdedGibbs}


def mixtures() -> dict[str, hf.GaussianMixture]:
    """Return the mixtures of the page by name, those that are hard for herding last."""
    angle = np.linspace(0.15, 0.95, 10) * np.pi
    along = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    across = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    bend = 0.9 * np.einsum("mi,mj->mij", along, along) + 0.04 * np.einsum(
        "mi,mj->mij", across, across
    )
    share = np.linspace(1, 2, len(angle))
    return {
        "five components": MIXTURE,
        "one Gaussian": hf.GaussianMixture([1.0], [[0, 0]], [[4, 1.2], [1.2, 1]]),
        "a bent ridge": hf.GaussianMixture(share / share.sum(), across * [6, 4.5], bend),
        "close modes": hf.GaussianMixture(
            [0.4, 0.35, 0.25],
            [[0, 0], [2.3, 0.4], [1, 2.2]],
            [np.diag([0.8, 1]), [[1, 0.3], [0.3, 0.6]], [[0.7, -0.2], [-0.2, 0.5]]],
        ),
        "far modes": hf.GaussianMixture(
            [0.8, 0.2], [[0, 0], [9, 5]], [[[1, 0.3], [0.3, 1.2]], [[0.8, -0.2], [-0.2, 0.6]]]
        ),
        "wide and narrow": hf.GaussianMixture(
            [0.65, 0.35], [[0, 0], [2, 1]], [[[9, 2], [2, 6]], [[0.03, 0.01], [0.01, 0.02]]]
        ),
    }


def data() -> dict[str, Any]:
    """Return all that the page shows."""
    moving = sequences()
    low, high, _ = outlines(MIXTURE)
    return {
        "samplers": {
            name: {
                "light": style.color,
                "dark": mirrored(style.color),
                "marker": style.marker,
            }
            for name, style in SAMPLERS.items()
        },
        "counts": COUNTS,
        "widths": WIDTHS,
        "size": [WIDTH, HEIGHT],
        "player": {
            "mixture": "five components",
            "expected": expected(MIXTURE, range(1, LONGEST + 1)),
            "sets": {name: entry(s.x, s.distances, low, high) for name, s in moving.items()},
        },
        "mixtures": {name: shown(mixture) for name, mixture in mixtures().items()},
    }


def shown(mixture: hf.GaussianMixture) -> dict[str, Any]:
    """Return what the page shows of a mixture."""
    low, high, density = outlines(mixture)
    draws = [beginnings(mixture, mixture.sample(COUNTS[-1], seed)) for seed in range(DRAWS)]
    sets = {
        name: [entry(*own, low, high) for own in sampled(mixture, sampler)]
        for name, sampler in HERDED.items()
    }
    return {
        "density": density,
        # a kernel of width 1, as the two axes of an ellipse in units of the picture
        "kernel": (np.linalg.cholesky(mixture.covariance) * (scale(low, high) * [1, -1])[:, None])
        .round(1)
        .tolist(),
        "rule": [0 if divided(mixture, n) else digits(scale_rule(n, 2)) for n in COUNTS],
        "expected": expected(mixture, COUNTS),
        "sets": sets | {"random": [entry(*draw, low, high) for draw in draws]},
    }


def sampled(
    mixture: hf.GaussianMixture, sampler: type[hf.KernelHerding | hf.ContinuousHerdedGibbs]
) -> list[Sequence]:
    """Return the sets of the automatic bandwidth, one after the other, and the sequence of each width."""
    automatic = [sampler().sample(mixture, n) for n in COUNTS]
    own = Sequence(
        np.concatenate([p.x for p in automatic]),
        [hf.energy_distance(p, mixture) for p in automatic],
    )
    kernels = [h**2 * mixture.covariance for h in WIDTHS]
    return [
        own,
        *(beginnings(mixture, sampler(bandwidth=k).sample(mixture, COUNTS[-1]).x) for k in kernels),
    ]


def beginnings(mixture: hf.GaussianMixture, x: np.ndarray) -> Sequence:
    """Measure the beginnings of a sequence of points (n, 2)."""
    return Sequence(x, [hf.energy_distance(hf.Points(x[:n]), mixture) for n in COUNTS])


def divided(mixture: hf.GaussianMixture, n: int) -> bool:
    """Whether n points with the automatic bandwidth are herded group by group, each group in a kernel of its own."""
    return bool(far_groups(mixture, n).any() or unlike_groups(mixture, n).any())


def expected(mixture: hf.GaussianMixture, sizes: range | tuple[int, ...]) -> list[float]:
    """Return the mean energy distance of so many independent draws."""
    return [digits(hf.expected_energy_distance(mixture, n)) for n in sizes]


def entry(
    x: np.ndarray, distances: list[float], low: np.ndarray, high: np.ndarray
) -> dict[str, Any]:
    """Code points, 16 bits for each coordinate between the limits of the picture, and their energy distances."""
    codes = np.clip((x - low) / (high - low) * LARGEST_CODE, 0, LARGEST_CODE).round().astype("<u2")
    return {
        "points": base64.b64encode(codes.tobytes()).decode(),
        "distances": [digits(d) for d in distances],
    }


def digits(value: float) -> float:
    """Round to three digits."""
    return float(f"{value:.3g}")


def scale(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Units of the picture for one unit of the state, (2,)."""
    return np.array([WIDTH, HEIGHT]) / (high - low)


def outlines(mixture: hf.GaussianMixture) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the limits (2,) of a mixture's picture, and the outlines of its density as paths of an SVG.

    Each outline holds one of the `SHARES`: the region of highest density with that probability.
    """
    deviation = np.sqrt(np.diagonal(mixture.covariance))
    low, high = mixture.mean - 4.5 * deviation, mixture.mean + 4.5 * deviation
    x, y, density = on_grid(mixture, low, high)
    rows, columns = np.nonzero(density > levels(density)[0])
    low, high = (
        np.array([x[columns.min()], y[rows.min()]]),
        np.array([x[columns.max()], y[rows.max()]]),
    )
    centre, size = (low + high) / 2, 1.2 * (high - low)
    size = (size / [WIDTH, HEIGHT]).max() * np.array([WIDTH, HEIGHT])
    low, high = centre - size / 2, centre + size / 2
    x, y, density = on_grid(mixture, low, high)
    axes, top = Figure().subplots(), 2 * density.max()
    paths = [axes.contourf(x, y, density, [level, top]).get_paths()[0] for level in levels(density)]
    return (
        low,
        high,
        ["".join(svg(polygon, low, high) for polygon in path.to_polygons()) for path in paths],
    )


def on_grid(
    mixture: hf.GaussianMixture, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the density (m, n) at the places of a grid."""
    x, y = np.linspace(low[0], high[0], 500), np.linspace(low[1], high[1], 450)
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return x, y, np.exp(mixture.log_density(places)).reshape(len(y), len(x))


def levels(density: np.ndarray) -> np.ndarray:
    """Return the heights above which the density of a grid has each of the `SHARES` of its sum."""
    heights = np.sort(density, axis=None)[::-1]
    return heights[np.searchsorted(np.cumsum(heights) / heights.sum(), SHARES)]


def svg(polygon: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Write a closed polygon (n, 2) as a path of an SVG, in whole units and steps between them."""
    outline = Outline((polygon - [low[0], high[1]]) * scale(low, high) * [1, -1])
    outline.simplify_threshold = 0.5
    corners = outline.cleaned(simplify=True).vertices[:-1].round().astype(int)
    steps = " ".join(f"{dx},{dy}" for dx, dy in np.diff(corners, axis=0) if dx or dy)
    return f"M{corners[0, 0]},{corners[0, 1]}l{steps}z".replace(",-", "-").replace(" -", "-")


def main() -> None:
    """Write the file."""
    DATA.write_text(f"{HEAD}{json.dumps(data(), separators=(',', ':'))};\n", encoding="utf-8")
    print(f"{DATA}: {DATA.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
