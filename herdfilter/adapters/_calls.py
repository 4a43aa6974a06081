"""Functions of one state, called for many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from herdfilter._checks import Array, as_numbers, short_repr, unmasked

Vectorised = bool | Literal["columns"]
"""False for functions of one state, True for those of states (n, d), "columns" for those of states (d, n)."""


class Calls:
    """A function of states (n, d), made of a user's function with further arguments.

    Parameters
    ----------
    name : str
        Of the user's function, for errors.
    function : callable
    size : int
        Entries of its value for one state.
    shape : tuple of int
        Of one state, as the function takes it: ``(d,)``, or ``(d, 1)``.
    vectorised : bool or "columns"
    arguments : tuple or mapping
        Further arguments: by position or by name.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        size: int,
        shape: tuple[int, ...],
        vectorised: Vectorised,
        arguments: Any,
    ) -> None:
        if not callable(function):
            raise TypeError(f"{name}: expected a function, got {short_repr(function)}")
        if vectorised not in (False, True, "columns"):
            raise ValueError(f"vectorised: expected False, True or 'columns', got {short_repr(vectorised)}")
        self.name, self.function, self.size, self.shape = name, function, size, shape
        self.vectorised = vectorised
        named = isinstance(arguments, Mapping)
        self.keywords = dict(arguments) if named else {}
        self.positional = () if named else arguments if isinstance(arguments, tuple) else (arguments,)

    def __call__(self, x: Array, *first: Any, **keywords: Any) -> Array:
        """Values (n, size) at states (n, d); the arguments go before and beside those given at the start."""
        arguments, named = (*first, *self.positional), {**self.keywords, **keywords}
        if not self.vectorised:
            return self.one_by_one(x, arguments, named)
        columns = self.vectorised == "columns"
        given = np.array(x.T if columns else x)  # a copy: some functions write to what they are given
        values = as_numbers(self.name, self.function(given, *arguments, **named), (len(x), self.size))
        values = values.T if columns and values.ndim == 2 else values
        if values.ndim == 1 and self.size == 1:
            values = values[:, None]
        if values.shape != (len(x), self.size):
            raise ValueError(
                f"{self.name}: expected shape {(self.size, len(x)) if columns else (len(x), self.size)} for "
                f"{len(x)} states, vectorised={self.vectorised!r}, got {values.T.shape if columns else values.shape}"
            )
        return values

    def one_by_one(self, x: Array, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Array:
        """Values (n, size) by one call for each state."""
        values = np.empty((len(x), self.size))
        for row, state in zip(values, np.array(x), strict=True):
            value = np.ravel(unmasked(self.name, self.function(state.reshape(self.shape), *arguments, **named)))
            if value.shape != row.shape:
                raise ValueError(f"{self.name}: expected {self.size} numbers for a state, got {len(value)}")
            row[:] = value
        return values

    def check(self, x: Array, *first: Any) -> None:
        """Call the function at states (n, d), so that what is wrong is named now, and not within a filter.

        Raises
        ------
        ValueError
            If the numbers are too few or too many, or those for columns are not those for single states.
        """
        if self.vectorised != "columns":
            self(x, *first)
            return
        alone = self.one_by_one(x, (*first, *self.positional), self.keywords)
        try:
            values = self(x, *first)
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(f"{self.name}: {_NO_COLUMNS}: {error}") from error
        if not np.allclose(values, alone, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise ValueError(f"{self.name}: {_NO_COLUMNS}, got {values[0]} instead of {alone[0]}")


_NO_COLUMNS = "expected for columns, vectorised='columns', what it gives for single states; leave vectorised out"
