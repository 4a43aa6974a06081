"""Angle-valued dimensions: wrapping, and unwrapping about a reference so that ordinary moments apply."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from herdfilter._checks import Array


def wrap_angles(x: Array, circular: Sequence[int]) -> Array:
    """Wrap the circular dimensions of points (..., d), in radians, into [-pi, pi); the others stay as they are."""
    if not circular:
        return x
    x = x.copy()
    dims = list(circular)
    x[..., dims] = np.mod(x[..., dims] + np.pi, 2 * np.pi) - np.pi
    return x


def unwrap_angles(x: Array, weights: Array, circular: Sequence[int]) -> Array:
    """Move the circular dimensions of weighted points (..., n, d) to within pi of their circular mean, each set by itself.

    In the result, whose angles may leave [-pi, pi), means, covariances and mixture fits may treat every dimension alike.
    """
    if not circular:
        return x
    x = x.copy()
    for i in circular:
        angle = x[..., i]
        reference = np.arctan2(np.sin(angle) @ weights, np.cos(angle) @ weights)[..., None]
        x[..., i] = reference + np.mod(angle - reference + np.pi, 2 * np.pi) - np.pi
    return x


def moments(x: Array, weights: Array, circular: Sequence[int] = ()) -> tuple[Array, Array]:
    """Mean (d,), its angles wrapped, and covariance (d, d) of weighted points (n, d)."""
    mean, covariance = _moments(unwrap_angles(x, weights, circular), weights)
    return wrap_angles(mean, circular), covariance


@njit(cache=True)
def _moments(x: Array, weights: Array) -> tuple[Array, Array]:
    n, d = x.shape
    mean = np.zeros(d)
    for i in range(n):
        for j in range(d):
            mean[j] += weights[i] * x[i, j]
    centred, weighted = np.empty((n, d)), np.empty((n, d))
    for i in range(n):
        for j in range(d):
            centred[i, j] = x[i, j] - mean[j]
            weighted[i, j] = weights[i] * centred[i, j]
    return mean, weighted.T @ centred
