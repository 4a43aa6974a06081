"""The contract of a resampling scheme; schemes that copy particles: multinomial, stratified, systematic, residual, SSP."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from herdfilter import _checks
from herdfilter._checks import Array
from herdfilter.filters.state import Indices, Particles
from herdfilter.samplers.balanced import hilbert_order
from herdfilter.samplers.compiled import IN_PLACE, njit

RELATIVE_ROUNDING = 1e-12  # a number of copies this little below an integer counts as that integer


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

    def resample(
        self,
        particles: Particles,
        rng: np.random.Generator,
        circular: Sequence[int] = (),
    ) -> Particles:
        """Return ``particles.n_next`` particles with weights that sum to 1."""


def inverse_cdf(weights: Array, u: Array) -> Indices:
    """Return the inverse of the cumulative weights (n,), of any positive sum, at ascending numbers u (k,) in [0, 1).

    Only indices of positive weight are returned, whatever the rounding.
    """
    if type(weights) is not np.ndarray:
        weights = _checks.as_numbers("weights", weights, (None,))
    indices = np.empty(len(u), np.int64)
    _inverse(np.ascontiguousarray(weights, np.float64), np.ascontiguousarray(u), indices)
    return indices


@njit(**IN_PLACE)
def _inverse(weights, u, indices):
    """Fill the indices (k,), in one pass through the weights and the numbers together."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    # u * total may round up to the total, which no index reaches
    below = np.nextafter(total, 0.0)
    i = 0
    cumulative = weights[0]
    for j in range(len(u)):
        threshold = u[j] * total if u[j] * total < below else below
        while cumulative <= threshold:
            i += 1
            cumulative += weights[i]
        indices[j] = i


def ranked_members(
    x: Array,
    weights: Array,
    circular: tuple[int, ...],
    n: int | Array,
) -> Indices:
    """Return indices into weighted points (M, d), sorted along a curve, at n even steps of the cumulative weights.

    An array `n` (k,) of ascending numbers in [0, 1) takes the place of the even steps (i + 1/2) / n.
    """
    u = (np.arange(n) + 0.5) / n if isinstance(n, int) else n
    if len(x) == 1:
        return np.zeros(len(u), dtype=np.int64)
    order = hilbert_order(x, weights, circular)
    return order[inverse_cdf(weights[order], u)]


def expected_copies(weights: Array) -> tuple[Indices, Array]:
    """Return the integer parts and the fractional parts of the expected numbers of copies, n w (n,)."""
    weights = _checks.as_weights("weights", weights)
    expected = len(weights) * weights
    # n w may come out just below an integer; without the guard that copy would become random.
    integers = np.floor(expected * (1 + RELATIVE_ROUNDING)).astype(np.int64)
    return integers, np.maximum(expected - integers, 0.0)


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

    def resample(
        self,
        particles: Particles,
        rng: np.random.Generator,
        circular: Sequence[int] = (),
    ) -> Particles:
        """Return equally weighted copies; see `Resampling`."""
        n = particles.n_next
        weights = particles.weights
        if n == len(weights):
            ancestors = self.ancestors(weights, rng)
        else:  # systematic resampling
            ancestors = inverse_cdf(weights, (np.arange(n) + rng.random()) / n)
        return particles.take(ancestors, np.full(n, -math.log(n)))


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
        return inverse_cdf(weights, np.sort(rng.random(len(weights))))


@dataclass(frozen=True)
class StratifiedResampling(CopyingResampling):
    """Particle i is copied ``n weights[i]`` times in the mean, with a deviation below two (Kitagawa 1996).

    The ancestors are the inverse of the cumulative weights at ``(j + u_j) / n``, with an independent uniform u_j for each j.

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
    """Particle i is copied floor or ceil of ``n weights[i]`` times, ``n weights[i]`` in the mean (Kitagawa 1996).

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
    """Particle i is copied ``floor(n weights[i])`` times for certain, the remaining copies are drawn (Liu and Chen 1998).

    Each of the r remaining copies is of particle i with probability ``(n weights[i] - floor(n weights[i])) / r``, so that
    its mean number of copies is ``n weights[i]``.

    Parameters
    ----------
    rest : {"multinomial", "systematic"}
        Draw the remaining copies independently, as published, or systematically by one random number; then the number of
        copies is ``n weights[i]`` rounded up or down.

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
        _checks.one_of("rest", self.rest, ("multinomial", "systematic"))

    def ancestors(self, weights: Array, rng: np.random.Generator) -> Indices:
        """See `CopyingResampling`."""
        copies, fractions = expected_copies(weights)
        n = len(fractions)
        r = n - int(copies.sum())
        if r:
            u = (
                np.sort(rng.random(r))
                if self.rest == "multinomial"
                else (np.arange(r) + rng.random()) / r
            )
            copies += np.bincount(inverse_cdf(fractions, u), minlength=n)
        return np.repeat(np.arange(n), copies)


@dataclass(frozen=True)
class SSPResampling(CopyingResampling):
    """Srinivasan sampling process: floor or ceil of ``n weights[i]`` copies, negatively associated.

    For two particles at a time, one fractional part of ``n weights`` grows at the expense of the other until one of the two
    is an integer, in a direction that is drawn so that neither changes in the mean (Gerber, Chopin and Whiteley 2019, after
    Srinivasan 2001). The scheme converges whatever the order of the particles; systematic resampling may fail to.

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
        copies, fractions = expected_copies(weights)
        n = len(fractions)
        _round_fractions(fractions, n - int(copies.sum()), rng.random(n), copies)
        return np.repeat(np.arange(n), copies)


@njit(**IN_PLACE)
def _round_fractions(fractions, total, u, copies):
    """Round fractions (n,) in [0, 1) up or down, add them to `copies`; their sum `total` is kept, each in the mean.

    `u` are n uniform numbers. One fraction is open at a time: p, of particle i. It is paired with the next one, q, until one
    of the two is 0 or 1.
    """
    remaining = total
    i = -1
    p = 0.0
    for j in range(len(fractions)):
        q = fractions[j]
        if q <= 0.0:
            continue
        if i < 0:
            i = j
            p = q
            continue
        gain = min(q, 1.0 - p)  # of p at the expense of q
        loss = min(p, 1.0 - q)
        # The direction has the odds loss : gain, so that the mean change of p, (loss gain - gain loss), is 0.
        if u[j] * (gain + loss) < loss:
            if q <= 1.0 - p:
                p += q  # q is 0 now
            else:
                copies[i] += 1
                remaining -= 1
                i = j
                p = q - gain
        elif p <= 1.0 - q:
            i = j  # p is 0 now
            p = q + p
        else:
            copies[j] += 1
            remaining -= 1
            p -= loss
        if p >= 1.0:
            copies[i] += 1
            remaining -= 1
            i = -1
    # The last open fraction is 0 or 1 up to rounding; the total tells which.
    if i >= 0 and remaining > 0:
        copies[i] += 1
