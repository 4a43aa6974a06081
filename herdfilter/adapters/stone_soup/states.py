"""Conversion of Stone Soup's functions and states to arrays (n, d), and back."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from typing import Any

import numpy as np
from stonesoup.models.base import GaussianModel, LinearModel
from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.models.measurement.nonlinear import _AngleNonLinearGaussianMeasurement as AngleModel
from stonesoup.types import state as states
from stonesoup.types.angle import Angle, Azimuth, Bearing, EclipticLongitude
from stonesoup.types.array import StateVectors
from stonesoup.types.mixture import GaussianMixture as TheirMixture

from herdfilter import angles, filters
from herdfilter._checks import Array, as_generator
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

GAUSSIAN_LOG_DENSITIES = (GaussianModel.logpdf, AngleModel.logpdf)

# functions that multiply by a model's `matrix`
LINEAR_FUNCTIONS = (LinearModel.function, LinearGaussian.function)

REFUSED_STATES = {
    states.MultiModelParticleState: "each of its particles moves by a model of its own",
    states.RaoBlackwellisedParticleState: "each of its particles has probabilities of its own for the models",
    states.BernoulliParticleState: "its target may not exist, and the predictor decides about births",
    states.KernelParticleState: "its weights are those of a kernel and no probabilities",
}
"""Kind of particle state -> why it is refused."""


class Duration(timedelta):
    """A duration in seconds that is not rounded to microseconds."""

    seconds_exactly: float

    def __new__(cls, seconds: float) -> Duration:
        """Create a duration from a number of seconds."""
        self = super().__new__(cls, seconds=seconds)
        self.seconds_exactly = seconds
        return self

    def total_seconds(self) -> float:
        """Return the exact number of seconds."""
        return self.seconds_exactly


def is_linear(model: Any) -> bool:
    """Return True if a model's function is the product with its matrix."""
    return isinstance(model, LinearModel) and method_function(model, "function") in LINEAR_FUNCTIONS


def method_function(model: Any, name: str) -> Any:
    """Return the function behind a model's method: that of its class, or one that was set on the instance."""
    method = getattr(model, name)
    return getattr(method, "__func__", method)


def as_state(x: Array) -> states.State:
    """Return states (n, d) as a state of Stone Soup; a copy, because some of its models write to their argument."""
    return states.State(StateVectors(np.array(x.T, dtype=np.float64, order="C")))


def as_rows(vectors: Any) -> Array:
    """Return state vectors (k, n) as rows of numbers (n, k), angles cast."""
    return np.asarray(vectors).astype(np.float64).T


class ModelFunction:
    """A model's function without noise, (n, d) -> (n, k); `circular` are the indices of the k entries that are angles.

    A trial call, with the further `arguments`, shows if it takes many states. Models of the same classes are tried once.
    """

    def __init__(self, model: Any, **arguments: Any) -> None:
        self.model = model
        key = class_key(model)
        if key not in _TRIALS:
            _TRIALS[key] = _try_function(model, arguments)
        self._together, self.circular = _TRIALS[key]
        # The _function of these models returns plain numbers; `function` would make an object of each angle.
        self._plain = method_function(model, "function") is AngleModel.function

    def __call__(self, x: Array, **arguments: Any) -> Array:
        """Return the values at states (n, d)."""
        function = self.model._function if self._plain else self.model.function
        calls = [x] if self._together else x[:, None]
        values = [as_rows(function(as_state(rows), noise=False, **arguments)) for rows in calls]
        return angles.wrap_angles(np.concatenate(values), self.circular if self._plain else ())


# of all models so far, as a trial is slow
_TRIALS: dict[Hashable, tuple[bool, tuple[int, ...]]] = {}


def _try_function(model: Any, arguments: dict[str, Any]) -> tuple[bool, tuple[int, ...]]:
    """Return True if a call with many states gives what each gives alone, and the indices of the entries that wrap."""
    # positive states away from zero, where functions such as ranges and bearings are smooth
    trial = 1.0 + np.random.default_rng(0).random((3, model.ndim_state))
    with np.errstate(all="ignore"):
        single_states = [as_state(x[None]) for x in trial]
        alone = [np.asarray(model.function(x, noise=False, **arguments)) for x in single_states]
        values = np.concatenate([as_rows(value) for value in alone])
        try:
            together = as_rows(model.function(as_state(trial), noise=False, **arguments))
            agree = together.shape == values.shape and np.allclose(together, values, equal_nan=True)
        except Exception:  # then it is called with one state at a time
            agree = False
    return agree, circular_entries_of(alone[0].ravel())


def class_key(model: Any) -> Hashable:
    """Return a key of all that decides how a model's function can be called: classes, function and dimensions."""
    parts = tuple(class_key(part) for part in getattr(model, "model_list", ()))
    return type(model), method_function(model, "function"), model.ndim_state, model.ndim, parts


