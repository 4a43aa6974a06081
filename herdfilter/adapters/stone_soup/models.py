"""Stone Soup's transition models as models of this package."""

from __future__ import annotations

import copy
from typing import Any, overload

import numpy as np
from stonesoup.models.base import GaussianModel
from stonesoup.models.measurement import MeasurementModel
from stonesoup.models.transition import TransitionModel

from herdfilter._checks import Array, short_repr
from herdfilter.adapters.stone_soup import calls
from herdfilter.adapters.stone_soup.sensors import noise_covariance, product, repeated, sensor, sensors_own
from herdfilter.adapters.stone_soup.states import angles, distribution
from herdfilter.models.sensors import Sensor


class StoneSoupModel:
    """A transition model of Stone Soup, and what observes it, as a model of this package.

    Time steps count in seconds. The noise is drawn by the filter: `seed` and `random_state` of a Stone Soup model have no
    part in it. `from_stonesoup` makes one of copies, so that what is changed in Stone Soup later does not reach it.

    Parameters
    ----------
    transition_model : stonesoup.models.transition.TransitionModel
        With additive Gaussian noise.
    measurement_model : stonesoup.models.measurement.MeasurementModel, optional
    prior : optional
        State of Stone Soup that is the initial distribution; see `from_stonesoup`.

    Attributes
    ----------
    dim : int
        Dimension d of the state.
    circular : tuple of int
        Indices of those entries that are angles in `prior`.
    initial
        The prior as a distribution, if there is one.

    Raises
    ------
    TypeError, ValueError
        If a part cannot be converted; the error names its class and says why.

    Examples
    --------
    >>> from stonesoup.models.measurement.linear import LinearGaussian
    >>> from stonesoup.models.transition.linear import ConstantVelocity
    >>> from herdfilter.adapters.stone_soup import StoneSoupModel
    >>> position = LinearGaussian(ndim_state=2, mapping=[0], noise_covar=[[1.0]])
    >>> model = StoneSoupModel(ConstantVelocity(noise_diff_coeff=0.3), position)
    >>> print(model.transition_mean(np.array([[1.0, 2.0]]), 0.5, None, 1))
    [[2. 2.]]
    >>> print(model.observation_mean(np.array([[1.0, 2.0]]), 1))
    [[1.]]
    """

    def __init__(
        self,
        transition_model: TransitionModel,
        measurement_model: MeasurementModel | None = None,
        prior: Any = None,
    ) -> None:
        self.transition_model, self.measurement_model = transition_model, measurement_model
        self.dim = int(transition_model.ndim_state)
        self.circular: tuple[int, ...] = ()
        self._noise: tuple[float, Array] = np.nan, np.empty((0, 0))  # time step, and matrix for it
        self._transition = self._noise
        self._function: calls.Function | None = None
        if calls.is_linear(transition_model):
            self.transition_jacobian = self._jacobian
        else:
            kind = calls.kind_of("transition_model", transition_model, **interval(1.0))
            self._function = calls.Function(transition_model, kind)
        if measurement_model is not None:
            vars(self).update(sensor(measurement_model, self.dim).functions)
        if prior is not None:
            self.initial, self.circular = distribution(prior, self.dim), angles(prior)

    def __repr__(self) -> str:
        parts = [self.transition_model, *([self.measurement_model] if self.measurement_model else [])]
        return f"StoneSoupModel({', '.join(type(part).__name__ for part in parts)}, dim={self.dim})"

    def transition_mean(self, x: Array, dt: float, control: Any, step: int) -> Array:
        """Stone Soup's transition function without noise, (n, d) -> (n, d)."""
        if control is not None:
            raise TypeError("control: expected None, as Stone Soup's control models are not converted")
        if self._function is None:
            return product(self._matrix(dt), x)
        return self._function(x, time_interval=calls.Duration(dt))

    def transition_covariance(self, dt: float, step: int) -> Array:
        """Covariance of the transition's noise over `dt` seconds, (d, d)."""
        if self._noise[0] != dt:
            self._noise = dt, noise_covariance("transition_model", self.transition_model, **interval(dt))
        return self._noise[1]

    def _matrix(self, dt: float) -> Array:
        """Return the matrix of a linear transition; the last one is kept, as it takes Stone Soup longer than its product."""
        if self._transition[0] != dt:
            self._transition = dt, np.asarray(self.transition_model.matrix(**interval(dt)), dtype=np.float64)
        return self._transition[1]

    def _jacobian(self, x: Array, dt: float, control: Any, step: int) -> Array:
        return repeated(self._matrix(dt), x)


def interval(dt: float) -> dict[str, calls.Duration]:
    """Return a time step in seconds as the argument that Stone Soup's transition models take."""
    return {"time_interval": calls.Duration(dt)}


def check_transition(model: Any) -> None:
    """Raise TypeError, naming class and reason, unless the model has additive Gaussian noise."""
    if not isinstance(model, TransitionModel):
        raise TypeError(
            f"transition_model: expected an instance of Stone Soup's TransitionModel, got {short_repr(model)}"
            f"{sensors_own(model)}"
        )
    noise_covariance("transition_model", model, **interval(1.0))
    label = f"transition_model: {type(model).__name__} cannot be converted: expected"
    if calls.method(model, "rvs") is not GaussianModel.rvs:
        raise TypeError(f"{label} noise that is Gaussian with its covar, got a rvs of its own")
    if not calls.is_linear(model) and not calls.adds_noise(model, **interval(1.0)):
        raise TypeError(f"{label} a function that adds the noise, got one that does something else with it")


@overload
def from_stonesoup(transition_model: MeasurementModel) -> Sensor: ...


@overload
def from_stonesoup(*, measurement_model: MeasurementModel) -> Sensor: ...


@overload
def from_stonesoup(
    transition_model: TransitionModel, measurement_model: MeasurementModel | None = None, prior: Any = None
) -> StoneSoupModel: ...


def from_stonesoup(
    transition_model: Any = None, measurement_model: MeasurementModel | None = None, prior: Any = None
) -> StoneSoupModel | Sensor:
    """Return models of Stone Soup as a model of this package, or a measurement model alone as a sensor.

    What they compute is computed by them, for all particles in one call where they allow it: means and covariances are
    theirs. Times count in seconds. The models are copied: what is changed in them later has no effect.

    Parameters
    ----------
    transition_model : stonesoup.models.transition.TransitionModel or stonesoup.models.measurement.MeasurementModel
        One with additive Gaussian noise; or a measurement model alone, which gives a `Sensor`.
    measurement_model : stonesoup.models.measurement.MeasurementModel, optional
        Of a Gaussian noise, or with a `logpdf` of its own, which then is the likelihood. Bearings and other entries that
        wrap become the model's ``observation_circular``; without it, sensors tell at each update.
    prior : stonesoup.types.state.State, optional
        The initial distribution: a `GaussianState` (also as a square root or as information), a `GaussianMixture`, a
        `ParticleState` or an `EnsembleState`. Entries that are bearings become the model's ``circular``. Without it the
        model has no ``initial``, which filters ask for.

    Returns
    -------
    StoneSoupModel or Sensor

    Raises
    ------
    TypeError, ValueError
        If a part cannot be converted; the error names its class and says why.

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
    given = [part for part in (transition_model, measurement_model) if part is not None]
    if len(given) == 1 and isinstance(given[0], MeasurementModel) and prior is None:
        return sensor(copy.deepcopy(given[0]))
    check_transition(transition_model)
    return StoneSoupModel(copy.deepcopy(transition_model), copy.deepcopy(measurement_model), prior)
