"""Parts of models: where the state starts, how it moves, and how it is observed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import (
    UNDERFLOW,
    Array,
    as_array,
    as_covariance,
    as_generator,
    as_numbers,
    as_points,
    as_positive,
    check_count,
)
from herdfilter._repr import fields_in_line
from herdfilter.angles import wrap_angles
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


@dataclass(frozen=True, eq=False)
class UniformBox:
    """Uniform distribution over an axis-parallel box: the state somewhere in it, all places alike.

    Parameters
    ----------
    lower, upper : array_like, shape (d,)
        Opposite corners, in state units; ``lower < upper`` in every dimension.

    Raises
    ------
    ValueError
        If the corners differ in shape or `upper` does not exceed `lower`.

    Examples
    --------
    A room of 4 by 3 metres, and a robot that is somewhere in it:

    >>> room = hf.models.UniformBox([0, 0], [4, 3])
    >>> x = room.sample(1000, rng=0)
    >>> bool((x >= 0).all() and (x <= [4, 3]).all()), np.allclose(x.mean(axis=0), [2, 1.5], atol=0.2)
    (True, True)
    >>> np.exp(room.log_density([[1, 1], [5, 1]])).round(4).tolist()
    [0.0833, 0.0]
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        lower = as_array("lower", self.lower, (None,))
        upper = as_array("upper", self.upper, (len(lower),))
        if not (lower < upper).all():
            raise ValueError(f"upper: expected more than lower {lower.tolist()}, got {upper.tolist()}")
        assign(self, lower=lower, upper=upper)

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return len(self.lower)

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """Draw `n` independent points, shape (n, d)."""
        return as_generator(rng).uniform(self.lower, self.upper, (check_count("n", n), self.dim))

    def log_density(self, x: ArrayLike) -> Array:
        """Log-density at each point, minus infinity outside the box; (n, d) -> (n,)."""
        x = as_points("x", x, self.dim)
        inside = ((x >= self.lower) & (x <= self.upper)).all(axis=1)
        return np.where(inside, -np.log(self.upper - self.lower).sum(), -np.inf)
