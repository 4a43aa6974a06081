"""Microseconds a point of the herding samplers: 5 components, 100 points, sigma_k = 0.1, one core, compiled."""

from __future__ import annotations

import numpy as np
from common import random_mixture, seconds, show

from herdfilter import ContinuousHerdedGibbs, KernelHerding

POINTS = 100
MIXTURES = 9
SAMPLERS = {
    'CHG, target="paper"': ContinuousHerdedGibbs(target="paper", bandwidth=0.1),
    "CHG, one sweep": ContinuousHerdedGibbs(bandwidth=0.1, sweeps=1),
    "CHG (two sweeps)": ContinuousHerdedGibbs(bandwidth=0.1),
    "KH": KernelHerding(bandwidth=0.1),
    "CHG, auto bandwidth": ContinuousHerdedGibbs(),
    "KH, auto bandwidth": KernelHerding(),
}

if __name__ == "__main__":
    rows = []
    for dim in (2, 5, 10, 50):
        mixtures = [random_mixture(dim, np.random.default_rng(seed)) for seed in range(MIXTURES)]
        for name, sampler in SAMPLERS.items():
            times = [1e6 * seconds(lambda s=sampler, m=m: s.sample(m, POINTS)) / POINTS for m in mixtures]
            rows.append([name, dim, float(np.median(times)), min(times), max(times)])
    show(f"Microseconds a point, {MIXTURES} random mixtures", ["sampler", "d", "median", "min", "max"], rows)
