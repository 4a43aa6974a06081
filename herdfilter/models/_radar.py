"""Range and bearing from a fixed radar in the plane, as several models observe them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import wrap_angles
from herdfilter.models._fields import as_partial_observation


def range_and_bearing(offset: Array) -> Array:
    """Range and bearing in radians of positions relative to the radar, (n, 2) -> (n, 2)."""
    x, y = offset.T
    return np.column_stack([np.hypot(x, y), np.arctan2(y, x)])


def range_and_bearing_jacobian(offset: Array) -> Array:
    """Jacobian of `range_and_bearing`, (n, 2) -> (n, 2, 2); infinite or NaN at the radar itself."""
    x, y = offset.T
    distance = np.hypot(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.array([[x / distance, y / distance], [-y / distance**2, x / distance**2]])
    return np.moveaxis(rows, -1, 0)


def log_density(z: ArrayLike, mean: Array, sd: ArrayLike, circular: tuple[int, ...]) -> Array:
    """Log-density of the finite entries of `z` (k,) for independent Gaussian noise of `sd` (k,), angles wrapped.

    Parameters
    ----------
    mean : ndarray, shape (n, k)
    circular : tuple of int
        Entries that are angles.

    Returns
    -------
    ndarray, shape (n,)
    """
    sd = np.asarray(sd)
    z, kept = as_partial_observation(z, len(sd))
    scaled = (wrap_angles(z - mean, circular) / sd)[:, kept]
    return -0.5 * (scaled**2).sum(axis=1) - np.log(sd[kept] * np.sqrt(2 * np.pi)).sum()
