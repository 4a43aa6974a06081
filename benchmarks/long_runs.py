"""Filters over a million steps of one series, of models whose posterior is known at every step.

A model of one dimension has its posterior on a grid, by a point-mass filter that goes on from block to block. A model of two
is two such models that know nothing of each other, in coordinates that are turned; a filter sees only the turned ones. Two
errors are taken at every step: of the mean, in posterior standard deviations, and the Kolmogorov distance of the weighted
particles to the posterior, which is the one that theorems speak of (of two dimensions the larger one).
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from long_models import Case, cases, kolmogorov, point_masses

import herdfilter as hf

CLAIMS = 6_000_000
"""First seed of what the pages show."""

BLOCK = 10_000
"""Steps of which all particles are kept at a time."""

STAGE = 50_000
"""Steps after which what was found is written, and another model has its turn."""

BOUNDS = (1.0, 2.0, 5.0)
"""Errors of the mean, in posterior standard deviations."""

KAPPA = 0.4
"""Bound of the Kolmogorov distance, below 1/2 as in the theorem."""

SHOWN = [
    "filter",
    "n",
    "rms",
    "largest",
    "beyond_2",
    "first_2",
    "free_2",
    "loss_2",
    "largest_distance",
    "beyond_kappa",
    "us",
]
"""Columns that are printed."""

FILTERS = {
    "bootstrap": hf.BootstrapProposal,
    "ranked, blind": partial(hf.RankedProposal, guided=False),
    "ranked": hf.RankedProposal,
    "auto": hf.AutomaticProposal,
}
"""Blind: without a look at the observation, as bootstrap, so that the points alone differ."""


class LongRun:
    """Filters on one series of a model, which goes on from where it was left, also after a pickle.

    Parameters
    ----------
    name : str
        Of the model, one of `MODELS`.
    n : int
        Number of particles of all `FILTERS`.
    seed : int
        Of the series; the filters' is one more.
    """

    def __init__(self, name: str, n: int, seed: int) -> None:
        case = cases()[name]
        self.name, self.n, self.done, self.rng = name, n, 0, np.random.default_rng(seed)
        self.filters = {
            who: hf.ParticleFilter(case.model, n, make(), rng=seed + 1)
            for who, make in FILTERS.items()
        }
        self.errors: dict[str, list[np.ndarray]] = {who: [] for who in FILTERS}
        self.seconds = dict.fromkeys(FILTERS, 0.0)
        self.x = self.rng.standard_normal((1, case.model.dim)) * np.sqrt(
            np.diagonal(case.model.initial.covariance)
        )
        first = np.exp(case.part.initial.log_density(case.grid[:, None]))
        self.masses = [first / first.sum()] * case.model.dim

    def advance(self, steps: int) -> None:
        """Go on until so many steps are done."""
        case = cases()[self.name]
        while self.done < steps:
            observations, posteriors = self.block(case, min(BLOCK, steps - self.done))
            for who, online in self.filters.items():
                start = time.thread_time()
                with warnings.catch_warnings():
                    warnings.simplefilter(
                        "ignore", hf.DegeneracyWarning
                    )  # few particles are the point
                    result = online.run(observations, keep_particles=True)
                self.seconds[who] += time.thread_time() - start
                self.errors[who].append(judged(case, result, posteriors).astype(np.float32))
            self.done += len(observations)

    def block(self, case: Case, count: int) -> tuple[np.ndarray, list[tuple[np.ndarray, ...]]]:
        """Simulate so many steps; return the observations, and the masses, means and deviations of each part."""
        dim, noise, spread = case.model.dim, case.noise, case.spread
        truth, noises = np.empty((count, dim)), noise * self.rng.standard_normal((count, 1, dim))
        for k in range(count):
            self.x = case.model.f.rows(self.x, step=self.done + k + 1) + noises[k]
            truth[k] = self.x[0]
        observations = case.model.h.rows(truth) + spread * self.rng.standard_normal((count, dim))
        observations *= not case.zero
        drift = case.drift * np.cos(1.2 * np.arange(self.done + 1, self.done + count + 1))
        moved = case.part.f.rows(case.grid[:, None], step=1)[:, 0] - case.drift * np.cos(1.2)
        seen, spacing = case.part.h.rows(case.grid[:, None])[:, 0], case.spacing
        taps = np.arange(-np.ceil(8 * noise / spacing), np.ceil(8 * noise / spacing) + 1)
        kernel = np.exp(-0.5 * (taps * spacing / noise) ** 2)
        posteriors = []
        for k in range(dim):
            z = np.ascontiguousarray((observations @ case.rotation)[:, k])
            kept = point_masses(
                self.masses[k], moved, drift, kernel, seen, z, spread, -case.reach, spacing
            )
            self.masses[k], mean = kept[-1].copy(), kept @ case.grid
            posteriors.append((kept, mean, np.sqrt(kept @ case.grid**2 - mean**2)))
        return observations, posteriors

    def tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return a row of figures of each filter, and the records of each."""
        rows, curves = [], []
        for who, parts in self.errors.items():
            own, errors = (
                {"model": self.name, "filter": who, "n": self.n},
                np.concatenate(parts, axis=1),
            )
            us = 1e6 * self.seconds[who] / self.done
            rows.append(own | {"steps": self.done} | figures(*errors) | {"us": us})
            curves += [own | window for window in records(*errors)]
        return pd.DataFrame(rows), pd.DataFrame(curves)


