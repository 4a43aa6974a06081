"""Fig. 5: computing time per point against the dimension, beside the times that the paper shows."""

from __future__ import annotations

import time
import timeit
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BFGS_TOLERANCE = 1e-5  # default of scipy: BFGS takes no step if no element of the gradient is larger

PUBLISHED_COLUMNS = {common.KH: "kernel_herding", common.CHG: "continuous_herded_gibbs"}


def published_times() -> pd.DataFrame:
    """Return the paper's seconds per sample, by dimension 2 to 50: columns `kernel_herding`, `continuous_herded_gibbs`."""
    with files("herdfilter.paper").joinpath("fig5_published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#", index_col="dimension")


def idle_starts(mixture: GaussianMixture, sigma_k: float) -> float:
    """Return the share of starting points of the authors' kernel herding whose first ascent takes no step.

    Their public program maximises the smoothed density, in its own units, by scipy's BFGS from the component means plus and
    minus each row of the component's covariance. BFGS stops at once where no element of the gradient exceeds 1e-5.
    """
    smoothed = mixture.convolve(sigma_k**2 * np.eye(mixture.dim))
    starts = np.concatenate([mixture.means[:, None] + sign * mixture.covariances for sign in (1, -1)])
    x = starts.reshape(-1, mixture.dim)
    density = np.exp(smoothed.component_log_densities(x)) * smoothed.weights
    precision = np.linalg.inv(smoothed.covariances)
    gradient = np.einsum("nm,mij,nmj->ni", density, precision, smoothed.means - x[:, None])
    return float(np.mean(np.abs(gradient).max(1) <= BFGS_TOLERANCE))


@dataclass(frozen=True, eq=False)
class TimePerPoint:
    """Seconds per point, ours (dims x samplers) and the paper's, and the share of idle starts of a BFGS ascent."""

    title: ClassVar[str] = "Fig. 5: computing time per point against the dimension, sigma_k = 0.1"
    sigma_k: ClassVar[float] = 0.1
    dims: ClassVar[tuple[int, ...]] = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50)

    ours: pd.DataFrame
    published: pd.DataFrame
    idle: pd.Series[float]  # share of starting points, by dimension

    @classmethod
    def compute(
        cls, seed: int = 0, quick: bool = False, dims: tuple[int, ...] = dims, n: int = 100, mixtures: int = 5
    ) -> TimePerPoint:
        """Time every sampler in every dimension: CPU time of one thread, compiled, median over mixtures and repeats."""
        if quick:
            dims, mixtures = (2, 5, 10), 2
        samplers = common.herding_samplers(cls.sigma_k)
        rows: dict[int, dict[str, float]] = {}
        idle = {}
        with threadpool_limits(1):
            for sampler in samplers.values():
                sampler.sample(common.rotated_mixture(2, np.random.default_rng(seed)), 3)  # compiles
            for dim in dims:
                targets = [common.rotated_mixture(dim, np.random.default_rng([seed, dim, k])) for k in range(mixtures)]
                rows[dim] = {}
                for name, sampler in samplers.items():
                    calls = [partial(sampler.sample, p, n) for p in targets]
                    times = [timeit.repeat(call, repeat=3, number=1, timer=time.thread_time) for call in calls]
                    rows[dim][name] = float(np.median(np.median(times, axis=1))) / n
                idle[dim] = float(np.mean([idle_starts(p, cls.sigma_k) for p in targets]))
        ours = pd.DataFrame.from_dict(rows, orient="index").rename_axis("dimension")
        return cls(ours, published_times(), pd.Series(idle))

    def draw(self) -> Figure:
        """Draw the paper's times and ours in the same logarithmic axes."""
        with figures() as new:
            figure, axes = new(1, 1, (7.2, 4.8))
            ax = axes[0, 0]
            for name, column in PUBLISHED_COLUMNS.items():
                style = common.SAMPLER_STYLES[name]
                ax.plot(
                    self.published.index, self.published[column], style.marker, linestyle="--", linewidth=1,
                    color=style.color, markerfacecolor="white", markersize=4, label=f"{name}: the paper",
                )  # fmt: skip
            for name in (common.KH, common.CHG, common.SMOOTHED):
                ax.plot(self.ours.index, self.ours[name], label=f"{name}: here", **common.SAMPLER_STYLES[name].line)
            ax.set(yscale="log", xlabel="dimension d", ylabel="seconds per point", xlim=(0, 51.5))
            idle = self.idle[self.idle > 0.5]
            if len(idle):
                d = int(idle.index[0])
                ax.annotate(
                    f"from d = {d} on most first ascents of the published\n"
                    "kernel herding end where they start (our mixtures)",
                    (d, self.published["kernel_herding"][d]), xytext=(13, 60), va="center",
                    arrowprops={"arrowstyle": "-", "color": common.GREY}, color=common.GREY, fontsize="small",
                )  # fmt: skip
            ax.set_ylim(top=150)
            figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    def table(self) -> pd.DataFrame:
        """Return microseconds per point, the paper's seconds, their ratio, and the idle starts of its kernel herding."""
        ours, paper = 1e6 * self.ours, self.published.loc[self.ours.index]
        columns: dict[str, object] = {
            "d": ours.index,
            "KH\n(us)": ours[common.KH],
            "CHG, as\npublished\n(us)": ours[common.CHG],
            "CHG,\nsmoothed\n(us)": ours[common.SMOOTHED],
            "paper's KH:\nidle starts": [f"{100 * share:.0f} %" for share in self.idle],
        }
        for name, short in ((common.KH, "KH"), (common.CHG, "CHG")):
            ratio = 1e6 * paper[PUBLISHED_COLUMNS[name]] / ours[name]
            columns[f"{short}: paper\nover ours"] = (100 * (ratio / 100).round()).astype(int)
        for name, short in ((common.KH, "KH"), (common.CHG, "CHG")):
            columns[f"paper:\n{short} (s)"] = paper[PUBLISHED_COLUMNS[name]]
        return pd.DataFrame(columns)

    def numbers(self) -> pd.DataFrame:
        """Return seconds per point by dimension, the paper's and ours; empty where a dimension was not measured."""
        paper = self.published.add_prefix("paper_")
        return paper.join(self.ours).join(self.idle.rename("idle_starts")).reset_index()
