"""Samplers beside those of the package on mixtures of 1, 5 and 100 components: KIT's PCD sampler, LCD and support points.

PCD (Prossel, Li, Novikov and Hanebeck, FUSION 2026) moves points until their projections onto unit vectors have the
distribution functions of the mixture's projections. It is imported from a checkout of KIT-ISAS/PCD_sampling_py, whose folder
`--pcd` or the variable PCD_SAMPLING names, and needs torch. The sum over all directions that it minimises is the energy
distance: the measure is PCD's own objective, as it is that of support points.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import timed

import herdfilter as hf

CHECKOUT = "PCD_SAMPLING"
"""Environment variable with the folder of the checkout."""


@dataclass(frozen=True)
class PCD:
    """KIT's sampler with the options of its `examples/example.py`: 100 Newton steps, exact distribution functions.

    The unit vectors are spread evenly, as its configuration advises for better cover; they are made once for each size and
    dimension, beside the first call. `newton=False` with 40 steps and the lookup table are its defaults.
    """

    unit_vectors: int = 100
    steps: int = 100
    newton: bool = True
    lookup_table: bool = False
    prepared: dict[tuple[int, int], Any] = field(default_factory=dict, compare=False, repr=False)

    def sample(self, mixture: hf.GaussianMixture, n: int, rng: np.random.Generator) -> hf.Points:
        """Draw n points; torch computes with one thread and in single precision, as in its examples."""
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(int(rng.integers(2**31)))
        sampler = self.prepared.get((n, mixture.dim))
        if sampler is None:
            # compiled code of many samplers would exceed torch's limit, beyond which nothing is compiled
            torch.compiler.reset()
            sampler = self.prepared[n, mixture.dim] = self._prepare(n, mixture.dim)
        shape = (len(mixture.weights), mixture.dim, mixture.dim)
        covariances = np.array(np.broadcast_to(mixture.covariances, shape))
        arrays = (np.array(mixture.weights), np.array(mixture.means), covariances)
        with torch.no_grad():
            x = sampler.sample(*(torch.from_numpy(values).float() for values in arrays))
        return hf.Points(x.double().numpy())

    def _prepare(self, n: int, dim: int) -> Any:
        models = importlib.import_module("pcd_sampling_py.models")
        config = models.PCDSamplerConfig(
            dim=dim,
            number_samples=n,
            number_unit_vectors=self.unit_vectors,
            steps=self.steps,
            lookup_table=self.lookup_table,
            local_update=not self.newton,
            unit_vectors_method="deterministic",
        )
        return importlib.import_module("pcd_sampling_py.sampler").PCDSampler(config)


BESIDE: dict[str, Any] = {
    "pcd": PCD(),
    "pcd-500": PCD(unit_vectors=500),
    "pcd-default": PCD(steps=40, newton=False, lookup_table=True),
    "support": hf.Polished(hf.SobolSampling(), kernel=hf.kernels.Energy()),
    "joint-20": hf.JointHerding(iterations=20),
    "polished-to-end": hf.Polished(hf.SobolSampling(), iterations=1000),
    "lcd": hf.LCDSampling(),
}


def use_checkout(folder: Path | None, compiled: bool) -> str:
    """Make PCD importable, here and in worker processes; return why it cannot be, an empty text if it can."""
    if folder is None:
        return f"no folder of a checkout in --pcd or {CHECKOUT}"
    if not compiled:
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    sys.path.append(str(folder / "src"))
    try:
        importlib.import_module("pcd_sampling_py.sampler")
    except ImportError as error:
        return str(error)
    return ""


def measure_compiled(mixture: hf.GaussianMixture, n: int, sampler: PCD, repeats: int = 9) -> float:
    """Milliseconds of PCD as torch compiles it, on the line through those of 2 and of 8 steps.

    torch compiles the steps one after the other, a hundred of them for many minutes; each takes as long as any other.
    """
    few, more = 2, 8
    medians = []
    for steps in (few, more):
        part = replace(sampler, steps=steps, prepared={})
        draws = [partial(part.sample, mixture, n, np.random.default_rng(k)) for k in range(repeats)]
        _attempt(draws[0])
        medians.append(np.median([timed(partial(_attempt, draw))[0] for draw in draws]))
    slope = (medians[1] - medians[0]) / (more - few)
    return 1e3 * float(medians[0] + (sampler.steps - few) * slope)


def one_component(dim: int, rng: np.random.Generator) -> hf.GaussianMixture:
    """Return N(0, I): the coordinates are those in which the covariance is I."""
    return hf.GaussianMixture([1.0], np.zeros((1, dim)), np.eye(dim))


def measure_together(
    mixtures: Sequence[hf.GaussianMixture], n: int, samplers: Sequence[Any], first: int
) -> np.ndarray:
    """Energy distances over those of n independent draws, and milliseconds, of shape (2, mixtures, samplers).

    The samplers take turns, after one call of each that is not counted. A sampler that fails has an infinite distance.
    """
    for sampler in samplers:
        _attempt(partial(sampler.sample, mixtures[0], n, np.random.default_rng(first)))
    results = np.empty((2, len(mixtures), len(samplers)))
    for row, mixture in enumerate(mixtures):
        expected = hf.expected_energy_distance(mixture, n)
        for column, sampler in enumerate(samplers):
            draw = partial(sampler.sample, mixture, n, np.random.default_rng(first + row))
            seconds, points = timed(partial(_attempt, draw))
            distance = np.inf if points is None else hf.energy_distance(points, mixture)
            results[:, row, column] = distance / expected, 1e3 * seconds
    return results


def _attempt(draw: Callable[[], hf.Points]) -> hf.Points | None:
    # torch raises RuntimeError at a singular matrix, `Points` ValueError at what is not finite
    try:
        return draw()
    except (RuntimeError, ValueError):
        return None
