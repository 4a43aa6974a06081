"""Checks of what a model's functions return."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._checks import (
    LARGEST,
    Array,
    as_covariance,
    as_numbers,
    fits,
    shape_text,
)

AXES = "; particles come first: x[:, 0] is the first entry of each state, and np.column_stack makes rows"
LARGEST_VARIANCE = 1e300  # largest variance: the square of the largest state


def read_numbers(name: str, value: Any, shape: tuple[int | None, ...], step: int) -> Array:
    """Return the value of a model's function as numbers of this shape; None leaves an axis free."""
    try:
        array = as_numbers(name, value, shape)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None
    if array.shape != shape and not fits(array.shape, shape):
        raise ValueError(
            f"{name}: expected shape {shape_text(shape)} from the model at step {step}, got {array.shape}"
            f"{AXES if array.shape[:1] != shape[:1] else ''}"
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


def read_covariances(name: str, value: Any, size: int, step: int) -> Array:
    """Return the value of a model's function as covariance matrices (n, size, size), checked."""
    try:
        return checked_covariances(name, value, size)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None


def checked_covariances(name: str, value: Any, size: int) -> Array:
    """Return covariance matrices (..., size, size) whose variances are squares of numbers that a filter can use."""
    matrices = as_covariance(name, value, size)
    largest = np.diagonal(matrices, axis1=-2, axis2=-1).max()
    if not largest <= LARGEST_VARIANCE:
        raise ValueError(
            f"{name}: expected variances up to {LARGEST_VARIANCE:g}, got {largest}; choose larger units"
        )
    return matrices
