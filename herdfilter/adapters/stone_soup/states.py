"""Stone Soup's functions and states as arrays of this package, (n, d), and back."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from typing import Any

import numpy as np
from stonesoup.models.base import LinearModel
from stonesoup.models.measurement import nonlinear
from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.types import state as states
from stonesoup.types.angle import Angle
from stonesoup.types.array import StateVector, StateVectors
from stonesoup.types.mixture import GaussianMixture as TheirMixture

from herdfilter._checks import Array, as_generator
from herdfilter.angles import unwrap_angles, wrap_angles
from herdfilter.filters import Particles
from herdfilter.filters.resampling.base import inverse_cdf
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

ANGLE_MODEL = getattr(nonlinear, "_AngleNonLinearGaussianMeasurement", None)
"""Class of the measurement models of angles; its `_function` gives plain numbers."""

LINEAR_FUNCTIONS = (LinearModel.function, LinearGaussian.function)  # functions that multiply by a model's `matrix`

REFUSED_STATES = {
    "MultiModelParticleState": "each of its particles moves by a model of its own",
    "RaoBlackwellisedParticleState": "each of its particles has probabilities of its own for the models",
    "BernoulliParticleState": "its target may not exist, and the predictor decides about births",
    "KernelParticleState": "its weights are those of a kernel and no probabilities",
}
"""Kind of particle state -> why particles are not proposed for it."""


class Duration(timedelta):
    """A duration of any number of seconds, not of whole microseconds only."""

    seconds_exactly: float

    def __new__(cls, seconds: float) -> Duration:
        """Make one of a number of seconds."""
        self = super().__new__(cls, seconds=seconds)
        self.seconds_exactly = seconds
        return self

    def total_seconds(self) -> float:
        """Return the seconds it was made of."""
        return self.seconds_exactly


def is_linear(model: Any) -> bool:
    """Return True if a model's function is the product with its matrix."""
    return isinstance(model, LinearModel) and method_function(model, "function") in LINEAR_FUNCTIONS


def method_function(model: Any, name: str) -> Any:
    """Return the function behind a model's method: its class's, or one that was set on the model itself."""
    found = getattr(model, name)
    return getattr(found, "__func__", found)


def as_state(x: Array) -> states.State:
    """Return states (n, d) as one of Stone Soup's; a copy, because some of its models write to their argument."""
    return states.State(StateVectors(np.array(x.T, dtype=np.float64, order="C")))


def as_rows(vectors: Any) -> Array:
    """Return state vectors (k, n) as rows of numbers (n, k), angles cast."""
    return np.asarray(vectors).astype(np.float64).T


class ModelFunction:
    """A model's function without noise, of rows and giving rows: (n, d) -> (n, k), some of them `circular`.

    A trial with the arguments `given` shows how it can be called; models made of the same classes are tried once.
    """

    def __init__(self, name: str, model: Any, **given: Any) -> None:
        self.model = model
        self._together, self.circular = _try_function(name, model, given)
        angle_function = getattr(ANGLE_MODEL, "function", None)
        self._plain = angle_function is not None and method_function(model, "function") is angle_function

    def __call__(self, x: Array, **given: Any) -> Array:
        """Return the values at states (n, d)."""
        if self._together:
            return self._call_once(x, given)
        return np.concatenate([self._call_once(row[None], given) for row in x])

    def _call_once(self, x: Array, given: dict[str, Any]) -> Array:
        if not self._plain:
            return as_rows(self.model.function(as_state(x), noise=False, **given))
        # plain numbers, and no object for each angle
        values = as_rows(self.model._function(as_state(x), noise=False, **given))
        return wrap_angles(values, self.circular)


_TRIALS: dict[Hashable, tuple[bool, tuple[int, ...]]] = {}


def _try_function(name: str, model: Any, given: dict[str, Any]) -> tuple[bool, tuple[int, ...]]:
    """Return True if a call with many states gives what each gives alone, and the indices of the entries that wrap."""
    key = class_key(model)
    if key not in _TRIALS:
        trial = 1.0 + np.random.default_rng(0).random((3, model.ndim_state))
        with np.errstate(all="ignore"):
            try:
                alone = [np.asarray(model.function(as_state(x[None]), noise=False, **given)) for x in trial]
                values = np.concatenate([as_rows(value) for value in alone])
            except Exception as error:
                raise ValueError(
                    f"{name}: {type(model).__name__} cannot be converted, its function fails for a state of "
                    f"{model.ndim_state} numbers: {type(error).__name__}: {' '.join(str(error).split())}"
                ) from error
            try:
                together = as_rows(model.function(as_state(trial), noise=False, **given))
                agree = together.shape == values.shape and np.allclose(together, values, equal_nan=True)
            except Exception:  # then one by one
                agree = False
        _TRIALS[key] = agree, circular_entries_of(alone[0].ravel())
    return _TRIALS[key]


def adds_noise(model: Any, **given: Any) -> bool:
    """Return True if a model's function adds the noise that it is given, as far as a trial shows."""
    x = as_state(np.ones((1, model.ndim_state)))
    noise = 0.01 * (1.0 + np.arange(model.ndim_state))
    try:
        with np.errstate(all="ignore"):
            values = [model.function(x, noise=one, **given) for one in (StateVector(noise), False)]
    except Exception:  # it takes none, or fails, which is named elsewhere
        return True
    return np.allclose(as_rows(values[0]) - as_rows(values[1]), noise, rtol=1e-6, equal_nan=True)


