"""Scrambled Sobol points (Sobol 1967; linear matrix scramble and digital shift, Matousek 1998)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from herdfilter._checks import Array

DIGITS = 52  # binary, of a coordinate; half a cell of that grid more is still a float, and neither 0 nor 1
CELL = 2.0**-DIGITS


def scrambled_sobol(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Draw the first n points of a scrambled Sobol sequence, inside the unit cube; (n, dim)."""
    directions = direction_numbers(dim, (n - 1).bit_length())
    return scrambled_points(n, directions, rng.integers(2**DIGITS, size=(dim, directions.shape[1] + 1)))


@lru_cache(maxsize=32)
def direction_numbers(dim: int, count: int) -> NDArray[np.int64]:
    """Return the first direction numbers of the Sobol sequence, times ``2^DIGITS``; (dim, count)."""
    from scipy.stats import qmc  # it takes longer to import than the rest of the package

    if dim > qmc.Sobol.MAXDIM:
        raise ValueError(f"noise_dim: expected at most {qmc.Sobol.MAXDIM - 1}, got {dim - 1}")
    # In the Gray code order of the sequence, point 2^k differs from the one before by direction number k.
    fractions = (qmc.Sobol(dim, scramble=False).random_base2(count) * 2.0**DIGITS).astype(np.int64)
    powers = 2 ** np.arange(count)
    return np.ascontiguousarray((fractions[powers] ^ fractions[powers - 1]).T)


def scrambled_points(n: int, directions: NDArray[np.int64], random: NDArray[np.int64]) -> Array:
    """Sobol points (n, dim) of direction numbers (dim, count), scrambled by random integers (dim, count + 1)."""
    dim, count = directions.shape
    x = np.empty((n, dim))
    _place(directions, random, np.empty(count, np.int64), x)
    return x


@njit(cache=True, nogil=True)
def _place(directions, random, scrambled, x):
    """Fill x (n, dim) with the points; `scrambled` (count,) is room."""
    (dim, count), n = directions.shape, len(x)
    for j in range(dim):
        for k in range(count):
            scrambled[k] = 0
        for c in range(count):  # column c of a lower triangular matrix over {0, 1}, its diagonal one
            digit = np.int64(1) << (DIGITS - 1 - c)
            column = digit | (random[j, c] & (digit - 1))
            for k in range(count):
                if directions[j, k] & digit:
                    scrambled[k] ^= column
        place = random[j, count]
        for i in range(n):
            if i > 0:
                k = 0  # trailing zeros of i: one digit of its Gray code changes
                while not (i >> k) & 1:
                    k += 1
                place ^= scrambled[k]
            x[i, j] = (place + 0.5) * CELL
