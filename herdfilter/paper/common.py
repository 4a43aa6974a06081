"""The parts that the figures share: mixtures, samplers with their styles, curves, and errors of prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist

from herdfilter import pictures
from herdfilter._checks import Array
from herdfilter.bandwidths import Bandwidth
from herdfilter.kernels import density_product, expected_kernel, log_normaliser
from herdfilter.mixture import GaussianMixture
from herdfilter.plotting.style import INK, QUIET, STYLES, save
from herdfilter.samplers import ContinuousHerdedGibbs, KernelHerding, Sampler

NOT_STATED = "not stated"  # entry of the column "paper" where the paper gives no value

EXAMPLE_WIDTH = 0.5  # kernel width sigma_k of Figs. 1 and 2

KH = "kernel herding"
CHG = "CHG, as published"
SMOOTHED = "CHG, smoothed"
RANDOM = "random"

SAMPLER_STYLES = {
    KH: STYLES["herded-kh"],
    CHG: STYLES["mixture-chg"],
    SMOOTHED: STYLES["herded-chg"],
    RANDOM: STYLES["bootstrap"],
}
"""Name of a sampler -> its style, which is that of the filter that uses it."""


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One figure of the paper, computed anew.

    Attributes
    ----------
    name, title : str
    figure : matplotlib.figure.Figure
    table : pandas.DataFrame
        The comparison, in a few lines; its last columns hold the paper's values.
    numbers : pandas.DataFrame
        Everything that the figure shows.

    Examples
    --------
    >>> from herdfilter.paper import reproduce
    >>> reproduction = reproduce("fig2", quick=True)
    >>> reproduction.name, reproduction.table.columns[-1]
    ('fig2', 'paper')
    """

    name: str
    title: str
    figure: Figure
    table: pd.DataFrame
    numbers: pd.DataFrame

    def save(self, folder: Path) -> list[Path]:
        """Write the figure as PNG and SVG and the numbers as CSV into a folder; return the paths."""
        paths = [folder / f"{self.name}.{ending}" for ending in ("png", "svg", "csv")]
        save(self.figure, *paths[:2])
        self.numbers.to_csv(paths[2], index=False)
        return paths


def five_gaussians() -> GaussianMixture:
    """Return five components in the plane, the example of the authors' public program (Figs. 1 and 2)."""
    return GaussianMixture(
        [0.3, 0.1, 0.2, 0.3, 0.1],
        [[6, 5], [7, 2], [1, 3], [7, 6], [2, 8]],
        np.array(
            [
                [[5, 3], [3, 5]],
                [[1, 0.3], [0.3, 1]],
                [[4, 3], [3, 4]],
                [[2, 0.5], [0.5, 3]],
                [[1, 0], [0, 3]],
            ]
        ),
    )


def rotated_mixture(dim: int, rng: np.random.Generator, components: int = 5) -> GaussianMixture:
    """Draw a mixture: means U[-5, 5]^d, covariance eigenvalues U[0.1, 4.1] randomly rotated, weights uniform on the simplex.

    The paper does not state its random mixtures; these are ours (Figs. 3 and 5).
    """
    # The orthogonal factor of a Gaussian matrix is uniform up to signs, which leave a covariance as it is.
    rotations = np.linalg.qr(rng.standard_normal((components, dim, dim)))[0]
    values = rng.uniform(0.1, 4.1, (components, 1, dim))
    means = rng.uniform(-5, 5, (components, dim))
    return GaussianMixture(
        rng.dirichlet(np.ones(components)), means, (rotations * values) @ rotations.swapaxes(1, 2)
    )


def broad_components() -> GaussianMixture:
    """Return two components that are several kernel widths wide in every direction, at sigma_k = 0.2 (Fig. 4)."""
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


def draw_samples(
    ax: Axes, mixture: GaussianMixture, points: Any, name: str, marker: str = "o"
) -> None:
    """Draw points of a sampler over the regions that hold 50, 80 and 95 % of a mixture in the plane."""
    color = SAMPLER_STYLES[name].color
    pictures.plot_mixture(mixture, ax, levels=(0.5, 0.8, 0.95), color=QUIET)
    pictures.plot_points(points, ax, color=color, marker=marker)
    # The regions and nearly all points lie within 2.8 standard deviations of the mean.
    x, y = mixture.mean[:, None] + np.sqrt(np.diag(mixture.covariance))[:, None] * [-2.8, 2.8]
    ax.set(aspect="equal", xticks=[], yticks=[], xlim=x, ylim=y)
    ax.set_title(name, color=color)


