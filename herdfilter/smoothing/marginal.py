"""Marginal smoothing: all observations weight the filter's particles, backwards in time.

Hürzeler and Künsch (1998), "Monte Carlo approximations for general state-space models", Journal of Computational and
Graphical Statistics 7; Doucet, Godsill and Andrieu (2000), "On sequential Monte Carlo sampling methods for Bayesian
filtering", Statistics and Computing 10, section IV.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from herdfilter._checks import Array
from herdfilter.angles import moments, wrap_angles
from herdfilter.filters import FilterResult, ParticleFilter, Transition
from herdfilter.models.contract import ADDITIVE, Model, circular_dims, read_numbers, require
from herdfilter.smoothing.results import Course, Horizons, SmoothedResult, UnreachableStateError, model_of, particles_of

CHUNK_SIZE = 2**16
"""Most numbers in one array of residuals; more states are weighted in chunks that fit the cache."""

SMALLEST_EIGENVALUE = 1e-12
"""Smaller eigenvalues of the correlation matrix of the transition noise are rounding errors."""

DENSITY = (ADDITIVE, ("transition_log_density",))
"""Names that give a model a transition density."""


def marginal_smoother(
    model: Model | ParticleFilter,
    result: FilterResult,
    dt: float | Sequence[float] | Array | None = None,
    controls: Sequence[Any] | Array | None = None,
    times: ArrayLike | None = None,
) -> SmoothedResult:
    r"""Weight the particles of every step by all observations, without a random number.

    The particles do not move. Their weights follow from those of the next step, backwards from the last:

    .. math::
        w_{t|T}^i = w_t^i \sum_j w_{t+1|T}^j
            \frac{p(x_{t+1}^j \mid x_t^i)}{\sum_l w_t^l\, p(x_{t+1}^j \mid x_t^l)}.

    Of many trajectories of `backward_simulation`, these fractions pass through each particle. Time grows as T n^2.

    Parameters
    ----------
    model : object or ParticleFilter
        The model that was filtered, or the filter; with `transition_log_density`, which is preferred, or `transition_mean`
        and `transition_covariance`. Residuals of angles are wrapped: their noise has to be narrow on the circle.
    result : FilterResult
        Of ``ParticleFilter.run(..., keep_particles=True)``, T rows with n particles. Rows of the same time are one state.
    dt, controls, times
        As given to ``run``, one for each row of the result; without `dt` and `times`, the times of the result are used.

    Returns
    -------
    SmoothedResult
        With the particles and their smoothed weights.

    Raises
    ------
    TypeError
        If the model has no transition density, or `result` is not a `FilterResult`.
    ValueError
        If `result` has no particles, a number or a length does not fit, or the transition noise is rank-deficient.
    UnreachableStateError
        If the model's own transition density vanishes from all particles to a state that has weight.

    Examples
    --------
    >>> pf = hf.ParticleFilter(hf.models.linear_chain(1), n_particles=200, proposal=hf.RankedProposal())
    >>> filtered = pf.run([[0.2], [1.5], [4.0]], keep_particles=True)
    >>> smoothed = hf.marginal_smoother(pf, filtered)
    >>> bool(smoothed.means[0] > filtered.means[0])  # later observations are larger
    True
    """
    model, user = model_of(model), "marginal_smoother"
    require(model, user, *DENSITY)
    course = Course.of(model, result, dt, controls, times)
    return course.smooth(model, result, particle_steps(result, course, user))


def particle_steps(result: FilterResult, course: Course, user: str) -> list[ParticleStep]:
    """Return the steps of a result as weighted particles."""
    particles, weights = particles_of(result)
    rows = zip(course.last, course.transitions, strict=True)
    return [ParticleStep(particles[row], weights[row], transition, user) for row, transition in rows]


class ParticleStep(NamedTuple):
    """The weighted particles of a step, and the transition from there (a `FilteredStep`)."""

    particles: Array
    weights: Array
    onward: Transition
    user: str

    @property
    def belief(self) -> Horizons:
        """See `FilteredStep`."""
        return (self.weights[None],)

    def back(self, after: Any, later: Horizons) -> Horizons:
        """Carry weights (K, m) of the m particles of the next step to the n of this one, (K, n)."""
        x, (weights,) = self.particles, later
        backward = backward_weights(self.onward, x, self.weights, self.user)
        used = np.flatnonzero(weights.any(axis=0))
        found = np.zeros((len(weights), len(x)))
        size = rows_at_once(x)
        for part in (used[start : start + size] for start in range(0, len(used), size)):
            shares = backward(after.particles[part])
            shares -= shares.max(axis=1, keepdims=True)
            np.exp(shares, out=shares)
            found += (weights[:, part] / shares.sum(axis=1)) @ shares
        return (found / found.sum(axis=1, keepdims=True),)

    def moments(self, belief: Horizons) -> tuple[Array, Array]:
        """See `FilteredStep`."""
        return moments(self.particles, belief[0][0], circular_dims(self.onward.model))


def rows_at_once(x: Array) -> int:
    """Return the number of next states in a chunk, for states x (n, d)."""
    return max(CHUNK_SIZE // x.size, 1)


def backward_weights(transition: Transition, x: Array, weights: Array, user: str) -> Callable[[Array], Array]:
    """Return a function of next states that gives the backward log-weights of states x (n, d) with weights (n,).

    It takes x_next (m, d) to the logarithms of w_i p(x_next_j | x_i), (m, n), each row up to a constant. It raises
    UnreachableStateError if a next state cannot be reached.
    """
    from scipy.spatial.distance import cdist

    model, step, circular = transition.model, transition.step, transition.circular
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    given = hasattr(model, "transition_log_density")
    if not given:
        mean = transition.mean(x)
        # W with W' W the inverse of the covariance, whose units may differ by many orders of magnitude
        scale = np.sqrt(np.maximum(np.diagonal(transition.covariance), 0.0))
        divisor = np.where(scale > 0, scale, 1.0)
        correlation = transition.covariance / np.outer(divisor, divisor)
        rank = np.count_nonzero(np.linalg.eigvalsh(correlation) > SMALLEST_EIGENVALUE)
        if rank < len(scale):
            raise ValueError(
                f"transition_covariance: {user} needs a transition density, so a covariance of full rank, {len(scale)}; "
                f"got rank {rank} at step {step}"
            )
        whitening = np.linalg.inv(np.linalg.cholesky(correlation)) / scale

    def log_backward_weights(x_next: Array) -> Array:
        if given:
            values = model.transition_log_density(x_next, x, transition.dt, transition.control, step)
            log_densities = read_numbers("transition_log_density", values, (len(x_next), len(x)), step)
            invalid = np.count_nonzero(np.isnan(log_densities) | (log_densities == np.inf))
            if invalid:
                raise ValueError(
                    f"transition_log_density: expected values below infinity from the model at step {step}, got {invalid} "
                    f"NaN or +inf of {log_densities.size}"
                )
        elif circular:
            z = wrap_angles(x_next[:, None] - mean, circular) @ whitening.T
            log_densities = -0.5 * np.einsum("mni,mni->mn", z, z)
        else:
            centre = mean[0]  # large numbers of one sign would leave their differences few digits
            log_densities = -0.5 * cdist((x_next - centre) @ whitening.T, (mean - centre) @ whitening.T, "sqeuclidean")
        backward: Array = log_weights + log_densities
        if (backward.max(axis=1) == -np.inf).any():
            raise UnreachableStateError(step - 1, len(x))
        return backward

    return log_backward_weights
