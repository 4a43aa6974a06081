"""What the frozen model dataclasses share: their fields are set and checked here."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import UNDERFLOW, Array, as_array, as_covariance, as_numbers, as_positive
from herdfilter._repr import fields_in_line
from herdfilter.mixture import GaussianMixture

MOST_SUBSTEPS = 100_000
"""Steps of integration between two steps of a filter: more take minutes."""


class GaussianStart:
    """What models share whose state at step 0 is Gaussian, with the mean and covariance that these fields hold."""

    initial_mean: Array
    initial_covariance: Array

    __repr__ = fields_in_line

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0."""
        return GaussianMixture([1.0], self.initial_mean[None], self.initial_covariance)

    def _assign_start(self, dim: int) -> None:
        """Check the mean and the covariance and store them as arrays."""
        mean = as_array("initial_mean", self.initial_mean, (dim,))
        covariance = as_matrix_covariance("initial_covariance", self.initial_covariance, dim)
        assign(self, initial_mean=mean, initial_covariance=covariance)


class WhiteAcceleration(GaussianStart):
    """What models share whose state is a position and a velocity, each axis with a white acceleration of this density."""

    spectral_density: float

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) moved on at constant velocity for a time `dt`; `control` is not used."""
        m = x.shape[1] // 2
        return np.hstack([x[:, :m] + dt * x[:, m:], x[:, m:]])

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the integrated white acceleration over a time `dt`, (d, d)."""
        axis = [[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]
        return self.spectral_density * np.kron(axis, np.eye(len(self.initial_mean) // 2))


def assign(model: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass, from its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(model, name, value)


def assign_positive(model: Any, *names: str) -> None:
    """Check that the named fields are positive finite numbers, which may be variances, and store them as floats."""
    assign(model, **{name: as_positive(name, getattr(model, name), UNDERFLOW) for name in names})


def as_matrix_covariance(name: str, value: ArrayLike, dim: int) -> Array:
    """Return one (dim, dim) covariance matrix."""
    return as_covariance(name, as_array(name, value, (dim, dim)))


def as_observation(z: ArrayLike, size: int) -> Array:
    """Return an observation as an array of shape (size,); a number stands for a single entry."""
    return as_array("z", np.atleast_1d(as_numbers("z", z, (size,))), (size,))


def as_partial_observation(z: ArrayLike, size: int) -> tuple[Array, NDArray[np.integer[Any]]]:
    """Return an observation as an array of shape (size,) and the indices of its entries that are not NaN."""
    z = as_numbers("z", z, (size,), missing=True)
    z = as_array("z", z if z.ndim else z[None], (size,), finite=False)
    if np.isfinite(z).all():
        return z, _all(size)
    if np.isinf(z).any():
        raise ValueError(f"z: expected finite numbers, or NaN where missing, got {z}")
    return z, np.flatnonzero(~np.isnan(z))


@lru_cache
def _all(size: int) -> NDArray[np.integer[Any]]:
    indices = np.arange(size)
    indices.flags.writeable = False
    return indices


def substeps(dt: float, longest: float) -> int:
    """Return into how many steps, none longer than `longest`, a time step is divided."""
    count = math.ceil(dt / longest - 1e-9)
    if count > MOST_SUBSTEPS:
        raise ValueError(
            f"dt: expected up to {MOST_SUBSTEPS} steps of integration, each of {longest:g}, got {dt:g}, of {count:g}"
        )
    return max(1, count)
