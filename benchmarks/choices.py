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
    """Choose, then repeat everything on fresh series; return the choice and its error there over that of the best."""
    options = {"step_time": STEP_TIME, "budget": budget, "workers": workers}
    choice = hf.choose(scenario, seed=seed, **options)
    fresh = hf.choose(scenario, seed=seed + 1, **options)
    errors = fresh.table.set_index("filter")["error"]
    best = errors.idxmin()
    return {
        "scenario": scenario,
        "chosen": choice.name,
        "n": choice.n_particles or 0,
        "runs": choice.runs,
        "best": best,
        "over_best": errors[choice.name] / errors[best],
        "over_auto": errors[choice.name] / errors["auto"] if "auto" in errors else float("nan"),
        "over_bootstrap": errors[choice.name] / errors["bootstrap"],
    }
