"""Calls of Stone Soup's functions with arrays of this package, (n, d), and what they give as plain numbers."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
from stonesoup.models.base import LinearModel
from stonesoup.models.measurement import nonlinear
from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.types.angle import Angle
from stonesoup.types.array import StateVector, StateVectors
from stonesoup.types.state import State

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles

ANGLED = getattr(nonlinear, "_AngleNonLinearGaussianMeasurement", None)
"""Class of the measurement models of angles; its `_function` gives plain numbers."""

LINEAR = (LinearModel.function, LinearGaussian.function)
"""What the `function` of a model is that multiplies by its `matrix`."""


class Duration(timedelta):
    """A duration of any number of seconds, not of whole microseconds only."""

    seconds_exactly: float

    def __new__(cls, seconds: float) -> Duration:
        """Make one of a number of seconds."""
        self = super().__new__(cls, seconds=seconds)
        self.seconds_exactly = seconds
        return self

    def total_seconds(self) -> float:
        """Return the seconds it was made of."""
        return self.seconds_exactly


def is_linear(model: Any) -> bool:
    """Whether a model's function is the product with its matrix."""
    return isinstance(model, LinearModel) and method(model, "function") in LINEAR


def method(model: Any, name: str) -> Any:
    """Return the function behind a model's method: its class's, or what has been put into the model itself."""
    found = getattr(model, name)
    return getattr(found, "__func__", found)


def state(x: Array) -> State:
    """Return states (n, d) as one of Stone Soup's; a copy, because some of its models write to their argument."""
    return State(StateVectors(np.array(x.T, dtype=np.float64, order="C")))


def numbers(vectors: Any) -> Array:
    """Return state vectors (k, n) as rows of numbers (n, k), angles cast."""
    return np.asarray(vectors).astype(np.float64).T


class Kind(NamedTuple):
    """What a trial has shown of a model's function.

    Attributes
    ----------
    together : bool
        Whether many states in one call give what each gives alone.
    circular : tuple of int
        Indices of the entries of its value that wrap.
    """

    together: bool
    circular: tuple[int, ...]


_KNOWN: dict[Hashable, Kind] = {}


def kind_of(name: str, model: Any, **given: Any) -> Kind:
    """Return what a trial shows of a model's function; models made of the same classes are tried once.

    Raises
    ------
    ValueError
        If the function cannot be called with any states; `name` says what they come from.
    """
    made_of = classes(model)
    if made_of not in _KNOWN:
        trial = 1.0 + np.random.default_rng(0).random((3, model.ndim_state))
        with np.errstate(all="ignore"):
            try:
                alone = [np.asarray(model.function(state(x[None]), noise=False, **given)) for x in trial]
                values = np.concatenate([numbers(value) for value in alone])
            except Exception as error:
                raise ValueError(
                    f"{name}: {type(model).__name__} cannot be converted, its function fails for a state of "
                    f"{model.ndim_state} numbers: {type(error).__name__}: {' '.join(str(error).split())}"
                ) from error
            try:
                together = numbers(model.function(state(trial), noise=False, **given))
                agree = together.shape == values.shape and np.allclose(together, values, equal_nan=True)
            except Exception:  # then one by one
                agree = False
        entries = [wraps(entry) for entry in alone[0].ravel()]
        _KNOWN[made_of] = Kind(agree, tuple(i for i, wrapped in enumerate(entries) if wrapped))
    return _KNOWN[made_of]


def adds_noise(model: Any, **given: Any) -> bool:
    """Whether a model's function adds the noise that it is given, as far as a trial shows."""
    x = state(np.ones((1, model.ndim_state)))
    noise = 0.01 * (1.0 + np.arange(model.ndim_state))
    try:
        with np.errstate(all="ignore"):
            values = [model.function(x, noise=one, **given) for one in (StateVector(noise), False)]
    except Exception:  # it takes none, or fails, which is named elsewhere
        return True
    return np.allclose(numbers(values[0]) - numbers(values[1]), noise, rtol=1e-6, equal_nan=True)


def classes(model: Any) -> Hashable:
    """Return the class of a model, its function, the dimensions, and the same of its parts."""
    parts = tuple(classes(part) for part in getattr(model, "model_list", ()))
    return type(model), method(model, "function"), model.ndim_state, model.ndim, parts


def wraps(entry: Any) -> bool:
    """Whether a number is an angle that is the same after whole turns and no less; an elevation is none."""
    if not isinstance(entry, Angle):
        return False
    kept = [float(wrap_angles(np.array([entry.mod_angle(a) - a]), (0,))[0]) for a in (-3.0, -1.7, 1.7, 3.0)]
    return max(map(abs, kept)) < 1e-9


class Function:
    """A model's function without noise, of rows and giving rows: (n, d) -> (n, k).

    Parameters
    ----------
    model : stonesoup.models.base.Model
    kind : Kind
    """

    def __init__(self, model: Any, kind: Kind) -> None:
        self.model, self.kind = model, kind
        self.plain = ANGLED is not None and method(model, "function") is getattr(ANGLED, "function", None)

    def __call__(self, x: Array, **given: Any) -> Array:
        """Return the values at states (n, d)."""
        if self.kind.together:
            return self._once(x, given)
        return np.concatenate([self._once(row[None], given) for row in x])

    def _once(self, x: Array, given: dict[str, Any]) -> Array:
        if not self.plain:
            return numbers(self.model.function(state(x), noise=False, **given))
        # plain numbers, and no object for each angle
        values = numbers(self.model._function(state(x), noise=False, **given))
        return wrap_angles(values, self.kind.circular)
