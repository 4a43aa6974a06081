"""Members of a sample that represent it: `herdfilter.thin` beside every k-th point, a random subset and goodpoints.

The energy distance to the whole sample, in the sample's own units, and CPU seconds of one thread. Kernel thinning halves: it
keeps n / 2^h of n points, and Compress++ the square root of the largest power of four, so that these sizes are measured
beside `MEMBERS`. Kernel thinning gets the kernel of the energy distance itself, as the whole matrix of n^2 values (800 MB
for 10,000 points), which is many times faster than its calls for single rows. Compress++ has kernels of its own, here the
Gaussian, as wide as the median distance, in coordinates of unit covariance.

The distributions here are not those with which the method was chosen; seeds start at a million.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import peers
from common import timed
from scipy.spatial.distance import cdist

import herdfilter as hf
from herdfilter.discrete import thinning as rule
from herdfilter.paper.common import rotated_mixture

MEMBERS = 100
FIRST_SEED = 1_000_000
LARGE_SEED = 5_000  # of large samples
OVERSAMPLED = 4  # g of Compress++; its time grows as 4^g
Draw = Callable[[np.ndarray, int, int], np.ndarray]


def samples(n: int, dim: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield samples by name, shape (n, dim)."""
    rng = np.random.default_rng([seed, dim])
    normal = rng.standard_normal((n, dim))
    root = rng.standard_normal((dim, dim)) / np.sqrt(dim)
    yield "5 components", rotated_mixture(dim, rng).sample(n, rng)
    yield "correlated normal", normal @ root
    yield "Student t, 2 degrees", normal / np.sqrt(rng.chisquare(2, (n, 1)) / 2)
    yield "lognormal", np.exp(0.7 * normal)
    yield (
        "funnel",
        np.column_stack([1.5 * normal[:, 0], normal[:, 1:] * np.exp(0.75 * normal[:, :1])]),
    )
    angle = rng.uniform(0, 2 * np.pi, n)
    ring = 0.5 * normal
    ring[:, :2] += 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    yield "ring", ring
    yield "Metropolis chain, bent", chain(n, dim, rng)


