"""The arguments that filters call a model's functions with, checked before the first call."""

from __future__ import annotations

import inspect
from typing import Any

from herdfilter._checks import shown

ARGUMENTS = {
    "transition_mean": ("x", "dt", "control", "step"),
    "transition_covariance": ("dt", "step"),
    "transition_jacobian": ("x", "dt", "control", "step"),
    "transition": ("x", "noise", "dt", "control", "step"),
    "sample_transition": ("x", "rng", "dt", "control", "step"),
    "transition_log_density": ("x_next", "x", "dt", "control", "step"),
    "log_likelihood": ("z", "x", "step"),
    "observation_mean": ("x", "step"),
    "observation_covariance": ("step",),
    "observation_jacobian": ("x", "step"),
    "sample_observation": ("x", "rng", "step"),
    "control": ("step",),
}
"""Function of a model -> its arguments, by position."""


def check_signature(model: Any, name: str) -> None:
    """Raise TypeError unless what the model has by this name takes the arguments that it is called with."""
    if name not in ARGUMENTS:
        return
    function, arguments = getattr(model, name), ARGUMENTS[name]
    expected = f"model.{name}: expected a function of ({', '.join(arguments)})"
    if not callable(function):
        raise TypeError(f"{expected}, got {shown(function)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function that does not tell, such as a compiled one
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise TypeError(f"{expected}, got {signature} of {type(model).__name__}") from None
