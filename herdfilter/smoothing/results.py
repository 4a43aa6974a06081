"""What smoothers report: the moments of every state, and a named failure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from herdfilter._checks import Array
from herdfilter._repr import summary_repr
from herdfilter.filters.results import Views


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedResult(Views):
    """What observations before and after each of T steps say of its state.

    Attributes
    ----------
    means, covariances : ndarray, shapes (T, d) and (T, d, d)
        One row for each row of the filter's result: those of the same time are the same state.
    particles, weights : ndarray, shapes (T, n, d) and (T, n), or None
        The filter's particles with their smoothed weights, where it has particles.
    steps : ndarray of int, shape (T,), or None
        Time index of each row.
    times : ndarray, shape (T,), or None
        Time of each row, as it was given to the filter.
    circular : tuple of int
        Indices of the angle-valued dimensions.

    Examples
    --------
    Weights change, particles stay.

    >>> pf = hf.ParticleFilter(hf.models.linear_chain(2), n_particles=50, proposal=hf.RankedProposal())
    >>> filtered = pf.run([[0.5, 0.1], [1.0, -0.2], [0.3, 0.4]], keep_particles=True)
    >>> smoothed = hf.marginal_smoother(pf, filtered)
    >>> smoothed.means.shape, smoothed.covariances.shape, smoothed.particles.shape, smoothed.weights.shape
    ((3, 2), (3, 2, 2), (3, 50, 2), (3, 50))
    >>> np.array_equal(smoothed.particles, filtered.particles), np.allclose(smoothed.weights, filtered.weights)
    (True, False)
    """

    means: Array
    covariances: Array
    particles: Array | None = None
    weights: Array | None = None
    steps: np.ndarray | None = None
    times: np.ndarray | None = None
    circular: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        return summary_repr(self, steps=len(self), dim=self.means.shape[1], particles=self.particles)


class UnreachableStateError(RuntimeError):
    """No particle leads to a state that has weight at the step after it.

    Only a transition density that is zero in places can bring this about.

    Attributes
    ----------
    step : int
        The step whose particles all have a backward weight of zero.

    Examples
    --------
    A model whose density contradicts its simulation: states grow by some units, and the density asks for hundreds.

    >>> class Growing:
    ...     dim, initial = 1, hf.GaussianMixture([1.0], [[0.0]], [[1.0]])
    ...     def sample_transition(self, x, rng, dt, control, step):
    ...         return x + rng.exponential(size=x.shape)
    ...     def transition_log_density(self, x_next, x, dt, control, step):
    ...         grown = x_next - x[:, 0]
    ...         return np.where(grown > 100, -grown, -np.inf)
    ...     def log_likelihood(self, z, x, step):
    ...         return -abs(z - x[:, 0])
    ...
    >>> pf = hf.ParticleFilter(Growing(), n_particles=50, rng=0)
    >>> filtered = pf.run([1.0, 2.0, 3.0], keep_particles=True)
    >>> try:
    ...     hf.marginal_smoother(pf, filtered)
    ... except hf.UnreachableStateError as error:
    ...     print(error.step)
    ...
    2
    """

    def __init__(self, step: int, n: int) -> None:
        super().__init__(
            f"step {step}: the transition density vanishes from all {n} particles to a state that has weight at step "
            f"{step + 1}; use more particles, a proposal that draws from the transition, or noise of wider support"
        )
        self.step = step
        self.n = n

    def __reduce__(self) -> tuple[type, tuple[int, int]]:
        return type(self), (self.step, self.n)
