"""Fig. 5: computing time per point against the dimension, beside the times that the paper shows."""

from __future__ import annotations

import time
import timeit
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import figures, legend

DIMS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50)

# SciPy's default: BFGS takes no step if no element of the gradient is larger.
BFGS_TOLERANCE = 1e-5

# Name in the table, sampler -> column of the published times.
PUBLISHED = {("KH", common.KH): "kernel_herding", ("CHG", common.CHG): "continuous_herded_gibbs"}


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
    means = mixture.means[:, None]
    starts = np.concatenate([means + mixture.covariances, means - mixture.covariances])
    x = starts.reshape(-1, mixture.dim)
    # The gradient of sum_m w_m N(x; m_m, S_m) is sum_m w_m N_m S_m^-1 (m_m - x).
    density = np.exp(smoothed.component_log_densities(x)) * smoothed.weights
    precision = np.linalg.inv(smoothed.covariances)
    gradient = np.einsum("nm,mij,nmj->ni", density, precision, smoothed.means - x[:, None])
    return float(np.mean(np.abs(gradient).max(1) <= BFGS_TOLERANCE))


def times_per_point(
    seed: int = 0,
    quick: bool = False,
    dims: tuple[int, ...] = DIMS,
    n: int = 100,
    mixtures: int = 5,
) -> common.Reproduction:
    """Time every sampler in every dimension: CPU time of one thread, compiled, median over mixtures and repeats.

    The figure has the paper's times and ours in the same axes. The table has microseconds per point, the idle starts of the
    paper's kernel herding, the ratio of the paper's times to ours, and the paper's seconds.
    """
    if quick:
        dims = (2, 5, 10)
        mixtures = 2
    sigma_k = 0.1
    samplers = common.herding_samplers(sigma_k)
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
            row = {}
            for name, sampler in samplers.items():
                times = []
                for target in targets:
                    # CPU time of this thread: other processes on the machine do not count.
                    call = partial(sampler.sample, target, n)
                    times.append(timeit.repeat(call, timer=time.thread_time, repeat=3, number=1))
                row[name] = float(np.median(np.median(times, axis=1))) / n
            row["idle_starts"] = float(np.mean([idle_starts(t, sigma_k) for t in targets]))
            rows.append(row)
    ours = pd.DataFrame(rows, pd.Index(dims, name="dimension"))
    paper = published_times()
    beside_ours = paper.loc[ours.index]
    columns: dict[str, Any] = {
        "d": ours.index,
        "KH\n(us)": 1e6 * ours[common.KH],
        "CHG, as\npublished\n(us)": 1e6 * ours[common.CHG],
        "CHG,\nsmoothed\n(us)": 1e6 * ours[common.SMOOTHED],
        "paper's KH:\nidle starts": [f"{100 * share:.0f} %" for share in ours["idle_starts"]],
    }
    for (short, name), column in PUBLISHED.items():
        # Rounded to hundreds, because the machines differ.
        hundreds = (beside_ours[column] / ours[name] / 100).round()
        columns[f"{short}: paper\nover ours"] = (100 * hundreds).astype(int)
    for (short, _), column in PUBLISHED.items():
        columns[f"paper:\n{short} (s)"] = beside_ours[column]
    with figures() as new:
        figure, axes = new(1, 1, (7.2, 4.8))
        ax = axes[0, 0]
        for (_, name), column in PUBLISHED.items():
            line = common.SAMPLER_STYLES[name].line
            line |= {"linestyle": "--", "markersize": 4, "markerfacecolor": "white"}
            line["markeredgecolor"] = line["color"]
            ax.plot(paper.index, paper[column], linewidth=1, label=f"{name}: the paper", **line)
        for name in samplers:
            line = common.SAMPLER_STYLES[name].line
            ax.plot(ours.index, ours[name], label=f"{name}: here", **line)
        ax.set(yscale="log", xlabel="dimension d", ylabel="seconds per point", xlim=(0, 51.5))
        legend(figure, [ax])
    title = "Fig. 5: computing time per point against the dimension, sigma_k = 0.1"
    numbers = paper.add_prefix("paper_").join(ours).reset_index()
    return common.Reproduction("fig5", title, figure, pd.DataFrame(columns), numbers)
