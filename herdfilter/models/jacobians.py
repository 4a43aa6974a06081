"""Vector functions of a state, and their Jacobians by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles


@dataclass(frozen=True, eq=False)
class VectorFunction:
    """A function (n, m) -> (n, k) of a Gaussian variable; some of its values may be angles.

    Attributes
    ----------
    values : callable
        (n, m) -> (n, k).
    circular : callable
        k -> indices of the angle-valued ones of k values.
    jacobian : callable or None
        (n, m) -> (n, k, m), where the model gives it.
    """

    values: Callable[[Array], Array]
    circular: Callable[[int], tuple[int, ...]]
    jacobian: Callable[[Array], Any] | None = None

    def at(self, x: Array) -> Array:
        """Values at sets of points, (K, p, m) -> (K, p, k)."""
        return self.values(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:2], -1)


def differences(function: VectorFunction, means: Array, sd: Array) -> tuple[Array, Array]:
    """Return the value (K, k) and the Jacobian (K, k, m) at each mean (K, m), by central differences.

    The step of a dimension balances truncation with rounding for a function that changes over its standard deviation,
    of which there are (K, m) or (1, m), or over a thousandth of its mean where that is more.
    """
    m = means.shape[1]
    size = np.abs(means)
    scale = np.maximum(sd, 1e-3 * size)
    scale[scale == 0] = 1.0
    h = scale * np.cbrt(np.finfo(float).eps * np.maximum(1.0, size / scale))
    steps = h[:, :, None] * np.eye(m)
    y = function.at(means[:, None] + np.concatenate([np.zeros_like(steps[:, :1]), steps, -steps], axis=1))
    rise = wrap_angles(y[:, 1 : m + 1] - y[:, m + 1 :], function.circular(y.shape[-1]))
    return y[:, 0], (rise / (2 * h[:, :, None])).transpose(0, 2, 1)
