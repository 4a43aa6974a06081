"""The contract of fits, and the covariance that all of them take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import regularised
from herdfilter.mixture import GaussianMixture

SUSPECT_VARIANCE = 1e-20  # relative to the square of a value: rounding may have made it
EQUAL_RANGE = 16 * np.finfo(float).eps  # range of equal numbers after a few operations, relative to their size


@runtime_checkable
class Fit(Protocol):
    """A method that approximates weighted particles by a mixture.

    Angle-valued dimensions are unwrapped about their circular mean before the fit, so that the component means may lie
    outside [-pi, pi); draws from the mixture are wrapped by the caller.

    Examples
    --------
    >>> class TwiceAsWide:
    ...     # One Gaussian of the particles' mean, with twice their covariance
    ...     def fit(self, particles, weights, circular=()):
    ...         points = hf.Points(particles, weights)
    ...         return hf.GaussianMixture([1.0], [points.mean], 2 * points.covariance)
    >>> isinstance(TwiceAsWide(), hf.Fit)
    True
    >>> print(TwiceAsWide().fit([[-1.0], [1.0]], [0.5, 0.5]).covariance)
    [[2.]]
    """

    def fit(self, particles: Array, weights: Array, circular: Sequence[int] = ()) -> GaussianMixture:
        """Fit particles (n, d) with weights (n,) that sum to 1."""
        ...


def plain_and_regular(x: Array, weights: Array, centred: Array) -> tuple[Array, Array]:
    """Return the covariance (d, d) of `centred` under `weights`, and the same `regularised`.

    A dimension in which the particles `x` agree to rounding has no variance; the sum alone would leave about 1e-32 of its
    square, or nothing, depending on the processor.
    """
    covariance = (centred.T * weights) @ centred
    centre = x[0] - centred[0]
    if (covariance.diagonal() <= SUSPECT_VARIANCE * centre * centre).any():
        present = x[weights > 0]
        constant = np.ptp(present, axis=0) <= EQUAL_RANGE * np.abs(present).max(axis=0)
        covariance[constant] = 0.0
        covariance[:, constant] = 0.0
    return covariance, regularised(covariance)
