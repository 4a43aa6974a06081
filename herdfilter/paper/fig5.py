"""Fig. 5: computing time per point against the dimension, beside the times that the paper shows."""

from __future__ import annotations

import time
import timeit
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import figures, legend

TITLE = "Fig. 5: computing time per point against the dimension, sigma_k = 0.1"
SIGMA_K = 0.1
DIMS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50)

# SciPy's default: BFGS takes no step if no element of the gradient is larger.
BFGS_TOLERANCE = 1e-5

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
    starts = np.concatenate(
        [mixture.means[:, None] + sign * mixture.covariances for sign in (1, -1)]
    )
    x = starts.reshape(-1, mixture.dim)
    # The gradient of sum_m w_m N(x; m_m, S_m) is sum_m w_m N_m S_m^-1 (m_m - x).
    density = np.exp(smoothed.component_log_densities(x)) * smoothed.weights
    precision = np.linalg.inv(smoothed.covariances)
    gradient = np.einsum("nm,mij,nmj->ni", density, precision, smoothed.means - x[:, None])
    return float(np.mean(np.abs(gradient).max(1) <= BFGS_TOLERANCE))


def reproduce(
    seed: int = 0,
    quick: bool = False,
    dims: tuple[int, ...] = DIMS,
    n: int = 100,
    mixtures: int = 5,
) -> common.Reproduction:
    """Time every sampler in every dimension: CPU time of one thread, compiled, median over mixtures and repeats."""
    if quick:
        dims = (2, 5, 10)
        mixtures = 2
    samplers = common.herding_samplers(SIGMA_K)
    rows = []
    with threadpool_limits(1):
        for sampler in samplers.values():
            # The first call compiles, and is not timed.
            sampler.sample(common.rotated_mixture(2, np.random.default_rng(seed)), 3)
        for dim in dims:
            targets = [
                common.rotated_mixture(dim, np.random.default_rng([seed, dim, k]))
                for k in range(mixtures)
            ]
            row: dict[str, float] = {"dimension": dim}
            for name, sampler in samplers.items():
                calls = [partial(sampler.sample, target, n) for target in targets]
                # CPU time of this thread: other processes on the machine do not count.
                times = [
                    timeit.repeat(call, repeat=3, number=1, timer=time.thread_time)
                    for call in calls
                ]
                row[name] = float(np.median(np.median(times, axis=1))) / n
            rows.append(
                row
                | {
                    "idle_starts": float(
                        np.mean([idle_starts(target, SIGMA_K) for target in targets])
                    )
                }
            )
    ours = pd.DataFrame(rows).set_index("dimension")
    paper = published_times()
    numbers = paper.add_prefix("paper_").join(ours)
    return common.Reproduction(
        "fig5",
        TITLE,
        draw(ours, paper),
        table(numbers.loc[ours.index]),
        numbers.reset_index(),
    )


def draw(ours: pd.DataFrame, paper: pd.DataFrame) -> Figure:
    """Draw the paper's times and ours in the same logarithmic axes."""
    with figures() as new:
        figure, axes = new(1, 1, (7.2, 4.8))
        ax = axes[0, 0]
        for name, column in PUBLISHED_COLUMNS.items():
            look = common.SAMPLER_STYLES[name].line | {
                "linestyle": "--",
                "markersize": 4,
                "markerfacecolor": "white",
            }
            look["markeredgecolor"] = look["color"]
            ax.plot(paper.index, paper[column], linewidth=1, label=f"{name}: the paper", **look)
        for name in (common.KH, common.CHG, common.SMOOTHED):
            ax.plot(
                ours.index, ours[name], label=f"{name}: here", **common.SAMPLER_STYLES[name].line
            )
        ax.set(yscale="log", xlabel="dimension d", ylabel="seconds per point", xlim=(0, 51.5))
        legend(figure, [ax])
    return figure


def table(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return microseconds per point, the paper's seconds, their ratio, and the idle starts of its kernel herding."""
    columns: dict[str, Any] = {
        "d": numbers.index,
        "KH\n(us)": 1e6 * numbers[common.KH],
        "CHG, as\npublished\n(us)": 1e6 * numbers[common.CHG],
        "CHG,\nsmoothed\n(us)": 1e6 * numbers[common.SMOOTHED],
        "paper's KH:\nidle starts": [f"{100 * share:.0f} %" for share in numbers["idle_starts"]],
    }
    seconds = {
        "KH": numbers["paper_kernel_herding"],
        "CHG": numbers["paper_continuous_herded_gibbs"],
    }
    for short, name in (("KH", common.KH), ("CHG", common.CHG)):
        # Rounded to hundreds, because the machines differ.
        columns[f"{short}: paper\nover ours"] = (
            100 * (seconds[short] / numbers[name] / 100).round()
        ).astype(int)
    return pd.DataFrame(
        columns | {f"paper:\n{short} (s)": values for short, values in seconds.items()}
    )
