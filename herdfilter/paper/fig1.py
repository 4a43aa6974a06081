"""Fig. 1: twenty points from the five-component mixture by kernel herding, herded Gibbs and at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from herdfilter.discrepancy import energy_distance, herding_error, normalised_l2
from herdfilter.mixture import GaussianMixture
from herdfilter.paper import NOT_STATED
from herdfilter.paper.look import CHG, KH, RANDOM, STYLES, herding_samplers, shade_density
from herdfilter.paper.mixtures import example
from herdfilter.plotting.style import figures
from herdfilter.points import Points
from herdfilter.samplers import RandomSampling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMA_K = 0.5
MEASURES = ["herding error", "normalised L2", "energy distance"]


@dataclass(frozen=True, eq=False)
class Result:
    """Points of each sampler, their errors, and the mean errors over many random draws."""

    mixture: GaussianMixture
    points: dict[str, Points]
    errors: pd.DataFrame  # a row for each sampler, a column for each measure
    draws: int


def compute(seed: int = 0, quick: bool = False, n: int = 20) -> Result:
    """Sample and measure; the random points shown are the first of `draws` draws, whose mean errors are given, too."""
    mixture, draws = example(), 10 if quick else 100
    samplers = herding_samplers(SIGMA_K)
    points = {name: samplers[name].sample(mixture, n) for name in (KH, CHG)}
    rng = np.random.default_rng(seed)
    random = [RandomSampling().sample(mixture, n, rng) for _ in range(draws)]
    points[RANDOM] = random[0]
    rows = {name: _errors(p, mixture) for name, p in points.items()}
    rows[f"{RANDOM}, mean of {draws}"] = np.mean([_errors(p, mixture) for p in random], axis=0).tolist()
    return Result(mixture, points, pd.DataFrame.from_dict(rows, orient="index", columns=MEASURES), draws)


def _errors(points: Points, mixture: GaussianMixture) -> list[float]:
    return [
        herding_error(points, mixture, SIGMA_K),
        normalised_l2(points, mixture, SIGMA_K),
        energy_distance(points, mixture),
    ]


def draw(result: Result) -> Figure:
    """Draw a panel for each sampler over the contours of the density."""
    x, y = np.linspace(-4.5, 12.5, 140), np.linspace(-3, 13.5, 140)
    with figures() as new:
        figure, axes = new(1, len(result.points), (9.6, 3.6))
        for ax, (name, points) in zip(axes.flat, result.points.items(), strict=True):
            shade_density(ax, result.mixture, x, y)
            style = STYLES[name]
            ax.plot(*points.x.T, style.marker, color=style.color, markersize=6.5, markeredgecolor="white")
            ax.set_title(name, color=style.color, fontweight="bold")
            error = float(result.errors[MEASURES[0]][name])
            ax.set(xlabel=f"herding error {error:.3f}", xticks=[0, 5, 10], yticks=[0, 5, 10])
    return figure


def table(result: Result) -> pd.DataFrame:
    """Return errors of the points of each sampler, in state units, at sigma_k = 0.5."""
    return result.errors.rename_axis("sampler").reset_index().assign(paper=NOT_STATED)


def numbers(result: Result) -> pd.DataFrame:
    """Return the points, in the order in which they were found."""
    parts = [
        pd.DataFrame({"sampler": name, "point": range(1, len(p) + 1), "x1": p.x[:, 0], "x2": p.x[:, 1]})
        for name, p in result.points.items()
    ]
    return pd.concat(parts, ignore_index=True)
