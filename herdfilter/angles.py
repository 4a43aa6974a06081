"""Angle-valued dimensions: wrapping, and unwrapping about a reference so that ordinary moments apply."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from herdfilter._checks import Array, as_array, as_dims, as_numbers

__all__ = ["moments", "unwrap_angles", "wrap_angles"]


def wrap_angles(x: Array, circular: Sequence[int]) -> Array:
    """Wrap the circular dimensions of points (..., d), in radians, into [-pi, pi); the others and NaN stay.

    Examples
    --------
    >>> from herdfilter.angles import wrap_angles
    >>> print(np.degrees(wrap_angles(np.radians([[190.0, 190.0]]), circular=[1])).round(6))
    [[ 190. -170.]]
    """
    x = as_numbers("x", x, (None,))
    d = x.shape[-1] if x.ndim else 0
    return wrap(x, as_dims("circular", circular, d))


def wrap(x: Array, circular: tuple[int, ...]) -> Array:
    """Do as `wrap_angles`, unchecked."""
    if not circular:
        return x
    wrapped = x.copy()
    for i in circular:
        # NumPy's remainder has the sign of the divisor: it lies in [0, 2 pi).
        wrapped[..., i] = (wrapped[..., i] + np.pi) % (2 * np.pi) - np.pi
    return wrapped


def unwrap_angles(x: Array, weights: Array, circular: Sequence[int]) -> Array:
    """Move circular dimensions of weighted points (..., n, d) to within pi of the circular mean of their set.

    Means, covariances and mixture fits may treat every dimension of the result alike; its angles may leave [-pi, pi).

    Examples
    --------
    >>> from herdfilter.angles import unwrap_angles
    >>> angles = np.radians([[160.0], [170.0], [-170.0]])
    >>> print(np.degrees(unwrap_angles(angles, np.full(3, 1 / 3), circular=[0]))[:, 0].round(6))
    [160. 170. 190.]
    """
    x = as_numbers("x", x, (None, None))
    circular = as_dims("circular", circular, x.shape[-1] if x.ndim else 0)
    if not circular:
        return x
    return unwrap(
        as_array("x", x, (None,) * x.ndim), as_array("weights", weights, x.shape[-2:-1]), circular
    )


def unwrap(x: Array, weights: Array, circular: tuple[int, ...]) -> Array:
    """Do as `unwrap_angles`, unchecked."""
    if not circular:
        return x
    unwrapped = x.copy()
    for i in circular:
        angles = unwrapped[..., i]
        # direction of the weighted sum of unit vectors
        reference = np.arctan2(np.sin(angles) @ weights, np.cos(angles) @ weights)[..., None]
        unwrapped[..., i] = reference + (angles - reference + np.pi) % (2 * np.pi) - np.pi
    return unwrapped


def moments(x: Array, weights: Array, circular: Sequence[int] = ()) -> tuple[Array, Array]:
    """Return the mean (d,), its angles wrapped, and the covariance (d, d) of weighted points (n, d).

    Examples
    --------
    >>> from herdfilter.angles import moments
    >>> angles = np.radians([[170.0], [-170.0]])  # 20 degrees apart, on either side of 180
    >>> mean, covariance = moments(angles, np.array([0.5, 0.5]), circular=[0])
    >>> print(np.abs(np.degrees(mean)).round(6), np.degrees(np.sqrt(covariance)).round(6))
    [180.] [[10.]]
    """
    x = as_array("x", x, (None, None), finite=False)
    weights = as_array("weights", weights, (len(x),), finite=False)
    return mean_and_covariance(x, weights, as_dims("circular", circular, x.shape[1]))


def mean_and_covariance(
    x: Array, weights: Array, circular: tuple[int, ...] = ()
) -> tuple[Array, Array]:
    """Do as `moments`, unchecked."""
    if circular:
        x = unwrap(x, weights, circular)
    mean = weights @ x
    # about the mean: a difference of second moments would lose digits far from the origin
    centred = x - mean
    covariance = (weights[:, None] * centred).T @ centred
    # a number is quicker to test than an array, but the sum may overflow where no variance does: then test the array
    if not math.isfinite(sum(covariance.diagonal().tolist())) and not np.isfinite(covariance).all():
        raise ValueError(
            "x, weights: expected finite numbers with squares, got a covariance that is not finite; are the units too small?"
        )
    return (wrap(mean, circular) if circular else mean), covariance


def merged(
    means: Array, covariances: Array, weights: Array, circular: tuple[int, ...] = ()
) -> tuple[Array, Array]:
    """Return mean (d,), angles wrapped, and covariance (d, d) of a mixture of K Gaussians; a single one stays unchanged."""
    if len(means) == 1:
        return means[0], covariances[0]
    # the law of total covariance: within plus between the components
    mean, between = mean_and_covariance(means, weights, circular)
    return mean, between + np.tensordot(weights, covariances, 1)
