"""Fig. 2: the herding weight function, whose maximum over one coordinate is the coordinate of the next point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from herdfilter._checks import Array
from herdfilter.kernels import expected_kernel
from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting import style
from herdfilter.points import Points


@dataclass(frozen=True, eq=False)
class WeightFunction:
    """The function that coordinate `i` of the next point maximises, from its definition (docs/theory_gibbs.md).

    ``(t + 1) / t  E[k(x_i, X_i) | x_rest]  -  sum_s w_s k(x_i, x_i^s) / c`` with ``w_s = k(x_rest, x_rest^s)`` and
    ``c = sum_s w_s``; the kernel has unit peak and width `sigma_k`. `samples` (t, d) are the points so far, `current` (d,)
    is the point whose coordinate `i` is replaced.
    """

    mixture: GaussianMixture
    samples: Array
    current: Array
    i: int
    sigma_k: float

    @property
    def weights(self) -> Array:
        """Kernel weights w_s of the samples, (t,): how near they are to the slice through `current`."""
        offsets: Array = np.delete(self.samples - self.current, self.i, axis=1)
        return np.asarray(np.exp(-0.5 * (offsets**2).sum(1) / self.sigma_k**2))

    def expectation(self, x: Array) -> Array:
        """Return the expectation of the kernel, (n,) -> (n,), over x_i given the other coordinates."""
        fixed = [dim for dim in range(self.mixture.dim) if dim != self.i]
        conditional = self.mixture.conditional(fixed, self.current[fixed])
        return expected_kernel(conditional, x[:, None], np.array([[self.sigma_k**2]]))

    def kernel_sum(self, x: Array) -> Array:
        """Return the weighted kernel sum of the samples, divided by c, (n,) -> (n,)."""
        w = self.weights
        kernel = np.exp(-0.5 * (x - self.samples[:, self.i, None]) ** 2 / self.sigma_k**2)
        return np.asarray(w @ kernel / w.sum())

    def __call__(self, x: Array) -> Array:
        """Return the function itself, (n,) -> (n,)."""
        # (t + 1) / t is the factor of the published recursion.
        t = len(self.samples)
        return (t + 1) / t * self.expectation(x) - self.kernel_sum(x)

    def maximum(self, grid: Array) -> float:
        """Return the argument of the maximum: the best point of a grid, refined between its neighbours."""
        # The ends of the grid have no neighbour on one side.
        best = int(np.argmax(self(grid)[1:-1])) + 1
        refined = minimize_scalar(
            lambda x: float(-self(np.array([x]))[0]),
            bounds=(float(grid[best - 1]), float(grid[best + 1])),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return float(refined.x)


def weight_function(seed: int = 0, quick: bool = False, t: int = 19) -> common.Reproduction:
    """Compare the maximum with the first coordinate of point t + 1; nothing is random, so `seed` is not used.

    The figure shows the slice through the samples, the function with its two terms, and the weights of the samples.
    """
    mixture = common.five_gaussians()
    x = common.herding_samplers(common.EXAMPLE_WIDTH)[common.CHG].sample(mixture, t + 1).x
    # Coordinate 0 comes first in a sweep, so that the others are still those of point t.
    samples = x[:t]
    function = WeightFunction(mixture, samples, x[t - 1], 0, common.EXAMPLE_WIDTH)
    grid = np.linspace(-4, 13, 1701 if quick else 6801)
    expectation = function.expectation(grid)
    kernel_sum = function.kernel_sum(grid)
    curve = function(grid)
    maximum = function.maximum(grid)
    peak = function(np.array([maximum]))[0]
    sampled = float(x[t, 0])
    height = function.current[1]
    w = function.weights
    values = {
        "points so far, t": t,
        "slice at x2": height,
        "sum of the weights, c": w.sum(),
        "largest weight w_s": w.max(),
        # Kish's number: how many samples take part in the slice.
        "effective number of samples in the slice, c^2 / sum w_s^2": w.sum() ** 2 / (w**2).sum(),
        "maximum of the weight function at x1": maximum,
        "value there": peak,
        f"x1 of the sampler's point {t + 1}": sampled,
        "difference": abs(maximum - sampled),
    }
    colour = common.SAMPLER_STYLES[common.CHG].color
    star: Any = {"marker": "*", "color": style.INK, "markersize": 13, "zorder": 5}
    with style.figures() as new:
        figure, axes = new(1, 3, (12.0, 4.0))
        slice_ax, function_ax, weights_ax = axes.flat
        common.draw_samples(slice_ax, mixture, Points(samples, w), common.CHG)
        slice_ax.plot(*samples.T, ".", color=colour)
        # The next point is sought along this line.
        slice_ax.axhline(height, color=style.INK, linewidth=1, linestyle="--")
        slice_ax.plot(sampled, height, **star)
        slice_ax.set_title(
            f"{t} points by weight $w_s$; star: point {t + 1}\nslice at $x_2$ = {height:.2f}"
        )
        scaled = (t + 1) / t * expectation
        function_ax.plot(grid, scaled, color=style.BLUE, label="conditional expectation")
        function_ax.plot(grid, kernel_sum, color=colour, label="kernel sum, subtracted")
        function_ax.plot(
            grid, curve, color=style.INK, linewidth=2.2, label="herding weight function"
        )
        function_ax.plot(maximum, peak, **star)
        title = f"maximum at $x_1$ = {maximum:.4f}\nthe sampler's: {sampled:.4f}"
        function_ax.set(title=title, xlabel="$x_1$", ylabel="unit-peak kernel")
        weights_ax.vlines(samples[:, 0], 0, w, color=colour, linewidth=2.5)
        weights_ax.set(title="weights of the points", xlabel="$x_1^s$", ylabel="$w_s$")
        for ax in (function_ax, weights_ax):
            ax.axvline(maximum, color=style.QUIET, linewidth=1, linestyle=":")
        style.legend(figure, [function_ax])
    terms = {"expectation": expectation, "kernel_sum": kernel_sum, "weight_function": curve}
    table = pd.DataFrame(values.items(), columns=["quantity", "value"])
    return common.Reproduction(
        "fig2",
        "Fig. 2: the herding weight function of one coordinate",
        figure,
        table.assign(paper=common.NOT_STATED),
        pd.DataFrame({"x1": grid} | terms),
    )
