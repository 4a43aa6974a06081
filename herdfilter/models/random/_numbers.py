"""Numbers of a random model: drawn, cut to three digits, and written as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array


def rounded(values: ArrayLike) -> Array:
    """Return numbers with three significant digits.

    What is printed is then the model itself, and the last bit, in which machines differ, decides nothing.
    """
    array = np.asarray(values, dtype=np.float64)
    texts = [f"{value:.2e}" for value in array.flat]
    return np.array([float(text) for text in texts]).reshape(array.shape)


def log_uniform(rng: np.random.Generator, low: float, high: float, size: int | None = None) -> Array:
    """Draw numbers whose logarithm is uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def rotation(rng: np.random.Generator, dim: int) -> Array:
    """Draw an orthogonal matrix (dim, dim) from the uniform distribution."""
    q, r = np.linalg.qr(rng.standard_normal((dim, dim)))
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def listed(values: ArrayLike) -> str:
    """Write a number, or a vector in brackets."""
    array = np.asarray(values)
    if array.ndim == 0 or array.size == 1:
        return f"{array.item():.3g}"
    if array.ndim > 1:
        return "; ".join(listed(row) for row in array)
    return "(" + ", ".join(f"{value:.3g}" for value in array) + ")"


def names(dims: ArrayLike) -> str:
    """Write the names of coordinates: x1, x2, ..."""
    return ", ".join(f"x{dim + 1}" for dim in np.atleast_1d(dims))


def combination(matrix: Array, offset: Array) -> str:
    """Write linear combinations of the coordinates, such as ``0.3 x1 - 1.2 x2 + 0.5``, one a row."""
    rows = []
    for row, constant in zip(matrix, offset, strict=True):
        terms = [f"{value:+.3g} x{i + 1}" for i, value in enumerate(row) if value]
        terms += [f"{constant:+.3g}"] if constant else []
        text = " ".join(f"{term[0]} {term[1:]}" for term in terms)
        rows.append(text.removeprefix("+ ").replace(" 1 x", " x").removeprefix("1 "))
    return "; ".join(rows)
