"""The contract of a resampling scheme, and the base class of schemes that copy particles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from herdfilter._checks import Array, as_numbers, as_weights
from herdfilter.filters.particles import Particles
from herdfilter.samplers.compiled import IN_PLACE, njit

Indices = NDArray[np.integer[Any]]
RELATIVE_ROUNDING = 1e-12  # a number of copies this little below a whole one is that whole number


@runtime_checkable
class Resampling(Protocol):
    """A scheme that replaces weighted particles by as many less unevenly weighted ones.

    Examples
    --------
    Your own scheme needs no base class. This one takes the heavier half twice.

    >>> class HeavierHalf:
    ...     def resample(self, particles, rng, circular=()):
    ...         heavier = np.argsort(particles.weights)[len(particles) // 2 :]
    ...         return hf.Particles.equal(np.repeat(particles.x[heavier], 2, axis=0))
    ...
    >>> pf = hf.ParticleFilter(hf.models.UNGM(), 50, resampling=HeavierHalf(), resample_below=1.0, rng=0)
    >>> pf.run([[0.2], [1.5], [4.0]]).resampled.tolist()
    [False, True, True]
    """

    def resample(self, particles: Particles, rng: np.random.Generator, circular: Sequence[int] = ()) -> Particles:
        """Return ``particles.n_next`` particles with weights that sum to 1."""


def inverse_cdf(weights: Array, u: Array) -> Indices:
    """Return the inverse of the cumulative weights (n,), of any positive sum, at ascending numbers u (k,) in [0, 1).

    Only indices of positive weight are returned, whatever the rounding.
    """
    indices = np.empty(len(u), np.int64)
    _inverse(np.ascontiguousarray(as_numbers("weights", weights, (None,)), np.float64), np.ascontiguousarray(u), indices)
    return indices


@njit(**IN_PLACE)
def _inverse(weights, u, indices):
    """Fill the indices (k,), in one pass through the weights and the numbers together."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    below = np.nextafter(total, 0.0)  # rounding may reach the sum itself
    i, reached = 0, weights[0]
    for j in range(len(u)):
        place = u[j] * total if u[j] * total < below else below
        while reached <= place:
            i += 1
            reached += weights[i]
        indices[j] = i


def whole_and_rest(weights: Array) -> tuple[Indices, Array]:
    """Split the expected numbers of copies, n w (n,), into whole numbers and fractional parts."""
    weights = as_weights("weights", weights)
    expected = len(weights) * weights
    whole = np.floor(expected * (1 + RELATIVE_ROUNDING)).astype(np.int64)
    return whole, np.maximum(expected - whole, 0.0)


class CopyingResampling(ABC):
    """A scheme that copies particles; a subclass chooses which ones.

    Examples
    --------
    This scheme copies the heaviest particle only:

    >>> class Heaviest(hf.CopyingResampling):
    ...     def ancestors(self, weights, rng):
    ...         return np.full(len(weights), weights.argmax())
    ...
    >>> particles = hf.Particles.weighted(np.array([[1.0], [2.0], [3.0]]), np.array([0.5, 0.3, 0.2]))
    >>> Heaviest().resample(particles, rng=None).x.ravel().tolist()
    [1.0, 1.0, 1.0]
    """

    @abstractmethod
    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """Return the indices (n,) of the particles to copy, for weights (n,) that sum to 1."""

    def resample(self, particles: Particles, rng: np.random.Generator, circular: Sequence[int] = ()) -> Particles:
        """Return equally weighted copies; see `Resampling`."""
        chosen = self.chosen(particles.weights, particles.n_next, rng)
        copies = Particles.equal(particles.x.take(chosen, axis=0))
        copies.modes = None if particles.modes is None else particles.modes[chosen]
        own = particles.covariances
        copies.covariances = own if own is None or len(own) == 1 else own[chosen]
        return copies

    def chosen(self, weights: Array, n: int, rng: np.random.Generator) -> Indices:
        """Return the indices (n,) of the particles to copy, chosen systematically if there are not n weights."""
        if n == len(weights):
            return self.ancestors(weights, rng)
        return inverse_cdf(weights, (np.arange(n) + rng.random()) / n)
