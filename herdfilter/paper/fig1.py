"""Fig. 1: twenty points from the five-component mixture by kernel herding, herded Gibbs and at random."""

from __future__ import annotations

import numpy as np
import pandas as pd

from herdfilter import discrepancy
from herdfilter.discrepancy import herding_error
from herdfilter.paper import common
from herdfilter.plotting.style import figures
from herdfilter.points import Points
from herdfilter.samplers import RandomSampling

N_POINTS = 20


def sampled_points(seed: int = 0, quick: bool = False) -> common.Reproduction:
    """Sample and measure; the figure shows the first of many random draws."""
    mixture = common.five_gaussians()
    draws = 10 if quick else 100
    samplers = common.herding_samplers(common.EXAMPLE_WIDTH)
    points = {name: samplers[name].sample(mixture, N_POINTS) for name in (common.KH, common.CHG)}
    rng = np.random.default_rng(seed)
    random = [RandomSampling().sample(mixture, N_POINTS, rng) for _ in range(draws)]
    points[common.RANDOM] = random[0]

    def errors(sample: Points) -> dict[str, float]:
        return {
            "herding error": herding_error(sample, mixture, common.EXAMPLE_WIDTH),
            "normalised L2": discrepancy.normalised_l2(sample, mixture, common.EXAMPLE_WIDTH),
            "energy distance": discrepancy.energy_distance(sample, mixture),
        }

    table = pd.DataFrame([errors(sample) for sample in points.values()], list(points))
    # One random draw tells little, so the table also has the mean over many.
    table.loc[f"{common.RANDOM}, mean of {draws}"] = pd.DataFrame(map(errors, random)).mean()
    # The file of numbers has a row for each point.
    coordinates = {name: pd.DataFrame(p.x, columns=["x1", "x2"]) for name, p in points.items()}
    numbers = common.joined(coordinates, ["sampler"])
    numbers.insert(1, "point", numbers.index + 1)
    with figures() as new:
        figure, axes = new(1, len(points), (9.6, 3.6))
        for ax, (name, sample) in zip(axes.flat, points.items(), strict=True):
            common.draw_samples(ax, mixture, sample, name, common.SAMPLER_STYLES[name].marker)
            error = table["herding error"][name]
            ax.set(xlabel=f"herding error {error:.3f}", ylabel="")
    title = "Fig. 1: points from a mixture of five Gaussians, sigma_k = 0.5"
    table = table.rename_axis("sampler").reset_index().assign(paper=common.NOT_STATED)
    return common.Reproduction("fig1", title, figure, table, numbers)
