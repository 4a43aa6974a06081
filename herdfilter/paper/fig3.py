"""Fig. 3: inverse herding error and L2 error against the number of points, in 2 and 10 dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from herdfilter.bandwidths import Bandwidth, kernel_covariance
from herdfilter.paper import common
from herdfilter.plotting import style
from herdfilter.samplers import RandomSampling

# Pairs of dimension and bandwidth.
SETTINGS: list[tuple[int, Bandwidth]] = [(2, 0.5), (10, 0.5), (10, "auto")]


def errors_of_prefixes(
    seed: int = 0, quick: bool = False, n: int = 500, mixtures: int = 10, runs: int = 20
) -> common.Reproduction:
    """Sample n points from every mixture and measure all prefixes; random points in `runs` runs.

    The same mixtures are used for both bandwidths. Points are herded and measured with the same kernel; the automatic one is
    the kernel for n points. The figure has the inverse herding error above, the L2 error below, a column for each setting.
    """
    if quick:
        n = 100
        mixtures = 2
        runs = 3
    parts = {}
    floors = []
    with style.figures() as new:
        figure, axes = new(2, len(SETTINGS), (10.4, 6.4), sharex=True)
        for (above, below), (dim, bandwidth) in zip(axes.T, SETTINGS, strict=True):
            curves, floor = mean_errors(dim, bandwidth, seed, n, mixtures, runs)
            parts[dim, str(bandwidth)] = curves
            floors.append(floor)
            curves = curves.assign(inverse=1 / curves["herding_error"])
            common.draw_curves(above, curves, "inverse")
            common.draw_curves(below, curves, "normalised_l2", floor)
            random = curves["inverse"][curves["sampler"] == common.RANDOM].to_numpy()
            t = np.array([n // 10, n])
            rates = ((1.0, "rate $t$", "-."), (0.5, r"rate $\sqrt{t}$", ":"))
            for power, label, linestyle in rates:
                line = 0.3 * random[t[0] - 1] * (t / t[0]) ** power  # below the curves
                above.plot(
                    t, line, color=style.QUIET, linewidth=1, linestyle=linestyle, label=label
                )
            style.log_axis(above, "y")
            if dim == 2:
                style.log_axis(below, "y")
            else:  # in 10 dimensions the error changes too little for a logarithmic scale
                below.set(yscale="linear", ylim=(0, 2.05))
            rule = "automatic bandwidth" if bandwidth == "auto" else rf"$\sigma_k$ = {bandwidth}"
            above.set_title(f"d = {dim}, {rule}")
            below.set_xlabel("points t")
        axes[0, 0].set_ylabel("inverse herding error 1 / $E_t$")
        axes[1, 0].set_ylabel("normalised L2 error")
        style.legend(figure, axes[:, 0])
    numbers = common.joined(parts, ["d", "sigma_k"])
    early, end = common.at_counts(numbers, n // 5, n)
    columns: dict[str, Any] = {
        f"1/E at {n // 5}": 1 / early["herding_error"],
        f"1/E at {n}": 1 / end["herding_error"],
        # The exponent of a power law through the errors at n / 5 and n points.
        "E falls as t^-": np.log(early["herding_error"] / end["herding_error"])
        / np.log(n / (n // 5)),
        f"L2 at {n}": end["normalised_l2"],
        "L2 floor": np.repeat(floors, len(end) // len(floors)),
        "paper": common.NOT_STATED,
    }
    title = "Fig. 3: herding error and L2 error against the number of points, random mixtures"
    table = end[["d", "sigma_k", "sampler"]].assign(**columns)
    return common.Reproduction("fig3", title, figure, table, numbers)


def mean_errors(
    dim: int, bandwidth: Bandwidth, seed: int, n: int, mixtures: int, runs: int
) -> tuple[pd.DataFrame, float]:
    """Return mean errors of every sampler over mixtures and, for random points, over runs; and the floor of the L2 error."""
    samplers = common.herding_samplers(bandwidth)
    tables = []
    floors = []
    for k in range(mixtures):
        # Seeded by dimension and index, so that every bandwidth gets the same mixtures.
        rng = np.random.default_rng([seed, dim, k])
        mixture = common.rotated_mixture(dim, rng)
        errors = common.PrefixErrors(mixture, kernel_covariance(bandwidth, mixture, n))
        floors.append(errors.floor)
        samples = [(name, sampler.sample(mixture, n)) for name, sampler in samplers.items()]
        random = RandomSampling()
        samples += [(common.RANDOM, random.sample(mixture, n, rng)) for _ in range(runs)]
        tables += [errors(points.x).assign(sampler=name) for name, points in samples]
    # The mean over mixtures is of errors; their inverse is taken when they are drawn.
    means = pd.concat(tables).groupby(["sampler", "t"], sort=False).mean().reset_index()
    return means, float(np.mean(floors))