def chain(n: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Random walk Metropolis on a normal distribution bent in its first two dimensions; the first half is left out."""

    def log_density(x: np.ndarray) -> float:
        rest = x[1:].copy()
        rest[0] -= 0.3 * (x[0] ** 2 - 4)
        return -0.5 * float(x[0] ** 2 / 4 + rest @ rest)

    x, states = np.zeros(dim), np.empty((2 * n, dim))
    here = log_density(x)
    for t, (step, level) in enumerate(
        zip(
            2.0 / np.sqrt(dim) * rng.standard_normal(states.shape),
            np.log(rng.random(2 * n)),
            strict=True,
        )
    ):
        there = log_density(x + step)
        if level < there - here:
            x, here = x + step, there
        states[t] = x
    return states[n:]


def every(x: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Take every k-th point."""
    return np.arange(m) * (len(x) // m)


def subset(x: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Take a random subset."""
    return np.random.default_rng(seed).choice(len(x), m, replace=False)


def halved(x: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Kernel thinning (Dwivedi and Mackey 2022), the matrix of its kernel included."""
    values = energy_kernel(x)
    return peers.kt.thin_K(values, values, int(np.log2(len(x) // m)), seed=seed)


def energy_kernel(x: np.ndarray) -> np.ndarray:
    """Values of ``|x| + |y| - |x - y|``, whose discrepancy is the energy distance, shape (n, n)."""
    norms = np.sqrt((x * x).sum(axis=1))
    values = cdist(x, x)
    np.subtract(norms, values, out=values)
    values += norms[:, None]
    return values


def standardised(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Points in coordinates of unit covariance, and the median distance of a thousand of them."""
    root = np.linalg.cholesky(np.cov(x.T))
    z = np.ascontiguousarray(np.linalg.solve(root, (x - x.mean(axis=0)).T).T)
    some = z[:: max(1, len(z) // 1000)]
    return z, float(np.median(cdist(some, some)))


def compressed(x: np.ndarray, m: int, seed: int) -> np.ndarray:
    """Compress++ (Shetty, Dwivedi and Mackey 2022)."""
    z, width = standardised(x)
    params = np.array([2 * width**2])
    return peers.compress.compresspp_kt(z, b"gaussian", k_params=params, g=OVERSAMPLED, seed=seed)


def distances(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Mean distance of every point to the sample, shape (n,), and that of the sample to itself, once for all methods."""
    mean = np.concatenate(
        [cdist(part, x).mean(axis=1) for part in np.array_split(x, 1 + len(x) // 500)]
    )
    return mean, float(mean.mean())


METHODS: dict[str, Draw] = {
    "every k-th": every,
    "random subset": subset,
    "thin": lambda x, m, seed: hf.thin(x, m),
}
RANDOM = ("random subset", "Compress++ (goodpoints)")  # and cheap: medians over seeds


def measured(dim: int, args: argparse.Namespace) -> pd.DataFrame:
    """Energy distance of members to the whole sample, and seconds, by method."""
    n = args.sample
    by_halves = n >> max(1, round(np.log2(n / MEMBERS)))
    root = 2 ** int(np.log2(n) / 2)
    sizes: dict[int, dict[str, Draw]] = {MEMBERS: {}, by_halves: {}, root: {}}
    if peers.kt is not None:
        sizes[by_halves] |= {"kernel thinning (goodpoints)": halved}
        sizes[root] |= {"Compress++ (goodpoints)": compressed}
    rows = []
    for name, x in samples(n, dim, FIRST_SEED + args.seed):
        mean, own = distances(x)
        for m, others in sizes.items():
            for label, draw in (METHODS | others).items():
                runs = []
                for seed in range(args.seeds if label in RANDOM else 1):
                    seconds, chosen = timed(lambda draw=draw, m=m, x=x, seed=seed: draw(x, m, seed))
                    runs.append((seconds, energy(x, mean, own, chosen)))
                numbers = dict(
                    zip(("seconds", "energy_distance"), np.median(runs, axis=0), strict=True)
                )
                rows.append({"sample": name, "d": dim, "n": n, "m": m, "method": label} | numbers)
    return pd.DataFrame(rows)


def measured_large(n: int, args: argparse.Namespace) -> pd.DataFrame:
    """Error of members over that of a random subset and of the whole-sample rule, seconds and megabytes, by sample.

    The error is the energy distance in the coordinates of unit scatter, in which it is minimised. Beyond `--whole` points it
    is the mean of those of projections, to which it is proportional: n log n for each.
    """
    dim, rows, megabytes = args.large_dim, [], {}
    directions = np.random.default_rng(0).standard_normal((args.directions, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for name, x in samples(n, dim, LARGE_SEED + args.seed):
        z = rule._metric(x, np.full(n, 1.0 / n), [])
        if n <= args.whole:
            error = partial(energy, z, *distances(z))
        else:
            error = partial(
                projected, z, directions, [np.sort(z @ direction) for direction in directions]
            )
        for m in args.members:
            random = np.mean([error(subset(x, m, seed)) for seed in range(args.seeds)])
            seconds, chosen = timed(lambda x=x, m=m: hf.thin(x, m))
            found = {
                "sample": name,
                "d": dim,
                "n": n,
                "m": m,
                "seconds": seconds,
                "over_random": error(chosen) / random,
            }
            if n <= args.whole:
                with mock.patch.object(rule, "CELLS", n):
                    found["seconds_whole"], whole = timed(lambda x=x, m=m: hf.thin(x, m))
                found["over_whole"] = error(chosen) / error(whole)
            if m not in megabytes:  # they hang on the numbers of points and members alone
                tracemalloc.start()
                hf.thin(x, m)
                megabytes[m] = tracemalloc.get_traced_memory()[1] / 2**20
                tracemalloc.stop()
            rows.append(found | {"megabytes": megabytes[m]})
    return pd.DataFrame(rows)


def energy(z: np.ndarray, mean: np.ndarray, own: float, chosen: np.ndarray) -> float:
    """Energy distance of members to the sample, by the mean distances of its points."""
    return float(2 * mean[chosen].mean() - own - cdist(z[chosen], z[chosen]).mean())


def projected(
    z: np.ndarray, directions: np.ndarray, projections: list[np.ndarray], chosen: np.ndarray
) -> float:
    """Mean energy distance of projections on a line: twice the integral of the squared difference of both F."""
    total = 0.0
    for direction, y in zip(directions, projections, strict=True):
        members = np.sort(z[chosen] @ direction)
        difference = np.arange(1, len(y)) / len(y) - np.searchsorted(
            members, y[:-1], side="right"
        ) / len(members)
        total += 2.0 * (difference**2) @ np.diff(y)
    return float(total / len(directions))
