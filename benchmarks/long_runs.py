"""Filters over a million steps of one series, of models whose posterior is known at every step.

A model of one dimension has its posterior on a grid, by a point-mass filter that goes on from block to block. A model of two
is two such models that know nothing of each other, in coordinates that are turned; a filter sees only the turned ones. Two
errors are taken at every step: of the mean, in posterior standard deviations, and the Kolmogorov distance of the weighted
particles to the posterior, which is the one that theorems speak of (of two dimensions the larger one).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numba import njit

import herdfilter as hf
from herdfilter.models.compiled import CompiledModel

CLAIMS = 6_000_000
"""First seed of what the pages show."""

BLOCK = 10_000
"""Steps between two looks; all particles of a block are kept."""

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

MODELS = ("zeros", "linear", "growth", "bearing", "two wells")

TURN = 0.5
"""Angle of the two wells' coordinates, in radians."""


def decay(x, parameters):
    return parameters[0] * x[0]


def itself(x):
    return x[0]


def bearing(x):
    return np.arctan(x[0])


def flow(x, parameters):
    return x[0] / np.sqrt(parameters[0] + (1 - parameters[0]) * x[0] ** 2)


def turned_flow(x, parameters, out):
    left, c, s = parameters
    u, v = c * x[0] + s * x[1], c * x[1] - s * x[0]
    u, v = u / np.sqrt(left + (1 - left) * u**2), v / np.sqrt(left + (1 - left) * v**2)
    out[0], out[1] = c * u - s * v, s * u + c * v


def both(x, out):
    out[0], out[1] = x[0], x[1]


@dataclass(frozen=True)
class Case:
    """A stationary model, and the grid that holds the posterior of each of its parts.

    Attributes
    ----------
    model : CompiledModel
        What the filters are given.
    part : CompiledModel
        The model of one dimension of each part; the model itself unless there are two.
    reach, points : float, int
        The grid goes from -reach to reach.
    turn : float
        Angle of the parts' coordinates.
    drift : float
        Amplitude of what the growth model adds to its state, times cos(1.2 step).
    zero : bool
        Whether all observations are 0 and not simulated ones.
    """

    model: CompiledModel
    part: CompiledModel
    reach: float
    points: int
    turn: float = 0.0
    drift: float = 0.0
    zero: bool = False

    @property
    def rotation(self) -> np.ndarray:
        """Matrix that turns states (n, d), from the right, into the parts' coordinates."""
        c, s = np.cos(self.turn), np.sin(self.turn)
        return np.array([[c, -s], [s, c]]) if self.model.dim == 2 else np.eye(1)


def cases() -> dict[str, Case]:
    """Return the models by name."""
    left = np.exp(-8 * 0.2)  # of the squared distance from a well, after a time of 0.2
    linear = hf.models.compiled(decay, itself, [[1.0]], [[0.25]], [0.0], [[1.0]], parameters=[0.9])
    growth = hf.models.UNGM().compiled()
    seen = hf.models.compiled(decay, bearing, [[1.0]], [[0.04]], [0.0], [[1.0]], parameters=[0.95])
    well = hf.models.compiled(flow, itself, [[0.1]], [[0.25]], [0.0], [[0.5]], parameters=[left])
    turned = [left, np.cos(TURN), np.sin(TURN)]
    wells = hf.models.compiled(
        turned_flow, both, 0.1 * np.eye(2), 0.25 * np.eye(2), [0.0] * 2, 0.5 * np.eye(2), parameters=turned
    )
    return {
        "zeros": Case(linear, linear, 18.0, 361, zero=True),
        "linear": Case(linear, linear, 18.0, 361),
        "growth": Case(growth, growth, 45.0, 451, drift=8.0),
        "bearing": Case(seen, seen, 25.0, 401),
        "two wells": Case(wells, well, 4.0, 201, TURN),
    }


FILTERS = {
    "bootstrap": lambda: hf.BootstrapProposal(),
    "ranked, blind": lambda: hf.RankedProposal(guided=False),
    "ranked": lambda: hf.RankedProposal(),
    "auto": lambda: hf.AutomaticProposal(),
}
"""Blind: without a look at the observation, as bootstrap, so that the points alone differ."""


