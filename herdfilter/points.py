"""Weighted points: what every sampler returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import html_repr
from herdfilter.angles import mean_and_covariance
from herdfilter.mixture import GaussianMixture, as_mixture


@dataclass(frozen=True, eq=False, slots=True, init=False)
class Points:
    """Points with weights, a discrete approximation of a distribution.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Locations, in state units.
    weights : array_like, shape (n,), optional
        Non-negative weights; normalised to sum to 1. Equal weights when omitted.
    signed : bool
        Allow negative weights, as quadrature rules have them. Distances between points and mixtures accept them, filters
        do not.

    Examples
    --------
    >>> points = hf.Points([[0.0, 0.0], [2.0, 1.0], [4.0, 2.0]], weights=[1, 2, 1])
    >>> print(points.weights, points.mean)
    [0.25 0.5  0.25] [2. 1.]
    >>> print(points.covariance)
    [[2.  1. ]
     [1.  0.5]]
    """

    x: Array
    weights: Array

    def __init__(
        self, x: ArrayLike, weights: ArrayLike | None = None, signed: bool = False
    ) -> None:
        _checks.check_flags(signed=signed)
        # A copy, as the caller may use the array for something else.
        x = _checks.as_array("x", x, (None, None)).copy()
        if len(x) == 0:
            raise ValueError("x: expected at least one point, got none")
        # the way to set fields of a frozen dataclass
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "weights", _checks.as_weights("weights", weights, len(x), signed))

    @classmethod
    def unchecked(cls, x: Array, weights: Array) -> Points:
        """Build points from arrays that are valid by construction (weights sum to 1)."""
        self = object.__new__(cls)
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "weights", weights)
        return self

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"Points(n={len(self)}, dim={self.dim})"

    _repr_html_ = html_repr

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return int(self.x.shape[1])

    @property
    def log_weights(self) -> Array:
        """Logarithms of the weights, shape (n,), -inf for weights of zero; ValueError if a weight is negative."""
        if (self.weights < 0).any():
            raise ValueError(f"weights: expected non-negative weights, got {self.weights.min():g}")
        with np.errstate(divide="ignore"):  # log 0 = -inf
            return np.log(self.weights)

    @property
    def mean(self) -> Array:
        """Weighted mean, shape (d,)."""
        return self.weights @ self.x

    @property
    def covariance(self) -> Array:
        """Weighted covariance (no small-sample correction), shape (d, d)."""
        return mean_and_covariance(self.x, self.weights)[1]


def check_pair(points: Points, mixture: GaussianMixture | Points, samples: bool = False) -> None:
    """Raise an error unless these are points and a mixture (or points, with `samples`) of the same dimension."""
    if not isinstance(points, Points):
        raise TypeError(
            f"points: expected herdfilter.Points, got an object {type(points).__name__}; points come first, then the mixture"
        )
    if not (samples and isinstance(mixture, Points)):
        mixture = as_mixture("mixture", mixture)
    if points.dim != mixture.dim:
        raise ValueError(
            f"points: expected dimension {mixture.dim} as the mixture, got {points.dim}"
        )
