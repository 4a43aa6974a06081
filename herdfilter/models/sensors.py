"""Sensors: how a state is observed, independent of the model of its motion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter._repr import fields_in_line
from herdfilter.models import contract, parts
from herdfilter.models.contract import Model
from herdfilter.models.from_functions import PicklesFunctions, check_both
from herdfilter.models.resolved import Measurement
from herdfilter.models.trial import try_model
from herdfilter.models.with_clutter import WithClutter


@dataclass(frozen=True, eq=False, repr=False)
class Sensor(PicklesFunctions):
    """A sensor: mean and noise of its observations of a state. Any filter takes one in ``update(z, sensor=...)``.

    A filter uses it in place of the observation functions of the model, which may have none. Creating a sensor is cheap:
    a moving one is a new object at every time.

    Parameters
    ----------
    mean : callable or None
        Mean observation of states, (n, d) -> (n, k), or (n,) if k is 1; None only together with `covariance`, and beside a
        `log_likelihood`.
    covariance : array_like of shape (k, k), or callable, or None
        Covariance of the noise, or a function of states, (n, d) -> (n, k, k).
    circular : sequence of int
        Indices of the angle-valued entries of an observation, in radians.
    log_likelihood : callable, optional
        ``(z, x)`` -> (n,), with z a vector (k,), for noise that is not Gaussian; by default it is derived from mean and
        covariance. If both are None, the sensor serves only particle filters whose proposal ignores the observation.
    jacobian : callable, optional
        Derivative of `mean`, (n, d) -> (n, k, d), for filters that linearise; by default differences are taken.
    detection_probability, clutter_density, region
        As for `herdfilter.models.WithClutter`; 1 and 0 by default. If one of the first two is given, an observation is a
        scan: any number of detections (k, m).
    partial_observations : bool
        True if `log_likelihood` leaves out the entries of z that are NaN, as a derived one does. Otherwise a particle filter
        treats an observation with any NaN as missing, and warns (`PartialObservationWarning`).

    Examples
    --------
    A radar and a position sensor observe a target whose model has no observation functions:

    >>> def range_and_bearing(x):
    ...     return np.column_stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])])
    ...
    >>> radar = hf.Sensor(range_and_bearing, np.diag([1.0, 0.01]), circular=[1])
    >>> position = hf.Sensor(lambda x: x[:, :2], 0.25 * np.eye(2))
    >>> model = hf.models.from_functions(lambda x: x, None, np.eye(2), None, [3, 4], initial_covariance=4 * np.eye(2))
    >>> readings = [(1.0, radar, [5.2, 0.9]), (1.0, position, [3.1, 4.2]), (2.5, radar, [5.0, 1.0])]
    >>> hf.ParticleFilter(model, n_particles=200, rng=0).run(readings).means.shape
    (3, 2)
    """

    mean: _checks.UserFunction | None
    covariance: ArrayLike | _checks.UserFunction | None
    circular: tuple[int, ...] = ()
    log_likelihood: _checks.UserFunction | None = None
    jacobian: _checks.UserFunction | None = None
    detection_probability: float | _checks.UserFunction | None = None
    clutter_density: float | _checks.UserFunction | None = None
    region: ArrayLike | None = None
    partial_observations: bool = False

    __repr__ = fields_in_line

    def __post_init__(self) -> None:
        for name in ("mean", "log_likelihood", "jacobian"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise TypeError(
                    f"{name}: expected a function of states (n, d), got {_checks.short_repr(function)}"
                )
        check_both(mean=self.mean, covariance=self.covariance)
        _checks.check_flags(partial_observations=self.partial_observations)
        if self.mean is None and self.log_likelihood is None:
            raise ValueError(
                "mean: expected a function of states, or else log_likelihood; got neither"
            )
        size = None
        if self.covariance is not None and not callable(self.covariance):
            matrix = parts.as_matrix_covariance("covariance", self.covariance, None)
            parts.assign(self, covariance=matrix)
            size = len(matrix)
        parts.assign(self, circular=_checks.as_dims("circular", self.circular, size))
        if self.detection_probability is not None or self.clutter_density is not None:
            self.on(None)  # checks both numbers

    def on(self, model: Model) -> Model:
        """Return a model that moves as `model` does and is observed by this sensor alone."""
        sensed_model = Sensed(model, self)
        p = self.detection_probability
        density = self.clutter_density
        if p is None and density is None:
            return sensed_model
        p = 1.0 if p is None else p
        return WithClutter(sensed_model, p, 0.0 if density is None else density, self.region)

    def sample(self, x: ArrayLike, rng: _checks.SeedLike = None) -> Any:
        """Draw one observation of each state with Gaussian noise, (n, d) -> (n, k), or a list of n scans."""
        if self.mean is None:
            raise TypeError(
                "mean: simulation needs the mean and covariance of the sensor, got None"
            )
        states = _checks.as_points("x", np.atleast_2d(_checks.as_numbers("x", x, (None, None))))
        return Measurement(self.on(None)).sample(states, _checks.as_generator(rng), 1)

    @cached_property
    def functions(self) -> dict[str, Any]:
        """The names of the model contract that this sensor provides: name -> function, or value."""
        functions: dict[str, Any] = {"observation_circular": self.circular}
        if self.mean is not None:
            varying = callable(self.covariance)
            functions["observation_mean"] = self._mean
            functions["observation_covariance"] = self._varying if varying else self._constant
        if self.jacobian is not None:
            functions["observation_jacobian"] = self._jacobian
        if self.log_likelihood is not None:
            functions["log_likelihood"] = self._log_likelihood
            functions["partial_observations"] = self.partial_observations
        return functions

    def _mean(self, x: Array, step: int) -> ArrayLike:
        # a vector (n,) stands for observations of one entry
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


@dataclass(eq=False, repr=False)
class Sensed(contract.Wrapper):
    """A model whose observation functions are those of a sensor alone."""

    model: Model
    sensor: Sensor

    # even those that the sensor does not replace
    hidden = contract.OBSERVATION
    names_in_errors: ClassVar = {"observation_mean": "mean", "observation_covariance": "covariance"}

    def __post_init__(self) -> None:
        # as attributes, so that a function the sensor lacks does not exist
        vars(self).update(self.sensor.functions)
        self.kind_suffix = "" if self.sensor is _ANY_SENSOR else " with this sensor"


def sensed(model: Model, sensor: Sensor | None) -> Model:
    """Return the model that reads an observation: with its own functions, or those of a sensor.

    Raises TypeError if `sensor` is not a `Sensor`, or is None for a model without observation functions.
    """
    if isinstance(sensor, Sensor):
        # a moving sensor is a new object at every step, but its function has the same code and is tried once
        return try_model(sensor.on(model), getattr(sensor.mean, "__code__", sensor))
    if sensor is not None:
        raise TypeError(f"sensor: expected a herdfilter.Sensor, got {_checks.short_repr(sensor)}")
    if unobserved(model):
        raise TypeError(
            f"model: {contract.kind(model)} lacks log_likelihood, or observation_mean and observation_covariance (h and "
            "R of from_functions); add them, or give every reading its herdfilter.Sensor, as in update(z, sensor=...)"
        )
    return model


def unobserved(model: Model) -> bool:
    """Return True if a model, or one of its modes, has no observation function and so needs sensors."""
    if contract.jumps(model):
        return any(unobserved(contract.in_mode(model, mode)) for mode in range(len(model.models)))
    return not contract.is_observed(model)


def to_check(model: Model) -> Model:
    """Return the model that a filter checks when it is built; one without observation functions gets a sensor for that."""
    return _ANY_SENSOR.on(model) if unobserved(model) else model


_ANY_SENSOR = Sensor(lambda x: x[:, :1], [[1.0]], log_likelihood=lambda z, x: np.zeros(len(x)))
