"""The arguments that filters call a model's functions with, checked before the first call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from herdfilter._checks import short_repr

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

OPTIONAL = {"observation_covariance": "x"}
"""Function of a model -> an argument after those, which it takes or does not."""


def check_signature(model: Any, name: str) -> None:
    """Raise TypeError unless what the model has by this name takes the arguments that it is called with."""
    if name not in ARGUMENTS:
        return
    function, arguments = getattr(model, name), ARGUMENTS[name]
    expected = f"model.{name}: expected a function of ({', '.join(arguments)})"
    if name in OPTIONAL:
        expected += f" or ({', '.join(arguments)}, {OPTIONAL[name]})"
        if callable(function) and takes_state(model):
            return
    if not callable(function):
        raise TypeError(f"{expected}, got {short_repr(function)}")
    if not _asked(_takes, function, len(arguments)):
        raise TypeError(f"{expected}, got {inspect.signature(function)} of {type(model).__name__}")


def takes_state(model: Any) -> bool:
    """Whether the model's ``observation_covariance`` names a second argument, with a default or without: the states."""
    return _asked(_names, model.observation_covariance, 2)


def _asked(question: Any, function: Callable[..., Any], count: int) -> bool:
    """Answer a question about a function of `count` arguments; what a method belongs to does not matter."""
    inner = getattr(function, "__func__", None)  # of a method, whose first argument is the model
    asked = (function, count) if inner is None else (inner, count + 1)
    try:
        return bool(question(*asked))
    except TypeError:  # an object that has no hash
        return bool(question.__wrapped__(*asked))


@lru_cache(maxsize=512)
def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function takes this many arguments by position, or does not tell, as a compiled one; found out once."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


@lru_cache(maxsize=64)
def _names(function: Callable[..., Any], count: int) -> bool:
    """Whether a function names this many arguments by position, and needs no others; found out once for each function."""
    try:
        signature = inspect.signature(function)
        signature.bind(*range(count))
    except (TypeError, ValueError):  # ValueError of a function that does not tell, such as a compiled one
        return False
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in by_position for each in signature.parameters.values()) >= count
