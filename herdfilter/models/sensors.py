"""Sensors: what observes the state, apart from how the state moves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_covariance, as_generator, as_numbers, as_points, short_repr
from herdfilter._repr import fields_in_line
from herdfilter.models.contract import LIKELIHOODS, OBSERVATION, Model, in_mode, jumps, kind, sample_observation
from herdfilter.models.pickling import PicklesFunctions
from herdfilter.models.with_clutter import WithClutter


@dataclass(frozen=True, eq=False, repr=False)
class Sensor(PicklesFunctions):
    """What one sensor tells about a state; any filter takes it beside an observation, ``update(z, sensor=...)``.

    A filter then uses the sensor in place of the model's own observation functions, which a model need not have. A sensor
    that moves is a new one at every time: it is a record of functions, and costs nothing to make.

    Parameters
    ----------
    mean : callable or None
        Mean observation of states, (n, d) -> (n, k), or (n,) where k is 1.
    covariance : array_like of shape (k, k), or callable, or None
        Covariance of the noise; a function of states, (n, d) -> (n, k, k), where it depends on them.
    circular : sequence of int
        Indices of the angle-valued entries of an observation, in radians.
    log_likelihood : callable, optional
        ``(z, x)`` -> (n,), where the noise is not Gaussian; else it is derived from mean and covariance. A sensor that has
        this alone, with None for the other two, serves particle filters whose proposal does not look at the observation.
    jacobian : callable, optional
        Derivative of `mean`, (n, d) -> (n, k, d), for filters that linearise; differences are taken without it.
    detection_probability : float, optional
        That the state is detected at all; 1 unless given. With this or the next an observation is a scan, any number of
        detections (k, m), as of `herdfilter.models.WithClutter`.
    clutter_density : float, optional
        False detections expected in a unit of the volume of observations; 0 unless given.
    region : array_like, shape (k, 2), optional
        Lowest and highest value of every entry of an observation, where clutter is simulated.

    Raises
    ------
    TypeError, ValueError
        If a function is none, if mean and covariance are not given together, or if there is nothing to weigh states by.

    Examples
    --------
    A radar, and a position reading now and then, of a target whose model has no observation of its own:

    >>> def range_and_bearing(x):
    ...     return np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])])
    ...
    >>> radar = hf.Sensor(range_and_bearing, np.diag([1.0, 0.01]), circular=[1])
    >>> position = hf.Sensor(lambda x: x[:, :2], 0.25 * np.eye(2))
    >>> model = hf.models.from_functions(lambda x: x, None, Q=np.eye(2), R=None, x0=[3, 4], P0=4 * np.eye(2))
    >>> readings = [(1.0, radar, [5.2, 0.9]), (1.0, position, [3.1, 4.2]), (2.5, radar, [5.0, 1.0])]
    >>> result = hf.ParticleFilter(model, n_particles=200, rng=0).run(readings)
    >>> result.steps.tolist(), result.times.tolist(), np.allclose(result.means[1], [3.1, 4.2], atol=1)
    ([1, 1, 2], [1.0, 1.0, 2.5], True)
    >>> radar.sample([[3.0, 4.0]], rng=0).shape
    (1, 2)
    """

    mean: Callable[[Array], ArrayLike] | None
    covariance: ArrayLike | Callable[[Array], ArrayLike] | None
    circular: tuple[int, ...] = ()
    log_likelihood: Callable[[Array, Array], ArrayLike] | None = None
    jacobian: Callable[[Array], ArrayLike] | None = None
    detection_probability: float | None = None
    clutter_density: float | None = None
    region: ArrayLike | None = None

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        for name in ("mean", "log_likelihood", "jacobian"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise TypeError(f"{name}: expected a function of states (n, d), got {short_repr(function)}")
        if (self.mean is None) != (self.covariance is None):
            given, other = ("mean", "covariance") if self.covariance is None else ("covariance", "mean")
            raise ValueError(f"{other}: expected one beside {given}, got None")
        if self.mean is None and self.log_likelihood is None:
            raise ValueError("mean: expected a function of states, or else log_likelihood; got neither")
        if self.covariance is not None and not callable(self.covariance):
            object.__setattr__(self, "covariance", as_covariance("covariance", self.covariance))
            if np.ndim(self.covariance) != 2:
                raise ValueError(
                    f"covariance: expected a matrix (k, k), or a function of states, got shape {np.shape(self.covariance)}"
                )
        try:
            circular = tuple(operator.index(i) for i in self.circular)
        except TypeError:
            raise TypeError(f"circular: expected indices of entries, such as [1], got {short_repr(self.circular)}") from None
        known = range(1000 if callable(self.covariance) or self.covariance is None else len(np.asarray(self.covariance)))
        if any(i not in known for i in circular):
            raise ValueError(f"circular: expected indices from 0 to {len(known) - 1}, got {circular}")
        object.__setattr__(self, "circular", circular)
        if self.detection_probability is not None or self.clutter_density is not None:
            self.on(None)  # names a number that is out of range

    def on(self, model: Model) -> Model:
        """Return a model that moves as `model` does and is observed by this sensor alone."""
        seen, p, density = Sensed(model, self), self.detection_probability, self.clutter_density
        if p is None and density is None:
            return seen
        return WithClutter(seen, 1.0 if p is None else p, 0.0 if density is None else density, self.region)

    def sample(self, x: ArrayLike, rng: np.random.Generator | int | None = None) -> Any:
        """Draw one observation of each state with Gaussian noise, (n, d) -> (n, k), or a list of n scans."""
        if self.mean is None:
            raise TypeError("mean: a sensor is simulated by its mean and covariance; this one has none")
        states = as_points("x", np.atleast_2d(as_numbers("x", x, (None, None))))
        return sample_observation(self.on(None), states, as_generator(rng), 1)

    @cached_property
    def functions(self) -> dict[str, Any]:
        """The part of the model contract that this sensor fills: name -> function, or value."""
        known: dict[str, Any] = {"observation_circular": self.circular}
        if self.mean is not None:
            known["observation_mean"] = self._mean
            known["observation_covariance"] = self._varying if callable(self.covariance) else self._constant
        if self.jacobian is not None:
            known["observation_jacobian"] = self._jacobian
        if self.log_likelihood is not None:
            known["log_likelihood"] = self._log_likelihood
        return known

    def _mean(self, x: Array, step: int) -> ArrayLike:
        values = np.asanyarray(self.mean(x))  # type: ignore[misc]
        return values[:, None] if values.shape == (len(x),) else values

    def _constant(self, step: int) -> ArrayLike:
        return self.covariance  # type: ignore[return-value]

    def _varying(self, step: int, x: Array) -> ArrayLike:
        return self.covariance(x)  # type: ignore[misc,operator]

    def _jacobian(self, x: Array, step: int) -> ArrayLike:
        return self.jacobian(x)  # type: ignore[misc]

    def _log_likelihood(self, z: Array, x: Array, step: int) -> ArrayLike:
        return self.log_likelihood(z, x)  # type: ignore[misc]


class Sensed:
    """A model seen by a sensor: of its own observation functions none is left.

    Parameters
    ----------
    model : object
        See `herdfilter.models.contract`.
    sensor : Sensor
    """

    def __init__(self, model: Model, sensor: Sensor) -> None:
        self._model, self._sensor = model, sensor
        self.kind_in_errors = kind(model) if sensor is _SOME else f"{kind(model)} with this sensor"
        vars(self).update(sensor.functions)

    def in_mode(self, mode: int) -> Model:
        """Return the model of one mode of a model that jumps, seen by the sensor."""
        return self._sensor.on(in_mode(self._model, mode))

    def __getattr__(self, name: str) -> Any:
        if name in OBSERVATION or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._model, name)


def sensed(model: Model, sensor: Sensor | None) -> Model:
    """Return the model with which an observation is read: its own functions, or those of a sensor.

    Raises
    ------
    TypeError
        If `sensor` is no `Sensor`, or there is neither a sensor nor an observation function of the model's own.
    """
    if isinstance(sensor, Sensor):
        return sensor.on(model)
    if sensor is not None:
        raise TypeError(f"sensor: expected a herdfilter.Sensor, got {short_repr(sensor)}")
    if unobserved(model):
        raise TypeError(
            f"sensor: expected a herdfilter.Sensor, as {type(model).__name__} has no observation functions of its own "
            "(observation_mean and observation_covariance, or log_likelihood), got None"
        )
    return model


def unobserved(model: Model) -> bool:
    """Whether a model, or one of its modes, has no observation function at all: then sensors are to tell about it."""
    if jumps(model):
        return any(unobserved(in_mode(model, mode)) for mode in range(len(model.models)))
    return not any(hasattr(model, name) for names in LIKELIHOODS for name in names)


def to_check(model: Model) -> Model:
    """Return what a filter checks when it is built: the model, seen by some sensor where it has no observation functions."""
    return _SOME.on(model) if unobserved(model) else model


_SOME = Sensor(lambda x: x[:, :1], [[1.0]], log_likelihood=lambda z, x: np.zeros(len(x)))
