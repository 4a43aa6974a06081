"""Argument checks shared by the public classes: each error names the argument, what was expected and what came."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]
Shape = tuple[int | None, ...]

UNDERFLOW = 1e-280  # a variance below it has lost digits, and so have its products with others


def shape_text(shape: Shape) -> str:
    """Write a shape with ``None`` for a free axis the way the docstrings do: ``(*, 3)``."""
    inner = ", ".join("*" if size is None else str(size) for size in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def shown(value: Any, width: int = 80) -> str:
    """Write a value as Python does, for a message: on one line, and with its middle left out where it is long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # nested too deeply, too many digits, or a class of the caller's
        text = f"a value of type {type(value).__name__}"
    return shortened(text, width)


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` characters, its middle left out."""
    half = (width - 5) // 2
    return text if len(text) <= width else f"{text[:half]} ... {text[-half:]}"


def as_array(name: str, value: ArrayLike, shape: Shape, *, finite: bool = True) -> Array:
    """Return `value` as a float64 array of the given shape, where ``None`` leaves an axis free."""
    array = _numbers(name, value, shape)
    if array.shape != shape and (
        array.ndim != len(shape)
        or any(w is not None and w != s for w, s in zip(shape, array.shape, strict=True))
    ):
        raise ValueError(f"{name}: expected shape {shape_text(shape)}, got {array.shape}")
    if finite and not np.isfinite(array).all():
        raise ValueError(
            f"{name}: expected finite numbers, got {np.count_nonzero(~np.isfinite(array))} non-finite"
        )
    return array


def _numbers(name: str, value: ArrayLike, shape: Shape) -> Array:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: expected numbers of shape {shape_text(shape)}, got {value!r}"[:300]
        ) from None


def as_points(name: str, value: ArrayLike, dim: int | None = None) -> Array:
    """Return `value` as points of shape (n, dim); a vector stands for one point (or n points when dim is 1)."""
    array = _numbers(name, value, (None, dim))
    if array.ndim == 1 and dim is not None:
        array = array[:, None] if dim == 1 else array[None, :]
    return as_array(name, array, (None, dim))


def as_weights(name: str, value: ArrayLike, n: int | None = None, signed: bool = False) -> Array:
    """Return weights normalised to sum to 1; non-negative ones, unless `signed`."""
    weights = as_array(name, value, (n,), finite=False)
    if weights.size == 0:
        raise ValueError(f"{name}: expected at least one weight, got none")
    if not np.isfinite(weights).all():
        raise ValueError(f"{name}: expected finite weights, got {weights[~np.isfinite(weights)][0]}")
    if not signed and (weights < 0).any():
        raise ValueError(f"{name}: expected non-negative weights, got {weights.min():g}")
    total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"{name}: expected a positive finite sum, got {total:g}")
    return weights / total


def as_covariance(name: str, value: ArrayLike, dim: int | None = None) -> Array:
    """Return one (d, d) or a stack (M, d, d) of symmetric positive semi-definite matrices, symmetrised.

    Variances are 0 or large enough to keep their digits in products.
    """
    array = _numbers(name, value, (dim, dim))
    lead: Shape = (None,) * max(array.ndim - 2, 0)
    array = as_array(name, array, (*lead, dim, dim))
    if array.shape[-1] != array.shape[-2] or array.size == 0:
        raise ValueError(f"{name}: expected square matrices of at least one row, got shape {array.shape}")
    transposed = np.swapaxes(array, -1, -2)
    scale = np.abs(array).max(axis=(-1, -2), initial=0.0)
    gap = np.abs(array - transposed).max(axis=(-1, -2), initial=0.0)
    if (gap > 1e-8 * scale).any():
        raise ValueError(f"{name}: expected symmetric matrices, got an asymmetry of {gap.max():g}")
    array = 0.5 * (array + transposed)
    variances = np.diagonal(array, axis1=-2, axis2=-1)
    tiny = (variances > 0) & (variances < UNDERFLOW)
    if tiny.any():
        raise ValueError(
            f"{name}: expected variances of 0 or from {UNDERFLOW:g} on, got {variances[tiny].min():g}, "
            "whose products with others are lost: give the state another unit"
        )
    lowest = np.linalg.eigvalsh(array)[..., 0]
    if (lowest < -1e-10 * scale).any():
        raise ValueError(
            f"{name}: expected positive semi-definite matrices, got an eigenvalue of {lowest.min():g}"
        )
    return array


def as_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return `value` as an integer of at least `minimum`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name}: expected an integer of at least {minimum}, got {shown(value)}")
    return int(value)


def as_positive(name: str, value: Any) -> float:
    """Return `value` as a positive finite float."""
    number = isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)
    too_large = isinstance(value, int) and value > sys.float_info.max
    if not number or too_large or not 0 < value < np.inf:
        raise ValueError(f"{name}: expected a positive finite number, got {shown(value)}")
    return float(value)


def as_generator(rng: Any) -> np.random.Generator:
    """Return a `numpy.random.Generator` from a generator, a seed, a `SeedSequence` or None (fresh entropy)."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(f"rng: expected a numpy Generator, a seed or None, got {rng!r}") from None


def one_of(name: str, value: str, known: Iterable[str]) -> str:
    """Return `value` if it is known; else name the nearest known ones."""
    known = list(known)
    if isinstance(value, str) and value in known:
        return value
    folded = {name.casefold(): name for name in reversed(known)}
    near = get_close_matches(str(value), known, n=1, cutoff=0.5) or [
        folded[name] for name in get_close_matches(str(value).casefold(), folded, n=1, cutoff=0.5)
    ]
    hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
    raise ValueError(f"{name}: unknown {shown(value)}; {hint}")
