"""The contract of a mixture fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import LARGEST, Array, as_array
from herdfilter.mixture import GaussianMixture

SUM = 1e-6  # how far from 1 the sum of weights may be


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


def checked(particles: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return particles and weights if a mixture can be fitted to them: compiled loops trust what they are given.

    Weights are equal where there are none.

    Raises
    ------
    ValueError
        If shapes do not fit, a number is not finite, or weights are negative or do not sum to 1.
    """
    x = as_array("particles", particles, (None, None))
    w = np.full(len(x), 1.0 / max(len(x), 1)) if weights is None else as_array("weights", weights, (len(x),))
    if not np.abs(x).max(initial=0.0) <= LARGEST:
        raise ValueError(
            f"particles: expected numbers up to {LARGEST:g}, got {np.abs(x).max():g}; choose larger units"
        )
    total, least = w.sum(), w.min(initial=0.0)
    if not abs(total - 1.0) <= SUM or least < 0:
        raise ValueError(
            f"weights: expected non-negative numbers that sum to 1, got a sum of {total:g} and a least of {least:g}"
        )
    return x, w
