"""Fig. 1: twenty points from the five-component mixture by kernel herding, herded Gibbs and at random."""

from __future__ import annotations

import numpy as np
import pandas as pd

from herdfilter.discrepancy import energy_distance, herding_error, normalised_l2
from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import figures
from herdfilter.points import Points
from herdfilter.samplers import RandomSampling

TITLE = "Fig. 1: points from a mixture of five Gaussians, sigma_k = 0.5"
SIGMA_K = 0.5
N_POINTS = 20


def reproduce(seed: int = 0, quick: bool = False) -> common.Reproduction:
    """Sample and measure; the figure shows the first of many random draws."""
    mixture = common.five_gaussians()
    draws = 10 if quick else 100
    samplers = common.herding_samplers(SIGMA_K)
    points = {name: samplers[name].sample(mixture, N_POINTS) for name in (common.KH, common.CHG)}
    rng = np.random.default_rng(seed)
    random = [RandomSampling().sample(mixture, N_POINTS, rng) for _ in range(draws)]
    points[common.RANDOM] = random[0]
    rows = {name: errors(p, mixture) for name, p in points.items()}
    # One random draw tells little, so the table also has the mean over many.
    rows[f"{common.RANDOM}, mean of {draws}"] = np.mean(
        [errors(p, mixture) for p in random], axis=0
    ).tolist()
    columns = ["herding error", "normalised L2", "energy distance"]
    table = (
        pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        .rename_axis("sampler")
        .reset_index()
    )
    parts = {name: pd.DataFrame(p.x, columns=["x1", "x2"]) for name, p in points.items()}
    numbers = common.joined(parts, ["sampler"])
    numbers.insert(1, "point", numbers.index + 1)
    with figures() as new:
        figure, axes = new(1, len(points), (9.6, 3.6))
        for ax, (name, samples) in zip(axes.flat, points.items(), strict=True):
            common.draw_samples(
                ax,
                mixture,
                samples,
                name,
                marker=common.SAMPLER_STYLES[name].marker,
            )
            ax.set(xlabel=f"herding error {rows[name][0]:.3f}", ylabel="")
    return common.Reproduction(
        "fig1",
        TITLE,
        figure,
        table.assign(paper=common.NOT_STATED),
        numbers,
    )


def errors(points: Points, mixture: GaussianMixture) -> list[float]:
    """Return herding error, normalised L2 error and energy distance."""
    kernel_errors = [
        herding_error(points, mixture, SIGMA_K),
        normalised_l2(points, mixture, SIGMA_K),
    ]
    return [*kernel_errors, energy_distance(points, mixture)]