def resumed(path: Path, name: str, n: int, seed: int) -> LongRun:
    """Return the run kept in a file, or a new one if there is none."""
    if path.is_file():
        with path.open("rb") as file:
            return pickle.load(file)
    return LongRun(name, n, seed)


def keep(run: LongRun, path: Path) -> None:
    """Write a run into a file in one go."""
    part = path.with_suffix(".part")
    part.write_bytes(pickle.dumps(run))
    part.replace(path)


def figures(error: np.ndarray, distance: np.ndarray) -> dict[str, float]:
    """Return what is said of errors of the mean (T,) and Kolmogorov distances (T,)."""
    found: dict[str, float] = {
        "rms": float(np.sqrt(np.mean(np.square(error, dtype=float)))),
        "largest": float(error.max()),
    }
    for bound in BOUNDS:
        found |= {f"{key}_{bound:g}": value for key, value in exceedances(error > bound).items()}
    found |= {
        "distance": float(distance.mean(dtype=float)),
        "largest_distance": float(distance.max()),
    }
    return found | {f"{key}_kappa": value for key, value in exceedances(distance >= KAPPA).items()}


def exceedances(beyond: np.ndarray) -> dict[str, float]:
    """Return the number of steps beyond a bound, the first of them, the longest time without one, and the longest loss.

    Steps are counted from 1; the first is NaN if there is none. A loss is a time of steps that are all beyond the bound.
    """
    at = np.flatnonzero(beyond)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], beyond, [False]])))
    between = np.diff(np.concatenate([[-1], at, [len(beyond)]])) - 1
    return {
        "beyond": len(at),
        "first": float(at[0] + 1) if len(at) else np.nan,
        "free": int(between.max()),
        "loss": int((edges[1::2] - edges[::2]).max(initial=0)),
    }


def records(error: np.ndarray, distance: np.ndarray) -> Iterator[dict[str, float]]:
    """Return the mean, over windows of t steps, of the largest error and distance in a window, for t = 1, 2, 5, 10, ..."""
    for t in [m * 10**p for p in range(1, 9) for m in (1, 2, 5)]:
        if t <= len(error):
            kept = len(error) // t * t
            largest = [
                values[:kept].reshape(-1, t).max(axis=1).mean(dtype=float)
                for values in (error, distance)
            ]
            yield {
                "t": t,
                "windows": kept // t,
                "largest": float(largest[0]),
                "largest_distance": float(largest[1]),
            }


def judged(
    case: Case, result: hf.FilterResult, posteriors: list[tuple[np.ndarray, ...]]
) -> np.ndarray:
    """Return the error of the mean and the Kolmogorov distance at each step, (2, T)."""
    means, states = result.means @ case.rotation, result.particles @ case.rotation
    squared, distance = np.zeros(len(means)), np.zeros(len(means))
    for k, (masses, mean, sd) in enumerate(posteriors):
        squared += ((means[:, k] - mean) / sd) ** 2
        x = states[:, :, k]
        order = np.argsort(x, axis=1)
        ranked = np.take_along_axis(x, order, 1), np.take_along_axis(result.weights, order, 1)
        distance = np.maximum(distance, kolmogorov(masses, -case.reach, case.spacing, *ranked))
    return np.array([np.sqrt(squared), distance])
