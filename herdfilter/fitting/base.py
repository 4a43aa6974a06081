"""The contract of fits, and the covariance that all of them take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import Array
from herdfilter._covariances import regularised
from herdfilter.mixture import GaussianMixture


@runtime_checkable
class Fit(Protocol):
    """Anything that approximates weighted particles by a mixture.

    Angle-valued dimensions are unwrapped about their circular mean before the fit, so that the component means may lie
    outside [-pi, pi); whoever draws from the mixture wraps the draws.

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
