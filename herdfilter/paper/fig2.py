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
    the point being moved, whose coordinate `i` is not used.
    """

    mixture: GaussianMixture
    samples: Array
    current: Array
    i: int
    sigma_k: float

    @property
    def weights(self) -> Array:
        """Kernel weights w_s of the samples, (t,): their nearness to the slice."""
        away: Array = np.delete(self.samples - self.current, self.i, axis=1)
        return np.asarray(np.exp(-0.5 * (away**2).sum(1) / self.sigma_k**2))

    def expectation(self, x: Array) -> Array:
        """Return the conditional expectation of the kernel, (n,) -> (n,), over each component's x_i given the rest."""
        rest = np.delete(np.arange(self.mixture.dim), self.i)
        log_weights, total = [], []
        for weight, mean, cov in zip(self.mixture.weights, self.mixture.means, self.mixture.covariances, strict=True):
            gain = np.linalg.solve(cov[np.ix_(rest, rest)], cov[rest, self.i])
            centre = mean[self.i] + gain @ (self.current[rest] - mean[rest])
            variance = cov[self.i, self.i] - gain @ cov[rest, self.i] + self.sigma_k**2
            slice_density = multivariate_normal(mean[rest], cov[np.ix_(rest, rest)]).logpdf(self.current[rest])
            log_weights.append(np.log(weight) + slice_density)
            total.append(self.sigma_k / np.sqrt(variance) * np.exp(-0.5 * (x - centre) ** 2 / variance))
        share = np.exp(np.array(log_weights) - np.logaddexp.reduce(log_weights))
        return np.asarray(share @ np.array(total))

    def kernel_sum(self, x: Array) -> Array:
        """Return the weighted kernel sum of the samples, divided by c, (n,) -> (n,)."""
        w = self.weights
        kernel = np.exp(-0.5 * (x - self.samples[:, self.i, None]) ** 2 / self.sigma_k**2)
        return np.asarray(w @ kernel / w.sum())

    def __call__(self, x: Array) -> Array:
        """Return the function itself, (n,) -> (n,)."""
        t = len(self.samples)
        return (t + 1) / t * self.expectation(x) - self.kernel_sum(x)

    def maximum(self, grid: Array) -> float:
        """Return the place of the maximum: the best point of a grid, refined between its neighbours."""
        best = int(np.argmax(self(grid)[1:-1])) + 1
        found = minimize_scalar(
            lambda x: float(-self(np.array([x]))[0]),
            bounds=(float(grid[best - 1]), float(grid[best + 1])),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return float(found.x)


def reproduce(seed: int = 0, quick: bool = False, t: int = 19) -> common.Reproduction:
    """Take the first coordinate of point t + 1, sought from point t; nothing is random, so `seed` is not used."""
    mixture = common.five_gaussians()
    x = common.herding_samplers(SIGMA_K)[common.CHG].sample(mixture, t + 1).x
    function = WeightFunction(mixture, x[:t], x[t - 1], 0, SIGMA_K)
    grid = np.linspace(-4, 13, 1701 if quick else 6801)
    terms = {"expectation": function.expectation(grid), "kernel_sum": function.kernel_sum(grid)}
    numbers = pd.DataFrame({"x1": grid} | terms | {"weight_function": function(grid)})
    maximum = function.maximum(grid)
    chosen = float(x[t, 0])
    w = function.weights
    values = {
        "points so far, t": t,
        "slice at x2": function.current[1],
        "sum of the weights, c": w.sum(),
        "largest weight w_s": w.max(),
        "effective number of samples in the slice, c^2 / sum w_s^2": w.sum() ** 2 / (w**2).sum(),
        "maximum of the weight function at x1": maximum,
        "value there": function(np.array([maximum]))[0],
        f"x1 of the sampler's point {t + 1}": chosen,
        "difference": abs(maximum - chosen),
    }
    table = pd.DataFrame({"quantity": list(values), "value": list(values.values())}).assign(paper=common.NOT_STATED)
    return common.Reproduction("fig2", TITLE, draw(function, numbers, maximum, chosen), table, numbers)


def draw(function: WeightFunction, numbers: pd.DataFrame, maximum: float, chosen: float) -> Figure:
    """Draw the slice through the samples on the left, the function, its two terms and the weights on the right."""
    samples, height, x = function.samples, function.current[1], numbers["x1"]
    t = len(samples)
    colour = common.SAMPLER_STYLES[common.CHG].color
    star: Any = {"marker": "*", "color": INK, "markersize": 13, "zorder": 5}
    with figures() as new:
        figure, axes = new(1, 3, (12.0, 4.0))
        left, middle, right = axes.flat
        common.draw_samples(left, function.mixture, Points(samples, function.weights), common.CHG)
        left.plot(*samples.T, ".", color=colour)
        left.axhline(height, color=INK, linewidth=1, linestyle="--")
        left.plot(chosen, height, **star)
        left.set_title(f"{t} points by weight $w_s$; star: point {t + 1}\nslice at $x_2$ = {height:.2f}")
        middle.plot(x, (t + 1) / t * numbers["expectation"], color=BLUE, label="conditional expectation")
        middle.plot(x, numbers["kernel_sum"], color=colour, label="kernel sum, subtracted")
        middle.plot(x, numbers["weight_function"], color=INK, linewidth=2.2, label="herding weight function")
        middle.plot(maximum, function(np.array([maximum]))[0], **star)
        title = f"maximum at $x_1$ = {maximum:.4f}\nthe sampler's: {chosen:.4f}"
        middle.set(title=title, xlabel="$x_1$", ylabel="unit-peak kernel")
        right.vlines(samples[:, 0], 0, function.weights, color=colour, linewidth=2.5)
        right.set(title="weights of the points", xlabel="$x_1^s$", ylabel="$w_s$")
        for ax in (middle, right):
            ax.axvline(maximum, color=QUIET, linewidth=1, linestyle=":")
        legend(figure, [middle])
    return figure
