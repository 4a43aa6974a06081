"""Backward simulation: trajectories drawn from the particles of a filter.

Godsill, Doucet and West (2004), "Monte Carlo smoothing for nonlinear time series", Journal of the American Statistical
Association 99, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from herdfilter._checks import Array, as_generator, check_count
from herdfilter._repr import summary_repr
from herdfilter.angles import moments
from herdfilter.filters import FilterResult, ParticleFilter
from herdfilter.filters.results import Views
from herdfilter.models.contract import Model, circular_dims, require
from herdfilter.smoothing.marginal import DENSITY, backward_weights, rows_at_once
from herdfilter.smoothing.results import Course, model_of, particles_of


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Views):
    """Trajectories drawn independently from the particles, given all observations.

    Attributes
    ----------
    x : ndarray, shape (m, T, d)
        States of m trajectories, one for each row of the filter's result; angles in [-pi, pi).
    circular : tuple of int
        Indices of the angle-valued dimensions.
    steps, times : ndarray, shape (T,), or None
        Time index and time of each row, as the filter's result has them.

    Examples
    --------
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(2), n_particles=50, rng=0)
    >>> filtered = pf.run([[0.5, 0.1], [1.0, -0.2], [0.3, 0.4]], keep_particles=True)
    >>> drawn = hf.backward_simulation(pf, filtered, n_trajectories=30, rng=0)
    >>> drawn.x.shape, drawn.means.shape, drawn.covariances.shape, drawn.steps.tolist()
    ((30, 3, 2), (3, 2), (3, 2, 2), [1, 2, 3])
    """

    x: Array
    circular: tuple[int, ...] = ()
    times: np.ndarray | None = None
    steps: np.ndarray | None = None

    def __repr__(self) -> str:
        m, steps, d = self.x.shape
        return summary_repr(self, n=m, steps=steps, dim=d)

    @property
    def means(self) -> Array:
        """Smoothed mean at every step, shape (T, d); circular in angle-valued dimensions."""
        return np.array([mean for mean, _ in self._moments()])

    @property
    def covariances(self) -> Array:
        """Smoothed covariance at every step, shape (T, d, d)."""
        return np.array([covariance for _, covariance in self._moments()])

    def _moments(self) -> list[tuple[Array, Array]]:
        weights = np.full(len(self.x), 1.0 / len(self.x))
        return [moments(self.x[:, k], weights, self.circular) for k in range(self.x.shape[1])]


def backward_simulation(
    model: Model | ParticleFilter,
    result: FilterResult,
    n_trajectories: int,
    rng: np.random.Generator | int | None,
    dt: float | Sequence[float] | Array | None = None,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
) -> Trajectories:
    r"""Draw trajectories from the joint distribution of all states given all observations.

    The last state of a trajectory is a filtering particle of the last step, drawn by its weight. Backwards from there,
    with :math:`\tilde x_{t+1}` chosen, particle i of step t is chosen with probability

    .. math:: \propto w_t^i\, p(\tilde x_{t+1} \mid x_t^i).

    All proposals and resampling schemes will do. Time grows as T m n.

    Parameters
    ----------
    model, result
        As for `marginal_smoother`.
    n_trajectories : int
        Number of trajectories m.
    rng : numpy.random.Generator or int or None
        Source of the random draws, or a seed.
    dt, controls, times
        As given to ``run``, one for each row of the result; without `dt` and `times`, the times of the result are used.

    Raises
    ------
    TypeError, UnreachableStateError, ValueError
        As from `marginal_smoother`.

    Examples
    --------
    The maximum of a trajectory exceeds the maximum of the means.

    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=200, rng=0)
    >>> filtered = pf.run([[0.2], [1.5], [4.0], [1.1]], keep_particles=True)
    >>> drawn = hf.backward_simulation(pf, filtered, n_trajectories=300, rng=0)
    >>> bool(drawn.means.max() < drawn.x.max(axis=1).mean())
    True
    """
    model, user = model_of(model), "backward_simulation"
    require(model, user, *DENSITY)
    m, rng = check_count("n_trajectories", n_trajectories), as_generator(rng)
    course = Course.of(model, result, dt, controls, times)
    particles, weights = (part[course.last] for part in particles_of(result))
    x = np.empty((m, len(particles), model.dim))
    with np.errstate(divide="ignore"):  # particles of weight zero are never chosen
        chosen = _choose(np.log(weights[-1:]), np.zeros(m, dtype=int), rng.random(m))
    x[:, -1] = particles[-1, chosen]
    for k in range(len(particles) - 2, -1, -1):
        backward = backward_weights(course.transitions[k], particles[k], weights[k], user)
        later, u, size = chosen, rng.random(m), rows_at_once(particles[k])
        order, chosen = np.argsort(later), np.empty(m, dtype=int)  # trajectories in the same state share their weights
        for part in (order[start : start + size] for start in range(0, m, size)):
            states, owner = np.unique(later[part], return_inverse=True)
            chosen[part] = _choose(backward(particles[k + 1][states]), owner, u[part])
        x[:, k] = particles[k, chosen]
    return Trajectories(x[:, course.step_of_row], circular_dims(model), result.times, result.steps)


def _choose(log_weights: Array, row: np.ndarray, u: Array) -> NDArray[np.intp]:
    """Draw an index for each u (m,) in [0, 1) by the row of log-weights (r, n) that `row` (m,) names."""
    cumulative = np.cumsum(np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), axis=1)
    index: NDArray[np.intp] = np.count_nonzero(cumulative[row] <= (u * cumulative[row, -1])[:, None], axis=1)
    return index
