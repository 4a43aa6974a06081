"""The contract of a mixture fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from herdfilter._checks import Array
from herdfilter.mixture import GaussianMixture


@runtime_checkable
class Fit(Protocol):
    """Anything that approximates weighted particles by a mixture.

    Angle-valued dimensions are unwrapped about their circular mean before the fit, so that the component means may lie
    outside [-pi, pi); whoever draws from the mixture wraps the draws.
    """

    def fit(self, particles: Array, weights: Array, circular: Sequence[int] = ()) -> GaussianMixture:
        """Fit particles (n, d) with weights (n,) that sum to 1."""
        ...
