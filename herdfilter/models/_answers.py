"""Checks of what a model's functions return: each error names the function, the step, what was expected and what came."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from herdfilter._checks import LARGEST, Array, as_array, as_covariance, as_numbers, shape_text
from herdfilter._covariances import covariance_factor

LARGEST_VARIANCE = 1e300
"""Largest variance: the square of the largest state."""


def shaped(name: str, value: Any, shape: tuple[int | None, ...], step: int) -> Array:
    """Return what a model's function gave as numbers of this shape, where None leaves an axis free."""
    try:
        array = as_numbers(name, value, shape)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None
    if array.shape != shape and (
        array.ndim != len(shape) or any(w is not None and w != s for w, s in zip(shape, array.shape, strict=True))
    ):
        raise ValueError(f"{name}: expected shape {shape_text(shape)} from the model at step {step}, got {array.shape}")
    return array


def rows(name: str, value: Any, shape: tuple[int | None, ...], step: int) -> Array:
    """Return what a model's function gave for each state, if all numbers are finite and have squares."""
    array = shaped(name, value, shape, step)
    if not np.abs(array).max(initial=0.0) <= LARGEST:  # NaN, too
        wrong = np.count_nonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
        if wrong:
            raise ValueError(f"{name}: expected finite numbers from the model at step {step}, got {wrong} rows that are not")
        raise ValueError(
            f"{name}: expected finite numbers up to {LARGEST:g} from the model at step {step}, got "
            f"{np.abs(array).max():g}; choose larger units"
        )
    return array


class Covariance(NamedTuple):
    """A covariance matrix and a factor F of it, ``F @ F.T``, neither to be written to."""

    matrix: Array
    factor: Array


def covariance(name: str, value: Any, size: int, step: int) -> Covariance:
    """Return what a model's function gave as a covariance matrix (size, size): symmetric, positive semi-definite.

    What was found out about a matrix is kept: one that stays the same is checked and factorised once.
    """
    try:
        array = as_numbers(name, value, (size, size))
        if array.shape != (size, size):
            as_array(name, array, (size, size))
        return _known(name, array.tobytes(), size, getattr(value, "dtype", None) == np.float32)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None


def covariances(name: str, value: Any, count: int, size: int, step: int) -> Array:
    """Return what a model's function gave as one covariance matrix for each of `count` states, (count, size, size).

    Where all are the same it is one, (1, size, size), to be used for all.
    """
    array = shaped(name, value, (count, size, size), step)
    if (array == array[0]).all():
        return covariance(name, np.asarray(value)[0], size, step).matrix[None]
    try:
        matrices = as_covariance(name, value, size)
        _not_too_large(name, matrices)
    except ValueError as error:
        raise ValueError(f"{error} from the model at step {step}") from None
    return matrices


def _not_too_large(name: str, matrices: Array) -> None:
    largest = np.diagonal(matrices, axis1=-2, axis2=-1).max()
    if not largest <= LARGEST_VARIANCE:
        raise ValueError(f"{name}: expected variances up to {LARGEST_VARIANCE:g}, got {largest:g}; choose larger units")


@lru_cache(maxsize=32)
def _known(name: str, data: bytes, size: int, single: bool) -> Covariance:
    array = np.frombuffer(data).reshape(size, size)
    matrix = as_covariance(name, array.astype(np.float32) if single else array)
    _not_too_large(name, matrix)
    factor = covariance_factor(matrix)
    matrix.flags.writeable = factor.flags.writeable = False
    return Covariance(matrix, factor)
