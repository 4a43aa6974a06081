"""Angle-valued dimensions: wrapping, and unwrapping about a reference so that ordinary moments apply."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from herdfilter._checks import Array

__all__ = ["merged", "moments", "unwrap_angles", "wrap_angles"]


def wrap_angles(x: Array, circular: Sequence[int]) -> Array:
    """Wrap the circular dimensions of points (..., d), in radians, into [-pi, pi); the others stay as they are."""
    if not circular:
        return x
    wrapped = np.array(x, dtype=float)
    for i in circular:
        wrapped[..., i] = (wrapped[..., i] + np.pi) % (2 * np.pi) - np.pi
    return wrapped


def unwrap_angles(x: Array, weights: Array, circular: Sequence[int]) -> Array:
    """Move the circular dimensions of weighted points (..., n, d) to within pi of their circular mean, each set by itself.

    In the result, whose angles may leave [-pi, pi), means, covariances and mixture fits may treat every dimension alike.
    """
    if not circular:
        return x
    unwrapped = np.array(x, dtype=float)
    for i in circular:
        angles = unwrapped[..., i]
        reference = np.arctan2(np.sin(angles) @ weights, np.cos(angles) @ weights)[..., None]
        unwrapped[..., i] = reference + (angles - reference + np.pi) % (2 * np.pi) - np.pi
    return unwrapped


def moments(x: Array, weights: Array, circular: Sequence[int] = ()) -> tuple[Array, Array]:
    """Mean (d,), its angles wrapped, and covariance (d, d) of weighted points (n, d)."""
    x = unwrap_angles(x, weights, circular)
    mean = weights @ x
    centred = x - mean
    return wrap_angles(mean, circular), (weights[:, None] * centred).T @ centred


def merged(
    means: Array, covariances: Array, weights: Array, circular: Sequence[int] = ()
) -> tuple[Array, Array]:
    """Mean (d,), its angles wrapped, and covariance (d, d) of a mixture of means (K, d) and covariances (K, d, d).

    One part alone is returned to the last bit.
    """
    if len(means) == 1:
        return means[0], covariances[0]
    mean, between = moments(means, weights, circular)
    return mean, between + np.tensordot(weights, covariances, 1)
