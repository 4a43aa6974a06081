"""How good the choice of `choose` is: made on some series, and judged by the same filters on fresh ones."""

from __future__ import annotations

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
    """Choose, then repeat everything on fresh series; return the choice and its error there over others', run by run."""
    options = {"step_time": STEP_TIME, "budget": budget, "workers": workers}
    choice = hf.choose(scenario, seed=seed, **options)
    fresh = hf.choose(scenario, seed=seed + 1, **options)
    # Ratios to the best there, in the same runs; a filter that dropped out has fewer.
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
