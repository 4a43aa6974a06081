"""How far deterministic points and filters differ between kernels of OpenBLAS, which round matrix products differently.

A kernel is chosen once, when NumPy is loaded (``OPENBLAS_CORETYPE``), so that each has a process of its own, which writes
what it computes to a file. They stand for other processors, as far as one machine can. What comes in is cut to nine digits,
so that it is the same everywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import herdfilter as hf
from herdfilter.study.scenario import load_scenario

CLOSE = 1e-4  # standard deviations of the mixture, or of the posterior
DIMS, SIZES = (1, 2, 4, 8), (20, 100)
SCENARIOS = ("ungm", "lorenz63", "bearings", "linear_gaussian", "stochastic_volatility")
DIGITS = 9
FILTERS = ("auto", "herded-kh", "augmented-gauss-kh")
RUNS = 10
SAMPLERS = {
    "KernelHerding": hf.KernelHerding(),
    "ContinuousHerdedGibbs": hf.ContinuousHerdedGibbs(),
}
Case = Callable[[str, int, int], hf.GaussianMixture]


def compute(path: Path, case: Case, families: Sequence[str], mixtures: int) -> None:
    """Write the points of whitened mixtures, and the means of filters in units of their standard deviations."""
    found = {}
    for name, sampler in SAMPLERS.items():
        for family in families:
            for d in DIMS:
                for n in SIZES:
                    for seed in range(mixtures):
                        mixture = _cut(case(family, d, seed))
                        points = sampler.sample(mixture, n)
                        key = f"{name}, {'d = 8' if d == 8 else 'd up to 4'}|{family}, {d}, {n}, {seed}"
                        found[key] = points.x
                        found[f"energy|{key}"] = np.array(hf.energy_distance(points, mixture))
    for scenario in SCENARIOS:
        loaded = load_scenario(scenario)
        for run in range(RUNS):
            _, seen = hf.simulate(loaded.build_model(), 30, rng=run, dt=loaded.dt)
            for name in FILTERS:
                made = hf.make_filter(name, loaded.build_model(), n_particles=100, rng=run)
                result = made.run(seen.round(DIGITS), dt=loaded.dt)
                sd = np.sqrt(np.einsum("tii->ti", result.covariances).mean(axis=0))
                found[f"{name}|{scenario}, {run}"] = result.means / sd
    np.savez(path, **found)


def _cut(mixture: hf.GaussianMixture) -> hf.GaussianMixture:
    covariances = np.stack([(c + c.T) / 2 for c in mixture.covariances.round(DIGITS)])
    weights = mixture.weights.round(DIGITS)
    return hf.GaussianMixture(weights / weights.sum(), mixture.means.round(DIGITS), covariances)


def compare(script: str, names: Sequence[str], mixtures: int) -> pd.DataFrame:
    """Run `script` with ``--compute`` in a process for each kernel, and compare all with the first."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {}
        for name in names:
            path = Path(folder) / f"{name}.npz"
            environment = os.environ | {"OPENBLAS_CORETYPE": name}
            command = [sys.executable, script, "--compute", str(path), "--mixtures", str(mixtures)]
            subprocess.run(command, env=environment, check=True)
            with np.load(path) as found:
                tables[name] = dict(found)
    first, *others = names
    rows = []
    ours = tables[first]
    for what in dict.fromkeys(key.split("|")[0] for key in ours if not key.startswith("energy")):
        sets = [key for key in ours if key.startswith(f"{what}|")]
        worths = [
            key for key in ours if key.startswith(f"energy|{what}|")
        ]  # of points, and of no filter
        for other in others:
            theirs = tables[other]
            same = sum(np.array_equal(ours[key], theirs[key]) for key in sets)
            distance = _matched if worths else _farthest
            off = [distance(ours[key], theirs[key]) for key in sets]
            close = sum(x <= CLOSE for x in off)
            worth = max((abs(theirs[key] / ours[key] - 1) for key in worths), default=np.nan)
            rows.append((what, first, other, len(sets), same, close, max(off), worth))
    names = ["what", "kernel", "other", "sets", "same", "close", "largest", "energy"]
    return pd.DataFrame(rows, columns=names)


def _farthest(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.abs(x - y).max())


def _matched(x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest distance of two sets of points, in whichever order."""
    distances = cdist(x, y)
    return float(distances[linear_sum_assignment(distances**2)].max())
