"""Fig. 3: inverse herding error and L2 error against the number of points, in 2 and 10 dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from herdfilter._checks import Array
from herdfilter.bandwidths import Bandwidth, kernel_covariance
from herdfilter.paper import common
from herdfilter.plotting.style import figures, log_axis
from herdfilter.samplers import RandomSampling

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Errors in one dimension with one bandwidth: means over mixtures and, for random points, over runs."""

    dim: int
    bandwidth: Bandwidth
    herding: dict[str, Array]  # (n,), of the first t points for t = 1, ..., n
    l2: dict[str, Array]
    floor: float  # of the L2 error

    @property
    def label(self) -> str:
        """Heading of the panel."""
        rule = "automatic bandwidth" if self.bandwidth == "auto" else rf"$\sigma_k$ = {self.bandwidth}"
        return f"d = {self.dim}, {rule}"


def _mean_errors(dim: int, bandwidth: Bandwidth, seed: int, n: int, mixtures: int, runs: int) -> MeanErrors:
    samplers = common.herding_samplers(bandwidth)
    sums: dict[str, Array] = {name: np.zeros((2, n)) for name in (*samplers, common.RANDOM)}
    floor = 0.0
    for k in range(mixtures):
        rng = np.random.default_rng([seed, dim, k])
        mixture = common.rotated_mixture(dim, rng)
        errors = common.PrefixErrors(mixture, kernel_covariance(bandwidth, mixture, n))
        floor += errors.floor / mixtures
        for name, sampler in samplers.items():
            sums[name] += np.array(errors(sampler.sample(mixture, n).x)) / mixtures
        for _ in range(runs):
            points = RandomSampling().sample(mixture, n, rng)
            sums[common.RANDOM] += np.array(errors(points.x)) / (mixtures * runs)
    herding, l2 = ({name: both[i] for name, both in sums.items()} for i in (0, 1))
    return MeanErrors(dim, bandwidth, herding, l2, floor)


@dataclass(frozen=True, eq=False)
class ErrorCurves:
    """Mean errors of every setting."""

    title: ClassVar[str] = "Fig. 3: herding error and L2 error against the number of points, random mixtures"
    settings: ClassVar[list[tuple[int, Bandwidth]]] = [(2, 0.5), (10, 0.5), (10, "auto")]  # dimension and bandwidth

    curves: list[MeanErrors]

    @classmethod
    def compute(cls, seed: int = 0, quick: bool = False, n: int = 500, mixtures: int = 10, runs: int = 20) -> ErrorCurves:
        """Sample n points from every mixture and measure all prefixes; random points in `runs` runs.

        The same mixtures serve both bandwidths. Points are herded and measured with one kernel; the automatic one is the
        kernel for n points.
        """
        if quick:
            n, mixtures, runs = 100, 2, 3
        return cls([_mean_errors(dim, bandwidth, seed, n, mixtures, runs) for dim, bandwidth in cls.settings])

    def draw(self) -> Figure:
        """Draw the inverse herding error above, the L2 error below, a column for each setting."""
        with figures() as new:
            figure, axes = new(2, len(self.curves), (10.4, 6.4), sharex=True)
            for (above, below), curves in zip(axes.T, self.curves, strict=True):
                for name, herding in curves.herding.items():
                    common.draw_curve(above, 1 / herding, name)
                    common.draw_curve(below, curves.l2[name], name)
                random = curves.herding[common.RANDOM]  # below the curves: rates of herding at its best, and of random draws
                t = np.array([len(random) // 10, len(random)])
                for power, label, linestyle in ((1.0, "rate $t$", "-."), (0.5, r"rate $\sqrt{t}$", ":")):
                    line = 0.3 / random[t[0] - 1] * (t / t[0]) ** power
                    above.plot(t, line, color=common.GREY, linewidth=1, linestyle=linestyle, zorder=0, label=label)
                log_axis(above, "y")
                below.axhline(curves.floor, color=common.DARK, linewidth=1, linestyle="--", label="L2 floor")
                if curves.dim == 2:
                    log_axis(below, "y")
                else:  # too little changes for a logarithmic scale
                    below.set(yscale="linear", ylim=(0, 2.05))
                ends = [herding[-1] for herding in curves.herding.values()]
                if max(ends) < 1.02 * min(ends):
                    above.annotate("all four coincide", (0.5, 0.6), xycoords="axes fraction", ha="right", color=common.GREY)
                above.set_title(curves.label)
                below.set_xlabel("points t")
            axes[0, 0].set_ylabel("inverse herding error 1 / $E_t$")
            axes[1, 0].set_ylabel("normalised L2 error")
            handles, names = (u + v for u, v in zip(*(ax.get_legend_handles_labels() for ax in axes[:, 0]), strict=True))
            unique = dict(zip(names, handles, strict=True))
            figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=len(unique))
        return figure

    def table(self) -> pd.DataFrame:
        """Return errors at a fifth of the points and at all, and the exponent of the herding error between the two."""
        rows = []
        for curves in self.curves:
            for name, herding in curves.herding.items():
                end, early = len(herding), max(1, len(herding) // 5)
                slope = np.log(herding[early - 1] / herding[-1]) / np.log(end / early)
                row = {"d": curves.dim, "sigma_k": str(curves.bandwidth), "sampler": name}
                row |= {f"1/E at {early}": 1 / herding[early - 1], f"1/E at {end}": 1 / herding[-1], "E falls as t^-": slope}
                rows.append(row | {f"L2 at {end}": curves.l2[name][-1], "L2 floor": curves.floor})
        return pd.DataFrame(rows).assign(paper=common.NOT_STATED)

    def numbers(self) -> pd.DataFrame:
        """Return both errors of every sampler at every t."""
        parts = []
        for curves in self.curves:
            for name, herding in curves.herding.items():
                setting = {"d": curves.dim, "sigma_k": str(curves.bandwidth), "sampler": name}
                errors = {"herding_error": herding, "normalised_l2": curves.l2[name]}
                parts.append(pd.DataFrame(setting | {"t": np.arange(1, len(herding) + 1)} | errors))
        return pd.concat(parts, ignore_index=True)
