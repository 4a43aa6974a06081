"""Covariance of weighted particles, regular whatever their shape: all fits take it from here."""

from __future__ import annotations

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import regularised

SUSPECT = 1e-20  # variance relative to the square of a value, that rounding may have made
ROUNDING = 16 * np.finfo(float).eps  # range of equal numbers after a few operations, relative to their size


def plain_and_regular(x: Array, weights: Array, centred: Array) -> tuple[Array, Array]:
    """Return the covariance (d, d) of `centred` under `weights`, and the same `regularised`.

    A dimension in which the particles `x` agree to rounding has no variance. It would otherwise have one of about 1e-32 of
    its square, or none, as the processor adds up; with the floor, particles in a plane give the same matrix everywhere.
    """
    covariance = (centred.T * weights) @ centred
    centre = x[0] - centred[0]
    if (covariance.diagonal() <= SUSPECT * centre * centre).any():
        present = x[weights > 0]
        constant = np.ptp(present, axis=0) <= ROUNDING * np.abs(present).max(axis=0)
        covariance[constant] = 0.0
        covariance[:, constant] = 0.0
    return covariance, regularised(covariance)
