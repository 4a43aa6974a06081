"""Options with which numba compiles the loops of samplers and fits, and an exponential that vectorises."""

from __future__ import annotations

from typing import Any

import numpy as np

from herdfilter._jit import njit as njit

# Sums may be reordered and products fused, so that loops vectorise; infinities and NaN keep their meaning. The same input
# gives the same bits if a loop that computes writes to one array only: otherwise it asks at run time if arrays might meet.
VECTORISE = {"reassoc", "contract"}

# Loops that Python calls
CALLED: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
# Functions that only compiled code calls: they compile faster without wrappers and are cached with their callers.
INSIDE: dict[str, Any] = CALLED | {"cache": False, "no_cpython_wrapper": True}
FAST: dict[str, Any] = INSIDE | {"fastmath": VECTORISE}
# Functions that allocate no array: numba then need not count the references to their arguments.
IN_PLACE: dict[str, Any] = CALLED | {"_nrt": False}
NO_ARRAYS: dict[str, Any] = INSIDE | {"_nrt": False}
QUICK: dict[str, Any] = FAST | {"_nrt": False}


@njit(**FAST)
def exp(x):
    """Return exp(x) for x <= 700, and exp(-700) below -700, in a form that vectorises; the relative error is below 1e-14.

    x = k log 2 + r with |r| <= log(2) / 2, a Taylor polynomial of degree 11 in r, and k put into the exponent bits.
    """
    x = max(x, -700.0)
    k = np.floor(x * 1.4426950408889634 + 0.5)
    # log 2 in two parts, of which the first times k is exact (Cody and Waite 1980)
    r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    # Estrin's scheme: short chains of products that the processor can overlap
    r2 = r * r
    r4 = r2 * r2
    top = (r * (1.0 / 39916800.0) + 1.0 / 3628800.0) * r2 + (r * (1.0 / 362880.0) + 1.0 / 40320.0)
    middle = (r * (1.0 / 5040.0) + 1.0 / 720.0) * r2 + (r * (1.0 / 120.0) + 1.0 / 24.0)
    p = (top * r4 + middle) * r4 + ((r * (1.0 / 6.0) + 0.5) * r2 + (r + 1.0))
    return p * np.int64((np.int64(np.int32(k)) + 1023) << 52).view(np.float64)
