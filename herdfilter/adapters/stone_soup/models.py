"""Stone Soup's models as models and sensors of this package, and its detections as observations."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from stonesoup.models.base import GaussianModel
from stonesoup.models.measurement import MeasurementModel
from stonesoup.models.transition import TransitionModel
from stonesoup.types.array import StateVector
from stonesoup.types.detection import Detection, MissedDetection
from stonesoup.types.state import State

from herdfilter._checks import Array, short_repr
from herdfilter.adapters._functions import multiply, repeat_matrix
from herdfilter.adapters.stone_soup import states
from herdfilter.models.sensors import Sensor

TRIAL_INTERVAL = states.Duration(1.0)  # time step at which a transition model is tried


class StoneSoupModel:
    """A transition model of Stone Soup, perhaps with a measurement model and a prior, as a model of this package.

    `from_stonesoup` copies its arguments first, and documents them. The filter draws the noise: `seed` and `random_state`
    of a Stone Soup model have no effect.

    Examples
    --------
    >>> from stonesoup.models.measurement.linear import LinearGaussian
    >>> from stonesoup.models.transition.linear import ConstantVelocity
    >>> from herdfilter.adapters.stone_soup import StoneSoupModel
    >>> position = LinearGaussian(ndim_state=2, mapping=[0], noise_covar=[[1.0]])
    >>> model = StoneSoupModel(ConstantVelocity(noise_diff_coeff=0.3), position)
    >>> model.transition_mean(np.array([[1.0, 2.0]]), 0.5, None, 1), model.observation_mean(np.array([[1.0, 2.0]]), 1)
    (array([[2., 2.]]), array([[1.]]))
    """

    def __init__(
        self,
        transition_model: TransitionModel,
        measurement_model: MeasurementModel | None = None,
        prior: Any = None,
    ) -> None:
        self.transition_model = transition_model
        self.measurement_model = measurement_model
        self.dim = int(transition_model.ndim_state)
        self.circular: tuple[int, ...] = ()
        self._last_matrices: tuple[float, Any, Any] = (np.nan, None, None)
        self._function: states.ModelFunction | None = None
        if states.is_linear(transition_model):
            self.transition_jacobian = self._jacobian
        else:
            self._function = states.ModelFunction(transition_model, time_interval=TRIAL_INTERVAL)
        if measurement_model is not None:
            # The functions become attributes, as a model offers only those that it has.
            vars(self).update(as_sensor(measurement_model, self.dim).functions)
        if prior is not None:
            self.initial = states.initial_distribution(prior, self.dim)
            self.circular = states.circular_of_state(prior)

    def __repr__(self) -> str:
        models = f"{type(self.transition_model).__name__}, {type(self.measurement_model).__name__}"
        return f"StoneSoupModel({models}, dim={self.dim})"

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Stone Soup's transition function without noise, (n, d) -> (n, d)."""
        if control is not None:
            raise TypeError(
                "control: expected None, as Stone Soup's control models are not converted"
            )
        if self._function is None:
            return multiply(self._matrices(dt)[0], x)
        return self._function(x, time_interval=states.Duration(dt))

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the transition's noise over `dt` seconds, (d, d)."""
        covariance: Array = self._matrices(dt)[1]
        return covariance

    def _matrices(self, dt: float) -> tuple[Any, Any]:
        """Return the matrix of a linear transition, and the covariance of the noise."""
        # The last ones are cached, as Stone Soup takes long to compute them.
        if self._last_matrices[0] != dt:
            model = self.transition_model
            interval = states.Duration(dt)
            matrix = None
            if self._function is None:
                matrix = np.asarray(model.matrix(time_interval=interval), dtype=np.float64)
            covariance = noise_covariance("transition_model", model, time_interval=interval)
            self._last_matrices = (dt, matrix, covariance)
        return self._last_matrices[1:]

    def _jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        return repeat_matrix(self._matrices(dt)[0], x)


def check_transition_model(model: Any) -> None:
    """Raise TypeError, naming class and reason, unless the model has additive Gaussian noise."""
    if not isinstance(model, TransitionModel):
        raise TypeError(
            f"transition_model: expected an instance of Stone Soup's TransitionModel, got {short_repr(model)}"
        )
    noise_covariance("transition_model", model, time_interval=TRIAL_INTERVAL)


def from_stonesoup(
    transition_model: Any = None,
    measurement_model: MeasurementModel | None = None,
    prior: Any = None,
) -> Any:
    """Convert models of Stone Soup to a model of this package, or a measurement model alone to a sensor.

    Stone Soup computes means and covariances, for all particles in one call if the models allow it. Times count in seconds.
    The models are copied: later changes have no effect.

    Parameters
    ----------
    transition_model : stonesoup.models.transition.TransitionModel or stonesoup.models.measurement.MeasurementModel
        One with additive Gaussian noise; or a measurement model alone, which gives a `Sensor`.
    measurement_model : stonesoup.models.measurement.MeasurementModel, optional
        With Gaussian noise, or with a `logpdf` of its own, which then is the likelihood. Bearings and other entries that
        wrap become the model's ``observation_circular``. Without a measurement model, updates need sensors.
    prior : stonesoup.types.state.State, optional
        The initial distribution: a `GaussianState` (also as a square root or as information), a `GaussianMixture`, a
        `ParticleState` or an `EnsembleState`. Entries that are bearings become the model's ``circular``. Without it the
        model has no ``initial``, which filters ask for.

    Returns
    -------
    StoneSoupModel or herdfilter.Sensor

    Examples
    --------
    >>> from stonesoup.models.transition.linear import ConstantVelocity
    >>> from herdfilter.adapters.stone_soup import from_stonesoup
    >>> model = from_stonesoup(ConstantVelocity(noise_diff_coeff=0.3))
    >>> model.transition_mean(np.array([[0.0, 1.0]]), 2.0, None, 1)
    array([[2., 1.]])
    >>> model.transition_covariance(2.0, 1)
    array([[0.8, 0.6],
           [0.6, 0.6]])
    """
    # A measurement model alone may be the first argument, too.
    models = [model for model in (transition_model, measurement_model) if model is not None]
    if len(models) == 1 and isinstance(models[0], MeasurementModel) and prior is None:
        return as_sensor(copy.deepcopy(models[0]))
    check_transition_model(transition_model)
    return StoneSoupModel(copy.deepcopy(transition_model), copy.deepcopy(measurement_model), prior)


