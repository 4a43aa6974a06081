"""Weighted particles, and the normalisation of their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_any, as_array, as_particles, as_weighted_particles, check_count
from herdfilter._repr import summary_repr
from herdfilter.angles import mean_and_covariance


class Particles:
    """Weighted particles; the weights and their effective sample size are computed once, when first asked for.

    Parameters
    ----------
    particles : array_like, shape (n, d)
        States; not copied.
    log_weights : array_like, shape (n,)
        Logarithms of weights, which sum to 1 unless an observation has just been taken up; -inf for weights of zero.
    modes : ndarray of int, shape (n,), optional
        The mode of each particle, where the model jumps between some.
    n_next : int, optional
        How many particles a proposal that uses the weights, or a resampling scheme, makes of these; n unless given. So a
        hypothesis gets its share of the particles, and the union of several hypotheses is brought back to n.

    Examples
    --------
    Three equal particles meet the likelihoods 1, 2 and 1, whose weighted sum is the evidence.

    >>> particles = hf.Particles.equal(np.array([[0.0], [1.0], [3.0]]))
    >>> posterior, log_evidence = particles.reweighted(np.log([1.0, 2.0, 1.0])).normalised()
    >>> np.round(posterior.weights, 12).tolist(), np.allclose(np.exp(log_evidence), 4 / 3)
    ([0.25, 0.5, 0.25], True)
    >>> round(particles.ess, 6), round(posterior.ess, 6)
    (3.0, 2.666667)
    """

    covariances: Any = None
    """Covariances (n, d, d) of the Gaussians about the particles, or (1, d, d) of all; see `RaoBlackwellisedProposal`."""

    gaussian: Any = None
    """True (n,) where a particle stands for the Gaussian of a history, else it is a point; see `HistoryProposal`."""

    def __init__(
        self, particles: ArrayLike, log_weights: ArrayLike, modes: NDArray[np.int64] | None = None, n_next: int | None = None
    ) -> None:
        self.x, self.modes = as_particles("particles", particles), modes
        n = len(self.x)
        self.log_weights = as_array("log_weights", log_weights, (n,), finite=False)
        if not (self.log_weights < np.inf).all():  # NaN, too
            raise ValueError(f"log_weights: expected numbers below infinity, got {self.log_weights.max()}")
        if modes is not None and (shape := as_any("modes", modes).shape) != (n,):
            raise ValueError(f"modes: expected shape ({n},), got {shape}")
        self.n_next = n if n_next is None else check_count("n_next", n_next)

    @classmethod
    def unchecked(
        cls,
        particles: Array,
        log_weights: Array,
        modes: Any = None,
        n_next: Any = None,
        covariances: Any = None,
        gaussian: Any = None,
    ) -> Particles:
        """Build without validation, for arrays that are valid by construction."""
        self = object.__new__(cls)
        self.gaussian = gaussian
        self.x, self.log_weights, self.modes, self.covariances = particles, log_weights, modes, covariances
        self.n_next = len(particles) if n_next is None else n_next
        return self

    @classmethod
    def equal(cls, particles: ArrayLike) -> Particles:
        """Particles (n, d) of equal weight."""
        particles = as_particles("particles", particles)
        return cls.unchecked(particles, np.full(len(particles), -math.log(len(particles))))

    @classmethod
    def weighted(cls, particles: ArrayLike, weights: ArrayLike) -> Particles:
        """Particles (n, d) with weights (n,) that sum to 1."""
        particles, weights = as_weighted_particles(particles, weights)
        with np.errstate(divide="ignore"):
            made = cls.unchecked(particles, np.log(weights))
        made.weights = weights
        return made

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def weights(self) -> Array:
        """Weights (n,)."""
        return np.exp(self.log_weights)

    @cached_property
    def ess(self) -> float:
        r"""Effective sample size :math:`1 / \sum_i w_i^2`.

        The Gaussian of a history counts as ``w_i n_next`` equal particles.
        """
        if self.gaussian is not None:
            squares = np.where(self.gaussian, self.weights * np.minimum(self.weights, 1 / self.n_next), self.weights**2)
            return float(1.0 / squares.sum())
        total = float(self.weights @ self.weights)
        return 1.0 / total if total else math.inf

    def moments(self, circular: tuple[int, ...] = ()) -> tuple[Array, Array]:
        """Mean (d,), its angles wrapped, and covariance (d, d)."""
        mean, covariance = mean_and_covariance(self.x, self.weights, circular)
        if self.covariances is None:
            return mean, covariance
        within = self.covariances[0] if len(self.covariances) == 1 else np.tensordot(self.weights, self.covariances, 1)
        return mean, covariance + within

    def reweighted(self, log_factors: Array) -> Particles:
        """Return the particles with their weights multiplied by ``exp(log_factors)``, not normalised."""
        return self._with(self.log_weights + log_factors)

    @classmethod
    def join(cls, parts: Sequence[Particles], n_next: int | None = None) -> Particles:
        """Concatenate parts, with the weights that they have."""
        modes = [part.modes for part in parts if part.modes is not None]
        about = [(part, part.covariances) for part in parts if part.covariances is not None]
        covariances = [np.broadcast_to(own, (len(part), *own.shape[1:])) for part, own in about]
        gaussian = [part.gaussian for part in parts if part.gaussian is not None]
        return cls.unchecked(
            np.concatenate([part.x for part in parts]),
            np.concatenate([part.log_weights for part in parts]),
            np.concatenate(modes) if modes else None,
            n_next,
            np.concatenate(covariances) if covariances else None,
            np.concatenate(gaussian) if gaussian else None,
        )

    def normalised(self) -> tuple[Particles, float]:
        """Return the particles with weights that sum to 1, and the logarithm of the sum before.

        Where all weights are zero they stay so, and the logarithm is minus infinity. Weights do not depend on a constant
        added to their logarithms, however large.
        """
        return self._normalised

    @cached_property
    def _normalised(self) -> tuple[Particles, float]:
        peak = self.log_weights.max()
        if peak == -np.inf:
            return self, -np.inf
        relative = self.log_weights - peak
        weights = np.exp(relative)
        total = float(np.add.reduce(weights))
        particles = self._with(relative - math.log(total))
        particles.weights = weights / total
        return particles, float(peak) + math.log(total)

    def _with(self, log_weights: Array) -> Particles:
        return Particles.unchecked(self.x, log_weights, self.modes, self.n_next, self.covariances, self.gaussian)

    def __repr__(self) -> str:
        return summary_repr(self, n=len(self), dim=self.x.shape[1])


def check_particles(particles: Any, part: object, method: str, shape: tuple[int, int]) -> Particles:
    """Return the result of a part's method if it is particles of this shape, else raise an error that names the method."""
    if isinstance(particles, Particles):
        x, weights = np.shape(particles.x), np.shape(particles.log_weights)
        histories = particles.gaussian is not None and x[1:] == shape[1:]  # as many as there are
        if (x == shape or histories) and weights == x[:1]:
            return particles
    name = f"{type(part).__name__}.{method}"
    if not isinstance(particles, Particles):
        raise TypeError(
            f"{name}: expected a herdfilter.filters.Particles(particles, log_weights), got {type(particles).__name__}"
        )
    raise ValueError(
        f"{name}: expected particles of shape {shape} and as many weights, got {x} and {weights}; look at the model's "
        "initial and dim, or at the sampler"
    )
