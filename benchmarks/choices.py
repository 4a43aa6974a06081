"""How good the choice of `choose` is: made on some series, and judged by the same filters on fresh ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from evaluations import pendulum

import herdfilter as hf

SCENARIOS = (
    "ungm",
    "stochastic_volatility",
    "double_well",
    "linear_chain",
    "lorenz63",
    "bearings",
    "bearings_only",
    "coordinated_turn",
    "landmarks",
    "pendulum",
    "sharp_range",
    "predators_and_prey",
)
STEP_TIME = 1e-3


def on_the_pendulum(seed: int, budget: float, workers: int) -> hf.Choice:
    """Return the choice for the model at the top of the README."""
    return hf.choose(pendulum(), STEP_TIME, dt=0.05, seed=seed, budget=budget, workers=workers)


def judged(scenario: str, seed: int, budget: float, workers: int) -> dict[str, object]:
    """Choose, then run the same filters with their counts on fresh series; return ratios of errors there, run by run."""
    options = {"budget": budget, "workers": workers}
    choice = hf.choose(scenario, STEP_TIME, seed=seed, **options)

    def same(name: str, count: float) -> Callable[..., object]:
        n = 1 if count is None or np.isnan(count) else int(count)
        return lambda model, _, rng: choice.factories[name](model, n, rng)

    counts = choice.table[["filter", "n_particles"]].itertuples(index=False)
    filters = {name: same(name, count) for name, count in counts}
    # Their counts are fixed, so that any time will do.
    fresh = hf.choose(scenario, 1.0, filters=filters, seed=seed + 1, **options)
    table = fresh.table.set_index("filter")
    over_best = table.loc[choice.name]
    ratios = table["ratio"].reindex(["auto", "bootstrap"])
    return {
        "scenario": scenario,
        "chosen": choice.name,
        "n": choice.n_particles or 0,
        "runs": choice.runs,
        "best": fresh.name,
        "over_best": over_best["ratio"],
        "over_best_low": over_best["ratio_low"],
        "over_best_high": over_best["ratio_high"],
        "over_auto": over_best["ratio"] / ratios["auto"],
        "over_bootstrap": over_best["ratio"] / ratios["bootstrap"],
    }
