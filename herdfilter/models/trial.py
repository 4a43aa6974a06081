"""What is looked at in a model before it is filtered: its state, and whether its functions keep to their contract."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from herdfilter._checks import as_covariance, as_dims, as_generator, ask_twice, check_count
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.contract import Model
from herdfilter.models.resolved import Motion
from herdfilter.models.returned import read_rows

# Functions that are tried: the mean observation comes first, as others take an observation
TRIED: dict[str, Any] = {
    "observation_mean": ("x", "step"),
    "detection_probabilities": ("x", "step"),
    "clutter_densities": ("z", "step"),
    **contract.TRANSITION,
    **contract.OBSERVATION,
}
TRIALS = 64, 0, 1, 2, 3  # lengths of a vector with which functions are tried: indices are in range, or shapes fit
_tried: WeakValueDictionary[int, Any] = WeakValueDictionary()  # models and sensors whose functions have been tried


def check_state(model: Model, user: str, *needed: str) -> None:
    """Raise an error if `dim`, `circular` or `initial` is wrong, or the initial distribution lacks a `needed` name."""
    contract.require(model, user, ("dim", "initial"))
    dim, initial = check_count("model.dim", model.dim), model.initial
    as_dims("model.circular", () if getattr(model, "circular", None) is None else model.circular, dim)
    if isinstance(initial, type):
        raise TypeError(f"model.initial: expected an instance, got the class {initial.__name__}")
    missing = [name for name in needed if not hasattr(initial, name)]
    if missing:
        raise TypeError(
            f"model.initial: {user}'s initial distribution needs {' and '.join(needed)}; {type(initial).__name__} has "
            f"no {' and no '.join(missing)}: give herdfilter.GaussianMixture([1.0], [mean], covariance), or an object "
            "with sample(n, rng) -> (n, d)"
        )
    given = getattr(initial, "dim", dim)
    if given != dim:
        raise ValueError(f"model.initial: expected a distribution in {dim} dimensions, as dim says, got {given}")
    if isinstance(initial, GaussianMixture):
        read_rows("model.initial", initial.means, (None, dim), 0)
        as_covariance("model.initial", initial.distinct_covariances, dim)
    if not contract.jumps(model):
        try_model(model, getattr(model, "_model", model))  # tracks share one model


def try_model(model: Model, owner: Any) -> Model:
    """Return a model unless a function of it writes to its arguments, or gives another value when it is called again.

    They are tried at five states of the initial distribution, once for each `owner`. Errors of their own are raised where
    they are used.
    """
    if _tried.get(id(owner)) is owner:
        return model
    try:
        motion = Motion(model)
        x = motion.sample_initial(5, as_generator(0))
        known = {"x": x, "x_next": x, "noise": np.ones((5, motion.noise_dim)), "dt": 1.0, "step": 1}
    except Exception:
        return model
    scans = contract.has_scans(model)
    for name, arguments in TRIED.items():
        for size in TRIALS if arguments and "rng" not in arguments and hasattr(model, name) else ():
            vector = np.ones(size)  # a control, or an observation, of unknown length
            given = {"z": vector[:0, None] if scans else vector, "control": vector if size else None} | known
            named = getattr(model, "names_in_errors", {}).get(name, name)
            states = [x] * (not size and name == "observation_covariance")  # it may take them
            value = ask_twice(named, getattr(model, name), *map(given.get, arguments), *states)
            if value is not None:
                if name == "observation_mean":
                    known["z"] = value[:1] if scans else value[0]
                break
    with suppress(TypeError):  # an object with slots
        _tried[id(owner)] = owner
    return model
