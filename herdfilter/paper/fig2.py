"""Fig. 2: the herding weight function, whose maximum over one coordinate is the coordinate of the next point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture
from herdfilter.paper import common
from herdfilter.plotting.style import BLUE, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


@dataclass(frozen=True, eq=False)
class HerdingWeights:
    """The function on a grid, its maximum, and the coordinate that the sampler chose."""

    title: ClassVar[str] = "Fig. 2: the herding weight function of one coordinate"
    sigma_k: ClassVar[float] = 0.5

    function: WeightFunction
    grid: Array
    maximum: float
    chosen: float

    @classmethod
    def compute(cls, seed: int = 0, quick: bool = False, t: int = 19) -> HerdingWeights:
        """Take the first coordinate of point t + 1, sought from point t; nothing is random, so `seed` is not used."""
        mixture = common.five_gaussians()
        x = common.herding_samplers(cls.sigma_k)[common.CHG].sample(mixture, t + 1).x
        function = WeightFunction(mixture, x[:t], x[t - 1], 0, cls.sigma_k)
        grid = np.linspace(-4, 13, 1701 if quick else 6801)
        return cls(function, grid, function.maximum(grid), float(x[t, 0]))

    def draw(self) -> Figure:
        """Draw the slice through the samples on the left, the function, its two terms and the weights on the right."""
        f, colour, x = self.function, common.SAMPLER_STYLES[common.CHG].color, self.grid
        t, w, height, top = len(f.samples), f.weights, f.current[1], f(np.array([self.maximum]))[0]
        star: Any = {"marker": "*", "color": common.DARK, "markersize": 13, "markeredgecolor": "white", "zorder": 5}
        with figures() as new:
            figure, axes = new(2, 2, (10.0, 4.2), width_ratios=(1, 1.3), height_ratios=(3, 1))
            right, below = axes[:, 1]
            for ax in axes[:, 0]:
                ax.remove()
            left = figure.add_subplot(axes[0, 0].get_gridspec()[:, 0])  # over both rows
            common.shade_density(left, f.mixture, np.linspace(-4, 13, 140), np.linspace(-3, 13.5, 140))
            left.axhline(height, color=common.DARK, linewidth=1, linestyle="--")
            left.annotate(f"slice\n$x_2$ = {height:.2f}", (12.9, height - 0.2), ha="right", va="top", color=common.DARK)
            dots: Any = {"s": 14 + 70 * w, "c": w, "cmap": "Oranges", "vmin": -0.35}
            left.scatter(*f.samples.T, edgecolors=colour, linewidths=0.8, **dots)
            left.plot(self.chosen, height, **star)
            left.set(
                xlabel="$x_1$", ylabel="$x_2$", title=f"{t} points, size and colour by weight $w_s$; point {t + 1}: star"
            )
            right.plot(x, (t + 1) / t * f.expectation(x), color=BLUE, label="conditional expectation")
            right.plot(x, f.kernel_sum(x), color=colour, label="kernel sum, subtracted")
            right.plot(x, f(x), color=common.DARK, linewidth=2.2, label="herding weight function")
            for ax in (right, below):
                ax.axvline(self.maximum, color=common.GREY, linewidth=0.9, linestyle=":")
            right.plot(self.maximum, top, **star)
            right.set(
                title=f"maximum at $x_1$ = {self.maximum:.4f}; the sampler's: {self.chosen:.4f}", ylabel="unit-peak kernel"
            )
            right.set_xlim(x[0], x[-1])
            right.tick_params(labelbottom=False)
            below.vlines(f.samples[:, 0], 0, w, color=colour, linewidth=2.5)
            below.set(xlabel="$x_1$", xlim=(x[0], x[-1]), ylim=(0, 1.05), ylabel="$w_s$ at $x_1^s$")
            figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    def table(self) -> pd.DataFrame:
        """Return the maximum by brute force and the sampler's coordinate."""
        f = self.function
        t, w = len(f.samples), f.weights
        rows: list[tuple[str, float]] = [
            ("points so far, t", t),
            ("slice at x2", f.current[1]),
            ("sum of the weights, c", w.sum()),
            ("largest weight w_s", w.max()),
            ("effective number of samples in the slice, c^2 / sum w_s^2", w.sum() ** 2 / (w**2).sum()),
            ("maximum of the weight function at x1", self.maximum),
            ("value there", f(np.array([self.maximum]))[0]),
            (f"x1 of the sampler's point {t + 1}", self.chosen),
            ("difference", abs(self.maximum - self.chosen)),
        ]
        return pd.DataFrame(rows, columns=["quantity", "value"]).assign(paper=common.NOT_STATED)

    def numbers(self) -> pd.DataFrame:
        """Return the function and its two terms on the grid."""
        f, x = self.function, self.grid
        terms = {"expectation": f.expectation(x), "kernel_sum": f.kernel_sum(x), "weight_function": f(x)}
        return pd.DataFrame({"x1": x} | terms)
