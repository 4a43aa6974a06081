"""Backward simulation: whole trajectories drawn from the particles of a filter.

Godsill, Doucet and West (2004), "Monte Carlo smoothing for nonlinear time series", Journal of the American Statistical
Association 99, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array, as_count, as_generator
from herdfilter._one_line import one_line
from herdfilter.angles import moments, wrap_angles
from herdfilter.filters.move import Move
from herdfilter.filters.results import FilterResult
from herdfilter.filters.series import series
from herdfilter.filters.views import Views
from herdfilter.models._answers import shaped
from herdfilter.models.contract import (
    ADDITIVE,
    Model,
    circular_dims,
    require,
)

CHUNK = 2**20
"""Most numbers in one array of residuals; trajectories beyond it are taken in turns."""

LEAST_EIGENVALUE = 1e-12
"""Below it, the smallest eigenvalue of the correlation matrix of the transition noise is rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Views):
    """Independent draws, given the particles, of the whole state sequence given all observations.

    Attributes
    ----------
    x : ndarray, shape (m, T, d)
        States at steps 1 to T of each of m trajectories; angles in [-pi, pi).
    circular : tuple of int
        Indices of the angle-valued dimensions.
    times : ndarray, shape (T,), or None
        Of the steps, as the filter's result has them.
    """

    x: Array
    circular: tuple[int, ...] = ()
    times: np.ndarray | None = None

    def __repr__(self) -> str:
        m, steps, d = self.x.shape
        return one_line(self, n=m, steps=steps, dim=d)

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


class UnreachableStateError(RuntimeError):
    """No particle leads to a state that was drawn for the step after it.

    Only a transition density that is zero in places can bring this about.

    Attributes
    ----------
    step : int
        The step whose particles all have a backward weight of zero.
    """

    def __init__(self, step: int, n: int) -> None:
        super().__init__(
            f"step {step}: the transition density vanishes from all {n} particles to a state drawn at step "
            f"{step + 1}; use more particles, a proposal that draws from the transition, or noise of wider support"
        )
        self.step = step
        self.n = n

    def __reduce__(self) -> tuple[type, tuple[int, int]]:
        return type(self), (self.step, self.n)


def backward_simulation(
    model: Model,
    result: FilterResult,
    n_trajectories: int,
    rng: np.random.Generator | int | None,
    dt: float | Sequence[float] | Array = 1.0,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
) -> Trajectories:
    r"""Draw trajectories from the joint distribution of all states given all observations.

    The last state of a trajectory is a filtering particle of the last step, drawn by its weight. Backwards from there,
    with :math:`\tilde x_{t+1}` chosen, particle i of step t is chosen with probability

    .. math:: \propto w_t^i\, p(\tilde x_{t+1} \mid x_t^i).

    The weights are logarithms throughout, so that they do not vanish where the density is merely small. Particles of every
    proposal and every resampling scheme will do. Time grows as T m n.

    Parameters
    ----------
    model : object
        The model that was filtered; with `transition_mean` and `transition_covariance`, or `transition_log_density`, which
        comes first where it exists. Residuals of angles are wrapped, which takes the noise to be narrow on the circle.
    result : FilterResult
        Of ``ParticleFilter.run(..., keep_particles=True)``, T steps with n particles.
    n_trajectories : int
        Number of trajectories m.
    rng : numpy.random.Generator or int or None
        Source of the random draws, or a seed.
    dt, controls, times
        As given to ``run``.

    Raises
    ------
    TypeError
        If the model has no transition density, or `result` is not a `FilterResult`.
    ValueError
        If `result` has no particles, a length or a number does not fit, or the transition noise is rank-deficient: then no
        particle but the ancestor leads to a state, and there is no density to weigh by.
    UnreachableStateError
        If a transition density of the model's own vanishes from all particles to a state that was drawn.
    """
    require(model, "backward_simulation", ADDITIVE, ("transition_log_density",))
    particles, weights = _kept(model, result)
    m, rng = as_count("n_trajectories", n_trajectories), as_generator(rng)
    steps, _, d = particles.shape
    moves = series([None] * steps, dt, controls, times)
    with np.errstate(divide="ignore"):  # particles of weight zero are never chosen
        log_weights = np.log(weights)
    x = np.empty((m, steps, d))
    chosen = _choose(log_weights[-1:], np.zeros(m, dtype=int), rng.random(m))
    x[:, -1] = particles[-1, chosen]
    for k in range(steps - 2, -1, -1):  # from step k + 2 back to step k + 1
        move = Move(model, moves[k + 1].dt, moves[k + 1].control, k + 2)
        chosen = _earlier(move, particles[k], log_weights[k], particles[k + 1], chosen, rng.random(m))
        x[:, k] = particles[k, chosen]
    return Trajectories(x, circular_dims(model), result.times)


