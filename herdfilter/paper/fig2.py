"""Fig. 2: the herding weight function, whose maximum over one coordinate is the coordinate of the next point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import BLUE, INK, QUIET, figures, legend
from herdfilter.points import Points

TITLE = "Fig. 2: the herding weight function of one coordinate"
SIGMA_K = 0.5


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
        fixed = np.delete(np.arange(self.mixture.dim), self.i)
        log_weights = []
        expectations = []
        for weight, mean, cov in zip(
            self.mixture.weights, self.mixture.means, self.mixture.covariances, strict=True
        ):
            # The conditional Gaussian of the component, convolved with the kernel.
            gain = np.linalg.solve(cov[np.ix_(fixed, fixed)], cov[fixed, self.i])
            centre = mean[self.i] + gain @ (self.current[fixed] - mean[fixed])
            variance = cov[self.i, self.i] - gain @ cov[fixed, self.i] + self.sigma_k**2
            slice_density = multivariate_normal(mean[fixed], cov[np.ix_(fixed, fixed)]).logpdf(
                self.current[fixed]
            )
            log_weights.append(np.log(weight) + slice_density)
            expectations.append(
                self.sigma_k / np.sqrt(variance) * np.exp(-0.5 * (x - centre) ** 2 / variance)
            )
        share = np.exp(np.array(log_weights) - np.logaddexp.reduce(log_weights))
        return np.asarray(share @ np.array(expectations))

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
        best = int(np.argmax(self(grid)[1:-1])) + 1
        refined = minimize_scalar(
            lambda x: float(-self(np.array([x]))[0]),
            bounds=(float(grid[best - 1]), float(grid[best + 1])),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return float(refined.x)


def reproduce(seed: int = 0, quick: bool = False, t: int = 19) -> common.Reproduction:
    """Compare the maximum with the first coordinate of point t + 1; nothing is random, so `seed` is not used."""
    mixture = common.five_gaussians()
    x = common.herding_samplers(SIGMA_K)[common.CHG].sample(mixture, t + 1).x
    function = WeightFunction(mixture, x[:t], x[t - 1], 0, SIGMA_K)
    grid = np.linspace(-4, 13, 1701 if quick else 6801)
    terms = {"expectation": function.expectation(grid), "kernel_sum": function.kernel_sum(grid)}
    numbers = pd.DataFrame({"x1": grid} | terms | {"weight_function": function(grid)})
    maximum = function.maximum(grid)
    sampled = float(x[t, 0])
    w = function.weights
    values = {
        "points so far, t": t,
        "slice at x2": function.current[1],
        "sum of the weights, c": w.sum(),
        "largest weight w_s": w.max(),
        # Kish's number: how many samples take part in the slice.
        "effective number of samples in the slice, c^2 / sum w_s^2": w.sum() ** 2 / (w**2).sum(),
        "maximum of the weight function at x1": maximum,
        "value there": function(np.array([maximum]))[0],
        f"x1 of the sampler's point {t + 1}": sampled,
        "difference": abs(maximum - sampled),
    }
    table = pd.DataFrame({"quantity": list(values), "value": list(values.values())}).assign(
        paper=common.NOT_STATED
    )
    return common.Reproduction(
        "fig2",
        TITLE,
        draw(function, numbers, maximum, sampled),
        table,
        numbers,
    )


def draw(
    function: WeightFunction,
    numbers: pd.DataFrame,
    maximum: float,
    sampled: float,
) -> Figure:
    """Draw the slice through the samples, the function with its two terms, and the weights of the samples."""
    samples = function.samples
    height = function.current[1]
    x = numbers["x1"]
    t = len(samples)
    colour = common.SAMPLER_STYLES[common.CHG].color
    star: Any = {"marker": "*", "color": INK, "markersize": 13, "zorder": 5}
    with figures() as new:
        figure, axes = new(1, 3, (12.0, 4.0))
        slice_ax, function_ax, weights_ax = axes.flat
        common.draw_samples(
            slice_ax,
            function.mixture,
            Points(samples, function.weights),
            common.CHG,
        )
        slice_ax.plot(*samples.T, ".", color=colour)
        # The next point is sought along this line.
        slice_ax.axhline(height, color=INK, linewidth=1, linestyle="--")
        slice_ax.plot(sampled, height, **star)
        slice_ax.set_title(
            f"{t} points by weight $w_s$; star: point {t + 1}\nslice at $x_2$ = {height:.2f}"
        )
        function_ax.plot(
            x,
            (t + 1) / t * numbers["expectation"],
            color=BLUE,
            label="conditional expectation",
        )
        function_ax.plot(x, numbers["kernel_sum"], color=colour, label="kernel sum, subtracted")
        function_ax.plot(
            x,
            numbers["weight_function"],
            color=INK,
            linewidth=2.2,
            label="herding weight function",
        )
        function_ax.plot(maximum, function(np.array([maximum]))[0], **star)
        title = f"maximum at $x_1$ = {maximum:.4f}\nthe sampler's: {sampled:.4f}"
        function_ax.set(title=title, xlabel="$x_1$", ylabel="unit-peak kernel")
        weights_ax.vlines(samples[:, 0], 0, function.weights, color=colour, linewidth=2.5)
        weights_ax.set(title="weights of the points", xlabel="$x_1^s$", ylabel="$w_s$")
        for ax in (function_ax, weights_ax):
            ax.axvline(maximum, color=QUIET, linewidth=1, linestyle=":")
        legend(figure, [function_ax])
    return figure
