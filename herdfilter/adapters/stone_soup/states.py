"""Stone Soup's states as weighted particles and initial distributions, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from stonesoup.types import state as states
from stonesoup.types.array import StateVectors
from stonesoup.types.mixture import GaussianMixture as TheirMixture

from herdfilter._checks import Array, as_generator
from herdfilter.adapters.stone_soup.calls import numbers, wraps
from herdfilter.angles import unwrap_angles, wrap_angles
from herdfilter.filters import Particles
from herdfilter.filters.resampling.base import picked
from herdfilter.mixture import GaussianMixture
from herdfilter.points import Points

REFUSED = {
    "MultiModelParticleState": "each of its particles moves by a model of its own",
    "RaoBlackwellisedParticleState": "each of its particles has probabilities of its own for the models",
    "BernoulliParticleState": "its target may not exist, and the predictor decides about births",
    "KernelParticleState": "its weights are those of a kernel and no probabilities",
}
"""Kind of particle state -> why particles are not proposed for it."""


class WeightedPoints(Points):
    """Weighted particles as an initial distribution: any number is drawn from them at even steps of their weights."""

    __slots__ = ()

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """Draw `n` of the points, (n, d), by systematic resampling."""
        return self.x[picked(self.weights, (np.arange(n) + as_generator(rng).random()) / n)]


def particle_state(name: str, given: Any, plain: bool = True) -> states.ParticleState:
    """Return a particle state, or the last one of a sequence such as a track.

    Parameters
    ----------
    name : str
        Argument that an error names.
    given
    plain : bool
        Refuse states whose particles have more than a place and a weight.
    """
    if isinstance(given, states.StateMutableSequence):
        given = given.state
    found = next((kind for kind in REFUSED if isinstance(given, getattr(states, kind, ()))), None)
    if isinstance(given, states.ParticleState) and (found is None or not plain):
        return given
    why = f", which cannot be converted: {REFUSED[found]}" if found is not None else ""
    raise TypeError(f"{name}: expected a ParticleState, got {type(given).__name__}{why}")


def cloud_of(state: states.ParticleState) -> tuple[Particles, float]:
    """Return the particles of a state with weights that sum to 1, and the logarithm of the sum before."""
    x, given = numbers(state.state_vector), state.log_weight
    if given is None:
        return Particles.equal(x), 0.0
    log_weights = np.array([float(w) for w in given]) if np.asarray(given).dtype == object else np.asarray(given)
    if log_weights.shape != (len(x),) or not log_weights.max() < np.inf:  # NaN, too
        raise ValueError(f"log_weight: expected {len(x)} numbers below infinity, got {given}")
    particles, total = Particles(x, log_weights.astype(np.float64)).normalised()
    if total == -np.inf:
        raise ValueError(f"log_weight: expected a particle of positive weight, got {len(x)} of weight zero")
    return particles, total


def angles(state: Any) -> tuple[int, ...]:
    """Return the indices of those entries of a state that wrap."""
    column = np.asarray(state.state_vector)[:, 0]
    return tuple(i for i, entry in enumerate(column) if wraps(entry))


def vectors(x: Array, like: states.ParticleState) -> StateVectors:
    """Return states (n, d) as state vectors, their angles of the types that they have in another state."""
    column = np.asarray(like.state_vector)[:, 0]
    if column.dtype != object:
        return StateVectors(np.array(x.T, order="C"))
    rows = np.empty(x.shape[::-1], dtype=object)
    for i, entry in enumerate(column):
        kind = type(entry) if hasattr(entry, "mod_angle") else float
        rows[i] = [kind(value) for value in x[:, i]]
    return StateVectors(rows)


def distribution(prior: Any, dim: int) -> GaussianMixture | WeightedPoints:
    """Return a state as an initial distribution.

    Parameters
    ----------
    prior
        A Gaussian state, also as a square root or as information, a mixture of them, or particles.
    dim : int
        Dimension that it must have.
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
    circular = angles(given)
    if isinstance(prior, TheirMixture):
        parts = [(float(c.weight), numbers(c.mean)[0], np.asarray(c.covar, dtype=np.float64)) for c in prior]
        weights, means, covariances = (np.array(part) for part in zip(*parts, strict=True))
        return GaussianMixture(weights, wrap_angles(means, circular), covariances)
    if isinstance(prior, states.EnsembleState):
        return WeightedPoints(numbers(prior.state_vector))
    if isinstance(prior, states.ParticleState):
        particles, _ = cloud_of(particle_state("prior", prior))
        return WeightedPoints(unwrap_angles(particles.x, particles.weights, circular), particles.weights)
    if not hasattr(prior, "covar"):
        raise TypeError(
            f"prior: expected a state with a covariance or particles, got {type(prior).__name__}, which has neither; "
            "give a GaussianState"
        )
    return GaussianMixture([1.0], numbers(prior.mean), np.asarray(prior.covar, dtype=np.float64))