def draw_curves(ax: Axes, numbers: pd.DataFrame, column: str, floor: float | None = None) -> None:
    """Draw an error of every sampler against the number of points, on logarithmic axes, and the floor of the L2 error."""
    for name, rows in numbers.groupby("sampler", sort=False):
        # Markers evenly spaced on the logarithmic axis.
        marked: Any = np.unique(np.geomspace(1, len(rows), 9).astype(int) - 1).tolist()
        line = SAMPLER_STYLES[str(name)].line | {"linewidth": 1.4, "markevery": marked}
        ax.plot(rows["t"], rows[column], label=str(name), **line)
    if floor is not None:
        ax.axhline(floor, color=INK, linewidth=1, linestyle="--", label="L2 floor")
    ax.set(xscale="log", yscale="log")


def at_counts(numbers: pd.DataFrame, *counts: int) -> list[pd.DataFrame]:
    """Return a table for each of some numbers of points, with rows in the same order."""
    return [numbers[numbers["t"] == t].reset_index(drop=True) for t in counts]


def joined(parts: dict[Any, pd.DataFrame], names: list[str]) -> pd.DataFrame:
    """Concatenate tables, and put their keys into first columns with these names."""
    table: pd.DataFrame = pd.concat(parts, names=names).reset_index(names)
    return table


class PrefixErrors:
    """Errors of the first t points of a sequence for t = 1, ..., n, with a fixed kernel.

    They equal `herdfilter.herding_error` and `herdfilter.normalised_l2` with equal weights, but cost O(n^2) for all t
    together: sums over points are cumulative, sums over pairs are over leading blocks of one matrix. `floor` is the limit of
    the normalised L2 error as the herding error of any sampler vanishes: the distance of the smoothed density p * k to p.
    """

    def __init__(self, mixture: GaussianMixture, kernel: Array) -> None:
        self._mixture = mixture
        self._kernel = kernel
        # The integrals of p^2, of p (p * k) and of (p * k)^2.
        self._norm = density_product(mixture)
        self._smooth = density_product(mixture, kernel)
        smooth_norm = density_product(mixture, 2 * kernel)
        self.floor = float(2 * (1 - self._smooth / np.sqrt(self._norm * smooth_norm)))

    def __call__(self, x: Array) -> pd.DataFrame:
        """Return the errors of the prefixes of `x`, (n, d): columns ``t``, ``herding_error`` and ``normalised_l2``."""
        # In coordinates in which the kernel is isotropic, of width 1.
        z = np.linalg.solve(np.linalg.cholesky(self._kernel), x.T).T
        # Of covariance 2 K; its square is the kernel of covariance K.
        kernel_twice = np.exp(-0.25 * cdist(z, z, "sqeuclidean"))
        t = np.arange(1, len(x) + 1)
        height = np.exp(log_normaliser(self._kernel))
        # E_t^2 = E[k(X, X')] - 2 mean_s E[k(X, x_s)] + mean_rs k(x_r, x_s)
        inner = height * np.cumsum(expected_kernel(self._mixture, x, self._kernel)) / t
        pairs = height * _leading_blocks(kernel_twice**2) / t**2
        herding = np.sqrt(np.maximum(self._smooth - 2 * inner + pairs, 0.0))
        # 2 (1 - <p, q> / (|p| |q|)) with the kernel density estimate q, and <p, q> the mean of E[k(X, x_s)]
        estimate = np.exp(log_normaliser(2 * self._kernel)) * _leading_blocks(kernel_twice) / t**2
        l2 = 2 * (1 - inner / np.sqrt(self._norm * estimate))
        return pd.DataFrame({"t": t, "herding_error": herding, "normalised_l2": l2})


def _leading_blocks(matrix: Array) -> Array:
    """Return the sum of every leading square block of a matrix."""
    return matrix.cumsum(axis=0).cumsum(axis=1).diagonal()