def noise_covariance(name: str, model: Any, **arguments: Any) -> Array:
    """Return the covariance of a model's noise; raise TypeError with the reason if it has none."""
    label = f"{name}: {type(model).__name__} cannot be converted: it has no covariance of additive Gaussian noise"
    if not isinstance(model, GaussianModel):
        raise TypeError(f"{label}: it is not a GaussianModel")
    try:
        covariance = np.asarray(model.covar(**arguments), dtype=np.float64)
    except NotImplementedError as error:
        raise TypeError(f"{label}: {error}") from error
    # A covariance of None has become NaN.
    if np.isnan(covariance).any():
        raise TypeError(f"{label}; its covariance is {short_repr(model.covar(**arguments))}")
    return covariance


def as_sensor(model: Any, dim: int | None = None) -> Sensor:
    """Return a measurement model as a sensor of states of `dim` dimensions."""
    if not isinstance(model, MeasurementModel):
        raise TypeError(
            f"measurement_model: expected an instance of Stone Soup's MeasurementModel, got {short_repr(model)}"
        )
    if dim is not None and model.ndim_state != dim:
        raise ValueError(
            f"measurement_model: {type(model).__name__}: expected states of {dim} dimensions, got {model.ndim_state}"
        )
    # Ours is the Gaussian density of the model's function and covariance: if the model's is another one, it is called.
    kind = type(model)
    gaussian = kind.pdf is GaussianModel.pdf and kind.logpdf in states.GAUSSIAN_LOG_DENSITIES
    weigh = None if gaussian else partial(own_log_likelihood, model)
    try:
        noise = noise_covariance("measurement_model", model)
    except TypeError:
        # a model with a likelihood of its own still serves particle filters
        if gaussian or not isinstance(model, GaussianModel):
            raise
        return Sensor(None, None, log_likelihood=weigh)
    if states.is_linear(model):
        matrix = np.asarray(model.matrix(), dtype=np.float64)
        jacobian = partial(repeat_matrix, matrix)
        return Sensor(partial(multiply, matrix), noise, log_likelihood=weigh, jacobian=jacobian)
    function = states.ModelFunction(model)
    return Sensor(function, noise, function.circular, log_likelihood=weigh)


def own_log_likelihood(model: MeasurementModel, z: Array, x: Array) -> Array:
    """Return a model's own log-likelihood of states (n, d), (n,)."""
    # Stone Soup asks for the log-density of a measurement given a state.
    detection = State(StateVector(z))
    with np.errstate(divide="ignore"):  # the log of a density of 0
        values = np.ravel(model.logpdf(detection, states.as_state(x)))
        if len(values) != len(x):  # the model takes one state at a time
            single_states = [states.as_state(row[None]) for row in x]
            values = np.ravel([model.logpdf(detection, state) for state in single_states])
    return values.astype(np.float64)


def readings(
    detections: Iterable[Detection], measurement_model: MeasurementModel | None = None
) -> list[tuple[datetime, Sensor, Array]]:
    """Return time, sensor and observation of each detection in turn, as `ParticleFilter.run` takes them.

    Parameters
    ----------
    detections : iterable of stonesoup.types.detection.Detection
    measurement_model : stonesoup.models.measurement.MeasurementModel, optional
        For detections that have none of their own.

    Examples
    --------
    >>> from datetime import datetime
    >>> from stonesoup.models.measurement.linear import LinearGaussian
    >>> from stonesoup.types.detection import Detection
    >>> from herdfilter.adapters.stone_soup import readings
    >>> position = LinearGaussian(ndim_state=2, mapping=[0], noise_covar=[[1.0]])
    >>> time, sensor, z = readings([Detection([[3.0]], datetime(2030, 1, 1), position)])[0]
    >>> sensor.mean(np.array([[2.0, 0.5]])), z
    (array([[2.]]), array([3.]))
    """
    # the model is kept alive, so that no other gets its id
    sensors: dict[int, tuple[MeasurementModel, Sensor]] = {}
    converted = []
    for detection in detections:
        if not isinstance(detection, Detection) or isinstance(detection, MissedDetection):
            raise TypeError(
                f"detections: expected those of Stone Soup, got {type(detection).__name__}"
            )
        model = measurement_model_of(detection, measurement_model)
        if id(model) not in sensors:
            sensors[id(model)] = model, as_sensor(model)
        z = states.as_rows(detection.state_vector)[0]
        converted.append((detection.timestamp, sensors[id(model)][1], z))
    return converted


def measurement_model_of(
    detection: Detection, default: MeasurementModel | None
) -> MeasurementModel:
    """Return the measurement model of a detection, or else a default."""
    model = detection.measurement_model or default
    if model is None:
        raise ValueError(
            "measurement_model: expected one, as the detection has none of its own, got None"
        )
    return model
