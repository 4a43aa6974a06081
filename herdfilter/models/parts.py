"""Building blocks of models: parameters, initial distributions, motions and observations."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property, lru_cache
from typing import Any, ClassVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import fields_in_line
from herdfilter.mixture import GaussianMixture

# Decorator of Jacobians, which are infinite or NaN at the sensor itself
undefined_at_sensor = np.errstate(divide="ignore", invalid="ignore")
MOST_SUBSTEPS = 100_000  # most integration steps between two steps of a filter: more take minutes


@dataclass_transform(frozen_default=True, eq_default=False)
def frozen(cls: type) -> type:
    """Make a class a frozen dataclass, compared by identity, that keeps its base's repr."""
    return dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)


class Parameters:
    """Base of models that are frozen dataclasses: each field is checked by its annotation.

    A `float` is positive and finite, unless it is among the `signed`; an `int` is at least 1; an `array_field` has its
    shape, and is not empty.
    """

    signed: ClassVar[tuple[str, ...]] = ()

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        # fields are assigned again, converted: a list becomes an array, an int a float
        model: Any = self
        for field in dataclasses.fields(model):
            name = field.name
            value = getattr(self, name)
            if name in self.signed:
                value = _checks.as_number(name, value)
            elif field.type == "float":
                # the limit of a variance, which it may be
                value = _checks.as_positive(name, value, _checks.UNDERFLOW)
            elif field.type == "int":
                value = _checks.check_count(name, value)
            elif shape := field.metadata.get("shape"):
                value = _checks.as_array(name, value, shape)
                if not value.size:
                    raise ValueError(f"{name}: expected at least one entry, got none")
            assign(self, **{name: value})


class GaussianStart(Parameters):
    """Base of models whose state at step 0 is Gaussian, with the mean and covariance of these fields."""

    dim: Any = None  # None: that of the mean
    initial_mean: Array
    initial_covariance: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        mean = _checks.as_array("initial_mean", self.initial_mean, (self.dim,))
        covariance = as_matrix_covariance("initial_covariance", self.initial_covariance, len(mean))
        assign(self, dim=len(mean), initial_mean=mean, initial_covariance=covariance)

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0."""
        return GaussianMixture([1.0], self.initial_mean[None], self.initial_covariance)


class IndependentNoise:
    """Base of models whose observation has independent Gaussian noise in each entry."""

    # the fields that hold the standard deviations of the entries
    sd_fields: ClassVar[tuple[str, ...]]
    observation_circular: Any = ()
    partial_observations = True

    # not cached: a field may be replaced, and a copy would keep the value of before
    @property
    def _observation_sd(self) -> Any:
        return [getattr(self, name) for name in self.sd_fields]

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the observation's noise, (k, k)."""
        return np.diag(self._observation_sd) ** 2

    @cached_property
    def _noise(self) -> tuple[Array, Array, Array]:
        """Logs of the peak densities, inverse deviations, and periods (2 pi of angles, else 0) of the entries, (k,) each."""
        sd = np.array(self._observation_sd)
        periods = np.zeros(len(sd))
        periods[list(self.observation_circular)] = 2 * np.pi
        return -np.log(sd * math.sqrt(2 * math.pi)), 1 / sd, periods

    def log_likelihood(self, z: ArrayLike, x: Array, step: int) -> Array:
        """Log-density of the finite entries of `z`, shape (k,), with residuals of angles wrapped; (n, d) -> (n,)."""
        model: Any = self
        log_peaks, inverse_sd, periods = self._noise
        # The noises are independent: the log-density is a sum over the entries, and missing ones drop out of it.
        z = as_observation(z, len(log_peaks), missing=True)
        residual = z - model.observation_mean(x, step)
        if self.observation_circular:
            residual -= periods * np.rint(residual / (2 * np.pi))
        residual *= inverse_sd
        observed = ~np.isnan(z)
        if not observed.all():
            residual = residual[:, observed]
            log_peaks = log_peaks[observed]
        return log_peaks.sum() - 0.5 * np.einsum("ij,ij->i", residual, residual)


class EntriesObserved(IndependentNoise):
    """Base of models that observe entries of the state."""

    dim: Any
    observed_entries: slice = slice(None)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Mean of the observation: the observed entries themselves, (n, d) -> (n, k)."""
        return x[:, self.observed_entries]

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, k, d)."""
        return repeated(np.eye(self.dim)[self.observed_entries], x)


