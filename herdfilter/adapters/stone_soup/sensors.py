"""Stone Soup's measurement models as sensors, and its detections as observations."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from stonesoup.models.base import GaussianModel
from stonesoup.models.measurement import MeasurementModel
from stonesoup.types.array import StateVector
from stonesoup.types.detection import Detection, MissedDetection
from stonesoup.types.state import State

from herdfilter._checks import Array, short_repr
from herdfilter.adapters.stone_soup import calls
from herdfilter.models.sensors import Sensor

NO_NOISE = "cannot be converted: it has no covariance of additive Gaussian noise"


def noise_covariance(name: str, model: Any, **given: Any) -> Array:
    """Return the covariance of a model's noise; a TypeError says why there is none."""
    label = f"{name}: {type(model).__name__}"
    if not isinstance(model, GaussianModel):
        raise TypeError(f"{label} {NO_NOISE}, and is no GaussianModel")
    try:
        found = model.covar(**given)
    except NotImplementedError as error:
        raise TypeError(f"{label} {NO_NOISE}: {error}") from error
    if found is None or None in np.asarray(found):
        raise TypeError(f"{label} {NO_NOISE}; its covariance is {short_repr(found)}")
    return np.asarray(found, dtype=np.float64)


def sensor(model: Any, dim: int | None = None) -> Sensor:
    """Return a measurement model as a sensor of states of `dim` dimensions."""
    if not isinstance(model, MeasurementModel):
        raise TypeError(
            "measurement_model: expected an instance of Stone Soup's MeasurementModel, got "
            f"{short_repr(model)}{sensors_own(model)}"
        )
    label = f"measurement_model: {type(model).__name__}"
    if dim is not None and model.ndim_state != dim:
        raise ValueError(f"{label} is of states of {model.ndim_state} dimensions, expected {dim}")
    weigh = None if weighs_as_gaussian(model) else partial(log_likelihood, model)
    try:
        noise = noise_covariance("measurement_model", model)
    except TypeError:
        if weigh is None or not isinstance(model, GaussianModel):
            raise
        return Sensor(None, None, log_likelihood=weigh)
    if calls.is_linear(model):
        matrix = np.asarray(model.matrix(), dtype=np.float64)
        mean, jacobian = partial(product, matrix), partial(repeated, matrix)
        return Sensor(mean, noise, log_likelihood=weigh, jacobian=jacobian)
    kind = calls.kind_of("measurement_model", model)
    return Sensor(calls.Function(model, kind), noise, kind.circular, log_likelihood=weigh)


def sensors_own(model: Any) -> str:
    """Return what to do if a sensor of Stone Soup was given in place of its measurement model."""
    return "; give its measurement_model" if hasattr(type(model), "measurement_model") else ""


def product(matrix: Array, x: Array) -> Array:
    """Return a linear function of states (n, d), (n, k)."""
    return x @ matrix.T


def repeated(matrix: Array, x: Array) -> Array:
    """Return the derivative of a linear function at states (n, d), (n, k, d)."""
    return np.broadcast_to(matrix, (len(x), *matrix.shape))


def weighs_as_gaussian(model: Any) -> bool:
    """Whether a model weighs states by the Gaussian density of its function and covariance, and by nothing else."""
    known = [GaussianModel.logpdf, getattr(calls.ANGLED, "logpdf", None)]
    return calls.method(model, "pdf") is GaussianModel.pdf and calls.method(model, "logpdf") in known


def log_likelihood(model: MeasurementModel, z: Array, x: Array) -> Array:
    """Return a model's own log-likelihood of states (n, d), (n,)."""
    seen = State(StateVector(z))
    with np.errstate(divide="ignore"):
        values = np.ravel(model.logpdf(seen, calls.state(x)))
        if len(values) != len(x):  # it takes one state at a time
            values = np.ravel([model.logpdf(seen, calls.state(row[None])) for row in x])
    return values.astype(np.float64)


def readings(
    detections: Iterable[Detection], measurement_model: MeasurementModel | None = None
) -> list[tuple[datetime, Sensor, Array]]:
    """Return detections as what `ParticleFilter.run` takes: time, sensor and observation of each, in the order given.

    Parameters
    ----------
    detections : iterable of stonesoup.types.detection.Detection
    measurement_model : stonesoup.models.measurement.MeasurementModel, optional
        Of those detections that have none of their own.

    Raises
    ------
    TypeError, ValueError
        If one is no detection, has no measurement model, or one that cannot be converted.

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
    known: dict[int, tuple[MeasurementModel, Sensor]] = {}  # with the model, so that its id stays its own
    found = []
    for detection in detections:
        if not isinstance(detection, Detection) or isinstance(detection, MissedDetection):
            raise TypeError(f"detections: expected those of Stone Soup, got {type(detection).__name__}")
        model = model_of(detection, measurement_model)
        if id(model) not in known:
            known[id(model)] = model, sensor(model)
        found.append((detection.timestamp, known[id(model)][1], vector(detection)))
    return found


def model_of(detection: Detection, otherwise: MeasurementModel | None) -> MeasurementModel:
    """Return the measurement model of a detection, its own one or else another."""
    model = detection.measurement_model or otherwise
    if model is None:
        raise ValueError("measurement_model: expected one, as the detection has none of its own, got None")
    return model


def vector(detection: Detection) -> Array:
    """Return what was detected as numbers (k,)."""
    return calls.numbers(detection.state_vector)[0]
