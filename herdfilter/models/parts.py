"""Parts of models: where the state starts, how it moves, and how it is observed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

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
    short_repr,
)
from herdfilter._repr import fields_in_line
from herdfilter.mixture import GaussianMixture

MOST_SUBSTEPS = 100_000  # most integration steps between two steps of a filter: more take minutes


class GaussianStart:
    """Base of models whose state at step 0 is Gaussian, with the mean and covariance of these fields."""

    dim: int
    initial_mean: Array
    initial_covariance: Array

    __repr__ = fields_in_line

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0."""
        return GaussianMixture([1.0], self.initial_mean[None], self.initial_covariance)

    def _assign_start(self, dim: int) -> None:
        """Check the mean and the covariance and store them as arrays, and the dimension."""
        mean = as_array("initial_mean", self.initial_mean, (dim,))
        covariance = as_matrix_covariance("initial_covariance", self.initial_covariance, dim)
        assign(self, dim=dim, initial_mean=mean, initial_covariance=covariance)


class IndependentNoise:
    """Base of models whose observation has independent Gaussian noise in each entry."""

    sd_fields: ClassVar[tuple[str, ...]]  # the fields that hold the standard deviations of the entries
    observation_circular: Any = ()

    @property
    def _observation_sd(self) -> Any:
        return [getattr(self, name) for name in self.sd_fields]

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the observation's noise, (k, k)."""
        return np.diag(self._observation_sd) ** 2

    @cached_property
    def _noise(self) -> tuple[Array, Array, Array]:
        """Logarithms of the entries' peak densities (k,); inverse deviations and turns, each one number if all are alike."""
        sd = np.array(self._observation_sd)
        turns = np.zeros(len(sd))
        turns[list(self.observation_circular)] = 2 * np.pi
        inverse, turns = (values[0] if np.ptp(values) == 0 else values for values in (1 / sd, turns))
        return -np.log(sd * math.sqrt(2 * math.pi)), inverse, turns

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the finite entries of `z`, shape (k,), with residuals of angles wrapped; (n, d) -> (n,)."""
        model: Any = self
        log_peaks, inverse, turns = self._noise
        z, observed = as_partial_observation(z, len(log_peaks))
        residual = z - model.observation_mean(x, step)
        if self.observation_circular:
            residual -= turns * np.rint(residual / (2 * np.pi))
        residual *= inverse
        if len(observed) < len(z):
            residual, log_peaks = residual[:, observed], log_peaks[observed]
        return np.asarray(log_peaks.sum() - 0.5 * np.einsum("ij,ij->i", residual, residual))


class EntriesObserved(IndependentNoise):
    """Base of models that observe entries of the state; start and noise have one variance for all of their entries."""

    dim: int
    initial_mean: Any = 0.0
    initial_variance: float
    observation_variance: float
    observed_entries: slice = slice(None)

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0."""
        return GaussianMixture([1.0], np.reshape(self.initial_mean, (1, self.dim)), self.initial_variance * np.eye(self.dim))

    @property
    def _observation_sd(self) -> Array:
        return np.full(len(range(self.dim)[self.observed_entries]), math.sqrt(self.observation_variance))

    def observation_mean(self, x: Array, step: int) -> Array:
        """Mean of the observation: the observed entries themselves, (n, d) -> (n, k)."""
        return x[:, self.observed_entries]

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, k, d)."""
        rows = np.eye(self.dim)[self.observed_entries]
        return np.broadcast_to(rows, (len(x), *rows.shape))

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the observation noise, (k, k)."""
        return self.observation_variance * np.eye(len(range(self.dim)[self.observed_entries]))


