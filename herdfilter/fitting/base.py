"""The contract of fits, and their shared check of particles and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from herdfilter._checks import Array, as_weighted_particles
from herdfilter.angles import unwrap_angles
from herdfilter.mixture import GaussianMixture


@runtime_checkable
class Fit(Protocol):
    """A method that approximates weighted particles by a mixture.

    Angle-valued dimensions are unwrapped about their circular mean before the fit, so that component means may lie outside
    [-pi, pi); the caller wraps draws from the mixture. Options or particles that are not as documented raise ValueError.

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

    def fit(
        self, particles: Array, weights: Array, circular: Sequence[int] = ()
    ) -> GaussianMixture:
        """Fit particles (n, d) with weights (n,) that sum to 1; fits of this package take equal ones when omitted."""


def unwrap_particles(
    particles: Array, weights: Array | None, circular: Sequence[int]
) -> tuple[Array, Array]:
    """Check particles and weights; return the particles (n, d), angles unwrapped, and the weights (n,), by default equal."""
    x, w = as_weighted_particles(particles, weights)
    return unwrap_angles(x, w, circular), w