def _earlier(
    move: Move, x: Array, log_weights: Array, x_next: Array, later: np.ndarray, u: Array
) -> np.ndarray:
    """Choose a particle among x (n, d) before each of those that are numbered `later` (m,) among x_next (n, d)."""
    (n, d), m = x.shape, len(later)
    log_density = _transition_from(move, x)
    chosen = np.empty(m, dtype=int)
    order = np.argsort(later)  # trajectories that have met are weighed together
    size = max(CHUNK // (n * d), 1)
    for part in (order[start : start + size] for start in range(0, m, size)):
        states, owner = np.unique(later[part], return_inverse=True)
        backward = log_weights + log_density(x_next[states])
        if (backward.max(axis=1) == -np.inf).any():
            raise UnreachableStateError(move.step - 1, n)
        chosen[part] = _choose(backward, owner, u[part])
    return chosen


def _kept(model: Model, result: FilterResult) -> tuple[Array, Array]:
    """Particles (T, n, d) and weights (T, n) of a result, checked."""
    if not isinstance(result, FilterResult):
        raise TypeError(f"result: expected a FilterResult, got {type(result).__name__}")
    if result.particles is None or result.weights is None:
        raise ValueError(
            "result: expected particles, which ParticleFilter.run(..., keep_particles=True) keeps; got none"
        )
    if not len(result):
        raise ValueError("result: expected at least one step, got none")
    if result.particles.shape[2] != model.dim:
        raise ValueError(
            f"result: expected particles of the model's dimension, {model.dim}, got {result.particles.shape[2]}"
        )
    return result.particles, result.weights


def _choose(log_weights: Array, row: np.ndarray, u: Array) -> np.ndarray:
    """Draw an index by each of some rows of log-weights (r, n), by uniform numbers in [0, 1) of the same shape as `row`."""
    cumulative = np.cumsum(np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), axis=1)
    return np.count_nonzero(cumulative[row] <= (u * cumulative[row, -1])[:, None], axis=1)


def _transition_from(move: Move, x: Array) -> Callable[[Array], Array]:
    """Return the function x_next (m, d) -> log p(x_next | x) (m, n), up to a constant, for states x (n, d)."""
    if hasattr(move.model, "transition_log_density"):
        return lambda x_next: _own_density(move, x_next, x)
    mean, circular = move.mean(x), move.circular
    whitening = _whitening(move.covariance, move.step)

    def log_density(x_next: Array) -> Array:
        z = wrap_angles(x_next[:, None] - mean, circular) @ whitening.T
        return -0.5 * np.einsum("mni,mni->mn", z, z)

    return log_density


def _own_density(move: Move, x_next: Array, x: Array) -> Array:
    """Return the model's own transition density, (m, n), checked."""
    step = move.step
    values = move.model.transition_log_density(x_next, x, move.dt, move.control, step)
    values = shaped("transition_log_density", values, (len(x_next), len(x)), step)
    invalid = np.count_nonzero(np.isnan(values) | (values == np.inf))
    if invalid:
        raise ValueError(
            f"transition_log_density: expected values below infinity from the model at step {step}, got {invalid} "
            f"NaN or +inf of {values.size}"
        )
    return values


def _whitening(covariance: Array, step: int) -> Array:
    """Return W with ``W.T @ W`` the inverse of a covariance (d, d); its units may differ by many orders of magnitude."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = covariance / np.outer(divisor, divisor)
    rank = np.count_nonzero(np.linalg.eigvalsh(correlation) > LEAST_EIGENVALUE)
    if rank < len(scale):
        raise ValueError(
            f"transition_covariance: backward simulation needs a transition density, so a covariance of full rank, "
            f"{len(scale)}; got rank {rank} at step {step}"
        )
    return np.linalg.inv(np.linalg.cholesky(correlation)) / scale
