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
    wrapped = np.array(x, dtype=float, order="C")
    _wrap(wrapped.reshape(-1, wrapped.shape[-1]), np.array(circular))
    return wrapped


@njit(cache=True)
def _wrap(x: Array, dims: Array) -> None:
    for i in dims:
        for t in range(len(x)):
            x[t, i] = (x[t, i] + np.pi) % (2 * np.pi) - np.pi


def unwrap_angles(x: Array, weights: Array, circular: Sequence[int]) -> Array:
    """Move the circular dimensions of weighted points (..., n, d) to within pi of their circular mean, each set by itself.

    In the result, whose angles may leave [-pi, pi), means, covariances and mixture fits may treat every dimension alike.
    """
    if not circular:
        return x
    unwrapped = np.array(x, dtype=float, order="C")
    _unwrap(unwrapped.reshape(-1, *x.shape[-2:]), weights, np.array(circular))
    return unwrapped


@njit(cache=True)
def _unwrap(x: Array, weights: Array, dims: Array) -> None:
    for points in x:
        for i in dims:
            sine, cosine = 0.0, 0.0
            for t in range(len(points)):
                sine += weights[t] * np.sin(points[t, i])
                cosine += weights[t] * np.cos(points[t, i])
            reference = np.arctan2(sine, cosine)
            for t in range(len(points)):
                points[t, i] = reference + (points[t, i] - reference + np.pi) % (2 * np.pi) - np.pi


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
