"""The contract of a resampling scheme; schemes that copy particles: multinomial, stratified, systematic, residual, SSP."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from herdfilter._checks import Array, as_numbers, as_weights, one_of
from herdfilter.filters.state import Indices, Particles
from herdfilter.samplers.compiled import IN_PLACE, njit

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
    if type(weights) is not np.ndarray:
        weights = as_numbers("weights", weights, (None,))
    indices = np.empty(len(u), np.int64)
    _inverse(np.ascontiguousarray(weights, np.float64), np.ascontiguousarray(u), indices)
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
        n = particles.n_next
        ancestors = self.chosen(particles.weights, n, rng)
        copies = particles.take(ancestors)
        copies.log_weights = np.full(n, -math.log(n))
        copies.ancestors = ancestors
        return copies

    def chosen(self, weights: Array, n: int, rng: np.random.Generator) -> Indices:
        """Return the indices (n,) of the particles to copy, chosen systematically if there are not n weights."""
        if n == len(weights):
            return self.ancestors(weights, rng)
        return inverse_cdf(weights, (np.arange(n) + rng.random()) / n)


@dataclass(frozen=True)
class MultinomialResampling(CopyingResampling):
    """Every new particle is an independent draw from the weighted ones (Gordon, Salmond and Smith 1993).

    It is the most variable of the schemes that copy: the number of copies of particle i has the variance
    ``n weights[i] (1 - weights[i])``.

    Examples
    --------
    A particle of weight 0.5 may be copied three times, or lost; no other scheme here allows that.

    >>> weights, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    >>> copies = [np.bincount(hf.MultinomialResampling().ancestors(weights, rng), minlength=3) for _ in range(400)]
    >>> sorted({int(row[0]) for row in copies})
    [0, 1, 2, 3]
    >>> np.allclose(np.var(copies, axis=0), 3 * weights * (1 - weights), atol=0.2)
    True
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        return inverse_cdf(weights, np.sort(rng.random(len(weights))))  # sorted: look-ups then run through memory


@dataclass(frozen=True)
class StratifiedResampling(CopyingResampling):
    """Particle i is copied ``n weights[i]`` times in the mean, always by less than two more or fewer (Kitagawa 1996).

    The ancestors are the inverse of the cumulative weights at ``(j + u_j) / n``, each j with a uniform u_j of its own.

    Examples
    --------
    Of three particles 1.5, 0.9 and 0.6 copies are expected. The second may get two copies; the first gets at least one, as
    its weight covers the first third of the cumulative weights.

    >>> weights, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    >>> copies = [np.bincount(hf.StratifiedResampling().ancestors(weights, rng), minlength=3) for _ in range(400)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        n = len(weights)
        return inverse_cdf(weights, (np.arange(n) + rng.random(n)) / n)


@dataclass(frozen=True)
class SystematicResampling(CopyingResampling):
    """Particle i is copied floor or ceil of ``n weights[i]`` times, that many in the mean (Kitagawa 1996).

    The ancestors are the inverse of the cumulative weights at the comb ``(j + u) / n``, with one uniform u for all j.

    Examples
    --------
    Of three particles 1.5, 0.9 and 0.6 copies are expected. Each gets the whole number below or above, in one of three ways.

    >>> weights, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    >>> copies = [np.bincount(hf.SystematicResampling().ancestors(weights, rng), minlength=3) for _ in range(400)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1], [2, 0, 1], [2, 1, 0]]
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        n = len(weights)
        return inverse_cdf(weights, (np.arange(n) + rng.random()) / n)


@dataclass(frozen=True)
class ResidualResampling(CopyingResampling):
    """Particle i is copied ``floor(n weights[i])`` times for certain, the rest is drawn (Liu and Chen 1998).

    Each of the r copies left is of particle i with probability ``(n weights[i] - floor(n weights[i])) / r``, so that it has
    ``n weights[i]`` copies in the mean.

    Parameters
    ----------
    rest : {"multinomial", "systematic"}
        Draw the rest independently, as published, or by a comb of one random number; then the number of copies is
        ``n weights[i]`` rounded up or down.

    Examples
    --------
    If 1.5, 0.9 and 0.6 copies are expected, one of the first particle is certain, and two are drawn.

    >>> weights, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(0)
    >>> draws = [hf.ResidualResampling().ancestors(weights, rng).tolist() for _ in range(400)]
    >>> {draw.count(0) for draw in draws}
    {1, 2, 3}
    """

    rest: Literal["multinomial", "systematic"] = "multinomial"

    def __post_init__(self) -> None:
        one_of("rest", self.rest, ("multinomial", "systematic"))

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        copies, rest = whole_and_rest(weights)
        n = len(rest)
        places = n - int(copies.sum())
        if places:
            u = np.sort(rng.random(places)) if self.rest == "multinomial" else (np.arange(places) + rng.random()) / places
            copies += np.bincount(inverse_cdf(rest, u), minlength=n)
        return np.repeat(np.arange(n), copies)


@dataclass(frozen=True)
class SSPResampling(CopyingResampling):
    """Srinivasan sampling process: floor or ceil of ``n weights[i]`` copies, negatively associated.

    For two particles at a time, one fractional part of ``n weights`` grows at the expense of the other, in a direction drawn
    so that neither changes in the mean, until one of the two is whole (Gerber, Chopin and Whiteley 2019, after Srinivasan
    2001). The scheme converges whatever the order of the particles; systematic resampling may fail to.

    Examples
    --------
    Of these particles 1.5, 0.5, 1.5 and 0.5 copies are expected. The systematic scheme gives a second copy to both the first
    and the third, or to neither; here the two pairs are independent.

    >>> weights, rng = np.array([3, 1, 3, 1]) / 8, np.random.default_rng(0)
    >>> copies = [np.bincount(hf.SystematicResampling().ancestors(weights, rng), minlength=4) for _ in range(200)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1, 1], [2, 0, 2, 0]]
    >>> copies = [np.bincount(hf.SSPResampling().ancestors(weights, rng), minlength=4) for _ in range(200)]
    >>> np.unique(copies, axis=0).tolist()
    [[1, 1, 1, 1], [1, 1, 2, 0], [2, 0, 1, 1], [2, 0, 2, 0]]
    """

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        copies, rest = whole_and_rest(weights)
        n = len(rest)
        _round_rests(rest, n - int(copies.sum()), rng.random(n), copies)
        return np.repeat(np.arange(n), copies)


@njit(**IN_PLACE)
def _round_rests(rest, places, u, copies):
    """Round rests (n,) in [0, 1) up or down, keeping their whole sum `places` and each in the mean; add them to `copies`.

    `u` are n uniform numbers. One rest is open at a time; it is paired with the next until one of the two is whole.
    """
    n = len(rest)
    left = places  # to be given to a particle
    i = -1
    p = 0.0
    for j in range(n):
        q = rest[j]
        if q <= 0.0:
            continue
        if i < 0:
            i, p = j, q
            continue
        gain = min(q, 1.0 - p)  # of the open rest from the new one
        loss = min(p, 1.0 - q)
        if u[j] * (gain + loss) < loss:
            if q <= 1.0 - p:
                p += q  # the new one is 0
            else:
                copies[i] += 1
                left -= 1
                i, p = j, q - gain
        elif p <= 1.0 - q:
            i, p = j, q + p  # the open one is 0
        else:
            copies[j] += 1
            left -= 1
            p -= loss
        if p >= 1.0:
            copies[i] += 1
            left -= 1
            i = -1
    if i >= 0 and left > 0:  # the last is whole up to rounding: its sum with the others says which
        copies[i] += 1
