"""Checks of a model before it is filtered: its state, and a trial of its functions against the contract."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from herdfilter import _checks
from herdfilter.mixture import GaussianMixture
from herdfilter.models import contract
from herdfilter.models.contract import Model
from herdfilter.models.resolved import Motion
from herdfilter.models.returned import read_rows
from herdfilter.models.with_clutter import WithClutter

# number of states at which the functions of a model are tried
PROBES = 5

# Functions that are tried; the mean observation comes first, as its value is the observation that others take
TRIED: dict[str, Any] = {
    "observation_mean": ("x", "step"),
    "detection_probabilities": ("x", "step"),
    "clutter_densities": ("z", "step"),
    **contract.TRANSITION,
    **contract.OBSERVATION,
}
# Lengths tried for a control input or observation: 64 keeps every index in range, the short ones fit exact shapes
TRIALS = 64, 0, 1, 2, 3
# models and sensors whose functions have been tried
_tried: WeakValueDictionary[int, Any] = WeakValueDictionary()


def check_state(model: Model, user: str, *needed: str) -> None:
    """Raise an error if `dim`, `circular` or `initial` is wrong, or the initial distribution lacks a `needed` name."""
    contract.require(model, user, ("dim", "initial"))
    dim = _checks.check_count("model.dim", model.dim)
    if getattr(model, "bounds", None) is not None:
        _checks.as_bounds("model.bounds", model.bounds, dim)
    initial = model.initial
    circular = getattr(model, "circular", None)
    _checks.as_dims("model.circular", () if circular is None else circular, dim)
    if isinstance(initial, type):
        raise TypeError(f"model.initial: expected an instance, got {_checks.short_repr(initial)}")
    missing = [name for name in needed if not hasattr(initial, name)]
    if missing:
        raise TypeError(
            f"model.initial: {user}'s initial distribution needs {' and '.join(needed)}; {type(initial).__name__} has "
            f"no {' and no '.join(missing)}: give herdfilter.GaussianMixture([1.0], [mean], covariance), or an object "
            "with sample(n, rng) -> (n, d)"
        )
    initial_dim = getattr(initial, "dim", dim)
    if initial_dim != dim:
        raise ValueError(
            f"model.initial: expected a distribution in {dim} dimensions, as dim says, got {initial_dim}"
        )
    if isinstance(initial, GaussianMixture):
        # `GaussianMixture.unchecked` may have made it
        read_rows("model.initial", initial.means, (None, dim), 0)
        _checks.as_covariance("model.initial", initial.distinct_covariances, dim)
    if not contract.jumps(model):
        # tracks share one model: besides clutter, a wrapper has no functions of its own
        wrapped = isinstance(model, contract.Wrapper) and not isinstance(model, WithClutter)
        try_model(model, model.model if wrapped else model)


def try_model(model: Model, owner: Any) -> Model:
    """Return a model; raise an error if one of its functions writes to its arguments, or is not reproducible.

    The functions are tried at a few states of the initial distribution, once for each `owner`. Errors that they raise
    themselves are ignored here, and come up where the functions are used.
    """
    if _tried.get(id(owner)) is owner:
        return model
    # If the initial distribution fails, the filter raises the error where it uses it.
    try:
        motion = Motion(model)
        x = motion.sample_initial(PROBES, _checks.as_generator(0))
        noise = np.ones((PROBES, motion.noise_dim))
        inputs = {"x": x, "x_next": x, "noise": noise, "dt": 1.0, "step": 1}
    except Exception:
        return model
    scans = contract.has_scans(model)
    for name, arguments in TRIED.items():
        if not arguments or "rng" in arguments or not hasattr(model, name):
            continue
        for size in TRIALS:
            vector = np.ones(size)  # a control, or an observation, of unknown length
            values: dict[str, Any] = {"z": vector[:0, None] if scans else vector}
            values |= {"control": vector if size else None} | inputs
            label = getattr(model, "names_in_errors", {}).get(name, name)
            # it may depend on the states: a second attempt, without a length
            states = [x] * (not size and name == "observation_covariance")
            value = _checks.ask_twice(
                label, getattr(model, name), *map(values.get, arguments), *states
            )
            if value is not None:
                if name == "observation_mean":
                    inputs["z"] = value[:1] if scans else value[0]
                break
    with suppress(TypeError):  # an object with slots cannot be referenced weakly
        _tried[id(owner)] = owner
    return model
