"""Cholesky's factor for compiled code, where matrices are too small for LAPACK to pay."""

from __future__ import annotations

import numpy as np
from numba import njit

from herdfilter._checks import Array


@njit(cache=True, nogil=True)
def factorised(matrix: Array, factor: Array) -> bool:
    """Write the Cholesky factor of a symmetric matrix into the lower half of `factor`; return whether there is one."""
    for i in range(len(matrix)):
        for j in range(i + 1):
            entry = matrix[i, j]
            for k in range(j):
                entry -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = entry / factor[j, j]
            elif 0.0 < entry < np.inf:
                factor[i, i] = np.sqrt(entry)
            else:
                return False
    return True
