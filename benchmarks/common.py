"""What the benchmarks share: the mixtures, timing, one-core runs, and what is printed."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence

import numba
import numpy as np
import scipy
from rich.console import Console
from rich.table import Table

from herdfilter import GaussianMixture
from herdfilter.paper.mixtures import random_mixture as random_mixture  # for the studies


def particle_mixture(dim: int, components: int, modes: int, rng: np.random.Generator) -> GaussianMixture:
    """Return what a filter herds from: particles of a Gaussian or a two-mode posterior, random weights, one covariance.

    The modes, of weights 0.6 and 0.4, are unit Gaussians six apart; the shared covariance has standard deviation 0.3.
    """
    means = rng.standard_normal((components, dim))
    if modes == 2:
        means[rng.random(components) < 0.4, 0] += 6.0
    return GaussianMixture(rng.dirichlet(np.ones(components)), means, 0.09 * np.eye(dim))


def whitened(mixture: GaussianMixture) -> GaussianMixture:
    """Return the mixture in coordinates in which its covariance is I."""
    w = np.linalg.inv(np.linalg.cholesky(mixture.covariance))
    return GaussianMixture(mixture.weights, mixture.means @ w.T, w @ mixture.covariances @ w.T)


def timed(function: Callable[[], object]) -> tuple[float, object]:
    """CPU seconds that this thread spends on one call, and what the call returns."""
    start = time.thread_time()
    result = function()
    return time.thread_time() - start, result


def cpu_seconds(functions: Sequence[Callable[[], object]], repeats: int) -> np.ndarray:
    """Median CPU seconds of each call, shape (len(functions),), after one round that is not counted.

    The calls take turns, so that what disturbs the machine disturbs all alike, and so that no call finds what the one
    before it left in the caches.
    """
    for function in functions:
        function()
    return np.median([[timed(f)[0] for f in functions] for _ in range(repeats)], axis=0)


def announce(seed: int | None = None) -> None:
    """Print the command, the seed, and the machine."""
    print("$ python", *sys.argv)
    versions = ", ".join(f"{m.__name__} {m.__version__}" for m in (np, numba, scipy))
    print(f"{'' if seed is None else f'seed {seed}; '}{os.cpu_count()} cores, {_processor()}; ", end="")
    print(f"python {platform.python_version()}, {versions}", flush=True)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(title: str, columns: list[str], rows: list[list[object]], width: int = 150) -> None:
    """Print a table of at most `width` characters."""
    table = Table(title=title, title_justify="left")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=width).print(table)
