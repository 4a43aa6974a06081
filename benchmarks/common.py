"""What the benchmarks share: the random mixtures, timing, and tables."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from herdfilter import GaussianMixture


def random_mixture(dim: int, rng: np.random.Generator, components: int = 5) -> GaussianMixture:
    """Means U[-5, 5]^d, covariance eigenvalues U[0.1, 4.1] randomly rotated, Dirichlet(1) weights."""
    turns = np.linalg.qr(rng.standard_normal((components, dim, dim)))[0]
    values = rng.uniform(0.1, 4.1, (components, 1, dim))
    means = rng.uniform(-5, 5, (components, dim))
    return GaussianMixture(rng.dirichlet(np.ones(components)), means, (turns * values) @ turns.swapaxes(1, 2))


def whitened(mixture: GaussianMixture) -> GaussianMixture:
    """Return the mixture in coordinates in which its covariance is I."""
    w = np.linalg.inv(np.linalg.cholesky(mixture.covariance))
    return GaussianMixture(mixture.weights, mixture.means @ w.T, w @ mixture.covariances @ w.T)


def seconds(function: Callable[[], object], repeats: int = 15) -> float:
    """Median wall time of a call, after one call that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def show(title: str, columns: list[str], rows: list[list[object]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=150).print(table)