class EqualVariances(EntriesObserved, Parameters):
    """Base of models whose initial state and observation noise have one variance each, shared by all entries."""

    initial_mean: Any = 0.0
    initial_variance: float
    observation_variance: float

    @cached_property
    def initial(self) -> GaussianMixture:
        """Distribution of the state at step 0."""
        mean = np.reshape(self.initial_mean, (1, self.dim))
        return GaussianMixture([1.0], mean, self.initial_variance * np.eye(self.dim))

    def observation_covariance(self, step: int) -> Array:
        """Covariance of the observation noise, (k, k)."""
        observed = range(self.dim)[self.observed_entries]
        return self.observation_variance * np.eye(len(observed))

    @property
    def _observation_sd(self) -> Array:
        return np.sqrt(np.diagonal(self.observation_covariance(0)))


class NoisyFlow(EqualVariances):
    """Base of models that follow a differential equation, with additive Gaussian noise of one variance per unit of time."""

    noise_rate: float

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise added over a time `dt`, (d, d)."""
        return self.noise_rate * dt * np.eye(self.dim)


class PlanarRobot(Parameters):
    """Base of models of a robot in the plane, (x, y, heading), whose motion has independent noise."""

    position_noise: float
    heading_noise: float

    dim = 3
    circular = (2,)
    position_dims = (0, 1)

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the noise of the motion over a time `dt`, (3, 3)."""
        return dt * np.diag([self.position_noise, self.position_noise, self.heading_noise]) ** 2


class LinearMotion:
    """Base of models whose transition is a matrix times the state, and noise."""

    def motion_matrix(self, dt: float) -> Array:
        """Matrix (d, d) of the motion over a time `dt`."""
        raise NotImplementedError

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) moved on by a time `dt`, without noise; `control` is not used."""
        return x @ self.motion_matrix(dt).T

    def transition_jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Jacobian of `transition_mean`, (n, d, d), the same at all states."""
        return repeated(self.motion_matrix(dt), x)


class WhiteAcceleration(GaussianStart):
    """Base of models of position and velocity, with white acceleration of one spectral density along each axis."""

    spectral_density: float

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """States (n, d) moved on at constant velocity for a time `dt`; `control` is not used."""
        # not as a matrix product: nearly all of its entries would be zero
        m = x.shape[1] // 2
        return np.hstack([x[:, :m] + dt * x[:, m:], x[:, m:]])

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the integrated white acceleration over a time `dt`, (d, d)."""
        return self.spectral_density * np.kron(acceleration_block(float(dt)), np.eye(self.dim // 2))


class PlanarSensors(IndependentNoise, WhiteAcceleration):
    """Base of models of a target (x, y, vx, vy) observed by sensors at fixed positions (S, 2), one number each."""

    sensors: Array

    dim = 4
    position_dims = (0, 1)

    def _offsets(self, x: Array) -> Array:
        """Vectors from the sensors to the target, (n, 4) -> (n, S, 2)."""
        return x[:, None, :2] - self.sensors

    @property
    def _observation_sd(self) -> Any:
        # a list, repeated: sensors share one deviation
        return super()._observation_sd * len(self.sensors)


class RangeAndBearing(IndependentNoise, GaussianStart):
    """Base of models that a radar in the plane observes by range and bearing (radians), with independent Gaussian noise."""

    position_dims: Any
    radar: Any = 0.0  # its position

    sd_fields: ClassVar[tuple[str, ...]] = ("range_sd", "bearing_sd")
    observation_circular = (1,)

    def observation_mean(self, x: Array, step: int) -> Array:
        """Range and bearing, (n, d) -> (n, 2)."""
        return range_and_bearing(x[:, self.position_dims] - self.radar)

    def observation_jacobian(self, x: Array, step: int) -> Array:
        """Jacobian of `observation_mean`, (n, 2, d)."""
        return of_positions(range_and_bearing_jacobian(x[:, self.position_dims] - self.radar), self)


@lru_cache(maxsize=64)
def acceleration_block(dt: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the covariance of the position and velocity of one axis after a time `dt` of unit white acceleration."""
    # the integral of (s, 1)' (s, 1) over s from 0 to dt
    return (dt**3 / 3, dt**2 / 2), (dt**2 / 2, dt)


def array_field(values: Any, shape: _checks.Shape | None = None) -> Any:
    """Return a field of a dataclass whose default is a new array of these values; `Parameters` checks its `shape`."""
    return dataclasses.field(default_factory=lambda: np.array(values), metadata={"shape": shape})


