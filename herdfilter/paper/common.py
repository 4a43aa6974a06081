"""The parts that the figures share: mixtures, samplers with their styles, and errors of prefixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from herdfilter._checks import Array
from herdfilter.bandwidths import Bandwidth
from herdfilter.kernels import density_product, expected_kernel, log_normaliser
from herdfilter.mixture import GaussianMixture
from herdfilter.plotting.style import STYLES
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, Sampler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOT_STATED = "not stated"  # entry of the column "paper" if no source at hand gives the paper's value

KH, CHG, SMOOTHED, RANDOM = "kernel herding", "CHG, as published", "CHG, smoothed", "random"

SAMPLER_STYLES = {
    KH: STYLES["herded-kh"],
    CHG: STYLES["mixture-chg"],
    SMOOTHED: STYLES["herded-chg"],
    RANDOM: STYLES["bootstrap"],
}
"""Name of a sampler -> its style: that of the filter that has it."""

DARK, GREY = "#222222", "#777777"


def five_gaussians() -> GaussianMixture:
    """Return five components in the plane, the example of the authors' public program (Figs. 1 and 2)."""
    return GaussianMixture(
        [0.3, 0.1, 0.2, 0.3, 0.1],
        [[6, 5], [7, 2], [1, 3], [7, 6], [2, 8]],
        np.array([[[5, 3], [3, 5]], [[1, 0.3], [0.3, 1]], [[4, 3], [3, 4]], [[2, 0.5], [0.5, 3]], [[1, 0], [0, 3]]]),
    )


def rotated_mixture(dim: int, rng: np.random.Generator, components: int = 5) -> GaussianMixture:
    """Draw a mixture: means U[-5, 5]^d, covariance eigenvalues U[0.1, 4.1] randomly rotated, weights uniform on the simplex.

    The paper does not state its random mixtures; these are ours (Figs. 3 and 5).
    """
    turns = np.linalg.qr(rng.standard_normal((components, dim, dim)))[0]
    values = rng.uniform(0.1, 4.1, (components, 1, dim))
    means = rng.uniform(-5, 5, (components, dim))
    return GaussianMixture(rng.dirichlet(np.ones(components)), means, (turns * values) @ turns.swapaxes(1, 2))


def broad_components() -> GaussianMixture:
    """Return two components that are several kernels wide in every direction, at the sigma_k = 0.2 of Fig. 4."""
    return GaussianMixture([0.5, 0.5], [[-1.5, 0.0], [1.5, 1.0]], [np.eye(2), np.diag([2.0, 1.0])])


def narrow_component() -> GaussianMixture:
    """Return a long component at 45 degrees, standard deviations 2 and 0.14, and a round one beside it.

    At sigma_k = 0.2 the long component and its conditionals along either axis are narrower than the kernel.
    """
    long = np.array([[2.01, 1.99], [1.99, 2.01]])  # eigenvalues 4 and 0.02
    return GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, -3.0]], [long, np.eye(2)])


def herding_samplers(bandwidth: Bandwidth) -> dict[str, Sampler]:
    """Return kernel herding, and continuous herded Gibbs as published and with its repairs."""
    return {
        KH: KernelHerding(bandwidth=bandwidth),
        CHG: ContinuousHerdedGibbs(target="paper", bandwidth=bandwidth),
        SMOOTHED: ContinuousHerdedGibbs(bandwidth=bandwidth),
    }


def shade_density(ax: Axes, mixture: GaussianMixture, x: Array, y: Array) -> None:
    """Draw the density of a mixture in the plane as filled contours in grey, and its axes with equal scales."""
    import matplotlib as mpl

    grid = np.stack(np.meshgrid(x, y), axis=-1)
    density = np.exp(mixture.log_density(grid.reshape(-1, 2))).reshape(grid.shape[:2])
    levels = density.max() * np.array([0.01, 0.03, 0.08, 0.18, 0.34, 0.55, 0.78, 1.01])
    ax.contourf(x, y, density, levels, colors=mpl.colormaps["Greys"](np.linspace(0.06, 0.42, len(levels) - 1)))
    ax.set(aspect="equal", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    ax.grid(visible=False)


def draw_curve(ax: Axes, values: Array, name: str) -> None:
    """Draw an error against the number of points in the style of a sampler, on logarithmic axes."""
    style = SAMPLER_STYLES[name]
    marks = np.unique(np.geomspace(1, len(values), 9).astype(int) - 1)
    t = np.arange(1, len(values) + 1)
    ax.plot(t, values, label=name, linewidth=1.4, markevery=list(marks), **style.line)
    ax.set(xscale="log", yscale="log")


class PrefixErrors:
    """Errors of the first t points of a sequence for t = 1, ..., n, at a fixed kernel.

    They equal `herdfilter.herding_error` and `herdfilter.normalised_l2` with equal weights, but cost O(n^2) for all t
    together: sums over points are cumulative, sums over pairs are over leading blocks of one matrix. `floor` is the limit of
    the normalised L2 error as the herding error vanishes, for any sampler: the distance of the smoothed density p * k to p.
    """

    def __init__(self, mixture: GaussianMixture, kernel: Array) -> None:
        self._mixture, self._kernel = mixture, kernel
        self._factor = np.linalg.cholesky(kernel)
        self._height, self._height_twice = np.exp(log_normaliser(kernel)), np.exp(log_normaliser(2 * kernel))
        self._norm, self._smooth = density_product(mixture), density_product(mixture, kernel)
        self.floor = float(2 * (1 - self._smooth / np.sqrt(self._norm * density_product(mixture, 2 * kernel))))

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Return herding errors and normalised L2 errors, both (n,), of the prefixes of `x`, (n, d)."""
        z = np.linalg.solve(self._factor, x.T).T
        length = (z**2).sum(1)
        squared = np.maximum(length[:, None] + length - 2 * z @ z.T, 0.0)
        np.fill_diagonal(squared, 0.0)
        kernel_twice = np.exp(-0.25 * squared)  # of covariance 2 K; its square is the kernel of covariance K
        t = np.arange(1, len(x) + 1)
        inner = self._height * np.cumsum(expected_kernel(self._mixture, x, self._kernel)) / t
        own = self._height * _leading_blocks(kernel_twice**2) / t**2
        estimate = self._height_twice * _leading_blocks(kernel_twice) / t**2
        herding = np.sqrt(np.maximum(self._smooth - 2 * inner + own, 0.0))
        return herding, 2 * (1 - inner / np.sqrt(self._norm * estimate))


def _leading_blocks(symmetric: Array) -> Array:
    """Return the sum of every leading square block of a symmetric matrix."""
    new = 2 * np.tril(symmetric, -1).sum(1) + np.diagonal(symmetric)
    return np.cumsum(new)
