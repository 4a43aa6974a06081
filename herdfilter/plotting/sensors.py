"""Where the sensors of a scenario stand."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.study.scenario import Scenario

NAMES = {
    "sensors": "sensor",
    "sensor": "sensor",
    "radar": "radar",
    "landmarks": "landmark",
    "beacons": "beacon",
}
"""Attribute of a model -> what stands there."""

AT_THE_ORIGIN = {"BearingsOnly": "sensor", "CoordinatedTurn": "radar"}
"""Models whose only sensor is where the coordinates begin."""


def sensors(model: Any) -> tuple[str, Array] | None:
    """Return what observes the target of a model, and the places (m, 2) in the plane; None where the model names none."""
    name = AT_THE_ORIGIN.get(type(model).__name__)
    if name is not None:
        return name, np.zeros((1, 2))
    for attribute, name in NAMES.items():
        try:
            places = np.atleast_2d(np.asarray(getattr(model, attribute), dtype=float))
        except (AttributeError, TypeError, ValueError):
            continue
        if places.ndim == 2 and len(places) and places.shape[1] in (2, 3) and np.isfinite(places).all():
            return name, places[:, :2]
    return None


def of_scenario(scenario: Scenario) -> tuple[str, Array] | None:
    """Return the sensors of a scenario with one of the package's own models: to look at a study runs no code it names."""
    if (
        not str(scenario.model["type"]).isidentifier()
        or scenario.models is not None
        or scenario.data is not None
        or scenario.imports
    ):
        return None
    return sensors(scenario.build_model())