class NoisyFlow(EntriesObserved):
    """Base of models that follow a differential equation, with additive Gaussian noise of one variance per unit of time."""

    noise_rate: float

    __repr__ = fields_in_line

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise added over a time `dt`, (d, d)."""
        return self.noise_rate * dt * np.eye(self.dim)


class WhiteAcceleration(GaussianStart):
    """Base of models of position and velocity, in which each axis has a white acceleration of one spectral density."""

    spectral_density: float

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) moved on at constant velocity for a time `dt`; `control` is not used."""
        m = x.shape[1] // 2
        return np.hstack([x[:, :m] + dt * x[:, m:], x[:, m:]])

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the integrated white acceleration over a time `dt`, (d, d)."""
        return self.spectral_density * np.kron(acceleration_block(dt), np.eye(len(self.initial_mean) // 2))


class PlanarSensors(IndependentNoise, WhiteAcceleration):
    """Base of models of a target (x, y, vx, vy) that sensors at fixed places (S, 2) observe, one number each."""

    sensors: Array
    least_sensors: ClassVar[int] = 1

    dim = 4
    partial_observations = True
    position_dims = (0, 1)

    def __post_init__(self) -> None:
        assign(self, sensors=as_array("sensors", self.sensors, (None, 2)))
        self._assign_start(4)
        assign_positive(self, *self.sd_fields, "spectral_density")
        if len(self.sensors) < self.least_sensors:
            raise ValueError(f"sensors: expected at least {self.least_sensors} positions, got {len(self.sensors)}")

    def _offsets(self, x: Array) -> Array:
        """Vectors from the sensors to the target, (n, 4) -> (n, S, 2)."""
        return x[:, None, :2] - self.sensors

    @property
    def _observation_sd(self) -> Any:
        return super()._observation_sd * len(self.sensors)  # one number for all of them


class RangeAndBearing(IndependentNoise, GaussianStart):
    """Base of models that a radar in the plane observes by range and bearing (radians), with independent Gaussian noise."""

    dim: int
    position: ClassVar[Any]  # entries of the state

    sd_fields = ("range_sd", "bearing_sd")
    observation_circular = (1,)
    partial_observations = True

    def offset(self, x: Array) -> Array:
        """Return the position relative to the radar, (n, d) -> (n, 2)."""
        return x[:, self.position]

    def observation_mean(self, x: Array, step: int) -> Array:
        """Range and bearing, (n, d) -> (n, 2)."""
        return range_and_bearing(self.offset(x))

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 2, d)."""
        jacobian = np.zeros((len(x), 2, self.dim))
        jacobian[:, :, self.position] = range_and_bearing_jacobian(self.offset(x))
        return jacobian


def constant_velocity(x: Array, dt: float, out: Array) -> None:
    """Write one state of position and velocity in the plane, (4,), moved on for a time `dt`, into `out`; to be compiled."""
    out[0] = x[0] + dt * x[2]
    out[1] = x[1] + dt * x[3]
    out[2] = x[2]
    out[3] = x[3]


def acceleration_block(dt: float) -> list[list[float]]:
    """Return the covariance of the position and velocity of one axis after a time `dt` of unit white acceleration."""
    return [[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]


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
    """Return an observation as an array of shape (size,), and the indices of its entries that are not NaN."""
    if type(z) is not np.ndarray or z.dtype != np.float64 or z.shape != (size,):
        z = as_array("z", np.atleast_1d(as_numbers("z", z, (size,), missing=True)), (size,), finite=False)
    if np.isfinite(z).all():
        return z, _all_entries(size)
    if np.isinf(z).any():
        raise ValueError(f"z: expected finite numbers, or NaN where missing, got {short_repr(z.tolist())}")
    return z, np.flatnonzero(~np.isnan(z))


@lru_cache
def _all_entries(size: int) -> NDArray[np.integer[Any]]:
    indices = np.arange(size)
    indices.flags.writeable = False
    return indices


def substeps(dt: float, longest: float) -> int:
    """Return the number of equal integration steps, none longer than `longest`, in a time `dt`."""
    count = math.ceil(dt / longest - 1e-9)
    if count > MOST_SUBSTEPS:
        raise ValueError(
            f"dt: expected up to {MOST_SUBSTEPS} steps of integration, each of {longest:g}, got {dt:g}, of {count}; "
            "choose a longer `integration_step`"
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


@dataclass(frozen=True, eq=False)
class UniformBox:
    """Uniform distribution over an axis-parallel box.

    Parameters
    ----------
    lower, upper : array_like, shape (d,)
        Opposite corners, in state units; ``lower < upper`` in every dimension.

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
            raise ValueError(
                f"upper: expected more than lower {short_repr(lower.tolist())}, got {short_repr(upper.tolist())}"
            )
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
