"""Milliseconds of energy distance and sliced Wasserstein distance: `python benchmarks/bench_discrepancy.py`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import herdfilter as hf


def milliseconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Least processor time of a few repeats."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return 1e3 * min(times)


def some_mixture(d: int, components: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Components that differ in place, size and orientation."""
    a = rng.standard_normal((components, d, d))
    covariances = a @ np.swapaxes(a, 1, 2) / d + 0.05 * np.eye(d)
    weights, means = rng.dirichlet(np.full(components, 2.0)), 2.0 * rng.standard_normal((components, d))
    return hf.GaussianMixture(weights, means, covariances)


def main() -> None:
    """Print a table."""
    print("| n | d | components | energy distance (ms) | sliced Wasserstein, 128 directions (ms) |")
    print("|---|---|---|---|---|")
    for n in (200, 1000):
        for d in (1, 2, 8, 16):
            for components in (5, 50):
                mixture = some_mixture(d, components, np.random.default_rng(0))
                points = hf.Points(mixture.sample(n, 1))
                energy = milliseconds(lambda p=points, m=mixture: hf.energy_distance(p, m))
                sliced = milliseconds(lambda p=points, m=mixture: hf.sliced_wasserstein(p, m), 2)
                print(f"| {n} | {d} | {components} | {energy:.1f} | {sliced:.0f} |", flush=True)


if __name__ == "__main__":
    main()
