"""Data that a random model has wrong: outliers, noise of another size, or a drift that it does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.models import contract
from herdfilter.models.random.drifts import Rng
from herdfilter.models.random.noises import Motion
from herdfilter.models.random.observations import Sensing

OUTLIER_SHARE, UNKNOWN_DRIFT = 0.05, 0.05  # share of the observations; of the spread of each coordinate, in one step
NOISE_FACTORS = {"half noise": 0.5, "double noise": 2.0}
DEPARTURES = ("outliers", *NOISE_FACTORS, "unknown drift")


def departing(
    departure: str, motion: Motion, sensing: Sensing, drift: Array, elsewhere: Callable[[int, Rng], Array]
) -> dict[str, Any]:
    """Return functions that simulate a model with a departure; `elsewhere` draws states that outliers are readings of."""
    factor = NOISE_FACTORS.get(departure, 1.0)

    def sample_transition(x: Array, rng: Rng, dt: float, control: Any, step: int) -> Array:
        moved = contract.sample_transition(motion, x, rng, dt, control, step)
        if factor != 1.0:
            still = motion.drift.f(x)
            moved = still + factor * (moved - still)
        return moved + drift if departure == "unknown drift" else moved

    def sample_observation(x: Array, rng: Rng, step: int) -> Array:
        drawn = contract.sample_observation(sensing, x, rng, step)
        if departure == "outliers":
            other = contract.sample_observation(sensing, elsewhere(len(x), rng), rng, step)
            return np.where(rng.random((len(x), 1)) < OUTLIER_SHARE, other, drawn)
        if factor != 1.0 and sensing.view.kind != "counts":
            mean = sensing.noiseless(x, step)
            return wrap_angles(mean + factor * wrap_angles(drawn - mean, sensing.circular), sensing.circular)
        return drawn

    return {"sample_transition": sample_transition, "sample_observation": sample_observation}
