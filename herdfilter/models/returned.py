"""Calls of a model's functions, which cannot change their arguments, and checks of what they return."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import (
    LARGEST,
    Array,
    as_array,
    as_covariance,
    as_numbers,
    fits,
    read_only,
    shape_text,
)
from herdfilter._covariances import covariance_factor

LARGEST_VARIANCE = 1e300  # largest variance: the square of the largest state


class FactoredCovariance(NamedTuple):
    """A covariance matrix and a factor F of it, ``F @ F.T``, both read-only."""

    matrix: Array
    factor: Array


def rows_of(
    name: str, function: Callable[..., Any], size: int | None, x: Array, *arguments: Any
) -> Array:
    """Call a model's function of states (n, d), with the step as last argument; return its value for each, (n, size)."""
    if x.flags.writeable:
        x = x.view()
        x.setflags(False)  # type: ignore[call-arg]  # twice as fast as with a keyword
    value = function(x, *arguments)
    # the usual case, without the cost of a call
    if (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.ndim == 2
        and len(value) == len(x)
        and (size is None or value.shape[1] == size)
        and value.flags.writeable
        and value.size
        and np.abs(value).max() <= LARGEST
    ):
        return value
    return read_rows(name, value, (len(x), size), arguments[-1])


def read_numbers(name: str, value: Any, shape: tuple[int | None, ...], step: int) -> Array:
    """Return the value of a model's function as numbers of this shape; None leaves an axis free."""
    try:
        array = as_numbers(name, value, shape)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None
    if array.shape != shape and not fits(array.shape, shape):
        raise ValueError(
            f"{name}: expected shape {shape_text(shape)} from the model at step {step}, got {array.shape}"
        )
    return array


def read_rows(name: str, value: Any, shape: tuple[int | None, ...], step: int) -> Array:
    """Return the value of a model's function for each state; all squares must be finite."""
    array = read_numbers(name, value, shape, step)
    if not array.flags.writeable:  # a view of the function's read-only argument
        array = array.copy()
    if not np.abs(array).max(initial=0.0) <= LARGEST:  # NaN, too
        wrong = np.count_nonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
        if wrong:
            raise ValueError(
                f"{name}: expected finite numbers from the model at step {step}, got {wrong} rows that are not"
            )
        raise ValueError(
            f"{name}: expected finite numbers up to {LARGEST:g} from the model at step {step}, got "
            f"{np.abs(array).max()}; choose larger units"
        )
    return array


def read_covariance(name: str, value: Any, size: int, step: int) -> FactoredCovariance:
    """Return the value of a model's function as one covariance matrix (size, size), checked and factorised once."""
    try:
        array = as_array(name, value, (size, size), finite=False)
        # Most models return the same matrix at every step. By its bytes it is found in the cache, checked and factorised.
        single = getattr(value, "dtype", None) == np.float32
        return _factored_covariance(name, array.tobytes(), size, single)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None


@lru_cache(maxsize=32)
def _factored_covariance(name: str, data: bytes, size: int, single: bool) -> FactoredCovariance:
    array = np.frombuffer(data).reshape(size, size)
    # as float32 if it came so: the check then allows for its rounding
    matrix = _checked_covariances(name, array.astype(np.float32) if single else array, size)
    return FactoredCovariance(read_only(matrix), read_only(covariance_factor(matrix)))


def read_covariances(name: str, value: Any, size: int, step: int) -> Array:
    """Return the value of a model's function as covariance matrices (n, size, size), checked."""
    try:
        return _checked_covariances(name, value, size)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None


def _checked_covariances(name: str, value: Any, size: int) -> Array:
    matrices = as_covariance(name, value, size)
    largest = np.diagonal(matrices, axis1=-2, axis2=-1).max()
    if not largest <= LARGEST_VARIANCE:
        raise ValueError(
            f"{name}: expected variances up to {LARGEST_VARIANCE:g}, got {largest}; choose larger units"
        )
    return matrices
