"""Functions of a user: called for many states, and tried to find the entries that are angles; linear functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from herdfilter._checks import Array, as_numbers, ask_twice, short_repr
from herdfilter.angles import wrap_angles

Vectorised = bool | Literal["columns"]
"""False for functions of one state, True for those of states (n, d), "columns" for those of states (d, n)."""

TRIAL_DIFFERENCES = (3.0, -3.0, 4.0, -4.0, 2 * np.pi + 0.1)
"""Differences that show an angle in radians: wrapping changes some of them, a plain number none."""

DEGREES_DIFFERENCE = 400.0  # a difference at which degrees wrap

_NO_COLUMNS = "expected for columns, vectorised='columns', what it gives for single states; leave vectorised out"
_ADVICE = "herdfilter knows numbers and angles in radians; set it to None where those will do"


class VectorisedFunction:
    """A function of states (n, d), made of a user's function of one or more states, which errors call `name`.

    A state has the `shape` (d,) or (d, 1), the value at one state `size` entries. Further arguments are a tuple, taken by
    position, or a mapping, taken by name.
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
        by_name = isinstance(arguments, Mapping)
        self.keywords = dict(arguments) if by_name else {}
        self.positional = () if by_name else arguments if isinstance(arguments, tuple) else (arguments,)

    def __call__(self, x: Array, *first: Any, **keywords: Any) -> Array:
        """Return values (n, size) at states (n, d); the arguments go before and beside those given at the start."""
        arguments, by_name = (*first, *self.positional), {**self.keywords, **keywords}
        if not self.vectorised:
            return self._one_by_one(x, arguments, by_name)
        columns = self.vectorised == "columns"
        given = np.array(x.T if columns else x)  # a copy: some functions write to what they are given
        values = as_numbers(self.name, self.function(given, *arguments, **by_name), (len(x), self.size))
        values = values.T if columns and values.ndim == 2 else values
        if values.ndim == 1 and self.size == 1:
            values = values[:, None]
        if values.shape != (len(x), self.size):
            raise ValueError(
                f"{self.name}: expected shape {(self.size, len(x)) if columns else (len(x), self.size)} for "
                f"{len(x)} states, vectorised={self.vectorised!r}, got {values.T.shape if columns else values.shape}"
            )
        return values

    def _one_by_one(self, x: Array, arguments: tuple[Any, ...], by_name: Mapping[str, Any]) -> Array:
        values = np.empty((len(x), self.size))
        for row, state in zip(values, np.array(x), strict=True):
            value = np.ravel(self.function(state.reshape(self.shape), *arguments, **by_name))
            if value.shape != row.shape:
                raise ValueError(f"{self.name}: expected {self.size} numbers for a state, got {len(value)}")
            row[:] = value
        return values

    def check_arguments(self, *first: Any, **keywords: Any) -> None:
        """Raise TypeError unless the function takes these arguments after the state, and those given at the start."""
        try:
            inspect.signature(self.function).bind(None, *first, *self.positional, **self.keywords, **keywords)
        except ValueError:  # of some functions that are not written in Python
            return
        except TypeError as error:
            got = f"expected a function of a state{' and dt' * bool(first)}, got one that takes no such call ({error})"
            how = "name its control, as in control='u', to give it to predict or run; others as fx_args, hx_args or args"
            raise TypeError(f"{self.name}: {got}; {how}") from None

    def check(self, x: Array, *first: Any) -> None:
        """Call the function at states (n, d), so that an error is raised now; columns must give what single states do."""
        self.check_arguments(*first)
        ask_twice(self.name, self, x, *first)
        if self.vectorised != "columns":
            self(x, *first)
            return
        alone = self._one_by_one(x, (*first, *self.positional), self.keywords)
        try:
            values = self(x, *first)
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(f"{self.name}: {_NO_COLUMNS}: {error}") from error
        if not np.allclose(values, alone, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise ValueError(f"{self.name}: {_NO_COLUMNS}, got {values[0]} instead of {alone[0]}")


def multiply(matrix: Array, x: Array) -> Array:
    """Return a linear function of states (n, d), (n, k)."""
    return x @ matrix.T


def repeat_matrix(matrix: Array, x: Array, *_: Any) -> Array:
    """Return the Jacobian of a linear function at states (n, d), (n, k, d)."""
    return np.broadcast_to(matrix, (len(x), *matrix.shape))


def circular_entries(name: str, residual: Callable[[Any, Any], Any], base: Array) -> tuple[int, ...]:
    """Return the entries in which a function of two vectors (d,) wraps their difference at 2 pi, tried at `base` (d,).

    Each entry must be the plain difference or the one wrapped to within pi, and must not depend on other entries.
    """
    if residual is np.subtract:
        return ()

    def refusal(got: str) -> ValueError:
        expected = "expected differences, wrapped to within pi where they are of angles"
        return ValueError(f"{name}: {expected}, got {got}: {_ADVICE}")

    def difference_by(offset: Array) -> Array:
        found = np.ravel(np.asarray(residual(base + offset, base.copy()), dtype=np.float64))
        if found.shape != base.shape:
            raise ValueError(f"{name}: expected {len(base)} entries, got {len(found)}")
        return found

    def entry_by(i: int, t: float) -> float:
        found = difference_by(t * np.eye(size)[i])
        value, found[i] = float(found[i]), 0.0
        if np.abs(found).max() > 1e-6:
            raise refusal(f"{found} in entries other than {i}, the only one that differs")
        return value

    size, circular = len(base), []
    small = 0.1 * (1 + np.arange(size)) / size
    found = difference_by(small)
    if np.abs(found - small).max() > 1e-9 * (1 + np.abs(base).max()):
        raise refusal(f"{found} for {small}")
    for i in range(size):
        values = {t: entry_by(i, t) for t in TRIAL_DIFFERENCES}
        if all(abs(value - (t + np.pi) % (2 * np.pi) + np.pi) < 1e-6 for t, value in values.items()):
            circular.append(i)
            continue
        values[DEGREES_DIFFERENCE] = entry_by(i, DEGREES_DIFFERENCE)
        for t, value in values.items():
            if abs(value - t) > 1e-6:
                degrees = "; degrees are to be turned into radians" if abs(value - DEGREES_DIFFERENCE + 360) < 1e-6 else ""
                raise refusal(f"{value:.6g} for {t:.6g} in entry {i}{degrees}")
    return tuple(circular)


def check_addition(name: str, add: Callable[[Any, Any], Any], base: Array, circular: tuple[int, ...]) -> None:
    """Raise ValueError unless a function adds vectors (d,), but for whole turns of the circular entries."""
    if add is np.add:
        return
    small = 0.1 * (1 + np.arange(len(base))) / len(base)
    added = np.ravel(add(base.copy(), small.copy()))
    if added.shape != base.shape or np.abs(wrap_angles(added - base - small, circular)).max() > 1e-6:
        raise ValueError(f"{name}: expected a sum, angles wrapped or not, got {added} for {base} and {small}: {_ADVICE}")


def check_mean(name: str, mean: Callable[[Any, Any], Any] | None, base: Array, circular: tuple[int, ...]) -> None:
    """Raise ValueError unless a function (points (m, d), weights (m,)) -> (d,) averages near points, those about pi too."""
    if mean is None:
        return
    size, count = len(base), 2 * len(base) + 1
    weights = (1.0 + np.arange(count)) / (count * (count + 1) / 2)
    offsets = 1e-3 * np.sin(np.outer(1 + np.arange(count), 1 + np.arange(size)))
    across = base.copy()
    across[list(circular)] = np.pi
    for centre in (base, across):
        points = wrap_angles(centre + offsets, circular)
        expected = centre + weights @ offsets
        averaged = np.ravel(mean(points.copy(), weights.copy()))
        if averaged.shape != base.shape or np.abs(wrap_angles(averaged - expected, circular)).max() > 1e-6:
            raise ValueError(
                f"{name}: expected the weighted mean, circular in the entries {circular} that the residual function wraps, "
                f"got {averaged} for points about {centre}: {_ADVICE}"
            )
