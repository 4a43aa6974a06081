"""Smoothed means against the exact ones: of a grid in one dimension, of Rauch, Tung and Striebel where all is linear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from common import timed

import herdfilter as hf
from herdfilter.models import linear_chain

CLAIMS = 1_000_000
"""Seeds from here on were not used while the smoothers were made."""

TRAJECTORIES = 100
LAG = 5
RIVAL = ("bootstrap", "trajectories")
"""What errors are set in proportion to."""


@dataclass(frozen=True)
class Case:
    """A model, its series, and where its exact means come from: a grid, else the Kalman filter."""

    model: object
    steps: int
    dt: float = 1.0
    grid: tuple[float, float, int] | None = None


CASES = {
    "ungm": Case(hf.models.UNGM(), 50, grid=(-60.0, 60.0, 601)),
    "double_well": Case(hf.models.DoubleWell(), 80, 0.2, (-5.0, 5.0, 401)),
    "linear-d4": Case(linear_chain(4), 50),
}
SMOOTHERS: dict[str, Callable[[hf.ParticleFilter, hf.FilterResult, int], np.ndarray]] = {
    "none": lambda pf, result, seed: result.means,
    "marginal": lambda pf, result, seed: hf.marginal_smoother(pf, result).means,
    "fixed lag": lambda pf, result, seed: hf.fixed_lag_smoother(pf, result, LAG).means,
    "trajectories": lambda pf, result, seed: (
        hf.backward_simulation(pf, result, TRAJECTORIES, seed).means
    ),
}
FILTERS = ("bootstrap", "sqmc", "auto")


def exact_means(case: Case, z: np.ndarray) -> np.ndarray:
    """Smoothed means (T, d)."""
    if case.grid is None:
        kf = hf.ExtendedKalmanFilter(case.model)
        return hf.rts_smoother(kf, kf.run(z, dt=case.dt)).means
    return hf.GridFilter(case.model, *case.grid).smooth(z, dt=case.dt).means


def errors(name: str, n: int, runs: int, first: int) -> pd.DataFrame:
    """One row for each run, filter and smoother: root mean square error over the steps, milliseconds a step."""
    case, rows = CASES[name], []
    for run in range(-1, runs):  # the first is not counted: it compiles
        seed = first + max(run, 0)
        z = hf.simulate(case.model, case.steps, np.random.default_rng([seed, 0]), case.dt)[1]
        exact = exact_means(case, z)
        for filter_name in FILTERS:
            pf = hf.make_filter(
                filter_name, case.model, n_particles=n, rng=np.random.default_rng([seed, 1])
            )
            filtering, result = timed(partial(pf.run, z, dt=case.dt, keep_particles=True))
            for smoother, means in SMOOTHERS.items():
                seconds, found = timed(partial(means, pf, result, seed))
                rows.append(
                    {"run": run, "filter": filter_name, "smoother": smoother}
                    | {"error": np.sqrt(np.mean((found - exact) ** 2))}
                    | {"filter_ms": 1e3 * filtering / case.steps, "ms": 1e3 * seconds / case.steps}
                )
    table = pd.DataFrame(rows)
    return table[table["run"] >= 0]


def overview(name: str, n: int, runs: int, first: int) -> pd.DataFrame:
    """Errors over all runs, and the ratio of their root mean squares to the rival's with a 95 % interval over runs."""
    table = errors(name, n, runs, first)
    square = table.pivot(index="run", columns=["filter", "smoother"], values="error") ** 2
    drawn = np.random.default_rng(0).integers(len(square), size=(2000, len(square)))
    rows = []
    for key, own in table.groupby(["filter", "smoother"], sort=False):
        ratios = np.sqrt(
            square[key].to_numpy()[drawn].mean(axis=1)
            / square[RIVAL].to_numpy()[drawn].mean(axis=1)
        )
        low, high = np.quantile(ratios, [0.025, 0.975])
        rows.append(
            {"model": name, "filter": key[0], "smoother": key[1], "n": n, "runs": len(own)}
            | {"rms": np.sqrt(square[key].mean()), "median": own["error"].median()}
            | {"ratio": np.sqrt(square[key].mean() / square[RIVAL].mean())}
            | {"ratio_low": low, "ratio_high": high}
            | {"filter_ms": own["filter_ms"].median(), "ms": own["ms"].median()}
        )
    return pd.DataFrame(rows)
