"""The bandwidth rule: energy distance relative to independent draws against the kernel width, in whitened coordinates.

The width is given as the factor c in c n^(-1/(d+1)), so that the best column should not move with n.
"""

from __future__ import annotations

import os

import numpy as np
from common import random_mixture, show, whitened
from joblib import Parallel, delayed

from herdfilter import ContinuousHerdedGibbs, GaussianMixture, KernelHerding, Points, energy_distance
from herdfilter.bandwidths import scale_rule

FACTORS = (0.5, 0.8, 1.1, 1.35, 1.6, 1.95, 2.3, 2.8)
MIXTURES = 8
SAMPLERS = (KernelHerding, ContinuousHerdedGibbs)


def narrow_components(dim: int, rng: np.random.Generator) -> GaussianMixture:
    """Return a kernel density of 100 draws, like a filter's predictive density."""
    x = random_mixture(dim, rng).sample(100, rng)
    return GaussianMixture(rng.dirichlet(np.ones(100)), x, 0.1 * np.cov(x.T).reshape(dim, dim))


def two_modes(dim: int, rng: np.random.Generator) -> GaussianMixture:
    """Two far components of weights 0.95 and 0.05."""
    return GaussianMixture([0.95, 0.05], np.vstack([np.zeros(dim), 12 * np.eye(dim)[0]]), np.eye(dim))


FAMILIES = {"5 components": random_mixture, "100 narrow": narrow_components, "two far modes": two_modes}


def ratios(family: str, dim: int, n: int, seed: int) -> list[list[float]]:
    """Energy distance over that of independent draws, by sampler and factor."""
    rng = np.random.default_rng([seed, dim])
    mixture = whitened(FAMILIES[family](dim, rng))
    random = np.mean([energy_distance(Points(mixture.sample(n, rng)), mixture) for _ in range(5)])
    widths = [factor * n ** (-1 / (dim + 1)) for factor in FACTORS]
    return [
        [energy_distance(s(bandwidth=h).sample(mixture, n), mixture) / random for h in widths]
        for s in SAMPLERS
    ]


if __name__ == "__main__":
    rows = []
    for dim in (1, 2, 4, 8, 16):
        for n in (20, 100, 300):
            rule = scale_rule(n, dim) * n ** (1 / (dim + 1))
            for family in FAMILIES:
                jobs = (delayed(ratios)(family, dim, n, seed) for seed in range(MIXTURES))
                medians = np.median(Parallel(os.cpu_count() or 1)(jobs), axis=0)
                for sampler, row in zip(SAMPLERS, medians, strict=True):
                    best = FACTORS[int(np.argmin(row))]
                    rows.append([family, dim, n, sampler.__name__, *map(float, row), best, float(rule)])
    columns = ["family", "d", "n", "sampler", *(f"c = {c}" for c in FACTORS), "best c", "rule"]
    show("Energy distance relative to independent draws, medians", columns, rows)
