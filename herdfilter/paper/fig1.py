"""Fig. 1: twenty points from the five-component mixture by kernel herding, herded Gibbs and at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from herdfilter.discrepancy import energy_distance, herding_error, normalised_l2
from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import figures
from herdfilter.points import Points
from herdfilter.samplers import RandomSampling

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class HerdedPoints:
    """Points of each sampler, and their errors beside the mean errors over `draws` random draws."""

    title: ClassVar[str] = "Fig. 1: points from a mixture of five Gaussians, sigma_k = 0.5"
    sigma_k: ClassVar[float] = 0.5

    mixture: GaussianMixture
    points: dict[str, Points]
    errors: pd.DataFrame  # a row for each sampler, a column for each measure

    @classmethod
    def compute(cls, seed: int = 0, quick: bool = False, n: int = 20) -> HerdedPoints:
        """Sample and measure; the random points shown are the first of many draws."""
        mixture, draws = common.five_gaussians(), 10 if quick else 100
        samplers = common.herding_samplers(cls.sigma_k)
        points = {name: samplers[name].sample(mixture, n) for name in (common.KH, common.CHG)}
        rng = np.random.default_rng(seed)
        random = [RandomSampling().sample(mixture, n, rng) for _ in range(draws)]
        points[common.RANDOM] = random[0]

        def measure(p: Points) -> list[float]:
            return [
                herding_error(p, mixture, cls.sigma_k),
                normalised_l2(p, mixture, cls.sigma_k),
                energy_distance(p, mixture),
            ]

        rows = {name: measure(p) for name, p in points.items()}
        rows[f"{common.RANDOM}, mean of {draws}"] = np.mean([measure(p) for p in random], axis=0).tolist()
        columns = ["herding error", "normalised L2", "energy distance"]
        return cls(mixture, points, pd.DataFrame.from_dict(rows, orient="index", columns=columns))

    def draw(self) -> Figure:
        """Draw a panel for each sampler over the contours of the density."""
        x, y = np.linspace(-4.5, 12.5, 140), np.linspace(-3, 13.5, 140)
        with figures() as new:
            figure, axes = new(1, len(self.points), (9.6, 3.6))
            for ax, (name, points) in zip(axes.flat, self.points.items(), strict=True):
                common.shade_density(ax, self.mixture, x, y)
                style = common.SAMPLER_STYLES[name]
                ax.plot(*points.x.T, style.marker, color=style.color, markersize=6.5, markeredgecolor="white")
                ax.set_title(name, color=style.color, fontweight="bold")
                error = float(self.errors["herding error"][name])
                ax.set(xlabel=f"herding error {error:.3f}", xticks=[0, 5, 10], yticks=[0, 5, 10])
        return figure

    def table(self) -> pd.DataFrame:
        """Return the errors of each sampler's points."""
        return self.errors.rename_axis("sampler").reset_index().assign(paper=common.NOT_STATED)

    def numbers(self) -> pd.DataFrame:
        """Return the points in the order in which they were found."""
        parts = [
            pd.DataFrame({"sampler": name, "point": range(1, len(p) + 1), "x1": p.x[:, 0], "x2": p.x[:, 1]})
            for name, p in self.points.items()
        ]
        return pd.concat(parts, ignore_index=True)
