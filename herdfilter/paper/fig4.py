"""Fig. 4: a mixture on which herded Gibbs as published converges, and one on which its herding error stalls."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.paper import common
from herdfilter.plotting.style import figures, legend

N_SHOWN = 200  # number of points in the pictures, the last ones of the sequence
BROAD = "broad components"
NARROW = "a narrow, long component"

# The paper's words on its own recursion; it says nothing about other samplers on these mixtures.
STATED = {BROAD: "converges", NARROW: "E stalls"}


def stalling_recursion(seed: int = 0, quick: bool = False) -> common.Reproduction:
    """Herd points from both mixtures and measure all prefixes; nothing is random, so `seed` is not used.

    The figure has a row for each mixture: late points of both kinds of herded Gibbs, herding error, L2 error.
    """
    n = 300 if quick else 1000
    sigma_k = 0.2
    mixtures = {BROAD: common.broad_components(), NARROW: common.narrow_component()}
    parts = {}
    floors = {}
    spreads = []
    for case, mixture in mixtures.items():
        # Herded and measured with the same kernel.
        errors = common.PrefixErrors(mixture, sigma_k**2 * np.eye(2))
        floors[case] = errors.floor
        for name, sampler in common.herding_samplers(sigma_k).items():
            x = sampler.sample(mixture, n).x
            parts[case, name] = errors(x).assign(x1=x[:, 0], x2=x[:, 1])
            spreads.append(spread_across_ridge(x) if case == NARROW else np.nan)
    numbers = common.joined(parts, ["mixture", "sampler"])
    early, end = common.at_counts(numbers, n // 10, n)
    columns: dict[str, Any] = {
        f"E at {n // 10}": early["herding_error"],
        f"E at {n}": end["herding_error"],
        "E falls by": early["herding_error"] / end["herding_error"],
        f"L2 at {n // 10}": early["normalised_l2"],
        f"L2 at {n}": end["normalised_l2"],
        "L2 floor": end["mixture"].map(floors),
        "sd across": spreads,
        "paper": end["mixture"].map(STATED).where(end["sampler"] == common.CHG, common.NOT_STATED),
    }
    with figures() as new:
        figure, axes = new(2, 4, (12.4, 6.7), width_ratios=(1, 1, 1.1, 1.1))
        for row, (case, mixture) in zip(axes, mixtures.items(), strict=True):
            for ax, name in zip(row[:2], (common.CHG, common.SMOOTHED), strict=True):
                # Early points do not show yet whether a sequence stalls.
                late = parts[case, name][["x1", "x2"]].tail(N_SHOWN)
                common.draw_samples(ax, mixture, late.to_numpy(), name)
                ax.set(xlabel="", ylabel="")
            row[0].set_ylabel(case, fontweight="bold")
            curves = numbers[numbers["mixture"] == case]
            common.draw_curves(row[2], curves, "herding_error")
            row[2].set_title("herding error")
            common.draw_curves(row[3], curves, "normalised_l2", floors[case])
            row[3].set_title("L2 error")
        for ax in axes[-1, 2:]:
            ax.set_xlabel("points t")
        legend(figure, [axes[0, 3]])
    title = (
        "Fig. 4: a mixture on which the published recursion converges, and one on which it stalls"
    )
    table = end[["mixture", "sampler"]].assign(**columns)
    return common.Reproduction("fig4", title, figure, table, numbers)


def spread_across_ridge(x: Array) -> float:
    """Return the standard deviation, across the narrow component, of the later half of the points that lie on it.

    The component's own is 0.141. Points within 1 of the ridge count: the mean of the other component, whose standard
    deviation is 1, is 4.2 away.
    """
    across = (x[len(x) // 2 :, 0] - x[len(x) // 2 :, 1]) / np.sqrt(2)
    return float(np.std(across[np.abs(across) < 1]))
