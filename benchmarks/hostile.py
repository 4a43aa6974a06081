"""Mixtures that samplers may fail on: modes far apart, and a wide family of random mixtures that nothing was tuned on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist

import herdfilter as hf

DISTANCES = (5.0, 10.0, 100.0, 1e3, 1e5, 1e8)
FAR_SIZES = (10, 50, 200)
SIZES = (5, 20, 50, 100, 200)
CLAIMS = 2_000_000  # the first of the seeds that nothing was tuned on


def far_modes(samplers: Mapping[str, hf.samplers.Sampler], dims: list[int]) -> pd.DataFrame:
    """Two unit components so many deviations apart: the point farthest from both, and the energy distance.

    The farthest of 10, 50 and 200 points, for weights of 0.5 and 0.3; the median of the energy distance over that of
    independent draws.
    """
    rows = []
    for name, sampler in samplers.items():
        for dim in dims:
            for distance in DISTANCES:
                far, ratios = [], []
                for weight in (0.5, 0.3):
                    for n in FAR_SIZES:
                        towards = np.random.default_rng([dim, n]).standard_normal(dim)
                        means = np.outer([0.0, distance], towards / np.linalg.norm(towards))
                        mixture = hf.GaussianMixture([weight, 1 - weight], means, np.eye(dim))
                        points = sampler.sample(mixture, n, np.random.default_rng(n))
                        far.append(cdist(points.x, means).min(axis=1).max())
                        ratios.append(_ratio(points, mixture))
                rows.append((name, dim, distance, max(far), float(np.median(ratios))))
    return pd.DataFrame(rows, columns=["sampler", "d", "distance", "farthest", "energy"])


def hostile_mixture(seed: int) -> hf.GaussianMixture:
    """Return one of a wide family of mixtures, of up to 20 components in up to 8 dimensions, on which samplers may fail."""
    rng = np.random.default_rng([seed, 77])
    dim = int(rng.choice([1, 2, 3, 4, 6, 8]))
    components = int(rng.integers(1, 21))
    weights = rng.dirichlet(np.full(components, 10 ** rng.uniform(-1, 1)))
    means = 10 ** rng.uniform(-1, 4) * rng.standard_normal((components, dim))
    roots = rng.standard_normal((components, dim, dim))
    kind = rng.choice(["alike", "sizes", "narrow", "flat"])
    if kind == "sizes":
        roots *= 10 ** rng.uniform(-3, 1, (components, 1, 1))
    if kind == "narrow":
        roots *= 10 ** rng.uniform(-4, 0, (components, 1, dim))
    if kind == "flat":
        roots[:, :, : rng.integers(dim)] = 0.0
    covariances = roots @ roots.swapaxes(1, 2)
    return hf.GaussianMixture(weights, means, covariances[0] if rng.random() < 0.3 else covariances)


def random_mixtures(
    samplers: Mapping[str, hf.samplers.Sampler], count: int, first: int, workers: int
) -> pd.DataFrame:
    """Return for each sampler in how many of the mixtures its points are worse than independent draws, and how much."""

    def measured(seed: int) -> list[float]:
        mixture, n = hostile_mixture(seed), SIZES[seed % len(SIZES)]
        return [
            _ratio(s.sample(mixture, n, np.random.default_rng(seed)), mixture)
            for s in samplers.values()
        ]

    ratios = np.array(
        Parallel(workers)(delayed(measured)(seed) for seed in range(first, first + count))
    )
    return pd.DataFrame(
        {
            "sampler": list(samplers),
            "mixtures": count,
            "seed": first,
            "worse": (ratios > 1).sum(axis=0),
            "median": np.median(ratios, axis=0),
            "worst": ratios.max(axis=0),
        }
    )


def _ratio(points: hf.Points, mixture: hf.GaussianMixture) -> float:
    return hf.energy_distance(points, mixture) / hf.expected_energy_distance(mixture, len(points))
