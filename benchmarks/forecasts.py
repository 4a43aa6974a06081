"""Coverage of forecasts: how often the truth, and the observation that came, lie between two quantiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from common import mean_with_interval

import herdfilter as hf
from herdfilter.angles import wrap_angles
from herdfilter.study.scenario import load_scenario

FILTERED = 30
"""Observations that a filter has had when it is asked."""
HORIZONS = (1, 5, 20)
MASSES = (0.5, 0.8, 0.95)
FILTERS = (("bootstrap", 1000), ("auto", 100))
CASES = ("linear-d2", "ungm", "pendulum", "stochastic_volatility", "coordinated_turn", "random")


def series(
    name: str, runs: int, seed: int
) -> Iterator[tuple[object, float, np.ndarray, np.ndarray]]:
    """Model, time step, truth and observations of each run; random models are one of their kind each."""
    scenario = None if name in ("linear-d2", "random") else load_scenario(name)
    for run in range(seed, seed + runs):
        model = hf.models.linear_chain(2) if scenario is None else scenario.build_model()
        model = hf.models.random_model(run) if name == "random" else model
        dt = 1.0 if scenario is None else scenario.dt
        yield (
            model,
            dt,
            *hf.simulate(model, FILTERED + max(HORIZONS), np.random.default_rng([run, 0]), dt),
        )


def inside(
    low: np.ndarray,
    high: np.ndarray,
    middle: np.ndarray,
    came: np.ndarray,
    circular: tuple[int, ...],
) -> float:
    """Share of the entries (k,) that lie between two quantiles, angles within half a turn of the mean; NaN without any."""
    came = middle + wrap_angles(came - middle, circular)
    known = ~np.isnan(came)
    return float(((low <= came) & (came <= high))[known].mean()) if known.any() else np.nan


def coverage(name: str, runs: int, seed: int) -> pd.DataFrame:
    """One row for each filter, horizon, quantity and probability: the share inside, with its 95 % interval over runs."""
    rows, levels = [], [(1 + sign * mass) / 2 for mass in MASSES for sign in (-1, 1)]
    for run, (model, dt, truth, z) in enumerate(series(name, runs, seed)):
        for filter_name, n in FILTERS:
            pf = hf.make_filter(
                filter_name, model, n_particles=n, rng=np.random.default_rng([seed + run, 1])
            )
            pf.on_degeneracy = "predict"
            pf.run(z[:FILTERED], dt=dt)
            ahead = pf.forecast(max(HORIZONS), dt=dt)
            parts = [("state", ahead.quantiles(levels), ahead.means, truth, ahead.circular)]
            if ahead.observation_means is not None:
                given = ahead.observation_means, z, ahead.observation_circular
                parts.append(("observation", ahead.observation_quantiles(levels), *given))
            for of, bounds, means, came, circular in parts:
                for h in HORIZONS:
                    for k, mass in enumerate(MASSES):
                        low, high = bounds[h - 1, 2 * k], bounds[h - 1, 2 * k + 1]
                        share = inside(low, high, means[h - 1], came[FILTERED + h - 1], circular)
                        rows.append((filter_name, n, of, h, mass, share))
    table = pd.DataFrame(rows, columns=["filter", "n", "of", "horizon", "mass", "share"]).dropna()
    found = []
    for key, own in table.groupby(["filter", "n", "of", "horizon", "mass"], sort=False):
        share, low, high = mean_with_interval(own["share"].to_numpy())
        row = dict(zip(("filter", "n", "of", "horizon", "mass"), key, strict=True))
        found.append(
            {"model": name}
            | row
            | {"runs": len(own), "share": share, "share_low": low, "share_high": high}
        )
    return pd.DataFrame(found)