def class_key(model: Any) -> Hashable:
    """Return the class of a model, its function, the dimensions, and the same of its parts."""
    parts = tuple(class_key(part) for part in getattr(model, "model_list", ()))
    return type(model), method_function(model, "function"), model.ndim_state, model.ndim, parts


def circular_entries_of(entries: Any) -> tuple[int, ...]:
    """Return the indices of angles that are the same after whole turns and no less; an elevation is not."""

    def wraps(entry: Any) -> bool:
        rests = [wrap_angles(np.array([entry.mod_angle(a) - a]), (0,))[0] for a in (-3.0, -1.7, 1.7, 3.0)]
        return bool(np.abs(rests).max() < 1e-9)

    return tuple(i for i, entry in enumerate(entries) if isinstance(entry, Angle) and wraps(entry))


def circular_of_state(state: Any) -> tuple[int, ...]:
    """Return the indices of those entries of a state that wrap."""
    return circular_entries_of(np.asarray(state.state_vector)[:, 0])


class WeightedPoints(Points):
    """Weighted particles as an initial distribution: any number is drawn from them at even steps of their weights."""

    __slots__ = ()

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """Draw `n` of the points, (n, d), by systematic resampling."""
        return self.x[inverse_cdf(self.weights, (np.arange(n) + as_generator(rng).random()) / n)]


def particle_state(name: str, given: Any, plain: bool = True) -> states.ParticleState:
    """Return a particle state, or the last one of a sequence such as a track; errors call it `name`.

    If `plain`, states whose particles have more than a place and a weight are refused.
    """
    if isinstance(given, states.StateMutableSequence):
        given = given.state
    found = next((kind for kind in REFUSED_STATES if isinstance(given, getattr(states, kind, ()))), None)
    if isinstance(given, states.ParticleState) and (found is None or not plain):
        return given
    why = f", which cannot be converted: {REFUSED_STATES[found]}" if found is not None else ""
    raise TypeError(f"{name}: expected a ParticleState, got {type(given).__name__}{why}")


def particles_of_state(state: states.ParticleState) -> tuple[Particles, float]:
    """Return the particles of a state with weights that sum to 1, and the logarithm of the sum before."""
    x, given = as_rows(state.state_vector), state.log_weight
    if given is None:
        return Particles.equal(x), 0.0
    log_weights = np.array([float(w) for w in given]) if np.asarray(given).dtype == object else np.asarray(given)
    if log_weights.shape != (len(x),) or not log_weights.max() < np.inf:  # NaN, too
        raise ValueError(f"log_weight: expected {len(x)} numbers below infinity, got {given}")
    particles, total = Particles(x, log_weights.astype(np.float64)).normalised()
    if total == -np.inf:
        raise ValueError(f"log_weight: expected a particle of positive weight, got {len(x)} of weight zero")
    return particles, total


def as_state_vectors(x: Array, like: states.ParticleState) -> StateVectors:
    """Return states (n, d) as state vectors, their angles of the types that they have in the state `like`."""
    column = np.asarray(like.state_vector)[:, 0]
    if column.dtype != object:
        return StateVectors(np.array(x.T, order="C"))
    rows = np.empty(x.shape[::-1], dtype=object)
    for i, entry in enumerate(column):
        kind = type(entry) if hasattr(entry, "mod_angle") else float
        rows[i] = [kind(value) for value in x[:, i]]
    return StateVectors(rows)


def initial_distribution(prior: Any, dim: int) -> GaussianMixture | WeightedPoints:
    """Return a state of `dim` dimensions as an initial distribution.

    `prior` is a Gaussian state, also as a square root or as information, a mixture of them, or particles.
    """
    if isinstance(prior, states.StateMutableSequence):
        prior = prior.state
    given = prior[0] if isinstance(prior, TheirMixture) and len(prior) else prior
    vector = getattr(given, "state_vector", None)
    size = () if vector is None else np.shape(vector)[:1]
    if size != (dim,):
        raise ValueError(
            f"prior: expected a state of {dim} dimensions, as transition_model has, got {size[0]} of {type(prior).__name__}"
            if size
            else f"prior: expected a state of Stone Soup, got {type(prior).__name__}"
        )
    circular = circular_of_state(given)
    if isinstance(prior, TheirMixture):
        parts = [(float(c.weight), as_rows(c.mean)[0], np.asarray(c.covar, dtype=np.float64)) for c in prior]
        weights, means, covariances = (np.array(part) for part in zip(*parts, strict=True))
        return GaussianMixture(weights, wrap_angles(means, circular), covariances)
    if isinstance(prior, states.EnsembleState):
        return WeightedPoints(as_rows(prior.state_vector))
    if isinstance(prior, states.ParticleState):
        particles, _ = particles_of_state(particle_state("prior", prior))
        return WeightedPoints(unwrap_angles(particles.x, particles.weights, circular), particles.weights)
    if not hasattr(prior, "covar"):
        raise TypeError(
            f"prior: expected a state with a covariance or particles, got {type(prior).__name__}, which has neither; "
            "give a GaussianState"
        )
    return GaussianMixture([1.0], as_rows(prior.mean), np.asarray(prior.covar, dtype=np.float64))