def circular_entries_of(entries: Any) -> tuple[int, ...]:
    """Return the indices of angles that whole turns do not change; an elevation is none of them."""
    return tuple(
        i
        for i, entry in enumerate(entries)
        if isinstance(entry, Azimuth | Bearing | EclipticLongitude)
    )


def circular_of_state(state: Any) -> tuple[int, ...]:
    """Return the indices of the entries of a state that wrap."""
    return circular_entries_of(np.asarray(state.state_vector)[:, 0])


class WeightedPoints(Points):
    """Weighted particles as an initial distribution, sampled by systematic resampling."""

    __slots__ = ()

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """Draw `n` of the points with replacement, (n, d)."""
        particles = filters.Particles.weighted(self.x, self.weights)
        particles.n_next = n
        return filters.SystematicResampling().resample(particles, as_generator(rng)).x


def particle_state(name: str, state: Any, plain: bool = True) -> states.ParticleState:
    """Return a particle state, or the last one of a sequence such as a track; errors call it `name`.

    If `plain`, states whose particles carry more than a state vector and a weight are refused.
    """
    if isinstance(state, states.StateMutableSequence):
        state = state.state
    reasons = [f": {why}" for kind, why in REFUSED_STATES.items() if isinstance(state, kind)]
    if (plain and reasons) or not isinstance(state, states.ParticleState):
        got = "".join([type(state).__name__, *reasons])
        raise TypeError(f"{name}: expected a ParticleState, got {got}")
    return state


def particles_of_state(state: states.ParticleState) -> tuple[filters.Particles, float]:
    """Return the particles of a state, their weights normalised, and the logarithm of the sum of weights before."""
    x = as_rows(state.state_vector)
    if state.log_weight is None:
        return filters.Particles.equal(x), 0.0
    log_weights = np.asarray(state.log_weight).astype(np.float64)
    if log_weights.shape != (len(x),) or not log_weights.max() < np.inf:  # NaN, too
        raise ValueError(
            f"log_weight: expected {len(x)} numbers below infinity, got {state.log_weight}"
        )
    particles, total = filters.Particles(x, log_weights).normalised()
    if total == -np.inf:
        raise ValueError(
            f"log_weight: expected a particle of positive weight, got {len(x)} of weight zero"
        )
    return particles, total


def as_state_vectors(x: Array, like: states.ParticleState) -> StateVectors:
    """Return states (n, d) as state vectors; angles get the types that they have in the state `like`."""
    column = np.asarray(like.state_vector)[:, 0]
    # an array of objects holds angles among its numbers
    if column.dtype != object:
        return StateVectors(np.array(x.T, order="C"))
    kinds = [type(entry) if isinstance(entry, Angle) else float for entry in column]
    rows = [list(map(kind, values)) for kind, values in zip(kinds, x.T, strict=True)]
    return StateVectors(np.array(rows, dtype=object))


def initial_distribution(prior: Any, dim: int) -> GaussianMixture | WeightedPoints:
    """Return a state of `dim` dimensions as an initial distribution.

    `prior` is a Gaussian state, also as a square root or as information, a mixture of them, or particles.
    """
    if isinstance(prior, states.StateMutableSequence):
        prior = prior.state
    # a mixture of Stone Soup is no state, but a sequence of Gaussian states
    if not isinstance(prior, states.State | TheirMixture):
        raise TypeError(f"prior: expected a state of Stone Soup, got {type(prior).__name__}")
    # One Gaussian is a mixture of one component.
    parts = list(prior) if isinstance(prior, TheirMixture) else [prior]
    first = parts[0]
    if len(first.state_vector) != dim:
        raise ValueError(
            f"prior: expected a state of {dim} dimensions, as transition_model has, got {len(first.state_vector)}"
        )
    circular = circular_of_state(first)
    if isinstance(prior, states.EnsembleState):
        return WeightedPoints(as_rows(prior.state_vector))
    if isinstance(prior, states.ParticleState):
        particles, _ = particles_of_state(particle_state("prior", prior))
        # Means and covariances of the points must not see the cut of the angles.
        x = angles.unwrap_angles(particles.x, particles.weights, circular)
        return WeightedPoints(x, particles.weights)
    if not hasattr(first, "covar"):
        raise TypeError(
            f"prior: expected a state with a covariance or particles, got {type(prior).__name__}, which has neither; "
            "give a GaussianState"
        )
    weights = [float(getattr(part, "weight", 1.0)) for part in parts]
    means = np.concatenate([as_rows(part.mean) for part in parts])
    covariances = [np.asarray(part.covar, dtype=np.float64) for part in parts]
    return GaussianMixture(weights, angles.wrap_angles(means, circular), covariances)
