"""A user's functions of states: vectorised, and probed for the entries that are angles. Also linear functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from herdfilter._checks import Array, as_numbers, short_repr
from herdfilter.angles import wrap_angles

Vectorised = bool | Literal["columns"]
"""False for functions of one state, True for those of states (n, d), "columns" for those of states (d, n)."""

TRIAL_DIFFERENCES = np.array([3.0, -3.0, 4.0, -4.0, 2 * np.pi + 0.1, 400.0])
"""Differences that reveal an angle in radians: some are wrapped, while those of a number stay; 400 reveals degrees."""

_NO_COLUMNS = "expected the same values for states as columns, vectorised='columns', as for single states; leave it out"
_ADVICE = "herdfilter knows numbers and angles in radians; set it to None where those will do"


@dataclass(frozen=True, eq=False)
class VectorisedFunction:
    """A function of states (n, d), made of a user's function of one state or many; errors call it `name`.

    A state has the `shape` (d,) or (d, 1), and the value at one state has `size` entries. Further `arguments` are a tuple,
    passed by position, or a mapping, passed by name; anything else is a single argument, as filterpy allows.
    """

    name: str
    function: Callable[..., Any]
    size: int
    shape: tuple[int, ...]
    vectorised: Vectorised
    arguments: Any = ()

    def __post_init__(self) -> None:
        if self.vectorised not in (False, True, "columns"):
            raise ValueError(
                f"vectorised: expected False, True or 'columns', got {short_repr(self.vectorised)}"
            )

    def __call__(self, x: Array, *first: Any, **keywords: Any) -> Array:
        """Return values (n, size) at states (n, d); these arguments come before those given to the constructor."""
        positional, by_name = self._further(*first, **keywords)
        columns = self.vectorised == "columns"
        # a copy: some functions write to what they are given
        states = np.array(x.T if columns else x)
        values: Any
        if self.vectorised:
            values = self.function(states, *positional, **by_name)
        else:
            single_states = states.reshape(-1, *self.shape)
            values = [np.ravel(self.function(s, *positional, **by_name)) for s in single_states]
            if not values:  # no list tells the number of entries
                values = np.empty((0, self.size))
        array = as_numbers(self.name, values, (len(x), self.size))
        rows = array.T if columns else array
        # One number a state may come as a vector.
        if rows.shape == (len(x),) and self.size == 1:
            rows = rows[:, None]
        if rows.shape != (len(x), self.size):
            raise ValueError(
                f"{self.name}: expected {self.size} numbers for each of {len(x)} states, vectorised={self.vectorised!r}, "
                f"got shape {array.shape}"
            )
        return rows

    def _further(self, *first: Any, **keywords: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments after the state, by position and by name."""
        if isinstance(self.arguments, Mapping):
            return first, {**self.arguments, **keywords}
        further = self.arguments if isinstance(self.arguments, tuple) else (self.arguments,)
        return (*first, *further), keywords

    def check_arguments(self, *first: Any, **keywords: Any) -> None:
        """Raise TypeError unless the function takes these arguments after the state, and those of the constructor."""
        positional, by_name = self._further(*first, **keywords)
        # Binding finds a wrong call now, and without the cost or the errors of calling the function.
        try:
            inspect.signature(self.function).bind(None, *positional, **by_name)
        except TypeError as error:
            raise TypeError(
                f"{self.name}: expected a function of a state{' and dt' * bool(first)}, got one that takes no such call "
                f"({error}); name its control, as in control='u', to give it to predict or run; others as fx_args, hx_args "
                "or args"
            ) from None

    def check(self, x: Array, *first: Any) -> None:
        """Call the function at states (n, d), so that errors come early; columns must agree with single states."""
        self.check_arguments(*first)
        if self.vectorised != "columns":
            self(x, *first)
            return
        # A function of columns that mixes states up, by a matrix product for example, may well return the right shape.
        alone = replace(self, vectorised=False)(x, *first)
        try:
            agree = np.allclose(self(x, *first), alone, rtol=1e-9, atol=1e-12, equal_nan=True)
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(f"{self.name}: {_NO_COLUMNS}: {error}") from error
        if not agree:
            raise ValueError(f"{self.name}: {_NO_COLUMNS}")


def multiply(matrix: Array, x: Array) -> Array:
    """Return a linear function of states (n, d), (n, k)."""
    return x @ matrix.T


def repeat_matrix(matrix: Array, x: Array, *_: Any) -> Array:
    """Return the Jacobian of a linear function at states (n, d), (n, k, d)."""
    # a view without copies of the matrix
    return np.broadcast_to(matrix, (len(x), *matrix.shape))


def circular_entries(
    name: str, residual: Callable[[Any, Any], Any], base: Array
) -> tuple[int, ...]:
    """Return the entries in which a function of two vectors (d,) wraps their difference at 2 pi; it is tried at `base` (d,).

    Each entry must be the plain difference or the one wrapped to within pi, and must not depend on other entries.
    """
    # A difference in one entry at a time shows if that entry wraps, and if the residual mixes entries.
    circular = []
    plain = TRIAL_DIFFERENCES[:, None]
    for i, unit in enumerate(np.eye(len(base))):
        residuals = [np.ravel(residual(base + offset, base.copy())) for offset in plain * unit]
        values = np.array(residuals, dtype=np.float64)
        if values.shape != (len(plain), len(base)):
            raise ValueError(f"{name}: expected {len(base)} entries, got {values.shape[1]}")
        if np.allclose(values, wrap_angles(plain, (0,)) * unit, rtol=0, atol=1e-6):
            circular.append(i)
        elif not np.allclose(values, plain * unit, rtol=0, atol=1e-6):
            raise ValueError(
                f"{name}: expected differences, wrapped to within pi where they are of angles, got "
                f"{values[:, i].round(6)} in entry {i} for {TRIAL_DIFFERENCES.round(6)}, or others that change: {_ADVICE}"
            )
    return tuple(circular)