def measured(
    name: str, keys: list[tuple[str, int]], steps: int, seed: int
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Run filters, each (name, n), on one series of a model; return a row of figures and the records of each."""
    case = cases()[name]
    filters = {key: hf.ParticleFilter(case.model, key[1], FILTERS[key[0]](), rng=seed + 1) for key in keys}
    errors = {key: np.empty((2, steps), dtype=np.float32) for key in keys}
    seconds = dict.fromkeys(keys, 0.0)
    done = 0
    for observations, posteriors in exact(case, steps, seed):
        here = slice(done, done + len(observations))
        for key, online in filters.items():
            start = time.thread_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", hf.DegeneracyWarning)  # few particles are the point
                result = online.run(observations, keep_particles=True)
            seconds[key] += time.thread_time() - start
            errors[key][:, here] = judged(case, result, posteriors)
        done = here.stop
    rows = [
        {"model": name, "filter": who, "n": n, "steps": steps}
        | figures(*errors[who, n])
        | {"us": 1e6 * seconds[who, n] / steps}
        for who, n in keys
    ]
    curves = [{"model": name, "filter": who, "n": n} | window for who, n in keys for window in records(*errors[who, n])]
    return rows, curves


def figures(error: np.ndarray, distance: np.ndarray) -> dict[str, float]:
    """Return what is said of errors of the mean (T,) and Kolmogorov distances (T,)."""
    found: dict[str, float] = {"rms": float(np.sqrt(np.mean(np.square(error, dtype=float)))), "largest": float(error.max())}
    for bound in BOUNDS:
        found |= {f"{key}_{bound:g}": value for key, value in exceedances(error > bound).items()}
    found |= {"distance": float(distance.mean(dtype=float)), "largest_distance": float(distance.max())}
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
            largest = [values[:kept].reshape(-1, t).max(axis=1).mean(dtype=float) for values in (error, distance)]
            yield {"t": t, "windows": kept // t, "largest": float(largest[0]), "largest_distance": float(largest[1])}


def judged(case: Case, result: hf.FilterResult, posteriors: list[tuple[np.ndarray, ...]]) -> np.ndarray:
    """Return the error of the mean and the Kolmogorov distance at each step, (2, T)."""
    means, states = result.means @ case.rotation, result.particles @ case.rotation
    squared, distance = np.zeros(len(means)), np.zeros(len(means))
    spacing = 2 * case.reach / (case.points - 1)
    for k, (masses, mean, sd) in enumerate(posteriors):
        squared += ((means[:, k] - mean) / sd) ** 2
        x = states[:, :, k]
        order = np.argsort(x, axis=1)
        ranked = np.take_along_axis(x, order, 1), np.take_along_axis(result.weights, order, 1)
        distance = np.maximum(distance, kolmogorov(masses, -case.reach, spacing, *ranked))
    return np.array([np.sqrt(squared), distance])


def exact(case: Case, steps: int, seed: int) -> Iterator[tuple[np.ndarray, list[tuple[np.ndarray, ...]]]]:
    """Simulate a series; give block by block the observations, and the masses, mean and deviation of each part."""
    rng, rotation, dim = np.random.default_rng(seed), case.rotation, case.model.dim
    noise, spread = (float(np.sqrt(matrix[0, 0])) for matrix in (case.part.Q(dt=1.0, step=1), case.part.R(step=1)))
    grid = np.linspace(-case.reach, case.reach, case.points)
    spacing = grid[1] - grid[0]
    moved = case.part.f.rows(grid[:, None], step=1)[:, 0] - case.drift * np.cos(1.2)
    seen = case.part.h.rows(grid[:, None])[:, 0]
    taps = np.arange(-np.ceil(8 * noise / spacing), np.ceil(8 * noise / spacing) + 1)
    kernel = np.exp(-0.5 * (taps * spacing / noise) ** 2)
    first = np.exp(case.part.initial.log_density(grid[:, None]))
    masses = [first / first.sum() for _ in range(dim)]
    x = rng.standard_normal((1, dim)) * np.sqrt(np.diagonal(case.model.initial.covariance))
    for start in range(0, steps, BLOCK):
        count = min(BLOCK, steps - start)
        truth, noises = np.empty((count, dim)), noise * rng.standard_normal((count, 1, dim))
        for k in range(count):
            x = case.model.f.rows(x, step=start + k + 1) + noises[k]
            truth[k] = x[0]
        observations = case.model.h.rows(truth) + spread * rng.standard_normal((count, dim))
        observations *= not case.zero
        drift = case.drift * np.cos(1.2 * np.arange(start + 1, start + count + 1))
        posteriors = []
        for k in range(dim):
            z = np.ascontiguousarray((observations @ rotation)[:, k])
            kept = point_masses(masses[k], moved, drift, kernel / kernel.sum(), seen, z, spread, -case.reach, spacing)
            masses[k], mean = kept[-1], kept @ grid
            posteriors.append((kept, mean, np.sqrt(kept @ grid**2 - mean**2)))
        yield observations, posteriors


@njit(cache=True, nogil=True)
def point_masses(mass, moved, drift, kernel, seen, z, spread, lower, spacing):
    """Return the posterior masses on the grid at each step, (T, N), from those of the step before the first."""
    size, half = len(mass), len(kernel) // 2
    kept = np.zeros((len(z), size))
    for k in range(len(z)):
        cells, after = np.zeros(size), np.zeros(size + 2 * half)
        for i in range(size):  # to the four points around where a grid point is carried, as cubic interpolation weighs
            place = (moved[i] + drift[k] - lower) / spacing
            cell = int(np.floor(place))
            if mass[i] > 1e-18 and 1 <= cell < size - 2:
                t = place - cell
                cells[cell - 1] -= mass[i] * t * (t - 1) * (t - 2) / 6
                cells[cell] += mass[i] * (t + 1) * (t - 1) * (t - 2) / 2
                cells[cell + 1] -= mass[i] * (t + 1) * t * (t - 2) / 2
                cells[cell + 2] += mass[i] * (t + 1) * t * (t - 1) / 6
        for i in range(size):
            if cells[i] != 0.0:
                after[i : i + 2 * half + 1] += cells[i] * kernel
        nearest = np.inf
        for i in range(size):
            if after[i + half] > 0.0:
                nearest = min(nearest, (z[k] - seen[i]) ** 2 / (2 * spread**2) - np.log(after[i + half]))
        total = 0.0
        for i in range(size):
            if after[i + half] > 0.0:
                kept[k, i] = after[i + half] * np.exp(nearest - (z[k] - seen[i]) ** 2 / (2 * spread**2))
                total += kept[k, i]
        kept[k] /= total
        mass = kept[k]
    return kept


@njit(cache=True, nogil=True)
def kolmogorov(masses, lower, spacing, x, weights):
    """Return the largest difference of the distribution functions of sorted particles (T, n) and of masses (T, N)."""
    size = masses.shape[1]
    largest, cdf = np.zeros(len(x)), np.zeros(size)
    for k in range(len(x)):
        m, total = masses[k], 0.0
        for i in range(1, size - 1):  # the trapezoidal rule with its first correction
            cdf[i] = total + m[i] / 2 - (m[i + 1] - m[i - 1]) / 24
            total += m[i]
        cdf[size - 1] = 1.0
        below = 0.0
        for j in range(x.shape[1]):
            place = min(max((x[k, j] - lower) / spacing, 0.0), size - 1.001)
            i = int(place)
            t = place - i
            # Hermite's cubic: the masses are the slopes
            value = (1 + 2 * t) * (1 - t) ** 2 * cdf[i] + t * (1 - t) ** 2 * m[i]
            value += t * t * (3 - 2 * t) * cdf[i + 1] - t * t * (1 - t) * m[i + 1]
            largest[k] = max(largest[k], abs(value - below), abs(value - below - weights[k, j]))
            below += weights[k, j]
    return largest


def runs_left(name: str, particles: Iterable[int], known: pd.DataFrame, steps: int) -> list[tuple[str, int]]:
    """Return the filters of a model, (name, n), that have no row of so many steps."""
    done = (
        set()
        if known.empty
        else {(row.filter, row.n) for row in known.itertuples() if row.model == name and row.steps == steps}
    )
    return [(who, n) for n in particles for who in FILTERS if (who, n) not in done]