def assign(model: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass, from its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(model, name, value)


def as_matrix_covariance(name: str, value: Any, dim: int | None) -> Array:
    """Return one (dim, dim) covariance matrix."""
    return _checks.as_covariance(name, _checks.as_array(name, value, (dim, dim)))


def as_observation(z: ArrayLike, size: int, missing: bool = False) -> Array:
    """Return an observation as an array (size,), in which NaN may stand for `missing` entries; a number is one entry."""
    # the usual case, without the cost of a call
    if missing and type(z) is np.ndarray and z.dtype == np.float64 and z.shape == (size,):
        return z
    return _checks.as_array("z", np.atleast_1d(z), (size,), finite=not missing)


def student_peak(freedom: float) -> float:
    """Return the log of the largest density of Student's t with these degrees of freedom."""
    gammas = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return gammas - 0.5 * math.log(freedom * math.pi)


def repeated(matrix: Array, x: Array) -> Array:
    """Return a matrix repeated for each of the states (n, d), as a read-only view."""
    return np.broadcast_to(matrix, (len(x), *matrix.shape))


def of_positions(jacobian: Array, model: Any) -> Array:
    """Extend a Jacobian with respect to the position, (..., k, m), to one with respect to the state, (..., k, d)."""
    by_state = np.zeros((*jacobian.shape[:-1], model.dim))
    by_state[..., model.position_dims] = jacobian
    return by_state


def substeps(dt: float, longest: float) -> int:
    """Return the number of equal integration steps, none longer than `longest`, in a time `dt`."""
    # a quotient just above an integer is one, by rounding
    count = math.ceil(dt / longest - 1e-9)
    if count > MOST_SUBSTEPS:
        raise ValueError(
            f"dt: expected up to {MOST_SUBSTEPS} steps of integration, each of {longest:g}, got {dt:g}, of {count}; "
            "choose a longer `integration_step`"
        )
    return max(1, count)


def runge_kutta(rate: _checks.RowFunction, x: Array, h: float, count: int) -> Array:
    """Integrate ``dx/dt = rate(x)`` by classical fourth-order Runge-Kutta steps of length `h`."""
    for _ in range(count):
        k1 = rate(x)
        k2 = rate(x + (h / 2) * k1)
        k3 = rate(x + (h / 2) * k2)
        k4 = rate(x + h * k3)
        x = x + (2 * (k2 + k3) + k1 + k4) * (h / 6)
    return x


def range_and_bearing(offset: Array) -> Array:
    """Range and bearing in radians of positions relative to the radar, (..., 2) -> (..., 2)."""
    x = offset[..., 0]
    y = offset[..., 1]
    polar = np.empty(offset.shape)
    polar[..., 0] = np.hypot(x, y)
    polar[..., 1] = np.arctan2(y, x)
    return polar


@undefined_at_sensor
def range_and_bearing_jacobian(offset: Array) -> Array:
    """Jacobian of `range_and_bearing`, (..., 2) -> (..., 2, 2); infinite or NaN at the radar itself."""
    x = offset[..., 0]
    y = offset[..., 1]
    distance = np.hypot(x, y)
    # gradients of the range, and of the bearing: d atan2(y, x) = (x dy - y dx) / (x^2 + y^2)
    rows = np.array([[x / distance, y / distance], [-y / distance**2, x / distance**2]])
    return np.moveaxis(rows, (0, 1), (-2, -1))


@dataclasses.dataclass(frozen=True, eq=False)
class UniformBox:
    """Uniform distribution over an axis-parallel box.

    Parameters
    ----------
    lower, upper : array_like, shape (d,)
        Opposite corners, in state units; ``lower < upper`` in every dimension.

    Examples
    --------
    A robot is somewhere in a room of 4 by 3 metres:

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
        lower = _checks.as_array("lower", self.lower, (None,))
        upper = _checks.as_array("upper", self.upper, (len(lower),))
        if not (lower < upper).all():
            raise ValueError(
                f"upper: expected more than lower {_checks.short_repr(lower.tolist())}, got "
                f"{_checks.short_repr(upper.tolist())}"
            )
        assign(self, lower=lower, upper=upper)

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return len(self.lower)

    def sample(self, n: int, rng: _checks.SeedLike = None) -> Array:
        """Draw `n` independent points, shape (n, d)."""
        return _checks.as_generator(rng).uniform(
            self.lower, self.upper, (_checks.check_count("n", n), self.dim)
        )

    def log_density(self, x: ArrayLike) -> Array:
        """Log-density at each point, minus infinity outside the box; (n, d) -> (n,)."""
        x = _checks.as_points("x", x, self.dim)
        # 1 / volume, as a sum of logs: a product may overflow in many dimensions
        inside = ((x >= self.lower) & (x <= self.upper)).all(axis=1)
        return np.where(inside, -np.log(self.upper - self.lower).sum(), -np.inf)
